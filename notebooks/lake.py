"""The lake in these notebooks: the package `pitlake`, its answers as pandas frames, and pictures in one style.

    from lake import sql, points, panel, universe, calendar

Each asks a lake of its own, in the state that is named (`as_of=` and the like); the folder is that of `PITLAKE_DATA`, else
`../data`. With `polars=True` answers are polars frames. `pitlake()` runs the command line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "python"))

import pitlake as package  # noqa: E402
from pitlake import LakeError, LakeWarning  # noqa: E402, F401

STATE = ("as_of", "observed_as_of", "backfill", "registry_backfill")


def folder() -> Path:
    """The lake's folder."""
    return Path(os.environ.get("PITLAKE_DATA") or PROJECT / "data").resolve()


def asked(question, options, *arguments, data=None, polars=False):
    """The answer of a lake in the state that the options name, as a frame."""
    state = {name: options.pop(name) for name in STATE if name in options}
    with package.open(data or folder(), progress=False, **state) as lake:
        answer = question(lake)(*arguments, **options)
        return answer.pl() if polars else answer.df()


def sql(query, *, data=None, polars=False, **options):
    """The rows of a query; `frames` lends DataFrames to it by name."""
    return asked(lambda lake: lake.sql, options, query, data=data, polars=polars)


def points(metric, assets=None, interval=None, *, polars=False, **options):
    """The stored points of a metric, oldest first, each with the instants at which it could be known and was stored."""
    return asked(lambda lake: lake.points, options, metric, assets, interval, polars=polars)


def panel(decisions, metrics, interval="24h", *, polars=None, **options):
    """Each decision with one column a metric: the latest value that was knowable at `ts`; in the kind of the decisions."""
    own = type(decisions).__module__.startswith("polars") if polars is None else polars
    return asked(lambda lake: lake.panel, options, decisions, metrics, interval, polars=own)


def calendar(since, until, step="1 day", assets=None):
    """A grid of decisions, UTC, `until` excluded; with `assets` one row for each asset and instant."""
    return asked(lambda lake: lake.calendar, {}, since, until, step, assets)


def universe(at=None, *, polars=False, **options):
    """The tokenized products that were known at an instant (default: now), retired ones included."""
    return asked(lambda lake: lake.universe, options, at, polars=polars)


class Run:
    """What a command said: `code`, `text`, and `json` where it was asked for with `--json`."""

    def __init__(self, done: subprocess.CompletedProcess[str]):
        self.code, self.text, self.notes = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.text)

    def __repr__(self) -> str:
        return f"{self.text}{self.notes}exit code {self.code}"


def command(*arguments: str) -> list[str]:
    """The words that run the command line of this project."""
    return ["node", str(PROJECT / "scripts" / "launch.cjs"), *map(str, arguments)]


def pitlake(*arguments: str, data: Path | str | None = None, env: dict[str, str] | None = None) -> Run:
    """Runs `pitlake …` on the lake, or on the one in `data`, and waits for it."""
    surroundings = {**os.environ, **(env or {}), "PITLAKE_DATA": str(data or folder())}
    return Run(subprocess.run(command(*arguments), env=surroundings, capture_output=True, text=True, timeout=900))


INK, GREY, PALE = "#22303c", "#8a96a3", "#dfe4e8"
BLUE, RED, GREEN, GOLD, VIOLET = "#2b6491", "#bf4f3a", "#3c8878", "#c79a3b", "#74639b"


def picture(rows: int = 1, columns: int = 1, *, height: float = 3.8, **options):
    """A figure and its axes in the style of these notebooks."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "figure.dpi": 110, "font.size": 9.5, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
        "axes.titlepad": 10, "axes.edgecolor": GREY, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
        "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": PALE,
        "grid.linewidth": 0.7, "axes.axisbelow": True, "lines.linewidth": 1.6, "legend.frameon": False,
        "axes.prop_cycle": plt.cycler(color=[BLUE, RED, GREEN, GOLD, VIOLET, GREY]), "axes.formatter.useoffset": False,
    })
    return plt.subplots(rows, columns, figsize=(9.2, height * rows), layout="constrained", **options)


def shown(figure):
    """What a cell ends with so that its picture is seen: marimo shows what a cell ends with, Jupyter whatever was drawn."""
    marimo = sys.modules.get("marimo")
    return figure if marimo is not None and marimo.running_in_notebook() else None


def dates(*axes) -> None:
    """Legible date axes: few ticks, the year said once."""
    import matplotlib.dates as mdates

    for axis in axes:
        locator = mdates.AutoDateLocator(minticks=4, maxticks=9)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
