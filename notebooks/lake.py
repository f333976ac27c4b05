"""The lake in a notebook.

    from lake import sql, points, panel, universe, calendar

Every function reads `lake.duckdb` and nothing else, and takes `as_of=`: what was knowable at that instant. Results are
pandas DataFrames with UTC instants; with `polars=True` polars ones, where polars is installed. An answer in which nothing
was found warns (LakeWarning) and names what may have been meant. The lake is found in `PITLAKE_DATA`, else in `../data`.
`pitlake()` runs the command line, `picture()` draws in one style.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import warnings
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd

Moment = str | date | datetime | None
Span = str | timedelta | None
INTERVALS = ("10m", "1h", "24h", "1w", "1month")
DIMENSIONS = ("currency", "exchange", "network")
MEMBER = ("asset", "product_id", "name", "symbol", "isin", "status", "issuer_id", "asset_id", "valid_from", "assumed")
OFTEN_NULL = {*DIMENSIONS, "o", "extra", "computed_at", "component"}
PROJECT = Path(__file__).resolve().parent.parent


class LakeError(ValueError):
    """A question that the lake cannot answer; the message says what was expected."""


class LakeWarning(UserWarning):
    """An answer in which nothing was found, and what may have been meant."""


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
        found = rows_of(connection, query, polars)
        if len(found) == 0 or any(is_empty(found, name) for name in found.columns if name not in OFTEN_NULL):
            warn(doubts(connection, query))
        return found


def points(metric: str, assets: str | list[str] | None = None, interval: str | None = None, *, currency: str | None = None,
           exchange: str | None = None, network: str | None = None, since: Moment = None, until: Moment = None,
           polars: bool = False, **variables):
    """The stored points of a metric, oldest first, each with the instants at which it could be known and was stored.

    What is not named is the catalogue's default, as in the joins; `"*"` means all.
    """
    given = {"interval": interval, "currency": currency, "exchange": exchange, "network": network}
    with connect(**variables) as connection:
        wanted = {name: value if value is not None else standard_of(connection, metric, name)
                  for name, value in given.items()}
        where = [f"metric = {quote(metric)}"]
        where += [f'"{name}" = {quote(value)}' for name, value in wanted.items() if value not in (None, "*")]
        where += [f"asset IN ({listed(assets)})"] if assets else []
        where += [f"t >= TIMESTAMPTZ {quote(utc_text(since))}"] if since is not None else []
        where += [f"t < TIMESTAMPTZ {quote(utc_text(until))}"] if until is not None else []
        source = "price_usd" if metric == "price_usd" else "points"
        order = 'asset, "interval", currency, exchange, network, t'
        found = rows_of(connection, f"SELECT * FROM {source} WHERE {' AND '.join(where)} ORDER BY {order}", polars)
        if len(found) == 0:
            dimensions = {name: value for name, value in wanted.items() if name in DIMENSIONS}
            names = [assets] if isinstance(assets, str) else assets or []
            warn([why_empty(connection, metric, wanted["interval"], names, dimensions, None)])
        return found


def calendar(since: Moment, until: Moment, step: str = "1 day", assets: str | list[str] | None = None) -> pd.DataFrame:
    """A grid of decisions, UTC, `until` excluded; with `assets` one row for each asset and instant."""
    grid = f"SELECT ts FROM calendar({quote(utc_text(since))}, {quote(utc_text(until))}, {quote(step)})"
    if not assets:
        return sql(f"{grid} ORDER BY ts")
    return sql(f"SELECT ts, asset FROM ({grid}), (SELECT unnest([{listed(assets)}]) AS asset) ORDER BY ts, asset")


def panel(decisions, metrics: str | list[str] | dict[str, str], interval: str = "24h", *, currency: str | None = None,
          exchange: str | None = None, network: str | None = None, component: str | None = None, latency: Span = None,
          max_age: Span = None, skip_nulls: bool = False, universe: str | None = None, polars: bool | None = None, **variables):
    """Each decision (`ts`, `asset`) with one column a metric: the latest value that was knowable at `ts`.

    Decisions are a pandas or polars frame (the answer is of the same kind), `ts` and `asset` may be its index. All its
    columns come back. `metrics` may be a dict {column: metric}; `path#/pointer` takes one component of nested values.
    With `universe`, a condition on the columns of the view of that name, decisions have no asset: each `ts` is decided
    about the products that met the condition then.
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    named = dict(names) if isinstance(names, dict) else {name: name for name in names}
    if not named:
        raise LakeError("panel: expected at least one metric")
    if interval not in INTERVALS:
        raise LakeError(f"panel: expected interval as one of {', '.join(INTERVALS)}, got {interval!r}")
    frame = flat(decisions, ("ts",) if universe else ("asset", "ts"))
    own = [str(name).lower() for name in frame.columns]
    clash = [column for column in named if column.lower() in [*own, *(MEMBER if universe else [])]]
    clash += [name for name in own if universe and name in MEMBER]
    if clash:
        raise LakeError(f"panel: the decisions have a column {clash[0]!r} already; rename it, or the metric's by a dict")
    key = "_pit_row"
    while key in own:
        key += "_"
    spans = {"latency": latency, "max_age": max_age}
    texts = {"currency": currency, "exchange": exchange, "network": network, "component": component}
    options = [f"{name} := {quote(value)}" for name, value in texts.items() if value is not None]
    options += [f"{name} := INTERVAL {quote(span_text(value))}" for name, value in spans.items() if value is not None]
    options += ["skip_nulls := true"] if skip_nulls else []
    call = ", ".join(["_pit_asked", f"[{listed(list(named.values()))}]", quote(interval), *options])
    cells = [f"max(v) FILTER (WHERE metric = {quote(metric)}) AS {quote_name(column)}" for column, metric in named.items()]
    query = f"""WITH _pit_asked AS MATERIALIZED (SELECT {key}, asset, ts FROM _pit_decisions),
        wide AS (SELECT {key}, {', '.join(cells)} FROM pit_long({call}) GROUP BY {key})
        SELECT own.* EXCLUDE ({key}), wide.* EXCLUDE ({key}) FROM _pit_decisions AS own JOIN wide USING ({key}) ORDER BY {key}"""
    with connect(**variables) as connection:
        connection.register("_pit_given" if universe else "_pit_decisions", numbered(frame, key))
        try:
            if universe:
                connection.execute(f"CREATE TEMP TABLE _pit_decisions AS {members(connection, universe, key)}")
            found = rows_of(connection, query, is_polars(frame) if polars is None else polars)
        except duckdb.Error as error:
            raise LakeError(f"panel: {str(error).partition('Error: ')[2] or error}") from None
        doubted = []
        for column, metric in named.items():
            assets = empty_assets(found, column)
            if assets:
                dimensions = {name: value for name, value in texts.items() if name in DIMENSIONS}
                everywhere = is_empty(found, column)
                doubted.append(why_empty(connection, metric, interval, assets, dimensions, component, everywhere))
        warn(doubted)
        return found


