"""The lake in a notebook.

    from lake import sql, points, panel, universe, calendar

Every function reads `lake.duckdb` and nothing else, and takes `as_of=`: what was knowable at that instant. Results are
pandas DataFrames with UTC instants; with `polars=True` polars ones, where polars is installed. The lake is found in
`PITLAKE_DATA`, else in `../data`. `pitlake()` runs the command line, `picture()` draws in one style.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date, datetime
from pathlib import Path

import duckdb
import pandas as pd

Moment = str | date | datetime | None
PROJECT = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """The lake's folder."""
    return Path(os.environ.get("PITLAKE_DATA") or PROJECT / "data").resolve()


def connect(as_of: Moment = None, observed_as_of: Moment = None, backfill: str | None = None,
            registry_backfill: bool = False, data: Path | str | None = None) -> duckdb.DuckDBPyConnection:
    """A read-only connection of its own; `as_of` moves every view back to what was knowable then."""
    database = Path(data or folder()) / "lake.duckdb"
    if not database.exists():
        raise FileNotFoundError(f"{database} is missing: run `make lake` or `pitlake views`, or set PITLAKE_DATA")
    connection = duckdb.connect(str(database), read_only=True)
    connection.execute("SET TimeZone = 'UTC'")
    for name, value in (("as_of", as_of), ("observed_as_of", observed_as_of)):
        if value is not None:
            connection.execute(f"SET VARIABLE {name} = {quote(utc_text(value))}")
    if backfill is not None:
        connection.execute(f"SET VARIABLE backfill = {quote(backfill)}")
    if registry_backfill:
        connection.execute("SET VARIABLE registry_backfill = true")
    return connection


def sql(query: str, *, polars: bool = False, frames: dict | None = None, **variables):
    """The rows of a query. `frames` lends DataFrames to it by name; `as_of=` and the like set session variables."""
    with connect(**variables) as connection:
        for name, frame in (frames or {}).items():
            connection.register(name, frame)
        result = connection.sql(query)
        return result.pl() if polars else in_utc(result.df())


def points(metric: str, assets: str | list[str] | None = None, interval: str = "24h", *, currency: str | None = None,
           since: Moment = None, until: Moment = None, polars: bool = False, **variables):
    """The stored points of a metric, oldest first, each with the instants at which it could be known and was stored."""
    where = [f"metric = {quote(metric)}", f'"interval" = {quote(interval)}']
    where += [f"asset IN ({listed(assets)})"] if assets else []
    where += [f"currency = {quote(currency)}"] if currency else []
    where += [f"t >= TIMESTAMPTZ {quote(utc_text(since))}"] if since is not None else []
    where += [f"t < TIMESTAMPTZ {quote(utc_text(until))}"] if until is not None else []
    source = "price_usd" if metric == "price_usd" else "points"
    order = "asset, currency, exchange, network, t"
    return sql(f"SELECT * FROM {source} WHERE {' AND '.join(where)} ORDER BY {order}", polars=polars, **variables)


def calendar(since: Moment, until: Moment, step: str = "1 day", assets: str | list[str] | None = None) -> pd.DataFrame:
    """A grid of decisions, UTC, `until` excluded; with `assets` one row for each asset and instant."""
    grid = f"SELECT ts FROM calendar({quote(utc_text(since))}, {quote(utc_text(until))}, {quote(step)})"
    if not assets:
        return sql(f"{grid} ORDER BY ts")
    return sql(f"SELECT ts, asset FROM ({grid}), (SELECT unnest([{listed(assets)}]) AS asset) ORDER BY ts, asset")


def panel(decisions: pd.DataFrame, metrics: str | list[str] | dict[str, str], interval: str = "24h", *,
          latency: str | None = None, max_age: str | None = None, polars: bool = False, **variables):
    """Each decision (`ts`, `asset`) with one column a metric: the latest value that was knowable at `ts`.

    `metrics` may be a dict {column: metric}; `path#/pointer` takes one component of nested values.
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    named = names if isinstance(names, dict) else {name: name for name in names}
    options = [f"{key} := INTERVAL {quote(value)}" for key, value in (("latency", latency), ("max_age", max_age)) if value]
    call = ", ".join(["_panel_rows", f"[{listed(list(named.values()))}]", quote(interval), *options])
    keyed = decisions.reset_index(drop=True).copy()
    keyed["_row"] = range(len(keyed))
    kept = [f'any_value("{name}") AS "{name}"' for name in decisions.columns]
    asked = [f'max(v) FILTER (WHERE metric = {quote(metric)}) AS "{column}"' for column, metric in named.items()]
    query = f"SELECT {', '.join(kept + asked)} FROM pit_long({call}) GROUP BY _row ORDER BY _row"
    return sql(query, polars=polars, frames={"_panel_rows": keyed}, **variables)


def universe(at: Moment = None, *, polars: bool = False, registry_backfill: bool = False):
    """The tokenized products that were known at an instant (default: now), retired ones included."""
    query = "SELECT * FROM universe ORDER BY product_id"
    return sql(query, polars=polars, as_of=at, registry_backfill=registry_backfill)


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
    return ["node", "-r", str(PROJECT / "scripts" / "node24.cjs"), str(PROJECT / "src" / "main.ts"), *map(str, arguments)]


def pitlake(*arguments: str, data: Path | str | None = None, env: dict[str, str] | None = None) -> Run:
    """Runs `pitlake …` on the lake, or on the one in `data`, and waits for it."""
    surroundings = {**os.environ, **(env or {}), "PITLAKE_DATA": str(data or folder())}
    return Run(subprocess.run(command(*arguments), env=surroundings, capture_output=True, text=True, timeout=300))


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


def dates(*axes) -> None:
    """Legible date axes: few ticks, the year said once."""
    import matplotlib.dates as mdates

    for axis in axes:
        locator = mdates.AutoDateLocator(minticks=4, maxticks=9)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))


def in_utc(frame: pd.DataFrame) -> pd.DataFrame:
    """Instants in UTC, whatever the machine's zone; infinity, the end of what is still open, becomes NaT."""
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.DatetimeTZDtype):
            own = frame[name].dt.tz_convert("UTC")
            frame[name] = own.where(own.dt.year.between(1, 9999))
    return frame


def utc_text(value: Moment) -> str:
    """The text of an instant with its zone; what has none is UTC."""
    stamp = pd.Timestamp(value)
    return (stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")).isoformat()


def listed(names: str | list[str]) -> str:
    """SQL literals by comma."""
    return ", ".join(map(quote, [names] if isinstance(names, str) else names))


def quote(text: str) -> str:
    """An SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"
