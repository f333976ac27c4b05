"""Options of a question, refused in the words of every other interface, and its SQL, that of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import duckdb

from .errors import LakeError, meant_word, refusal
from .frames import ArrowDecisions
from .text import UNITS, Moment, Names, Span, listed, meant_span, moment_text, quote, quote_name, utc_sql

INSTANT = "an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC"
_SPAN = re.compile(r"(\d+)\s*(?:([smhdw])|(second|minute|hour|day|week)s?)", re.ASCII)
_EXCHANGE = re.compile(r"X[A-Z0-9]{3}(:(open|close))?")
_LOCAL_TIME = re.compile(r"daily at (?:[01]\d|2[0-3]):[0-5]\d \S+", re.ASCII)
_MONTHS = re.compile(r"([1-9]\d{0,3})\s*months?", re.ASCII)


def wrong(name: str, expected: str, value: object, fix: str = "") -> LakeError:
    """Builds the refusal of a value, which is shown as it was given."""
    return refusal(name, expected, "nothing" if value is None else json.dumps(value, ensure_ascii=False, default=str), fix)


def check_text(name: str, value: object) -> None:
    """Checks for a text, or None."""
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise wrong(name, "a text", value)


def check_switch(name: str, value: object) -> None:
    """Checks for true or false."""
    if isinstance(value, str) or value not in (True, False):
        raise wrong(name, "true or false", value)


def check_choice(name: str, value: object, words: Sequence[str]) -> None:
    """Checks for one of these words; the error names the nearest, for intervals the one of the same length."""
    if value in words:
        return
    raise wrong(name, ", ".join(words), value, meant_word(value, words) if isinstance(value, str) else "")


def utc_at(connection: duckdb.DuckDBPyConnection, name: str, value: Moment) -> str:
    """Builds the SQL of an instant, and checks that the lake can read it."""
    said = utc_sql(quote(moment_text(value)))
    try:
        connection.execute(f"SELECT ({said}) IS NULL").fetchall()
    except duckdb.Error:
        raise wrong(name, INSTANT, value) from None
    return said


def check_names(name: str, values: object) -> None:
    """Checks for names, at least one; None for all."""
    own = [values] if isinstance(values, str) else list(values) if isinstance(values, Iterable) else []
    if values is not None and not (own and all(isinstance(one, str) and one.strip() for one in own)):
        raise wrong(name, "names, at least one", values)


def span_sql(name: str, value: Span, months: bool = False, expected: str = "a time such as 15m or 2d") -> str:
    """Builds the SQL of a duration: a timedelta, `15m` as in commands, `15 minutes`, or 0; some may be months."""
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise wrong(name, expected, value)
        return f"to_microseconds({value // timedelta(microseconds=1)})"
    text = str(value).strip() if isinstance(value, str) or value == 0 and not isinstance(value, bool) else ""
    short, long = _SPAN.fullmatch(text), _MONTHS.fullmatch(text) if months else None
    if short:
        return f"to_seconds({int(short[1]) * UNITS[short[2] or short[3][0]]})"
    if text in ("0", "0.0") or long:
        return f"to_months({long[1]})" if long else "to_seconds(0)"
    near = meant_span(value, months) if isinstance(value, str) else None
    raise wrong(name, expected, value, f"did you mean `{near}`?" if near else "")


def step_sql(step: Span) -> str:
    """Builds the SQL of a calendar's step: a duration, an exchange whose sessions close then, or a local time."""
    return quote(step) if isinstance(step, str) and (_EXCHANGE.fullmatch(step) or _LOCAL_TIME.fullmatch(step)) else span_sql("step", step, months=True)


DIMENSIONS = ("currency", "exchange", "network")
AGGREGATES = ("mean", "sum", "median", "min", "max", "first", "last", "ohlc")
FIELDS = ("v", "o", "t", "available_at", "age")
MEMBER = ("asset", "product_id", "name", "symbol", "isin", "status", "issuer_id", "asset_id", "valid_from", "assumed")
UNIVERSE = ("product_id", "name", "symbol", "isin", "status", "issuer_id", "issuer_name", "issuer_status", "jurisdiction",
            "asset_id", "asset_name", "asset_class", "ticker", "deployments", "valid_from", "first_seen", "assumed", "chains")
"""Columns of the view `universe`."""
KEY = "_pit_decision"
FEW, TOGETHER = 16, 8
"""Maximum metrics that are distinguished at once, and in each of two steps."""
PRICE, PRICED = "price_usd", "supply/current_pit"