def universe(at: Moment = None, *, polars: bool = False, registry_backfill: bool = False):
    """The tokenized products that were known at an instant (default: now), retired ones included."""
    query = "SELECT * FROM universe ORDER BY product_id"
    return sql(query, polars=polars, as_of=at, registry_backfill=registry_backfill)


def members(connection: duckdb.DuckDBPyConnection, condition: str, key: str) -> str:
    """The decisions about what met a condition at each of the given instants, and the metric assets that it was linked to."""
    connection.execute(f"SELECT product_id FROM universe WHERE (\n{condition}\n)")
    ts = "CASE WHEN typeof(ts) IN ('TIMESTAMP WITH TIME ZONE', 'VARCHAR') THEN CAST(CAST(ts AS VARCHAR) AS TIMESTAMPTZ)"
    moments = f"SELECT * REPLACE ({ts} ELSE CAST(ts AS TIMESTAMPTZ) END AS ts) FROM _pit_given"
    first, start, early = connection.execute(
        f"""SELECT min(ts)::VARCHAR, any_value(known_since)::VARCHAR,
          count(ts) > 0 AND NOT coalesce(min(ts) >= any_value(known_since), false)
          AND NOT coalesce(CAST(getvariable('registry_backfill') AS BOOLEAN), false)
        FROM ({moments}) LEFT JOIN registry_start ON true"""
    ).fetchone()
    if early:
        known = f"instants from {start} on, when the registry was first known" if start else "a registry: it is not known yet"
        raise LakeError(f"panel: expected {known}, got {first}; registry_backfill=True lets the first snapshot stand in")
    return f"""WITH _pit_moments AS ({moments}), _pit_met AS (
          SELECT DISTINCT member.*, link.metric_asset FROM pit_universe('_pit_moments', (\n{condition}\n)) AS member
          LEFT JOIN links AS link ON link.product_id = member.product_id
            AND link.valid_from <= member.ts AND member.ts < link.valid_to)
        SELECT row_number() OVER (ORDER BY {key}, product_id, metric_asset) AS {key}, metric_asset AS asset,
          * EXCLUDE ({key}, metric_asset) FROM _pit_met"""


