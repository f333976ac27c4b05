"""A lake that is open for reading."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import sys
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from . import program
from .dating import Dating
from .doubts import Noticed, Question, near, of_join, of_metric
from .errors import LakeError, meant_word, refusal, translate_errors, warn
from .fence import is_one_expression, refuse_hidden, refuse_import
from .folder import Pin, lag_of_mirror, lag_of_views, made_here, refuse_changed
from .frames import LentFrames, arrow_decisions, frame_of_decisions, write_frame
from .queries import (AGGREGATES, FIELDS, INSTANT, KEY, MEMBER, PRICE, PRICED, Decided, Options, Standards, cells_of, check_choice, check_names, check_switch, check_text,
                      decisions_sql, first_rows_sql, join_sql, members_sql, named_metrics, panel_sql, points_sql, registry_columns, span_sql,
                      step_sql, unsorted_join_sql, unsorted_panel_sql, utc_at, with_registry_sql, wrong)
from .result import SHOWN, Result
from .text import INTERVALS, Moment, Names, Span, listed, moment_text, quote, quote_name, setting_text, utc_sql
from .unsorted import Cell, UnsortedAnswers

LAYOUT = 7
"""The layout of the lakes that this package reads."""

REMAKE = "made by an unreleased version of pitlake: fetch the data again into an empty folder (`pitlake fetch --data FOLDER`)"

STATE = ("as_of", "observed_as_of", "backfill", "registry_backfill")
"""Session variables that make up a state of knowledge."""
JOINED_COLUMNS = ("t", "available_at", "v", "o", "age")
LIMITS = {"threads": ("threads", "a number of threads, 1 or more"), "memory": ("memory_limit", "a size such as 1GB")}
"""Options of `open` that limit DuckDB: its setting, and the expected value."""
STAMPED = (".parquet", ".parq", ".pq")
"""Endings of stamped results, as `src/interfaces/commands/stamp.ts` has them."""
_numbers = itertools.count()


class Seat:
    """One version of a lake in one state of knowledge: its connection, and the pin that keeps its files."""

    wants_notes = True
    """Whether the notes of answers are read."""

    def __init__(self, folder: Path, variables: Mapping[str, object], limits: Mapping[str, Any], progress: bool) -> None:
        database = _database_of(folder)
        self.folder, self.variables, self.progress, self.notes = folder, dict(variables), progress, tuple[str, ...]()
        self.lending = threading.RLock()
        # By its own instance, and not by its path: two lakes in one process may stand at two versions of it.
        self.root = duckdb.connect(":memory:")
        self.pin = Pin(folder)
        weakref.finalize(self, self.pin.release)
        try:
            self._limit(limits)
            self._begin(folder, database)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes all sessions, and releases the files of the version."""
        self.pin.release()
        self.root.close()

    def _limit(self, limits: Mapping[str, Any]) -> None:
        """Sets the limits of DuckDB; those that are None stay DuckDB's own."""
        for name, (setting, expected) in LIMITS.items():
            if limits.get(name) is None:
                continue
            try:
                self.root.execute(f"SET GLOBAL {setting} = {_literal(limits[name])}").fetchall()
            except duckdb.Error:
                raise wrong(name, expected, limits[name]) from None

    def _begin(self, folder: Path, database: Path) -> None:
        try:
            self.root.execute("SET GLOBAL TimeZone = 'UTC'").fetchall()
            # Else a query could read the variables of this package by their names.
            self.root.execute("SET GLOBAL python_enable_replacements = false").fetchall()
            with made_here(folder, database) as views:
                self.root.execute(f"ATTACH {quote(views)} AS lake (READ_ONLY)").fetchall()
            self.root.execute("SET GLOBAL parquet_metadata_cache = true").fetchall()
            self.session = self.cursor()
            self._state = _state_of(self.session)
            self.version, self.committed_at = _place_of(self.session, folder)
        except duckdb.Error as error:
            words = str(error).splitlines()[0]
            raise refusal(f"lake {folder}", "a lake.duckdb that DuckDB can open", words,
                          "run `pitlake views`, or `pip install --upgrade duckdb`") from None
        self.pin.since(self.committed_at)
        self.check_files()

    def check_files(self) -> None:
        """Refuses a lake whose files are not as they were committed."""
        refuse_changed(self.folder, self.version)

    def check_sql(self, text: str) -> None:
        """Refuses forbidden SQL: none, in a process of the caller."""

    def near_metrics(self, word: str) -> Sequence[str]:
        """Lists the metrics that may have been meant."""
        names = "SELECT list(metric ORDER BY metric) AS names FROM (SELECT metric FROM endpoints UNION ALL SELECT 'price_usd')"
        asked = f"SELECT nearest_paths(CAST($1 AS VARCHAR), names) FROM ({names})"
        return list(self.cursor().execute(asked, [word]).fetchall()[0][0])

    def cursor(self, subject: str = "", **variables: object) -> duckdb.DuckDBPyConnection:
        """Opens a session on the same version, in the lake's state of knowledge, or in one that `subject` named."""
        own = self.root.cursor()
        own.execute("USE lake").fetchall()
        own.execute("SET TimeZone = 'UTC'").fetchall()
        own.execute(f"SET enable_progress_bar = {_literal(self.progress)}").fetchall()
        known = {**self.variables, **variables}
        for name, value in known.items():
            if value is not None:
                own.execute(f"SET VARIABLE {quote_name(name)} = {_literal(value)}").fetchall()
        for name in ("as_of", "observed_as_of"):
            if known.get(name) is None:
                continue
            variable = f"getvariable('{name}')"
            try:
                own.execute(f"SELECT ({utc_sql(variable)}) IS NULL").fetchall()
            except duckdb.Error:
                raise wrong(subject or name, INSTANT, known[name]) from None
        return own

    @contextmanager
    def kept_state(self, own: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> Iterator[None]:
        """Refuses a statement of a caller that moves a session to a different state of knowledge, and moves it back.

        The session is compared, not the text, because there are many ways to write such a statement.
        """
        if statement.type == duckdb.StatementType.SELECT:
            yield
            return
        try:
            yield
        finally:
            moved = self._moved(own)
            if moved is not None:
                self._restore_state(own)
                raise refusal("SQL", f"a query that leaves {moved} alone", fix=f"open the lake in that state: pitlake.open(…, {moved}=…)")

    def _moved(self, own: duckdb.DuckDBPyConnection) -> str | None:
        """Names a variable of the state of knowledge that is not as the lake was opened; None if all are."""
        try:
            state = _state_of(own)
        except duckdb.TransactionException:
            # A transaction that failed runs nothing until its end, and that statement is checked, too.
            return None
        except duckdb.Error:
            return STATE[0]
        return next((name for name, opened, now in zip(STATE, self._state, state) if opened != now), None)

    def _restore_state(self, own: duckdb.DuckDBPyConnection) -> None:
        # A macro of that name hides the variables from the views.
        own.execute("DROP MACRO IF EXISTS temp.main.getvariable").fetchall()
        for name in STATE:
            value = self.variables.get(name)
            own.execute(f"RESET VARIABLE {name}" if value is None else f"SET VARIABLE {name} = {_literal(value)}").fetchall()

    def until_end(self, decisions: str) -> str:
        """Builds the SQL of the decisions to answer: all of them, unless something ends them sooner."""
        return decisions

    def note(self, doubts: Sequence[str]) -> None:
        self.notes = tuple(dict.fromkeys(doubts))

    def words(self) -> str:
        """Describes the version and the variables of an answer."""
        said = [f"{name} {value}" for name, value in self.variables.items() if value is not None]
        return ", ".join([f"version {self.version}", *said])


class Lake:
    """A lake that is open for reading.

    It keeps one version and one state of knowledge, so an answer does not change between cells while jobs write.
    `pitlake vacuum` keeps the files of that version until you close or refresh the lake, or until its process ends. A
    `with` statement closes the lake.

    >>> lake.version
    1
    >>> lake.points("supply/current_pit", "BTC").df()["v"].tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, make: Callable[[], Seat]) -> None:
        self._make, self._seat = make, make()
        self._known: Standards | None = None
        self._said = False
        self._lag: str | None = None
        self._say_lag()

    def __enter__(self) -> Lake:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lake {self.folder}, {self._open().words()}>"

    @property
    def folder(self) -> Path:
        """Folder of the lake.

        Returns:
            The absolute path.

        >>> lake.folder.name
        'lake'
        """
        return self._open().folder

    @property
    def version(self) -> int:
        """Version that every answer reads.

        Returns:
            The number of the commit.

        >>> lake.version
        1
        """
        return self._open().version

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the last answer.

        A note explains why the answer may be empty, what you may have meant, and how many decisions are unresolved. pitlake
        also gives each note as a `LakeWarning`.

        Returns:
            The notes, each a sentence. Empty if there are none.

        >>> answer = lake.points("supply/current_pit", "BTC").df()
        >>> lake.notes
        ()
        """
        return self._open().notes

    def refresh(self) -> int:
        """Moves the lake to its newest version.

        Earlier answers do not change.

        Returns:
            The new version.

        >>> lake.refresh()
        1
        """
        self._open()
        self._seat, self._known = self._make(), None
        self._say_lag()
        return self.version

    def close(self) -> None:
        """Closes the lake and releases its files for `pitlake vacuum`.

        A `with` statement does this at its end. Later calls are refused.

        >>> import pitlake
        >>> other = pitlake.open(lake.folder)
        >>> other.close()
        """
        seat, self._seat = self._seat, None  # type: ignore[assignment]
        if seat is not None:
            seat.close()

    def sql(self, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None, *,
            frames: Mapping[str, Any] | None = None) -> Result:
        """Runs SQL on the views and macros of the lake.

        Temporary tables stay until you close or refresh the lake. The lake is read-only apart from them.

        Args:
            query: One or several statements.
            parameters: Values of `?` and `$1` as a list, or of `$name` as a dict.
            frames: Frames of pandas, polars or pyarrow, and answers of the lake, by the names under which this query reads them.
                Names of views and of your temporary tables are refused.

        Returns:
            The rows of the last statement.

        >>> lake.sql("SELECT $asset AS asset, CAST($n AS BIGINT) AS n", {"asset": "BTC", "n": 3}).df().to_dict("records")
        [{'asset': 'BTC', 'n': 3}]
        """
        return self._sql(self._open().session, query, parameters, frames)

    def _sql(self, own: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | Mapping[str, object] | None = None,
             frames: Mapping[str, Any] | None = None) -> Result:
        """Runs SQL in a session of the lake."""
        seat = self._open()
        seat.notes = ()
        with translate_errors(seat.near_metrics, query):
            refuse_hidden(query)
            seat.check_sql(query)
            statements = own.extract_statements(query)
            if not statements:
                raise refusal("SQL", "a statement", "nothing")
            refuse_import(statements)
            lent = LentFrames(own, seat.lending, {
                name: frame.frame() if isinstance(frame, Result) else frame for name, frame in (frames or {}).items()})
            with lent.registered():
                for statement in statements[:-1]:
                    # Checked one by one: a later statement might move the session back after a table was made.
                    with seat.kept_state(own, statement):
                        own.execute(statement).fetchall()
                with seat.kept_state(own, statements[-1]):
                    relation = self._bind_last(own, query, statements, parameters)
        return Result(seat, own, relation, lent=lent, doubts=Noticed(seat, own, query, parameters).of_query)

    @staticmethod
    def _bind_last(own: duckdb.DuckDBPyConnection, query: str, statements: Sequence[duckdb.Statement],
                  parameters: Sequence[object] | Mapping[str, object] | None) -> duckdb.DuckDBPyRelation | None:
        """Binds the last statement of a script, after the others ran."""
        last = statements[-1]
        try:
            return own.sql(last, params=parameters) if parameters else own.sql(last)
        except duckdb.Error:
            # A relation does not tell the place.
            if len(statements) == 1:
                own.execute(query, parameters)
            raise

    def points(self, metrics: Names | None = None, assets: Names | None = None, interval: str | None = None, *,
               currency: str | None = None, exchange: str | None = None, network: str | None = None,
               since: Moment | None = None, until: Moment | None = None) -> Result:
        """Reads stored points, as known at `as_of`.

        Args:
            metrics: Paths of metrics. Default: all.
            assets: Assets. Default: all.
            interval: Interval of the points. Default: the catalogue's for each metric; `"*"` means all.
            currency: Dimension of the series. Default: the catalogue's for each metric; `"*"` means all.
            exchange: Dimension of the series, as `currency`.
            network: Dimension of the series, as `currency`.
            since: First `t`.
            until: End of the range of `t`, exclusive.

        Returns:
            A row for each point, sorted by series and `t`, with the columns of the view `points`.

        >>> lake.points("supply/current_pit", "BTC", currency="usd", since="2024-03-02").df()["v"].tolist()
        [200.0, 300.0]
        """
        seat, standards = self._open(), self._standards()
        names = [metrics] if isinstance(metrics, str) else metrics
        given = {"interval": interval, "currency": currency, "exchange": exchange, "network": network}
        session = seat.cursor()
        bounds = [f"t {sign} {utc_at(session, name, end)}" for sign, name, end in ((">=", "since", since), ("<", "until", until))
                  if end is not None]
        query = points_sql(metrics, assets, given, bounds, standards)
        asked = [of_metric(name, interval or standards.get(name, {}).get("interval"), [assets] if isinstance(assets, str) else assets or [],
                           given, times=since is not None or until is not None) for name in names or ["*"]]

        return self._make_result(session, query, keys=("asset", "t"),
                            doubts=lambda noticed, frame: noticed.notes_on({"metrics": asked}) if len(frame) == 0 else [])

    def panel(self, decisions: Any, metrics: Names | Mapping[str, str], interval: str = "24h", *,
              fields: Sequence[str] = ("v",), universe: str | None = None, universe_columns: Names | None = None,
              currency: str | None = None, exchange: str | None = None, network: str | None = None,
              component: str | None = None, latency: Span | None = None, max_age: Span | None = None, back: Span | None = None,
              skip_nulls: bool = False, unresolved: str | None = None, vintage: str | None = None,
              follow_renames: bool = False) -> Result:
        """Looks up metric values as known at each decision time.

        Each cell is the latest value that was knowable at `ts`. Your own columns come back next to them, in your order.

        Args:
            decisions: Frame of pandas, polars or pyarrow, or an answer of the lake such as `calendar`. It has the columns `asset`
                and `ts`; in pandas these may be the index. A `ts` without a zone is UTC.
            metrics: Paths of metrics, or a dict `{column: metric}` that names the columns. `path#/pointer` selects one component
                of object values.
            interval: Interval of the metrics. Default: `"24h"`.
            fields: Fields of each point: `"v"`, `"o"`, `"t"`, `"available_at"`, `"age"`. Default: `("v",)`.
            universe: Condition on the columns of the view `universe`, such as `"status = 'active'"`. Decisions then have only
                `ts`, and each has a row for every product that met the condition at that time.
            universe_columns: Columns of the view `universe` as known at each `ts`, such as `["status", "chains"]`: of each
                product of `universe`, else of the product to which the asset was linked then. NULL if there was none.
            currency: Dimension of the series. Default: the catalogue's. Ignored if the metric has no such dimension.
            exchange: Dimension of the series, as `currency`.
            network: Dimension of the series, as `currency`.
            component: JSON pointer into an object or array value, such as `/open`. You can also write `path#/pointer` as the
                metric.
            latency: Time that you need to act: the answer is what was known that long before `ts`. Default: 0.
            max_age: A point that is older than this gives NULL. Default: no limit.
            back: Answers with an earlier point: of those known at `ts` the newest that ended at least this long before the newest
                one, such as `"90d"` or `"3 months"`. Default: the newest.
            skip_nulls: Ignores points whose value is null. Default: a null is the latest knowledge.
            unresolved: Value of an unresolved decision: `"value"` (default) is the newest known value, `"null"` is NULL.
            vintage: Value of a revised point: the `"last"` one known at `ts` (default), or the `"first"`.
            follow_renames: Also uses points of the predecessors and successors of the asset, after a rename or migration.

        Returns:
            A row for each decision, and a column for each metric.

        >>> days = lake.calendar("2024-03-03", "2024-03-05", "1 day", ["BTC"])
        >>> lake.panel(days, {"supply": "supply/current_pit"}, latency="15m").df()["supply"].tolist()
        [1.0, 2.0]
        >>> names = {"supply": "supply/current_pit"}
        >>> (lake.panel(days, names).df()["supply"] / lake.panel(days, names, back="1d").df()["supply"] - 1).tolist()
        [nan, 1.0]
        """
        named = named_metrics(metrics)
        check_choice("interval", interval, INTERVALS)
        check_text("universe", universe)
        for name in fields or (None,):
            check_choice("fields", name, FIELDS)
        options = Options(currency, exchange, network, component, latency, max_age, skip_nulls, unresolved, vintage,
                          follow_renames, back)
        added = [name for name, _, _ in cells_of(named, fields)]
        columns = registry_columns(universe_columns, universe is not None)
        members = MEMBER if universe is not None else ()
        clash = next((name for name in (*columns, *members) if name in {one.lower() for one in added}), None)
        if clash is not None:
            raise refusal("universe" if clash in members else "universe_columns", "columns with other names than those of metrics",
                          clash, "name the column of the metric: {column: path}")
        decided = self._store_decisions("panel", decisions, added, universe, columns)
        table = decided.table
        query = panel_sql(table, named, interval, fields, options)
        preview = panel_sql(first_rows_sql(table, SHOWN + 1), named, interval, fields, options)
        noted_field = next((field for field in ("v", "t", "available_at", "age") if field in fields), None)

        def doubts(noticed: Noticed, frame: Any) -> list[str]:
            if universe is not None and len(frame) == 0:
                return noticed.of_no_member(universe)
            lost = [(column, metric) for column, metric, one in cells_of(named, fields) if one == noted_field]
            notes = noticed.of_decided(frame, decided, lost, interval, options)
            return notes + noticed.of_columns(frame, table, columns, universe is not None)

        asked = of_join("pit_long", named.values(), interval, options, table)
        numbers = {path: number for number, path in enumerate(dict.fromkeys(named.values()))}
        cells = [Cell(name, numbers[path], field) for name, path, field in cells_of(named, fields)]
        unsorted = UnsortedAnswers(decided, unsorted_panel_sql(table, list(numbers), interval, fields, options), len(numbers), cells)
        return self._make_result(decided.session, query, preview=preview, keys=("ts", "asset"), doubts=doubts, asked=asked, unsorted=unsorted)

    def pit_join(self, decisions: Any, metric: str, interval: str = "24h", *, currency: str | None = None,
                 exchange: str | None = None, network: str | None = None, component: str | None = None,
                 latency: Span | None = None, max_age: Span | None = None, back: Span | None = None, skip_nulls: bool = False,
                 unresolved: str | None = None, vintage: str | None = None, follow_renames: bool = False) -> Result:
        """Looks up one metric, with its timestamps, as known at each decision time.

        Args:
            decisions: Frame of pandas, polars or pyarrow, or an answer of the lake such as `calendar`. It has the columns `asset`
                and `ts`; in pandas these may be the index. A `ts` without a zone is UTC.
            metric: Path of the metric.
            interval: Interval of the metric. Default: `"24h"`.
            currency: Dimension of the series. Default: the catalogue's. Ignored if the metric has no such dimension.
            exchange: Dimension of the series, as `currency`.
            network: Dimension of the series, as `currency`.
            component: JSON pointer into an object or array value, such as `/open`. You can also write `path#/pointer` as the
                metric.
            latency: Time that you need to act: the answer is what was known that long before `ts`. Default: 0.
            max_age: A point that is older than this gives NULL. Default: no limit.
            back: Answers with an earlier point: of those known at `ts` the newest that ended at least this long before the newest
                one, such as `"90d"` or `"3 months"`. Default: the newest.
            skip_nulls: Ignores points whose value is null. Default: a null is the latest knowledge.
            unresolved: Value of an unresolved decision: `"value"` (default) is the newest known value, `"null"` is NULL.
            vintage: Value of a revised point: the `"last"` one known at `ts` (default), or the `"first"`.
            follow_renames: Also uses points of the predecessors and successors of the asset, after a rename or migration.

        Returns:
            A row for each decision, with `t, available_at, v, o, age` of the newest point that was knowable at `ts`.

        >>> day = lake.calendar("2024-03-04", "2024-03-05", "1 day", ["BTC"])
        >>> lake.pit_join(day, "supply/current_pit").df()[["v", "age"]].values.tolist()
        [[2.0, Timedelta('1 days 00:00:00')]]
        """
        options = Options(currency, exchange, network, component, latency, max_age, skip_nulls, unresolved, vintage,
                          follow_renames, back)
        return self._joined("pit_join", decisions, metric, interval, options)

    def window(self, decisions: Any, metric: str, interval: str = "24h", *, n: int | Span, currency: str | None = None,
               exchange: str | None = None, network: str | None = None, component: str | None = None,
               latency: Span | None = None, max_age: Span | None = None, back: Span | None = None, skip_nulls: bool = False,
               unresolved: str | None = None, vintage: str | None = None, follow_renames: bool = False) -> Result:
        """Looks up the last `n` points of a metric as known at each decision time.

        Args:
            decisions: Frame of pandas, polars or pyarrow, or an answer of the lake such as `calendar`. It has the columns `asset`
                and `ts`; in pandas these may be the index. A `ts` without a zone is UTC.
            metric: Path of the metric.
            interval: Interval of the metric. Default: `"24h"`.
            n: Number of points for each decision, 1 or more. Or a span such as `"90 days"`: then the points whose interval ended
                less than that before `ts`.
            currency: Dimension of the series. Default: the catalogue's. Ignored if the metric has no such dimension.
            exchange: Dimension of the series, as `currency`.
            network: Dimension of the series, as `currency`.
            component: JSON pointer into an object or array value, such as `/open`. You can also write `path#/pointer` as the
                metric.
            latency: Time that you need to act: the answer is what was known that long before `ts`. Default: 0.
            max_age: A point that is older than this gives NULL. Default: no limit.
            back: Answers with an earlier point: of those known at `ts` the newest that ended at least this long before the newest
                one, such as `"90d"` or `"3 months"`. Default: the newest.
            skip_nulls: Ignores points whose value is null. Default: a null is the latest knowledge.
            unresolved: Value of an unresolved decision: `"value"` (default) is the newest known value, `"null"` is NULL.
            vintage: Value of a revised point: the `"last"` one known at `ts` (default), or the `"first"`.
            follow_renames: Also uses points of the predecessors and successors of the asset, after a rename or migration.

        Returns:
            A row for each point of each decision, with `t, available_at, v, o, age, nth`. `nth` 1 is the newest.

        >>> day = lake.calendar("2024-03-05", "2024-03-06", "1 day", ["BTC"])
        >>> lake.window(day, "supply/current_pit", n=2).df()[["nth", "v"]].values.tolist()
        [[1.0, 3.0], [2.0, 2.0]]
        """
        options = Options(currency, exchange, network, component, latency, max_age, skip_nulls, unresolved, vintage,
                          follow_renames, back)
        return self._joined("window", decisions, metric, interval, options, n)

    def resample(self, metric: str, from_interval: str, to_interval: str, agg: str = "mean", assets: Names | None = None, *,
                 currency: str | None = None, exchange: str | None = None, network: str | None = None, component: str | None = None,
                 skip_nulls: bool = False, min_parts: int | None = None, since: Moment | None = None, until: Moment | None = None,
                 follow_renames: bool = False) -> Result:
        """Computes a metric on a coarser interval.

        A coarse point is known when the latest of its parts is known.

        Args:
            metric: Path of the metric.
            from_interval: Interval of the finer points, such as `"24h"`.
            to_interval: Interval of the answer, such as `"1w"`.
            agg: Aggregate: `"mean"` (default), `"sum"`, `"median"`, `"min"`, `"max"`, `"first"` or `"last"`. With
                `"ohlc"` the answer has the columns `open, high, low, close` instead of `v`.
            assets: Assets. Default: all.
            currency: Dimension of the series. Default: all.
            exchange: Dimension of the series. Default: all.
            network: Dimension of the series. Default: all.
            component: JSON pointer to a number in object values. You can also write `path#/pointer` as the metric.
            skip_nulls: Ignores parts whose value is null. Default: a null part makes `v` NULL.
            min_parts: Number of parts with a value that is enough for `v`. Default: all.
            since: First `t` of the answer.
            until: End of the range of `t`, exclusive.
            follow_renames: Also uses points of the predecessors and successors of the asset, after a rename or migration.

        Returns:
            A row for each coarse point, with the dimensions and `t, available_at, parts, complete, v`.

        >>> weeks = lake.resample("supply/current_pit", "24h", "1w", "sum", currency="native", min_parts=3)
        >>> weeks.df()[["asset", "v"]].values.tolist()
        [['BTC', 6.0]]
        """
        for name, interval in (("from_interval", from_interval), ("to_interval", to_interval)):
            check_choice(name, interval, INTERVALS)
        check_choice("agg", agg, AGGREGATES)
        check_names("assets", assets)
        check_text("metric", metric)
        if min_parts is not None and (isinstance(min_parts, bool) or not isinstance(min_parts, int) or min_parts < 1):
            raise refusal("resample: min_parts", "how many parts, 1 or more", repr(min_parts))
        options = Options(currency, exchange, network, component, skip_nulls=skip_nulls, follow_renames=follow_renames)
        own = self._open().cursor()
        arguments = [quote(metric), quote(from_interval), quote(to_interval), *([] if agg == "ohlc" else [quote(agg)]), *options.arguments()]
        arguments += [f"{name} := {utc_at(own, name, end)}" for name, end in (("since", since), ("until", until)) if end is not None]
        arguments += [] if min_parts is None else [f"min_parts := {min_parts}"]
        wanted = "" if assets is None else f" WHERE asset IN ({listed(assets)})"
        query = f"SELECT * FROM {'bars' if agg == 'ohlc' else 'resample'}({', '.join(arguments)}){wanted} ORDER BY asset, currency, exchange, network, t"
        asked = of_metric(metric, from_interval, [] if assets is None else [assets] if isinstance(assets, str) else list(assets),
                          options.dimensions(), component=component, everywhere=True)

        return self._make_result(own, query, keys=("t", "asset"), doubts=lambda noticed, frame: noticed.of_empty_column(
            frame, "close" if agg == "ohlc" else "v", asked))

    def calendar(self, since: Moment, until: Moment, step: Span = "1 day", assets: Names | None = None) -> Result:
        """Makes a grid of decision times, UTC.

        Args:
            since: First time of the grid.
            until: End of the grid, exclusive.
            step: Distance between two times, such as `"1 day"`, `"15m"` or `"1 month"`. Or an exchange: `"XNYS"` for the close
                of each session, `"XNYS:open"` for its opening. Or a local time: `"daily at 09:30 America/New_York"`.
            assets: Assets. With them the grid has a row for each time and asset.

        Returns:
            The column `ts`, with `assets` also `asset`.

        >>> lake.calendar("2024-01-31", "2024-04-01", "1 month").df()["ts"].dt.day.tolist()
        [31, 29, 31]
        >>> lake.calendar("2024-07-03", "2024-07-06", "XNYS").df()["ts"].dt.strftime("%d %H:%M").tolist()
        ['03 17:00', '05 20:00']
        """
        check_names("assets", assets)
        own = self._open().cursor()
        ends = [utc_at(own, name, end) for name, end in (("since", since), ("until", until))]
        grid = f"SELECT ts FROM calendar({', '.join(ends)}, {step_sql(step)})"
        with translate_errors(self._seat.near_metrics):
            if own.execute(f"SELECT ({ends[0]}) > ({ends[1]})").fetchall() == [(True,)]:
                raise refusal("calendar", "since before until", f"{since} and {until}", "they are reversed")
        if assets is None:
            return self._make_result(own, f"{grid} ORDER BY ts", keys=("ts",))
        crossed = f"SELECT asset, ts FROM ({grid}) CROSS JOIN (SELECT unnest([{listed(assets)}]) AS asset) ORDER BY ts, asset"
        return self._make_result(own, crossed, keys=("ts", "asset"))

    def universe(self, as_of: Moment | None = None) -> Result:
        """Reads the tokenized products as known at one time.

        Args:
            as_of: Time of the state of knowledge. Default: the `as_of` of the lake.

        Returns:
            A row for each product, with issuer, asset, deployments and status.

        >>> lake.universe("2024-08-20").columns[:3]
        ['product_id', 'name', 'symbol']
        """
        query = "SELECT * FROM universe ORDER BY product_id"
        self._open().check_sql(query)
        own = self._open().cursor("as_of", **({} if as_of is None else {"as_of": moment_text(as_of)}))
        return self._make_result(own, query, keys=("product_id",), doubts=Noticed.of_query)

    def history(self, resource: str) -> Result:
        """Reads every known version of the records of a registry resource.

        Args:
            resource: Name of the resource, such as `"products"`.

        Returns:
            A row for each version of each record, with `valid_from` and `valid_to`.

        >>> lake.history("products").columns[:3]
        ['id', 'valid_from', 'valid_to']
        """
        own = self._open().cursor()
        rows = own.execute("SELECT view_name FROM duckdb_views() WHERE schema_name = 'history' AND NOT internal ORDER BY 1").fetchall()
        names = [row[0] for row in rows]
        if resource not in names:
            meant = near(own, "nearest", str(resource), names)
            raise refusal("history", "a resource of the registry", f"{resource!r}{meant}")
        query = f"SELECT * FROM history.{quote_name(resource)} ORDER BY id, valid_from"
        self._open().check_sql(query)
        return self._make_result(own, query, keys=("id", "valid_from"), doubts=Noticed.of_query)

    def metrics(self) -> Result:
        """Reads the catalogue.

        Returns:
            A row for each metric, with its allowed values, defaults and availability rule.

        >>> "supply/current_pit" in set(lake.metrics().df()["metric"])
        True
        """
        return self._make_result(self._open().cursor(), "SELECT * FROM endpoints ORDER BY metric", keys=("metric",))

    def status(self) -> Result:
        """Reads which lake this is, what it contains and what is wrong with it.

        Returns:
            One row, with `lake, version, committed_at, provider, synthetic, folder, series, points, last_available_at,
            failed_windows, gaps, violations, registry_since`.

        >>> lake.status().df()["version"].tolist()
        [1]
        """
        return self._make_result(self._open().cursor(), STATUS)

    def stamp(self, query: str | Path, out: str | Path) -> dict[str, Any]:
        """Runs a query and records everything that its result depends on, as `pitlake stamp` does.

        Args:
            query: SQL, or the path of a file with SQL.
            out: Parquet file for the result.

        Returns:
            The document that `pitlake stamp --json` prints.

        >>> lake.stamp("SELECT max(v) AS most FROM points", "most.parquet")["version"]  # doctest: +SKIP
        1
        """
        seat = self._open()
        options = ["--out", str(Path(out).resolve()), *self._state_options(query)]
        said = program.asked_about(query, seat.folder, "stamp", options)
        if said.get("version") != seat.version:
            warn([f"stamped at version {said.get('version')}, this lake stands at {seat.version}: refresh() moves on"])
        return said

    def import_frame(self, frame: Any, name: str, **mapping: str | bool | Sequence[str]) -> dict[str, Any]:
        """Imports a frame as the metric `own/NAME`, as `pitlake import` does, and moves the lake to the new version.

        An import is all-or-nothing. If a value differs from the stored one, pitlake keeps the stored value and counts a
        violation.

        Args:
            frame: Frame of pandas, polars or pyarrow.
            name: Name of the metric, without `own/`.
            mapping: Options of `pitlake import` that map the columns: `asset="ticker"`, `t="date"`,
                `components=["open", "close"]`, `available="open=start,close=end"`, `available_at="known"`, `revisable=True`.

        Returns:
            The document that `pitlake import --json` prints.

        >>> lake.import_frame(scores, "scores", t="date", value="score", available_at="known", interval="24h")  # doctest: +SKIP
        >>> lake.points("own/scores")["v"].tolist()  # doctest: +SKIP
        [1.0]
        """
        options = ["--as", name]
        for key, value in mapping.items():
            flag = f"--{key.replace('_', '-')}"
            options += [flag] if value is True else [] if value is False else [flag, value if isinstance(value, str) else ",".join(value)]
        with tempfile.TemporaryDirectory() as scratch:
            file = str(Path(scratch) / f"{name.rpartition('/')[2]}.parquet")
            write_frame("import_frame", frame, file)
            said = program.asked(self._open().folder, ["import", file, *options], (0, 4))
        self.refresh()
        return said

    def replay(self, file: str | Path) -> dict[str, Any]:
        """Runs a stamped result again and compares the rows bit for bit, as `pitlake replay` does.

        Args:
            file: Parquet file that `stamp` wrote.

        Returns:
            The document that `pitlake replay --json` prints. `same` is True if every row is the same.

        >>> lake.replay("most.parquet")["same"]  # doctest: +SKIP
        True
        """
        return program.asked(self._open().folder, ["replay", str(Path(file).resolve())], (0, 4))

    def lookahead(self, query: str | Path | Callable[[Lake], Any], *, ts: str = "ts", labels: Names = (), cutoffs: int | None = None,
                  tolerance: float = 0.0, shift: Any = None, own: Mapping[str, Any] | None = None) -> Any:
        """Tests whether a query, or a function that takes a lake, looks ahead, as `pitlake lookahead` does.

        Args:
            query: SQL, the path of a file with SQL or of a stamped result, or a function as in `pitlake.lookahead`. SQL is
                tested with the session variables of this lake, except `as_of`: the test itself sets it.
            ts: Column with the time of each row.
            labels: Columns that may look ahead, such as the target of a model.
            cutoffs: Number of times at which the lake is cut. Default: 50; for a query that its plan proves clean, 5.
            tolerance: Relative difference of numbers that counts as equal.
            shift: Time from the timestamp of a row to its decision, for the result of a backtest of a function.
            own: Your own data by the names under which the query reads them: files, for a function also frames.

        Returns:
            For a query the document that `pitlake lookahead --json` prints, with the `verdict` clean, leak or undecided. For a
            function a `Verdict`.

        >>> query = "SELECT asset, available_at AS ts, v FROM points WHERE metric = 'supply/current_pit'"
        >>> lake.lookahead(query)["verdict"]  # doctest: +SKIP
        'clean'
        """
        label_names = [labels] if isinstance(labels, str) else list(labels)
        if callable(query):
            from .lookahead import lookahead

            return lookahead(query, self.folder, ts=ts, labels=label_names, cutoffs=50 if cutoffs is None else cutoffs,
                             tolerance=tolerance, shift=shift, own=own, set=self._open().variables)
        if shift is not None:
            raise refusal("lookahead: shift", "a function", "a query", "shift ts in the query")
        options = ["--ts", ts, "--tolerance", repr(tolerance), *self._state_options(query, without=("as_of",))]
        options += [] if cutoffs is None else ["--cutoffs", str(cutoffs)]
        options += ["--labels", ",".join(label_names)] if label_names else []
        for name, file in (own or {}).items():
            options += ["--own", f"{name}={Path(file).resolve()}"]
        return program.asked_about(query, self._open().folder, "lookahead", options, (0, 4, 6))

    def when(self, table: Any, *, claimed: Any = None, claimed_observed: Any = None, kind: str | None = None,
             metrics: Mapping[str, str] | Names = (), **options: Any) -> Dating:
        """Finds the time from whose knowledge a table comes, as `pitlake when` does.

        pitlake compares each cell with everything that the lake ever knew. Rows may be missing, and numbers may be rounded. The whole
        lake is searched, whatever the `as_of` of this one.

        Args:
            table: Frame of pandas, polars or pyarrow, or the path of a CSV or Parquet file.
            claimed: `as_of` that the table is said to have.
            claimed_observed: `observed_as_of` that the table is said to have.
            kind: `panel`, `points`, `vintages` or `universe`. Default: by its columns.
            metrics: Metrics of columns, such as `{"price": "price_usd"}`. Default: by name, then by value.
            options: Further options of `pitlake when`: `ts`, `t`, `asset` and `value` name columns; `interval`, `currency`, `exchange`,
                `network`, `component`, `latency`, `max_age`, `skip_nulls`, `unresolved`, `vintage` and `follow_renames` say how the
                table was made.

        Returns:
            A `Dating`, with the ranges of `as_of` and `observed_as_of` in which the lake answers every cell.

        >>> lake.when(lake.points("supply/current_pit").df()).verdict  # doctest: +SKIP
        'dated'
        """
        claims = {"claimed": claimed, "claimed_observed": claimed_observed}
        named = {name: None if at is None else moment_text(at) for name, at in claims.items()} | {"kind": kind, **options}
        listed = [f"{name}={path}" for name, path in metrics.items()] if isinstance(metrics, Mapping) else [metrics] if isinstance(metrics, str) else metrics
        named["metrics"] = ",".join(listed) or None
        flags: list[str] = []
        for name, value in named.items():
            flag = f"--{name.replace('_', '-')}"
            flags += [] if value is None or value is False else [flag] if value is True else [flag, str(value)]
        if isinstance(table, (str, Path)):
            return Dating(program.asked(self._open().folder, ["when", str(Path(table).resolve()), *flags], (0, 4)))
        with tempfile.TemporaryDirectory() as scratch:
            file = str(Path(scratch) / "table.parquet")
            write_frame("when", table, file)
            return Dating(program.asked(self._open().folder, ["when", file, *flags], (0, 4)))

    def sweep(self, query: Callable[..., str], grid: Mapping[str, Sequence[Any]], *, returns: str = "ret",
              periods: float = 365) -> Result:
        """Tries a query with each combination of parameters, and estimates how much of the best result is chance.

        pitlake first records every try in the lake, as `pitlake preregister` does. Then it runs all of them on the version that
        this lake has open. A certificate of one of them shows how many tries there were.

        Args:
            query: Function that takes the parameters by name and returns SQL.
            grid: Values of each parameter, as lists.
            returns: Column of the query with the returns of the strategy, one in each period. NULL is left out.
            periods: Number of periods in a year, to annualise the Sharpe ratio. Default: 365, for daily returns.

        Returns:
            A row for each combination: the parameters, then `observations, sharpe, deflated_sharpe, tries, query_sha256`. `tries`
            counts all tries that the lake has recorded. `deflated_sharpe` is the probability that the true Sharpe ratio is above
            the one that the best of so many tries has by chance.

        >>> def momentum(days):
        ...     return f"SELECT t AS ts, v / lag(v, {days}) OVER (ORDER BY t) - 1 AS ret FROM points WHERE metric = 'supply/current_pit'"
        >>> lake.sweep(momentum, {"days": [1, 2]}).columns  # doctest: +SKIP
        ['days', 'observations', 'sharpe', 'deflated_sharpe', 'tries', 'query_sha256']
        """
        from .sweep import sweep_rows

        rows = sweep_rows(self, query, grid, returns, periods)
        own = self._open().cursor()
        cells = ", ".join(f"({', '.join('NULL' if value is None else _literal(value) for value in row.values())})" for row in rows)
        names = ", ".join(map(quote_name, rows[0]))
        typed = "CAST(sharpe AS DOUBLE) AS sharpe, CAST(deflated_sharpe AS DOUBLE) AS deflated_sharpe"
        return self._make_result(own, f"SELECT * REPLACE ({typed}) FROM (VALUES {cells}) AS tries ({names})", keys=list(grid))

    def explain_change(self, file: str | Path, to: str | Path | None = None) -> dict[str, Any]:
        """Explains why a stamped result changed, as `pitlake explain-change` does.

        Args:
            file: Parquet file that `stamp` wrote.
            to: Stamped result of the same query to compare with. Default: the query on the lake as it is now.

        Returns:
            The document that `pitlake explain-change --json` prints: the commit and the points that changed the first differing row.

        >>> lake.explain_change("most.parquet")["verdict"]  # doctest: +SKIP
        'same'
        """
        files = [str(Path(one).resolve()) for one in (file, to) if one is not None]
        return program.asked(self._open().folder, ["explain-change", *files], (0, 4))

    def stress(self, query: str | Path, statistic: str, *, lags: Names = (), latencies: Names = (), vintages: int = 3,
               within: float = 0.5, ts: str = "ts", labels: Names = ()) -> dict[str, Any]:
        """Measures how far a statistic moves if points are known later, as `pitlake stress` does.

        Args:
            query: SQL, or the path of a file with SQL, in the state of knowledge of this lake. Or the path of a stamped result,
                which has its own.
            statistic: SQL of one number over the table `result`, which contains the rows of the query.
            lags: How much later points become known: times such as `"30m"`, and `"p50"`, `"p95"`, `"p99"` or `"max"` of the
                observed lags. Default: all four, 30 minutes and 1 hour.
            latencies: How much more time you need to act, such as `"1h"`.
            vintages: Number of earlier versions of the lake to try. These are not the vintages of revised points.
            within: Share by which the statistic may move.
            ts: Column with the time of each row.
            labels: Columns that may look ahead.

        Returns:
            The document that `pitlake stress --json` prints. `verdict` is holds, falls, leak or undecided.

        >>> query = "SELECT asset, available_at AS ts, v FROM points WHERE metric = 'supply/current_pit'"
        >>> lake.stress(query, "SELECT avg(v) FROM result")["verdict"]  # doctest: +SKIP
        'holds'
        """
        options = ["--statistic", statistic, "--vintages", str(vintages), "--within", str(within), "--ts", ts, *self._state_options(query)]
        for flag, names in (("--lag", lags), ("--latency", latencies), ("--labels", labels)):
            own = [names] if isinstance(names, str) else list(names)
            options += [flag, ",".join(own)] if own else []
        return program.asked_about(query, self._open().folder, "stress", options, (0, 4, 6))

    def _open(self) -> Seat:
        if self._seat is None:
            raise LakeError("the lake is closed; open it again with pitlake.open")
        self._say_lag()
        return self._seat

    def _state_options(self, query: str | Path, without: Sequence[str] = ()) -> list[str]:
        """Lists the options by which a command queries in the state of this lake, without some variables.

        A stamped result has its own variables. A variable of the caller is an option only if the query reads it.
        """
        if isinstance(query, Path) and query.suffix.lower() in STAMPED:
            return []
        text = _text_of(query)
        options: list[str] = []
        for name, value in self._open().variables.items():
            is_read = name in STATE or re.search(rf"\bgetvariable\s*\(\s*'{re.escape(name)}'", text, re.I)
            if value is not None and name not in without and is_read:
                options += ["--set", f"{name}={value if name in STATE and isinstance(value, str) else setting_text(value)}"]
        return options

    def _say_lag(self) -> None:
        """Warns once of views older than the journal, or of a mirror older than its lake.

        A lake that stays at an earlier version on purpose is neither.
        """
        lag = lag_of_views(self._seat.folder) or lag_of_mirror(self._seat.folder)
        if lag is not None and lag != self._lag:
            warn([lag])
        self._lag = lag

    def _make_result(self, own: duckdb.DuckDBPyConnection, query: str, *, preview: str | None = None, keys: Sequence[str] = (),
                doubts: Callable[[Noticed, Any], Sequence[str]] | None = None, asked: Question | None = None,
                unsorted: UnsortedAnswers | None = None) -> Result:
        seat = self._open()
        seat.notes = ()
        noticed = Noticed(seat, own, query, asked=asked)
        with translate_errors(seat.near_metrics):
            if unsorted is None or not unsorted.can_be_placed():
                return Result(seat, own, own.sql(query), preview=preview, keys=keys, doubts=doubts and partial(doubts, noticed))
            unsorted.bind()
            return Result(seat, own, query, preview=preview, keys=keys, doubts=doubts and partial(doubts, noticed), unsorted=unsorted)

    def _joined(self, where: str, decisions: Any, metric: str, interval: str, options: Options, n: int | Span | None = None) -> Result:
        check_choice("interval", interval, INTERVALS)
        decided = self._store_decisions(where, decisions, JOINED_COLUMNS if n is None else (*JOINED_COLUMNS, "nth"), None)
        query = join_sql(decided, metric, interval, options, JOINED_COLUMNS, n)
        asked = of_join("pit_join" if n is None else "pit_window", [metric], interval, options, decided.table)
        unsorted = None if n is not None else UnsortedAnswers(
            decided, unsorted_join_sql(decided.table, metric, interval, options, JOINED_COLUMNS), 1, [Cell(field, 0, field) for field in JOINED_COLUMNS])
        return self._make_result(decided.session, query, keys=("ts", "asset"), asked=asked, unsorted=unsorted, doubts=lambda noticed, frame: (
            noticed.of_decided(frame, decided, [("t", metric)], interval, options)))

    def _store_decisions(self, where: str, decisions: Any, added: Sequence[str], universe: str | None,
                 columns: Sequence[str] = ()) -> Decided:
        """Stores decisions in a table of a separate session, numbered."""
        seat, keys = self._open(), ("ts",) if universe is not None else ("asset", "ts")
        own, table = seat.cursor(), f"_pit_decisions{next(_numbers)}"
        source = "_pit_given"
        given = frame_of_decisions(decisions.frame() if isinstance(decisions, Result) else decisions, keys, where)
        numbered = decisions_sql(source, universe is None)
        if universe is None and not columns and seat.until_end(numbered) == numbered and (arrow := arrow_decisions(given)) is not None:
            self._check_clash(where, arrow.columns.column_names, added)
            self._warn_of_zone(where, arrow.zoned)
            own.register(table, arrow.numbered(KEY))
            return Decided(own, table, arrow.columns.column_names, arrow)
        own.register(source, given)
        with translate_errors(seat.near_metrics):
            names, types = zip(*((name, str(kind)) for name, kind, *_ in own.execute(f"DESCRIBE FROM {source}").fetchall()))
            self._check_clash(where, names, [*added, *columns, *(MEMBER if universe is not None else [])])
            kind = types[[name.lower() for name in names].index("ts")]
            self._warn_of_zone(where, re.fullmatch(r"TIMESTAMP(_\w+)?", kind) is None)
            if not re.match(r"TIMESTAMP|DATE$|VARCHAR$", kind):
                if own.execute(f"SELECT count(ts) FROM {source}").fetchall() != [(0,)]:
                    raise refusal(where, "ts as instants, or texts such as 2024-06-01T12:00:00Z", kind,
                                  "pandas.to_datetime(…, unit='s', utc=True) makes instants of seconds")
                source = f"(SELECT * REPLACE (CAST(NULL AS TIMESTAMPTZ) AS ts) FROM {source})"
            moments = seat.until_end(decisions_sql(source, universe is None))
            if universe is not None:
                self._check_members(seat, own, moments, universe)
                moments = members_sql(moments, universe)
            if columns:
                moments = with_registry_sql(moments, columns, universe is not None)
            try:
                own.execute(f"CREATE TEMP TABLE {table} AS {moments}").fetchall()
            except duckdb.ConversionException as error:
                unread = re.search(r'invalid timestamp field format: "([^"]*)"', str(error))
                if unread is None:
                    raise
                raise wrong("decisions", INSTANT, unread[1]) from None
        return Decided(own, table, names, None)

    def _warn_of_zone(self, where: str, zoned: bool) -> None:
        """Warns once of a lake's decisions that have no zone."""
        if not zoned and not self._said:
            self._said = True
            warn([f"{where}: ts has no zone, it is taken as UTC"])

    @staticmethod
    def _check_clash(where: str, names: Sequence[str], added: Sequence[str]) -> None:
        taken = {name.lower() for name in [*added, KEY]}
        clash = next((name for name in names if name.lower() in taken), None)
        if clash is not None:
            raise refusal("decisions", f"decisions without a column that the {'panel' if where == 'panel' else 'join'} adds", clash, "rename it")

    @staticmethod
    def _check_members(seat: Seat, own: duckdb.DuckDBPyConnection, moments: str, condition: str) -> None:
        """Refuses an invalid condition, and moments at which the registry was not known."""
        tried = f"SELECT product_id FROM universe WHERE (\n{condition}\n) LIMIT 0"
        own.extract_statements(tried)
        if not is_one_expression(own, condition):
            raise refusal("universe", "one condition", condition)
        seat.check_sql(tried)
        own.execute(tried).fetchall()
        first, start, early = own.execute(
            f"""SELECT min(ts)::VARCHAR, any_value(known_since)::VARCHAR,
              count(ts) > 0 AND NOT coalesce(min(ts) >= any_value(known_since), false)
              AND NOT coalesce(CAST(getvariable('registry_backfill') AS BOOLEAN), false)
            FROM ({moments}) LEFT JOIN registry_start ON true"""
        ).fetchall()[0]
        if early:
            known = f"instants from {start} on, when the registry was first known" if start else "a registry: it is not known yet"
            raise refusal("universe", known, first, "or use the first snapshot for earlier times: `registry_backfill=True`" if start else "run `pitlake registry snapshot`")

    def _standards(self) -> Standards:
        """Reads the catalogue's defaults of each metric, of prices, too."""
        if self._known is None:
            rows = self._open().cursor().execute(
                "SELECT metric, default_interval, default_currency, default_exchange, default_network FROM endpoints ORDER BY 1"
            ).fetchall()
            known: dict[str, dict[str, str | None]] = {
                row[0]: dict(zip(("interval", "currency", "exchange", "network"), row[1:])) for row in rows}
            if PRICED in known:
                known[PRICE] = {"interval": known[PRICED]["interval"]}
            self._known = known
        return self._known


STATUS = """SELECT lake, version, committed_at, provider, synthetic, folder,
  (SELECT count(*) FROM series) AS series,
  (SELECT CAST(coalesce(sum(points), 0) AS BIGINT) FROM series) AS points,
  (SELECT max(last_available_at) FROM series) AS last_available_at,
  (SELECT count(*) FROM coverage WHERE state = 'failed') AS failed_windows,
  (SELECT count(*) FROM gaps) AS gaps,
  (SELECT count(DISTINCT incident) + count(*) FILTER (WHERE incident IS NULL) FROM violations WHERE status = 'open')
    AS violations,
  (SELECT min(known_since) FROM registry_start) AS registry_since
FROM lake_info"""


def open(path: str | Path | None = None, *, as_of: Moment | None = None, observed_as_of: Moment | None = None,
         backfill: str | None = None, registry_backfill: bool = False, set: Mapping[str, object] | None = None,
         threads: int | None = None, memory: str | None = None, progress: bool | None = None) -> Lake:
    """Opens the lake in a folder for reading.

    You can open a lake that was moved or copied. Each call of `open` then makes temporary views for the new place, which takes
    almost a second. The views in the folder stay as they are. Run `pitlake views` once to rebuild them.

    Args:
        path: Folder of the lake. Default: `PITLAKE_DATA`, else `data`.
        as_of: Answers contain only what was knowable by then.
        observed_as_of: Answers contain only what this lake had stored by then.
        backfill: `"rule"` dates points that the provider added long after their interval by the availability rule. Default:
            `"strict"`, by the time at which the provider computed them.
        registry_backfill: True lets the earliest known registry state also answer for the time before it.
        set: Further session variables by name. A misspelt variable of the lake is refused.
        threads: Number of threads of DuckDB. Default: one for each core.
        memory: Memory limit of DuckDB, such as `"1GB"`. Default: DuckDB's.
        progress: Shows DuckDB's progress bar if an answer takes over two seconds. Default: on a terminal and in a notebook.

    Returns:
        The open lake.

    >>> import pitlake
    >>> with pitlake.open(lake.folder, as_of="2024-03-03") as then:
    ...     then.points("supply/current_pit").df()["v"].tolist()
    [1.0]
    """
    folder = Path(path if path is not None else os.environ.get("PITLAKE_DATA") or "data").resolve()
    if backfill is not None:
        check_choice("backfill", backfill, ("rule", "strict"))
    check_switch("registry_backfill", registry_backfill)
    variables: dict[str, object] = {
        "as_of": None if as_of is None else moment_text(as_of),
        "observed_as_of": None if observed_as_of is None else moment_text(observed_as_of),
        "backfill": backfill,
        "registry_backfill": True if registry_backfill else None,
        **read_variables(set or {}),
    }
    limits = {"threads": threads, "memory": memory}
    shown = sys.stdout.isatty() or "ipykernel" in sys.modules if progress is None else progress
    return Lake(lambda: Seat(folder, variables, limits, shown))


def read_variables(given: Mapping[str, object]) -> dict[str, object]:
    """Reads session variables by name, in small letters: SQL ignores their case. Refuses a misspelt variable of the lake."""
    variables = {str(name).lower(): value for name, value in given.items()}
    for name, value in variables.items():
        near = "" if name in STATE else meant_word(name, STATE, 0.8)
        if near:
            raise refusal(f"set: {name}", f"{', '.join(STATE)}, or a name that a query reads with getvariable", None, near)
        if name in ("as_of", "observed_as_of") and isinstance(value, date):
            variables[name] = moment_text(value)
        if name == "backfill" and value is not None:
            check_choice(name, value, ("rule", "strict"))
        if name == "registry_backfill" and value not in ("true", "false", None):
            check_switch(name, value)
    return variables


def _database_of(folder: Path) -> Path:
    """Finds the folder's `lake.duckdb`; fails in clear words if there is none, or one of a different layout."""
    database = folder / "lake.duckdb"
    if not folder.is_dir():
        raise refusal(f"lake {folder}", "the folder of a lake", "no such folder", "name it in pitlake.open(…) or in PITLAKE_DATA")
    layout = _layout_of(folder)
    if layout is not None and layout != LAYOUT:
        newer = "run `pip install --upgrade ./python` in a newer checkout of pitlake"
        raise refusal(f"lake {folder}", f"a lake of layout {LAYOUT}", f"layout {layout}", newer if layout > LAYOUT else REMAKE)
    if not database.exists():
        started = (folder / "journal").is_dir()
        raise refusal(f"lake {folder}", "lake.duckdb", "a lake without it" if started else "a folder without a lake",
                      "run `pitlake views`" if started else "run `pitlake fetch`, or name the lake's folder")
    return database


def _layout_of(folder: Path) -> int | None:
    """Reads the layout from the newest entry of the journal; None if there is none that can be read."""
    try:
        names = sorted(name for name in os.listdir(folder / "journal") if re.fullmatch(r"\d{10,15}(\.checkpoint\.jsonl|\.json(\.gz)?)", name))
        newest = folder / "journal" / names[-1]
        # Only the beginning is read: a damaged entry may decompress to more than the memory takes.
        with gzip.open(newest) if newest.suffix == ".gz" else newest.open("rb") as file:
            found = re.search(rb'"schema_version": ?(\d+)', file.read(1000))
        return int(found[1]) if found else None
    except (OSError, EOFError, zlib.error, IndexError):
        return None


def _place_of(session: duckdb.DuckDBPyConnection, folder: Path) -> tuple[int, int]:
    """Reads version and instant of the views; refuses views made for another folder, because they name its files."""
    version, micros, built = session.execute("SELECT version, epoch_us(committed_at), folder FROM lake_info").fetchall()[0]
    if built is not None and Path(built).resolve() != folder:
        raise refusal(f"lake {folder}", "views over the files of this folder", f"views made for {built}",
                      "the lake was moved or copied: run `pitlake views`")
    return int(version), int(micros or 0)


def _text_of(query: str | Path) -> str:
    """Reads the SQL of a query; empty if its file cannot be read, which the command then reports."""
    if isinstance(query, str):
        return query
    try:
        return query.read_text(encoding="utf8")
    except (OSError, UnicodeDecodeError):
        return ""


def _state_of(session: duckdb.DuckDBPyConnection) -> list[str | None]:
    """Reads each variable of the state of knowledge, as the views read it: its type and text, NULL if it is unset."""
    values = [f"getvariable('{name}')" for name in STATE]
    [cells] = session.execute(f"SELECT {', '.join(f'typeof({value}) || CAST({value} AS VARCHAR)' for value in values)}").fetchall()
    return list(cells)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f"CAST({quote(value)} AS DOUBLE)" if isinstance(value, float) else quote(value)