Standards = Mapping[str, Mapping[str, "str | None"]]


@dataclass(frozen=True)
class Options:
    """Options of a join other than metric and interval."""

    currency: str | None = None
    exchange: str | None = None
    network: str | None = None
    component: str | None = None
    latency: Span | None = None
    max_age: Span | None = None
    skip_nulls: bool = False
    unresolved: str | None = None
    vintage: str | None = None
    follow_renames: bool = False
    back: Span | None = None

    def __post_init__(self) -> None:
        for name in (*DIMENSIONS, "component"):
            check_text(name, getattr(self, name))
        check_switch("skip_nulls", self.skip_nulls)
        check_switch("follow_renames", self.follow_renames)
        words = {"unresolved": ("value", "null"), "vintage": ("last", "first")}
        for name, choices in words.items():
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), choices)
        self.arguments()

    def arguments(self) -> list[str]:
        """Formats the options as a macro takes them."""
        texts = {name: getattr(self, name) for name in (*DIMENSIONS, "component", "unresolved", "vintage")}
        named = [f"{name} := {quote(value)}" for name, value in texts.items() if value is not None]
        spans = {"max_age": self.max_age, "latency": self.latency}
        named += [f"{name} := {span_sql(name, value)}" for name, value in spans.items() if value is not None]
        if self.back is not None:
            named.append(f"back := {span_sql('back', self.back, months=True, expected='a span such as 90d or 3month')}")
        switches = {"skip_nulls": self.skip_nulls, "follow_renames": self.follow_renames}
        return named + [f"{name} := true" for name, value in switches.items() if value]

    def dimensions(self) -> dict[str, str | None]:
        return {name: getattr(self, name) for name in DIMENSIONS}


@dataclass(frozen=True)
class Decided:
    """Decisions of a caller in a temporary table, or in a table of Arrow under such a name, each with its number."""

    session: duckdb.DuckDBPyConnection
    """The session that has the table."""
    table: str
    names: Sequence[str]
    """Columns of the caller."""
    arrow: ArrowDecisions | None
    """The decisions that DuckDB reads where they are; None for those that it has in a table of its own."""

    @property
    def hidden_names(self) -> bool:
        """Whether a column has a name of those that the joins use within themselves."""
        return any(name.lower().startswith("_pit_") for name in self.names)


def named_metrics(metrics: Names | Mapping[str, str]) -> dict[str, str]:
    """Maps columns to metrics."""
    expected = "paths of metrics, each metric once"
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    named = dict(metrics) if isinstance(metrics, Mapping) else {name: name for name in names}
    strange = next((one for one in named.values() if not (isinstance(one, str) and one.strip())), None)
    if not named or strange is not None:
        raise wrong("metrics", expected, strange)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise refusal("metrics", expected, twice)
    return named


def cells_of(named: Mapping[str, str], fields: Sequence[str]) -> list[tuple[str, str, str]]:
    """Lists column, metric and field of each cell that a panel adds."""
    return [(name if one == "v" else f"{name}.{one}", metric, one) for name, metric in named.items() for one in fields]


def first_rows_sql(table: str, count: int) -> str:
    """Builds the SQL of the first of the numbered decisions, for FROM."""
    # In the order of the table: a sort would read it all.
    return f"(FROM {table} LIMIT {count})"


def panel_sql(table: str, named: Mapping[str, str], interval: str, fields: Sequence[str], options: Options) -> str:
    """Builds the SQL of a panel over numbered decisions: a table, or some of its rows."""
    metrics = list(dict.fromkeys(named.values()))
    call = ", ".join(["_pit_asked", f"[{listed(metrics)}]", quote(interval), *options.arguments()])
    return f"""WITH _pit_asked AS MATERIALIZED (SELECT {KEY}, asset, ts FROM {table}),
{_wide_sql(cells_of(named, fields), metrics, f"pit_long({call})")}
SELECT own.* EXCLUDE ({KEY}), wide.* EXCLUDE ({KEY})
FROM {table} AS own JOIN wide USING ({KEY})
ORDER BY {KEY}"""


METRIC_NUMBER = "_pit_metric_number"
"""Column of unsorted answers that says to which of the metrics of a panel a row belongs."""


