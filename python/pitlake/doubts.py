"""Notes on an answer: this package finds what a query asks for, the lake reports what it knows of that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from .fence import one_select
from .queries import DIMENSIONS, Decided, Options, decided_sql
from .text import listed, quote, quote_name, utc_sql

if TYPE_CHECKING:
    from .lake import Seat

OFTEN_NULL = {*DIMENSIONS, "o", "extra", "computed_at", "component"}
_AS_OF = utc_sql("getvariable('as_of')")
_DECISION_MACROS = {
    "question_reach": """from_json($1, '["VARCHAR"]'), $2""",
    "question_unresolved": """from_json($1, '["VARCHAR"]'), $2, currency := $3, exchange := $4, network := $5""",
}
"""The macros that take decisions, and how the values of a question stand in their calls."""
_JOINS = re.compile(r"\bpit_(?:join|long|window)\b", re.I)
_REPORT = "an error of DuckDB, please report it"
Question = dict[str, Any]
T = TypeVar("T")


def of_metric(name: str, interval: str | None, assets: Iterable[str], dimensions: Mapping[str, str | None], **rest: Any) -> Question:
    """Describes a queried metric in the fields that `question_notes` reads; `*` is any metric."""
    sides = {one: [dimensions[one]] if dimensions.get(one) else [] for one in DIMENSIONS}
    return {"name": name, "interval": [interval] if interval else [], "asset": list(assets), **sides, "component": None,
            "defaults": True, "everywhere": False, **rest}


def of_join(macro: str, metrics: Iterable[str], interval: str, options: Options, table: str) -> Question:
    """Describes a join of this package as `question_asked` would find it in the words of its query."""
    join = {"metrics": [{"name": metric} for metric in metrics], "interval": interval, **options.dimensions(),
            "answers_unsettled": options.unresolved != "null", "decisions": decided_sql(table, options),
            "ends": decided_sql(ends_of(table), options)}
    return {"tables": [macro], "texts": [], "counts": False, "metrics": [], "joins": [join]}


def ends_of(table: str) -> str:
    """Names the temporary table with the newest decision of each asset, enough to see how far decisions reach."""
    return f"{table}_ends"


def near(own: duckdb.DuckDBPyConnection, macro: str, word: str, known: Sequence[str]) -> str:
    """Names what may have been meant, as the end of a sentence, by a macro of the lake."""
    found: list[str] = aside(lambda: own.execute(f"SELECT {macro}({quote(word)}, [{listed(known)}])").fetchall()[0][0], list[str]())
    return _meant(found, known[:6])


@dataclass(frozen=True)
class JoinReach:
    """How far the decisions of one join of a query reach."""

    metrics: Sequence[Question]
    """Metrics of the join, each with the assets and the newest of its decisions."""
    unresolved: Sequence[Question]
    """Metrics with unresolved decisions, each with their number and the earliest of them."""


class Noticed:
    """Notes on a query that ran on a connection: the lake reports what it queries, and what is known of that."""

    def __init__(self, seat: Seat, own: duckdb.DuckDBPyConnection, query: str, parameters: object = None,
                 asked: Question | None = None) -> None:
        self._seat, self._own, self._query = seat, own, query
        given = parameters if isinstance(parameters, Mapping) else {n: one for n, one in enumerate(list(parameters or ()), 1)}  # type: ignore[call-overload]
        self._texts = {str(name): value for name, value in given.items() if isinstance(value, str)}
        self._asked = asked
        """Content of the query; None until its words are read."""
        self._reaches: dict[int, JoinReach] = {}
        """Reaches of joins that were computed, by the place of the join in the query."""
        self._lost: list[str] = []
        """Reasons why notes could not be computed."""
        self._as_of_read: list[tuple[Any, ...]] = []
        """The `as_of` of the connection, once it was read."""

    def of_query(self, frame: Any) -> list[str]:
        """Computes the notes of a query from its words and its answer."""
        columns, rows = self._held(frame), len(frame)
        empty = rows == 0 or any(not held and name.lower() not in OFTEN_NULL for name, (held, _, _) in columns.items())
        zero = rows == 1 and any(zero for _, zero, _ in columns.values())
        nothing = rows == 0 or rows == 1 and all(zero or not held for held, zero, _ in columns.values())
        asked = self.early()
        if empty or zero and self._asks()["counts"]:
            metrics = [one for reach in self._reach_of_joins(True) for one in reach.metrics] + self._asks()["metrics"]
            known = {asset for one in metrics for asset in one["asset"]}
            texts = [text for text in self._asks()["texts"] if text not in known]
            asked |= {"metrics": metrics, "texts": texts, "tables": self._asks()["tables"], "grids": self._asks().get("grids", []),
                      "members": self._asks().get("members", []), "empty": nothing}
        return self.notes_on(asked)

    def of_decided(self, frame: Any, decided: Decided, columns: Sequence[tuple[str, str]], interval: str, options: Options) -> list[str]:
        """Computes notes from the columns of its answer that are empty for some assets, each with its metric."""
        held = self._values_by_asset(frame, decided, [column for column, _ in columns]) if len(frame) else {}
        empty = [(metric, *held[column]) for column, metric in columns if held and held[column][1]]
        last, without = self._ends(decided, bool(empty))
        asked = [of_metric(metric, interval, assets, options.dimensions(), component=options.component, last=last, everywhere=not some)
                 for metric, some, assets in empty]
        return self.notes_on({**self.early(), "metrics": asked, "without_instant": without})

    def _values_by_asset(self, frame: Any, decided: Decided, columns: Sequence[str]) -> dict[str, tuple[bool, list[str]]]:
        """Checks whether each column has a value, and for which assets it has none."""
        if decided.arrow is not None and len(frame) == len(decided.arrow.columns):
            return {column: decided.arrow.empty_assets(frame, column) for column in columns}
        return {column: (some, assets) for column, (some, _, assets) in self._held(frame, "asset", columns).items()}

    def _ends(self, decided: Decided, needs_last: bool) -> tuple[str | None, int]:
        """Makes the table of the newest decisions; reads the newest of them, and how many have no instant."""
        ends, newest = ends_of(decided.table), "SELECT CAST(max(ts) AS VARCHAR)"
        if decided.arrow is not None:
            self._own.register(ends, decided.arrow.ends())
            return self._rows(f"{newest} FROM {ends}")[0][0] if needs_last else None, decided.arrow.columns["ts"].null_count
        self._rows(f"""CREATE OR REPLACE TEMP TABLE {ends} AS
