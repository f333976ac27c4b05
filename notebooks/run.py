"""Executes notebooks into HTML, one line each: `python run.py OUT NOTEBOOK…`; exit code 1 if one of them fails."""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter


def run(source: Path, out: Path) -> bool:
    """One notebook, executed in its own folder; what it came to is written even where a cell fails."""
    begun = time.monotonic()
    notebook = nbformat.read(source, as_version=4)
    place = {"metadata": {"path": str(source.parent)}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=place, extra_arguments=quiet)
    problem = None
    try:
        client.execute()
    except Exception as error:  # a failing cell, a dead kernel, a timeout: the next notebook runs all the same
        problem = str(error)
    page, _ = HTMLExporter().from_notebook_node(notebook, {"metadata": {"name": source.stem}})
    (out / f"{source.stem}.html").write_text(page, encoding="utf8")
    print(f"{source.name:<28}{time.monotonic() - begun:6.1f} s{'' if problem is None else '  FAILED'}", flush=True)
    if problem is not None:
        print(problem, file=sys.stderr, flush=True)
    return problem is None


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    results = [run(Path(name).resolve(), target) for name in sys.argv[2:]]
    sys.exit(0 if all(results) else 1)
