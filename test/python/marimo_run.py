"""Converts a notebook to marimo and runs it as a program: usage: PITLAKE_DATA=LAKE python marimo_run.py NOTEBOOK SCRATCH"""

import subprocess
import sys
from pathlib import Path

notebook, scratch = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
scratch.mkdir(parents=True, exist_ok=True)
app = scratch / f"{notebook.stem}.py"
app.unlink(missing_ok=True)
marimo = [sys.executable, "-m", "marimo", "-q"]
subprocess.run([*marimo, "convert", str(notebook), "-o", str(app)], check=True)
# Every cell once, in the order of what it needs; a cell that fails or a name that two cells define ends it.
page = scratch / f"{notebook.stem}.marimo.html"
subprocess.run([*marimo, "export", "html", str(app), "-o", str(page), "-f", "--no-sandbox"], check=True, cwd=notebook.parent)
shown = page.read_text(encoding="utf8")
# marimo shows what a cell ends with: its tables, not figures that were drawn on the way.
assert shown.count('"text/html"') >= 3, "the page has no tables"
assert "application/vnd.marimo+error" not in shown, "a cell failed"
print(f"{notebook.name} ran in marimo")