def is_polars(frame) -> bool:
    return type(frame).__module__.split(".")[0] == "polars"


def flat(decisions, keys: tuple[str, ...]):
    """The decisions as a frame whose columns hold `ts` and `asset`, wherever they stood."""
    frame = decisions.collect() if is_polars(decisions) and hasattr(decisions, "collect") else decisions
    if isinstance(frame, pd.DataFrame):
        if "ts" not in frame.columns and isinstance(frame.index, pd.DatetimeIndex) and frame.index.name is None:
            frame = frame.rename_axis("ts")
        levels = [name for name in ("ts", "asset") if name in frame.index.names and name not in frame.columns]
        frame = (frame.reset_index(level=levels) if levels else frame).reset_index(drop=True)
    elif not is_polars(frame):
        raise LakeError(f"panel: expected decisions as a pandas or polars frame, got {type(decisions).__name__}")
    lacking = [name for name in keys if name not in [str(column).lower() for column in frame.columns]]
    if lacking:
        raise LakeError(f"panel: the decisions have no column {' and no '.join(lacking)}, but {', '.join(map(str, frame.columns))}")
    return frame


def numbered(frame, key: str):
    """The frame with the number of each row."""
    return frame.with_row_index(key) if is_polars(frame) else frame.assign(**{key: range(len(frame))})


def rows_of(connection: duckdb.DuckDBPyConnection, query: str, polars: bool):
    result = connection.sql(query)
    if result is None:
        return pd.DataFrame()
    return result.pl() if polars else in_utc(result.df())


def is_empty(frame, column: str) -> bool:
    """Whether there are rows, and nothing in the column."""
    return len(frame) > 0 and bool((frame[column].is_null() if is_polars(frame) else frame[column].isna()).all())


def empty_assets(frame, column: str) -> list[str]:
    """The assets for which the column holds nothing."""
    own = next(name for name in frame.columns if str(name).lower() == "asset")
    if is_polars(frame):
        full = frame.filter(frame[column].is_not_null())[own].unique().to_list()
        return sorted(set(frame[own].drop_nulls().unique().to_list()) - set(full))
    return sorted(set(frame[own].dropna()) - set(frame.loc[frame[column].notna(), own].dropna()))


def warn(doubts: list[str | None]) -> None:
    """Warns at the line that asked."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame, level = frame.f_back, level + 1
    for doubt in dict.fromkeys(filter(None, doubts)):
        warnings.warn(doubt, LakeWarning, stacklevel=level)


def near(word: str, known: list[str], many: int = 1) -> str:
    """What may have been meant, as the end of a sentence."""
    same = [name for name in known if name.lower() == word.lower()]
    meant = same or difflib.get_close_matches(word, known, many, 0.5)
    if meant:
        return f"; did you mean {' or '.join(repr(name) for name in meant)}?"
    return f"; there {'is' if len(known) == 1 else 'are'} {', '.join(map(repr, known[:6]))}" if known else ""


def metrics_of(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [*(row[0] for row in connection.execute("SELECT metric FROM endpoints ORDER BY 1").fetchall()), "price_usd"]


def standard_of(connection: duckdb.DuckDBPyConnection, metric: str, name: str) -> str | None:
    """The catalogue's default of a metric for `interval` or a dimension."""
    if metric == "price_usd" and name != "interval":
        return None
    path = "supply/current_pit" if metric == "price_usd" else metric
    row = connection.execute(f"SELECT default_{name} FROM endpoints WHERE metric = ?", [path]).fetchone()
    return row[0] if row else None