SELECT asset, max(ts) AS ts, count(*) FILTER (ts IS NULL) AS without FROM {decided.table} GROUP BY asset""")
        [(last, without)] = self._rows(f"{newest}, CAST(coalesce(sum(without), 0) AS BIGINT) FROM {ends}")
        return last, without

    def of_no_member(self, universe: str) -> list[str]:
        """Computes notes on a condition on the universe that no product met."""
        asked = self._aside(lambda: self._asked_by([f"SELECT 1 FROM universe WHERE (\n{universe}\n)"]), Question())
        return [f"no product met universe at any of these times: {universe}", *self.notes_on({"members": asked.get("members", [])})]

    def of_columns(self, frame: Any, table: str, columns: Sequence[str], members: bool) -> list[str]:
        """Computes notes on registry columns that are NULL in all rows: known values, or which assets are linked."""
        held = self._held(frame) if columns and len(frame) else {}
        empty = [name for name in columns if name in held and not held[name][0]]
        if not empty:
            return []

        def there(value: str, view: str) -> str:
            rows = self._rows(f"SELECT DISTINCT CAST({value} AS VARCHAR) FROM {view} WHERE {value} IS NOT NULL ORDER BY ALL LIMIT 6")
            return _meant([], [name for (name,) in rows])

        found = f"""WITH _pit_listed AS (SELECT asset, ts FROM {table})
