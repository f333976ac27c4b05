"""Converts a notebook to marimo and runs it as a program: usage: PITLAKE_DATA=LAKE python marimo_run.py NOTEBOOK SCRATCH"""

import base64
import re
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
assert shown.count('"text/html"') >= 3, "the page has no tables"
pictures = [base64.b64decode(text) for text in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", shown)]
# Each as wide as `picture` makes it, at marimo's own resolution or more.
drawn = [int.from_bytes(one[16:20], "big") for one in pictures if one.startswith(b"\x89PNG")]
assert len([width for width in drawn if width > 500]) == 3, f"not three pictures, but of width {drawn}"
assert "application/vnd.marimo+error" not in shown, "a cell failed"
print(f"{notebook.name} ran in marimo, with its pictures")
