"""Runs what a page shows and keeps or compares its outputs: `python page.py DEST PAGE [--write]`.

A page is a notebook, whose code cells are run in one Spark session, or Markdown, whose blocks of Python are run in a folder
elsewhere and make a session of ClickHouse, in which its blocks of SQL are run, the block of text behind each being its output. DEST is the folder of the published tables.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import readers


def run_notebook(page, dest):
    """The notebook with the outputs of this run."""
    notebook = json.loads(page.read_text())
    readers.spark_session()
    names = {"__name__": "__main__"}
    os.environ["PITLAKE_TABLES"] = str(dest)
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("".join(cell["source"]), f"cell {count}", "exec"), names)
        lines = said.getvalue().splitlines(keepends=True)
        cell["execution_count"] = count
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run_markdown(page, dest):
    """The page with the outputs of this run."""
    os.environ["PITLAKE_TABLES"] = str(dest)
    names = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as elsewhere:
        # As somebody would who is in a folder of their own.
        os.chdir(elsewhere)
        for code in re.findall(r"```python\n(.*?)```\n", page.read_text(), flags=re.DOTALL):
            exec(compile(code, page.name, "exec"), names)
    clickhouse = names["clickhouse"]

    def said(block):
        sql, out = block[1], ""
        for statement in sql.split(";\n"):
            if statement.strip():
                out = str(clickhouse.query(statement, "PrettySpaceNoEscapesMonoBlock"))
        shown = "\n".join(line.rstrip() for line in out.rstrip().splitlines())
        return f"```sql\n{sql}```\n\n```text\n{shown}\n```\n"

    # A block of SQL without an output behind it is not run: the middle must not reach over the end of its block.
    shown_with_output = r"```sql\n((?:(?!```).)*)```\n\n```text\n.*?```\n"
    return re.sub(shown_with_output, said, page.read_text(), flags=re.DOTALL)


def main():
    dest, page = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    kept = page.read_text()
    ran = (run_notebook if page.suffix == ".ipynb" else run_markdown)(page, dest)
    if "--write" in sys.argv:
        page.write_text(ran)
    elif ran != kept:
        old, new = kept.splitlines(), ran.splitlines()
        first = next((n for n, (one, other) in enumerate(zip(old, new)) if one != other), min(len(old), len(new)))
        sys.exit(f"{page.name}, line {first + 1}: kept {old[first:first + 1]}, now {new[first:first + 1]}")


if __name__ == "__main__":
    main()