def why_empty(connection: duckdb.DuckDBPyConnection, name: str, interval: str | None, assets: list[str],
              dimensions: dict[str, str | None], component: str | None, everywhere: bool = True) -> str | None:
    """Why a metric may have told nothing of these assets; None where the lake just had nothing to tell."""
    path, _, pointer = name.partition("#")
    pointer = pointer or component
    known = metrics_of(connection)
    if path not in known:
        return f"unknown metric {path!r}{near(path, known)}"
    stored = "supply/current_pit" if path == "price_usd" else path
    connection.execute("SET VARIABLE as_of = NULL")
    rows = connection.execute(
        'SELECT DISTINCT "interval", asset, currency, exchange, network FROM points WHERE metric = ?', [stored]
    ).fetchall()
    if not rows:
        return f"the lake holds nothing of {path!r}: fetch it first"
    held = [row for row in rows if interval in (None, "*", row[0])]
    if not held:
        return f"{path!r} is not held at {interval}{near(str(interval), sorted({row[0] for row in rows}))}"
    own = sorted({row[1] for row in held})
    lost = [asset for asset in assets if asset not in own]
    if lost:
        return f"nothing is held of {path!r} for asset {lost[0]!r}{near(str(lost[0]), own)}"
    for place, dimension in enumerate(DIMENSIONS, 2):
        wanted = dimensions.get(dimension) or standard_of(connection, path, dimension)
        there = sorted({row[place] for row in held if row[place] is not None})
        if there and wanted not in (None, "*", *there):
            return f"nothing is held of {path!r} with {dimension} {wanted!r}{near(str(wanted), there)}"
    return why_null(connection, path, pointer) if everywhere and path != "price_usd" else None


def why_null(connection: duckdb.DuckDBPyConnection, path: str, pointer: str | None) -> str | None:
    """Whether a metric of objects was asked without a part of them, or for one that there is not."""
    known = [row[0] for row in connection.execute(
        "SELECT DISTINCT component FROM (SELECT component FROM components WHERE metric = ? LIMIT 5000) ORDER BY 1", [path]
    ).fetchall()]
    if not known:
        return f"{path!r} holds plain numbers: ask it without #{pointer}" if pointer else None
    if not pointer:
        parts = " or ".join(repr(f"{path}#{part}") for part in known[:2])
        return f"{path!r} holds objects or lists: ask for a part of them, such as {parts}"
    return None if pointer in known else f"{path!r} has no part {pointer!r}{near(pointer, known, 2)}"


def parsed(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict]:
    """Every node of the query as DuckDB reads it; none where it is no SELECT."""
    row = connection.execute("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", [query]).fetchone()
    return list(nodes(json.loads(row[0]).get("statements", [])))


def nodes(root):
    """The objects below a value, the outer before the inner."""
    if isinstance(root, dict):
        yield root
    for part in root.values() if isinstance(root, dict) else root if isinstance(root, list) else []:
        yield from nodes(part)


def texts_in(root) -> list[str]:
    """The constant texts below a node, each once."""
    found = [node["value"].get("value") for node in nodes(root) if node.get("class") == "CONSTANT"]
    return list(dict.fromkeys(text for text in found if isinstance(text, str)))


def compared(tree: list[dict], column: str) -> list[str]:
    """The texts that a column is compared with, by `=` or IN."""
    found: list[str] = []
    for node in tree:
        kind = node.get("type")
        parts = [node["left"], node["right"]] if kind == "COMPARE_EQUAL" else node["children"] if kind == "COMPARE_IN" else []
        if any((part.get("column_names") or [""])[-1].lower() == column for part in parts):
            found += [text for part in parts if part.get("class") == "CONSTANT" for text in texts_in(part)]
    return found