def unsorted_panel_sql(table: str, metrics: Sequence[str], interval: str, fields: Sequence[str], options: Options) -> str:
    """Builds the SQL of the answers of a panel in any order: a row for each decision and metric, both by their numbers."""
    call = ", ".join(["_pit_asked", f"[{listed(metrics)}]", quote(interval), *options.arguments()])
    numbers = ", ".join(f"({quote(metric)}, {number})" for number, metric in enumerate(metrics))
    return f"""WITH _pit_asked AS MATERIALIZED (SELECT {KEY}, asset, ts FROM {table})
SELECT answers.{KEY}, numbers.number AS {METRIC_NUMBER}, {', '.join(map(_finite, fields))}
FROM pit_long({call}) AS answers
JOIN (VALUES {numbers}) AS numbers (name, number) ON answers.metric = numbers.name"""


def unsorted_join_sql(table: str, metric: str, interval: str, options: Options, fields: Sequence[str]) -> str:
    """Builds the SQL of the answers of a join in any order: a row for each decision, by its number."""
    arguments = ", ".join([quote(metric), quote(interval), *options.arguments()])
    return f"""WITH _pit_asked AS (SELECT {KEY}, asset, ts FROM {table})
SELECT {KEY}, {', '.join(map(_finite, fields))}
FROM pit_join(_pit_asked, {arguments}) AS answers"""


def _finite(field: str) -> str:
    """Builds the SQL of a field as frames show it: they have no infinity."""
    cell = f"answers.{field}"
    return f"CASE WHEN isfinite({cell}) THEN {cell} END AS {field}" if field in ("t", "available_at") else cell


def _wide_sql(cells: Sequence[tuple[str, str, str]], metrics: Sequence[str], answers: str) -> str:
    """Builds the CTE `wide`: a row for each decision, a column for each cell; in two steps for many metrics."""
    if len(metrics) <= FEW:
        return _pivot("wide", "", [_cell(f"metric = {quote(metric)}", field, quote_name(name)) for name, metric, field in cells], answers)
    place = {metric: n for n, metric in enumerate(metrics)}
    names = ", ".join(f"({quote(metric)}, {n})" for metric, n in place.items())
    fields = dict.fromkeys(field for _, _, field in cells)
    parts = [_cell(f"place % {TOGETHER} = {n}", field, f"{field}_{n}") for field in fields for n in range(TOGETHER)]
    whole = [_cell(f"part = {place[metric] // TOGETHER}", f"{field}_{place[metric] % TOGETHER}", quote_name(name))
             for name, metric, field in cells]
    named = f"{answers} JOIN (VALUES {names}) AS places (name, place) ON metric = name"
    return ",\n".join([_pivot("parts", f", place // {TOGETHER} AS part", parts, named), _pivot("wide", "", whole, "parts")])


def _cell(condition: str, field: str, name: str) -> str:
    return f"max(CASE WHEN {condition} THEN {field} END) AS {name}"


def _pivot(name: str, key: str, cells: Sequence[str], source: str) -> str:
    joined = ",\n    ".join(cells)
    return f"""{name} AS (
  SELECT {KEY}{key},
    {joined}
  FROM {source}
  GROUP BY ALL
)"""


CARRIED = 8
"""Maximum columns of a caller that pass through a join; with more, finding each row by its number is cheaper."""


def join_sql(decided: Decided, metric: str, interval: str, options: Options, columns: Sequence[str], n: int | Span | None) -> str:
    """Builds the SQL of one metric for each decision, in their order; of its last `n` points if `n` is given."""
    macro, nth = ("pit_join", "") if n is None else ("pit_window", ", nth")
    arguments = ", ".join([quote(metric), quote(interval), *([] if n is None else [size_sql(n)]), *options.arguments()])
    if len(decided.names) <= CARRIED:
        return f"""SELECT * EXCLUDE ({KEY})
FROM {macro}({decided.table}, {arguments})
ORDER BY {KEY}{nth}"""
    return f"""WITH _pit_asked AS MATERIALIZED (SELECT {KEY}, asset, ts FROM {decided.table}),
answers AS (SELECT {KEY}, {', '.join(columns)}{nth} FROM {macro}(_pit_asked, {arguments}))
SELECT own.* EXCLUDE ({KEY}), answers.* EXCLUDE ({KEY})
FROM {decided.table} AS own JOIN answers USING ({KEY})
ORDER BY {KEY}{nth}"""


def size_sql(n: int | Span) -> str:
    """Builds the SQL of the size of a window: a number of points, or a span."""
    if isinstance(n, int) and not isinstance(n, bool) and n >= 1:
        return str(n)
    size = span_sql("window: n", n) if isinstance(n, (str, timedelta)) else ""
    if size in ("", "to_seconds(0)") or isinstance(n, timedelta) and n <= timedelta(0):
        raise wrong("window: n", "how many points, 1 or more, or a span such as 90d", n)
    return size


