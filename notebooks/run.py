"""Executes notebooks into HTML, one line each: `python run.py OUT NOTEBOOK…`; exit code 1 if one of them fails."""

import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter

# A page stands alone: it may load nothing, and runs no script. Pictures are drawn for white paper: in the dark they are
# turned, hues and all; where the window is narrow they keep a size at which their letters are read, and scroll.
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>
:root {{ color-scheme: light dark; --ink: #22303c; --paper: #fff; --soft: #f4f6f7; --line: #dfe4e8; --quiet: #61707d; }}
body {{ font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1020px;
  margin: 2em auto 4em; padding: 0 1em; }}
h1, h2 {{ line-height: 1.25; }} h2 {{ margin-top: 2em; }} a {{ color: #2b6491; }} .anchor-link, .prompt {{ display: none; }}
pre, code {{ font: 13px/1.5 ui-monospace, monospace; }} p code, li code {{ background: var(--soft); padding: .1em .3em; }}
.highlight {{ background: var(--soft); border-left: 3px solid var(--line); padding: .1em .8em; }}
.highlight pre, .output_area, .output_text pre {{ overflow-x: auto; }}
.output_area {{ margin: .8em 0; }} .output_stderr pre {{ color: #bf4f3a; white-space: pre-wrap; }}
.output_png {{ overflow-x: auto; }} .output_png img {{ display: block; width: 100%; min-width: 640px; height: auto; }}
table {{ border: 0; border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25em .8em; text-align: right; border: 0 solid var(--line); border-bottom-width: 1px; }}
.dataframe :is(th, td) {{ white-space: nowrap; }}
{light}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #d8dee4; --paper: #14181d; --soft: #1c2229; --line: #333d47; --quiet: #93a1ae; }}
  a {{ color: #7fb3da; }} .output_png img {{ filter: invert(.91) hue-rotate(180deg); }}
  {dark}
}}
@media (min-width: 2200px) {{ body {{ font-size: 19px; max-width: 1240px; }} pre, code, table {{ font-size: 15.5px; }} }}
</style></head><body>
{body}
</body></html>
"""


def page_of(notebook, title: str) -> str:
    """The notebook as a page that loads nothing."""
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook, {"metadata": {"name": title}})
    light, dark = (HtmlFormatter(style=style, nobackground=True).get_style_defs(".highlight") for style in ("xcode", "nord"))
    page = PAGE.format(title=title, body=body, light=light, dark=dark)
    if loaded := re.findall(r"<(?:script|link|iframe)|<[^>]*\bsrc(?:set)?=.(?!data:)[^>]{0,60}", page):
        raise ValueError(f"{title} would load {loaded[:3]}: a page stands alone")
    return page


def run(source: Path, out: Path) -> bool:
    """One notebook, executed in its own folder; what it came to is written even where a cell fails."""
    begun = time.monotonic()
    notebook = nbformat.read(source, as_version=4)
    place = {"metadata": {"path": str(source.parent)}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(notebook, timeout=900, kernel_name="python3", resources=place, extra_arguments=quiet)
    problem = None
    try:
        client.execute()
    except Exception as error:  # a failing cell, a dead kernel, a timeout: the next notebook runs all the same
        problem = str(error)
    (out / f"{source.stem}.html").write_text(page_of(notebook, source.stem), encoding="utf8")
    print(f"{source.name:<28}{time.monotonic() - begun:6.1f} s{'' if problem is None else '  FAILED'}", flush=True)
    if problem is not None:
        print(problem, file=sys.stderr, flush=True)
    return problem is None


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    results = [run(Path(name).resolve(), target) for name in sys.argv[2:]]
    sys.exit(0 if all(results) else 1)