def doubt_of_filter(connection: duckdb.DuckDBPyConnection, metric: str, tree: list[dict]) -> str | None:
    """What a WHERE wants of a metric that is not held."""
    columns = ("interval", "asset", *DIMENSIONS)
    rows = connection.execute(
        'SELECT DISTINCT "interval", asset, currency, exchange, network FROM points WHERE metric = ?', [metric]
    ).fetchall()
    if not rows:
        return f"the lake holds nothing of {metric!r}: fetch it first"
    for place, column in enumerate(columns):
        there = sorted({row[place] for row in rows if row[place] is not None})
        for text in compared(tree, column):
            if text not in there:
                return f"nothing is held of {metric!r} {'for' if column == 'asset' else 'with'} {column} {text!r}{near(text, there)}"
    return None


def doubts_of_join(connection: duckdb.DuckDBPyConnection, call: dict) -> list[str | None]:
    """Why a join may have told nothing of its metrics."""
    named = {part["alias"].lower(): texts_in(part) for part in call["children"] if part.get("alias")}
    places = [texts_in(part) for part in call["children"] if not part.get("alias")]
    first = call["function_name"].lower() == "resample"
    metrics, intervals = (places + [[], [], []])[0 if first else 1], [] if first else (places + [[], [], []])[2]
    option = {name: (named.get(name) or [None])[0] for name in (*DIMENSIONS, "component")}
    component = option.pop("component")
    return [why_empty(connection, metric, (intervals or [None])[0], [], option, component) for metric in metrics]


def doubts(connection: duckdb.DuckDBPyConnection, query: str) -> list[str | None]:
    """What may be wrong with a query that found nothing, by the texts in it."""
    tree = parsed(connection, query)
    calls = [node for node in tree if isinstance(node.get("function_name"), str)]
    tables = {node["table_name"].lower() for node in tree if node.get("type") == "BASE_TABLE"}
    texts, known = texts_in(tree), metrics_of(connection)
    connection.execute("SET VARIABLE as_of = NULL")
    found: list[str | None] = []
    if "price_usd" in compared(tree, "metric") and "points" in tables:
        found.append("price_usd is a view of its own, not a metric of points: FROM price_usd")
    for call in calls:
        if call["function_name"].lower() in ("pit_join", "pit_long", "pit_window", "resample"):
            found += doubts_of_join(connection, call)
    for path in (text.partition("#")[0] for text in texts):
        if re.fullmatch(r"[a-z0-9_]+/[a-z0-9_]+", path, re.I) and path not in known:
            found.append(f"unknown metric {path!r}{near(path, known)}")
    wanted = [metric for metric in compared(tree, "metric") if metric in known and metric != "price_usd"]
    found += [doubt_of_filter(connection, metric, tree) for metric in wanted]
    if tables & {"universe", "products", "issuers", "deployments"} or "pit_universe" in [call["function_name"].lower() for call in calls]:
        start = connection.execute("SELECT CAST(min(known_since) AS VARCHAR) FROM registry_start").fetchone()[0]
        found.append(f"the registry knows nothing before its first snapshot{f', {start}' if start else ': there is none'}")
    assets = [row[0] for row in connection.execute("SELECT DISTINCT asset FROM points").fetchall()]
    found += [f"{text!r} is no asset{near(text, assets)}" for text in texts
              if text not in assets and text.lower() in [asset.lower() for asset in assets]]
    return found


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


def span_text(value: str | timedelta) -> str:
    """A duration as DuckDB reads it."""
    return f"{value.total_seconds()} seconds" if isinstance(value, timedelta) else value


def quote_name(name: str) -> str:
    """An SQL identifier."""
    return '"' + str(name).replace('"', '""') + '"'


def listed(names: str | list[str]) -> str:
    """SQL literals by comma."""
    return ", ".join(map(quote, [names] if isinstance(names, str) else names))


def quote(text: str) -> str:
    """An SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"