def decided_sql(table: str, options: Options) -> str:
    """Builds the SQL of the decisions of a join as its notes take them: asset, ts and latency."""
    latency = "NULL" if options.latency is None else span_sql("latency", options.latency)
    return f"SELECT asset, ts, {latency} AS latency FROM {table}"


def decisions_sql(source: str, by_asset: bool) -> str:
    """Builds the SQL of the decisions, numbered in their order, their instants with a zone."""
    asset = "CAST(asset AS VARCHAR) AS asset, " if by_asset else ""
    return f"SELECT row_number() OVER () AS {KEY}, * REPLACE ({asset}{utc_sql('ts')} AS ts) FROM {source}"


def members_sql(moments: str, condition: str) -> str:
    """Builds the SQL of decisions about the products that met a condition at each instant, with metric assets then."""
    return f"""WITH _pit_moments AS ({moments}), _pit_met AS (
  SELECT DISTINCT member.*, link.metric_asset
  FROM pit_universe('_pit_moments', (
{condition}
)) AS member
  LEFT JOIN links AS link
    ON link.product_id = member.product_id AND link.valid_from <= member.ts AND member.ts < link.valid_to
)
SELECT row_number() OVER (ORDER BY {KEY}, product_id, metric_asset) AS {KEY}, metric_asset AS asset,
  * EXCLUDE ({KEY}, metric_asset)
FROM _pit_met"""


def registry_columns(columns: Names | None, members: bool) -> list[str]:
    """Lists the columns of the registry that are added to decisions; members of a universe have some of them anyway."""
    check_names("universe_columns", columns)
    given = [columns] if isinstance(columns, str) else list(columns or ())
    for name in given:
        check_choice("universe_columns", name, UNIVERSE)
    return [name for name in dict.fromkeys(given) if not (members and name in MEMBER)]


def with_registry_sql(decided: str, columns: Sequence[str], members: bool) -> str:
    """Builds the SQL of decisions with registry columns: of the row's product, else of that linked to its asset."""
    named, product = (", product_id AS _pit_product", ", product := _pit_product") if members else ("", "")
    return f"""WITH _pit_decided AS MATERIALIZED ({decided}),
_pit_listed AS (SELECT {KEY} AS _pit_number, asset, ts{named} FROM _pit_decided)
SELECT decided.*, {', '.join(f'known.{name}' for name in columns)}
FROM _pit_decided AS decided
JOIN pit_registry('_pit_listed'{product}) AS known ON known._pit_number = decided.{KEY}"""


def points_sql(metrics: Names | None, assets: Names | None, given: Mapping[str, str | None],
               bounds: Sequence[str], standards: Standards) -> str:
    """Builds the SQL of points within bounds, by series and `t`; a missing interval or dimension is the catalogue's."""
    check_names("metrics", metrics)
    metrics = [metrics] if isinstance(metrics, str) else metrics
    check_names("assets", assets)
    for name, value in given.items():
        check_text(name, value)
    prices = metrics is not None and PRICE in metrics
    if prices and metrics is not None and len(metrics) > 1:
        raise refusal("points: metrics", f"{PRICE} alone, or metrics of points", "both", "query them one after the other")
    known = {name: row for name, row in standards.items() if prices or name != PRICE}

    def own(metric: str | None) -> str:
        values = {name: given[name] if given[name] is not None else known.get(metric or "", {}).get(name) for name in given}
        return " AND ".join(f'"{name}" = {quote(value)}' for name, value in values.items() if value not in (None, "*"))

    groups: dict[str, list[str]] = {}
    for metric in metrics if metrics is not None else known:
        groups.setdefault(own(metric), []).append(metric)
    series = [" AND ".join(filter(None, [f"metric IN ({listed(names)})", rest])) for rest, names in groups.items()]
    if metrics is None:
        strange = f"metric NOT IN ({listed(list(known))})" if known else "true"
        series.append(" AND ".join(filter(None, [strange, own(None)])))
    where = [f"({' OR '.join(f'({one})' for one in series)})"]
    where += [f"asset IN ({listed(assets)})"] if assets is not None else []
    where += bounds
    order = 'metric, asset, "interval", currency, exchange, network, t'
    return f"SELECT * FROM {PRICE if prices else 'points'} WHERE {' AND '.join(where)} ORDER BY {order}"