SELECT 1 FROM pit_registry('_pit_listed') WHERE product_id IS NOT NULL LIMIT 1"""
        if not members and not self._rows(found):
            linked = there("metric_asset", "(FROM links WHERE product_id IS NOT NULL)")
            return [f"no asset of these decisions was linked to a product of the registry at its ts ({', '.join(empty)}){linked}"]
        return [f"no product of these decisions had {name} at its ts{there(name, 'universe')}" for name in empty]

    def of_empty_column(self, frame: Any, column: str, asked: Question) -> list[str]:
        """Computes notes on an empty column of its answer, although one metric was queried."""
        held = self._held(frame) if len(frame) else {}
        return self.notes_on({"metrics": [asked]} if not len(frame) or not held.get(column, (True,))[0] else {})

    def _held(self, frame: Any, by: str | None = None, columns: Sequence[str] | None = None) -> dict[str, tuple[bool, bool, list[str]]]:
        """Checks if each column (default: all) has a value, or a 0, and for which texts in column `by` it is empty."""
        self._own.register("_pit_answer", frame)
        names = columns or self._own.sql("FROM _pit_answer").columns
        key = "NULL" if by is None else quote_name(by)
        held, zero = (", ".join(test.format(quote_name(name)) for name in names) for test in (
            "count({}) > 0", "coalesce(CAST(any_value({}) AS VARCHAR) = '0', false)"))
        # A frame may hold objects that the engine has no type for.
        rows = self._aside(lambda: self._rows(f"SELECT {key} AS own, [{held}], [{zero}] FROM _pit_answer GROUP BY own ORDER BY own"), list[tuple[Any, ...]]())
        self._own.unregister("_pit_answer")
        return {name: (any(row[1][n] for row in rows), any(row[2][n] for row in rows), [row[0] for row in rows if row[0] is not None and not row[1][n]])
                for n, name in enumerate(names) if rows}

    def early(self) -> Question:
        """Lists what to note whatever it answers: assumptions, and decisions later than the resolved range."""
        asked: Question = {}
        if _JOINS.search(self._query):
            asked["beyond"] = [row for reach in self._reach_of_joins(False) for row in reach.unresolved]
        if self._as_of() is not None:
            asked["tables"] = self._asks()["tables"]
        return asked

    def notes_on(self, asked: Question) -> list[str]:
        """Formats the notes of a question; they look past `as_of`, for it helps to see since when a thing is known."""
        notes: list[str] = []
        try:
            notes = self._read_notes(asked) if any(asked.values()) else []
        except (duckdb.CatalogException, duckdb.BinderException):
            pass  # The views of another program may not know how to answer.
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, MemoryError) as error:
            self._lost.append(_loss_in(error) or _REPORT)
        return [*notes, *(f"notes could not be worked out: {reason}" for reason in dict.fromkeys(self._lost))]

    def _aside(self, work: Callable[[], T], otherwise: T) -> T:
        """Runs work like `aside`; remembers for a note what is lost for want of memory or by an error of the engine."""
        try:
            return work()
        except (duckdb.InterruptException, KeyboardInterrupt):
            raise
        except (duckdb.Error, KeyError, MemoryError, ValueError) as error:
            self._lost += filter(None, [_loss_in(error)])
            return otherwise

    def _read_notes(self, asked: Question) -> list[str]:
        question = json.dumps({**asked, "as_of": self._as_of()})
        rows = self._seat.cursor(as_of=None).execute(f"FROM question_notes({quote(question)})").fetchall()
        return [_words(subject, json.loads(figures or "{}"), near, there, words) for _, subject, figures, near, there, words in rows]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._own.execute(query).fetchall()

    def _as_of(self) -> str | None:
        if not self._as_of_read:
            self._as_of_read = self._rows(f"SELECT CAST({_AS_OF} AS VARCHAR)")
        at: str | None = self._as_of_read[0][0]
        return at

    def _asks(self) -> Question:
        if self._asked is None:
            self._asked = self._aside(self._ask, {"tables": [], "texts": [], "counts": False, "metrics": [], "joins": []})
        return self._asked

    def _ask(self) -> Question:
        return self._asked_by([statement.query or self._query for statement in self._own.extract_statements(self._query)])

    def _asked_by(self, texts: Sequence[str]) -> Question:
        asked: Question = json.loads(self._own.execute(
            f"SELECT CAST(asked AS VARCHAR) FROM question_asked([{listed(texts)}], {quote(json.dumps(self._texts))})").fetchall()[0][0])
        return asked

    def _reach_of_joins(self, every: bool) -> list[JoinReach]:
        """Finds how far the decisions reach of each join, or only of those whose answers may be unresolved."""
        return [self._reach_of(place) for place, join in enumerate(self._asks()["joins"]) if every or join.get("answers_unsettled")]

    def _reach_of(self, place: int) -> JoinReach:
        if place not in self._reaches:
            self._reaches[place] = self._find_reach(self._asks()["joins"][place])
        return self._reaches[place]

    def _find_reach(self, join: Question) -> JoinReach:
        """Finds how far the decisions of a join reach and, if one may be late, counts them."""
        names, interval = json.dumps([one["name"] for one in join["metrics"]]), join["interval"]
        found = self._of_decisions(join, "ends" if "ends" in join else "decisions", "question_reach", [names, interval])
        # The decisions may stand in no CTE of which the lake knows.
        last, assets, is_late = found[0] if found else (None, "[]", False)
        rows = self._of_decisions(join, "decisions", "question_unresolved", [names, interval, *(join[one] for one in DIMENSIONS)]) \
            if is_late and join.get("answers_unsettled") else []
        return JoinReach(
            metrics=[{**one, "last": last, "asset": json.loads(assets)} for one in join["metrics"]],
            unresolved=[dict(zip(("metric", "decisions", "since"), row)) for row in rows])

    def _of_decisions(self, join: Question, which: str, macro: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Runs a macro of the lake over the decisions of a join, or their ends; all values are parameters."""
        return self._aside(lambda: self._ask_one(join[which], macro, values), list[tuple[Any, ...]]()) if join.get(which) else []

    def _ask_one(self, decisions: str, macro: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        # The one text of a caller: by itself it is one SELECT, so that nothing of it ends the brackets.
        if one_select(self._own, decisions) is None:
            return []
        query = one_select(self._own, f"WITH _pit_given (asset, ts, latency) AS (\n{decisions}\n) FROM {macro}('_pit_given', {_DECISION_MACROS[macro]})")
        return [] if query is None else read_only(self._own, query, values)


def _meant(near: Sequence[str], there: Sequence[str]) -> str:
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; there {'is' if len(there) == 1 else 'are'} {', '.join(map(repr, there))}" if there else ""


def _words(subject: str, figures: Question, near: Sequence[str], there: Sequence[str], words: str) -> str:
    """Formats the words of a note, with options in the spelling of Python."""
    such = " or ".join(map(repr, there[:2]))
    ends = {"near": _meant(near, there), "such": such and f", such as {such}"}

    def put(match: re.Match[str]) -> str:
        option, value, name = match.groups()
        if option:
            return option if value is None else f"`{option}={'True' if value == 'true' else repr(value)}`"
        return str({"subject": subject, **figures, **ends}[name])

    return re.sub(r"\{(?:option (\w+)(?:=(\w+))?|(\w+))\}", put, words)


def _loss_in(error: BaseException) -> str | None:
    """Classifies an error that loses notes; None if the caller's relation caused it, or views that cannot answer."""
    if isinstance(error, (duckdb.OutOfMemoryException, MemoryError)):
        return "too little disk" if "max_temp_directory_size" in str(error) else "too little memory"
    if isinstance(error, duckdb.IOException) and re.search("No space left on device|Disk quota exceeded", str(error)):
        return "too little disk"
    return _REPORT if isinstance(error, (duckdb.IOException, duckdb.InternalException, duckdb.FatalException)) else None


def read_only(own: duckdb.DuckDBPyConnection, query: duckdb.Statement, values: Sequence[object]) -> list[tuple[Any, ...]]:
    """Reads the rows of a SELECT in a transaction that can write to no database, unless the caller has one open."""
    try:
        own.execute("BEGIN TRANSACTION READ ONLY").fetchall()
    except duckdb.TransactionException:
        return own.execute(query, list(values)).fetchall()
    try:
        return own.execute(query, list(values)).fetchall()
    finally:
        own.rollback()


def aside(work: Callable[[], T], otherwise: T) -> T:
    """Runs a side question that never makes the main one fail: views of a different program may not answer it."""
    try:
        return work()
    except (duckdb.InterruptException, KeyboardInterrupt):
        raise
    except (duckdb.Error, KeyError, ValueError):
        return otherwise
