"""An answer of the lake, in the form in which it is wanted."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import duckdb

from .errors import LakeError, refusal, translate_errors, warn
from .fence import one_select, refuse_hidden
from .frames import LentFrames
from .text import quote_name

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

    from .lake import Seat
    from .unsorted import UnsortedAnswers

SHOWN = 10
# So many signs of a cell are shown on a page.
LONG = 60
_WITHIN = re.compile(r"""(?<!["'])\bINTERVAL\b(?!["'])""")

OTHER_NAMES = {
    "to_pandas": "answer.df()", "to_df": "answer.df()", "fetchdf": "answer.df()", "to_polars": "answer.pl()",
    "to_arrow": "answer.arrow()", "to_arrow_table": "answer.arrow()", "fetch_arrow_table": "answer.arrow()",
    "to_xarray": "answer.xarray()", "fetchall": "list(answer)", "to_dict": "answer.df().to_dict('records')",
}
"""What other libraries call the forms of an answer, and what they are called here."""

Doubts = Callable[[Any], "Sequence[str]"]


class Result:
    """An answer of the lake, computed when you ask for its rows.

    The same answer always has the same rows, because the lake behind it keeps one version. A notebook that shows an
    answer reads only the rows that it shows.

    >>> answer = lake.sql("SELECT asset, t, v FROM points WHERE metric = 'supply/current_pit' AND currency = 'native' ORDER BY t")
    >>> answer.columns
    ['asset', 't', 'v']
    >>> answer.df()["v"].tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        seat: Seat,
        connection: duckdb.DuckDBPyConnection,
        relation: duckdb.DuckDBPyRelation | str | None,
        *,
        preview: str | None = None,
        keys: Sequence[str] = (),
        doubts: Doubts | None = None,
        lent: LentFrames | None = None,
        unsorted: UnsortedAnswers | None = None,
    ) -> None:
        self._seat, self._connection, self._rows, self._unsorted = seat, connection, relation, unsorted
        self._preview = preview
        self._names: list[str] | None = None
        self._lent = lent or LentFrames(connection, seat.lending, {})
        self._keys, self._doubts = list(keys), doubts if seat.wants_notes else None

    @property
    def _relation(self) -> duckdb.DuckDBPyRelation | None:
        """Binds SQL when its rows are first needed: a frame of unsorted answers needs none of it."""
        if isinstance(self._rows, str):
            with translate_errors(self._seat.near_metrics):
                self._rows = self._connection.sql(self._rows)
        return self._rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Returns:
            The names, in their order.

        >>> lake.calendar("2024-01-01", "2024-01-02", "1 day", ["BTC"]).columns
        ['asset', 'ts']
        """
        if self._names is None:
            self._names = [] if self._relation is None else self._run(lambda relation: list(relation.columns))
        return list(self._names)

    def df(self, index: str | Sequence[str] | None = None) -> pandas.DataFrame:
        """Computes the answer as a frame of pandas.

        Timestamps have the zone UTC. An open end (`infinity` in SQL) is NaT.

        Args:
            index: Column, or columns, that become the index. Default: rows are numbered.

        Returns:
            The frame.

        >>> lake.points("supply/current_pit").df(index="t")["v"].tolist()
        [1.0, 2.0, 3.0]
        """
        library = _module("pandas")
        frame = self._placed(lambda answers: answers.df(_convert_for_frames))
        if frame is None:
            frame = library.DataFrame() if self._relation is None else self._run(lambda relation: _convert_for_frames(relation).df())
        self._wonder(frame)
        if index is None:
            return frame
        names = [index] if isinstance(index, str) else list(index)
        lost = [name for name in names if name not in frame.columns]
        if lost:
            raise refusal("df: index", f"one of the columns {', '.join(self.columns)}", lost[0])
        return frame.set_index(names if len(names) > 1 else names[0])

    def pl(self) -> polars.DataFrame:
        """Computes the answer as a frame of polars.

        Timestamps have the zone UTC. An open end is null, and an INTERVAL such as `age` is a duration in which a month counts
        30 days. Within lists and structs an INTERVAL is a text.

        Returns:
            The frame.

        >>> lake.points("supply/current_pit").pl()["v"].to_list()
        [1.0, 2.0, 3.0]
        """
        library = _module("polars")
        _module("pyarrow")
        frame = library.DataFrame()
        placed = self._placed(lambda answers: answers.arrow(_convert_for_frames, True))
        if placed is not None or self._relation is not None:
            table, times = placed or self._run(lambda relation: (
                _convert_for_frames(relation, plain=True).to_arrow_table(), [name for name, kind in _kinds(relation) if kind == "INTERVAL"]))
            frame = library.from_arrow(table)
            frame = frame.with_columns(library.col(name).cast(library.Duration("us")) for name in times)
        self._wonder(frame)
        return cast("polars.DataFrame", frame)

    def arrow(self) -> pyarrow.Table:
        """Computes the answer as a table of pyarrow.

        Timestamps have the zone UTC. An open end is null.

        Returns:
            The table.

        >>> lake.points("supply/current_pit").arrow()["v"].to_pylist()
        [1.0, 2.0, 3.0]
        """
        library = _module("pyarrow")
        placed = self._placed(lambda answers: answers.arrow(_convert_for_frames, False))
        if placed is not None:
            table = placed[0]
        else:
            table = library.table({}) if self._relation is None else self._run(lambda relation: _convert_for_frames(relation).to_arrow_table())
        self._wonder(table)
        return cast("pyarrow.Table", table)

    def xarray(self, dims: Sequence[str] | None = None) -> xarray.Dataset:
        """Computes the answer as a dataset of xarray.

        Each column that is no dimension becomes a variable. Timestamps are UTC without a zone, which xarray does not have.

        Args:
            dims: Columns that identify a row. Default: `ts` and `asset` of a panel, the keys of other answers.

        Returns:
            The dataset.

        >>> days = lake.calendar("2024-03-04", "2024-03-06", "1 day", ["BTC"])
        >>> dict(lake.panel(days, "supply/current_pit").xarray().sizes)
        {'ts': 2, 'asset': 1}
        """
        library = _module("xarray")
        names = list(dims if dims is not None else self._keys)
        frame = self.df()
        lost = [name for name in names if name not in frame.columns]
        if not names or lost:
            raise refusal("xarray: dims", f"some of the columns {', '.join(self.columns)}", lost[0] if lost else "none")
        if frame.duplicated(names).any():
            raise refusal("xarray: dims", "columns that tell the rows apart", ", ".join(names), "name more of them")
        for name in names:
            if hasattr(frame[name].dtype, "tz"):
                # xarray has no zones: these are UTC.
                frame[name] = frame[name].dt.tz_localize(None)
        return cast("xarray.Dataset", library.Dataset.from_dataframe(frame.set_index(names)))

    def wide(self) -> pandas.DataFrame:
        """Computes a panel with a row for each `ts`.

        Returns:
            A frame of pandas with the columns (metric, asset).

        >>> decisions = lake.calendar("2024-03-04", "2024-03-06", "1 day", ["BTC"])
        >>> lake.panel(decisions, "supply/current_pit").wide()["supply/current_pit", "BTC"].tolist()
        [2.0, 3.0]
        """
        frame = self.df()
        lost = [name for name in ("ts", "asset") if name not in frame.columns]
        if lost:
            raise refusal("wide", "columns ts and asset", f"no {lost[0]}", "wide is for panels")
        if frame.duplicated(["ts", "asset"]).any():
            raise refusal("wide", "one row for each ts and asset", "more", "drop the duplicates, or take .df()")
        wide = cast("pandas.DataFrame", frame.set_index(["ts", "asset"]).unstack("asset"))
        return wide.rename_axis(columns=["metric", "asset"])

    def frame(self) -> Any:
        """Computes the answer as a table of pyarrow, or as a frame of pandas if pyarrow is not installed.

        Returns:
            The table or frame.

        >>> len(lake.points("supply/current_pit").frame())
        3
        """
        try:
            return self.arrow()
        except LakeError:
            return self.df()

    def over(self, query: str, keys: Sequence[str]) -> Result:
        """Runs SQL over the rows of this answer.

        Args:
            query: SELECT that reads the rows under the name `given`.
            keys: Columns that identify a row of the new answer.

        Returns:
            The new answer.

        >>> lake.points("supply/current_pit").over("SELECT asset, max(v) AS most FROM given GROUP BY asset", ["asset"]).df()["most"].tolist()
        [3.0]
        """
        with translate_errors(self._seat.near_metrics):
            refuse_hidden(query)
            self._seat.check_sql(query)
            if one_select(self._connection, query) is None:
                raise refusal("over: query", "one SELECT", query)
        # As text: `DuckDBPyRelation.query` would make a view, in a database that is read only.
        relation = None if self._relation is None else self._run(
            lambda rows: self._connection.sql(f"WITH given AS ({rows.sql_query()}) {query}"))
        return Result(self._seat, self._connection, relation, keys=keys, doubts=self._doubts, lent=self._lent)

    def head(self, n: int = 5) -> Result:
        """Limits the answer to its first rows.

        Args:
            n: Number of rows, 1 or more.

        Returns:
            The shorter answer.

        >>> lake.points("supply/current_pit").head(2).df()["v"].tolist()
        [1.0, 2.0]
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise refusal("head: n", "how many rows, 1 or more", repr(n))
        relation = None if self._relation is None else self._run(lambda rows: rows.limit(n))
        doubts = self._doubts

        def doubts_of_nothing(frame: Any) -> Sequence[str]:
            # A column may be empty in the first rows alone: of that there is nothing to say.
            return doubts(frame) if doubts is not None and len(frame) == 0 else []

        return Result(self._seat, self._connection, relation, keys=self._keys, doubts=doubts_of_nothing, lent=self._lent)

    def __len__(self) -> int:
        """Counts the rows in DuckDB.

        Returns:
            The number of rows.

        >>> len(lake.points("supply/current_pit"))
        3
        """
        if self._relation is None:
            return 0
        return int(self._run(lambda relation: relation.aggregate("count(*)").fetchall())[0][0])

    def __bool__(self) -> bool:
        """True for every answer, also for one without rows."""
        return True

    def __getitem__(self, columns: str | Sequence[str]) -> Any:
        """Computes one or several columns in pandas, as `.df()[columns]` does.

        Args:
            columns: Name of a column, or a list of names.

        Returns:
            A Series for one name, a frame for a list.

        >>> lake.points("supply/current_pit")["v"].tolist()
        [1.0, 2.0, 3.0]
        """
        names = [columns] if isinstance(columns, str) else list(columns) if isinstance(columns, (list, tuple)) else [columns]
        lost = next((name for name in names if name not in self.columns), None)
        if lost is not None or not names:
            raise refusal("answer[…]", f"one of the columns {', '.join(self.columns)}", repr(lost), "rows are in .df().iloc[…]")
        return self.df()[columns if isinstance(columns, str) else names]

    def __getattr__(self, name: str) -> Any:
        """Names the call that other libraries offer under this name."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        calls = OTHER_NAMES.get(name, f"answer[{name!r}]" if name in self.columns else
                                f"answer.df().{name} (pandas), answer.pl() or answer.arrow()")
        raise AttributeError(f"an answer of the lake has no {name}; take {calls}")

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the rows.

        Returns:
            Named tuples with the values of `.df()`.

        >>> [row.v for row in lake.points("supply/current_pit")]
        [1.0, 2.0, 3.0]
        """
        return iter(self.df().itertuples(index=False, name="Row"))

    def __repr__(self) -> str:
        rows, more = self._head()
        cells = [self.columns, *rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        return "\n".join([*lines, *(["… more rows follow"] if more else [])])

    def _repr_html_(self) -> str:
        rows, more = self._head()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        said = f"the first {SHOWN} rows; more follow" if more else f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        where = html.escape(self._seat.words())
        grid = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        # However much there is, it fits a screen, and scrolls there.
        return f'<div style="max-height: 60vh; max-width: 100%; overflow: auto">{grid}</div><p>{said} · {where}</p>'

    def _head(self) -> tuple[list[tuple[str, ...]], bool]:
        """Reads the first rows as texts, and whether there are more."""
        if self._relation is None:
            return [], False
        def read(relation: duckdb.DuckDBPyRelation) -> Any:
            head = relation if self._preview is None else self._connection.sql(self._preview)
            return head.limit(SHOWN + 1).project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()

        rows = [tuple("" if cell is None else cell for cell in row) for row in self._run(read)]
        return rows[:SHOWN], len(rows) > SHOWN

    def _run(self, work: Callable[[duckdb.DuckDBPyRelation], Any]) -> Any:
        assert self._relation is not None
        with translate_errors(self._seat.near_metrics), self._lent.registered():
            return work(self._relation)

    def _placed(self, work: Callable[[UnsortedAnswers], Any]) -> Any:
        """Computes an answer from unsorted ones; None if there are none, or they have to be sorted."""
        if self._unsorted is None:
            return None
        with translate_errors(self._seat.near_metrics):
            return work(self._unsorted)

    def _wonder(self, frame: Any) -> None:
        """Warns of what may be wrong with an answer in which nothing was found."""
        if self._doubts is not None:
            with self._lent.registered():
                self._seat.note(self._doubts(frame))
            warn(self._seat.notes)

def _cell(text: str) -> str:
    """Formats a cell of a page; a long text is shown whole under the pointer."""
    whole = html.escape(text)
    return f"<td>{whole}</td>" if len(text) <= LONG else f'<td title="{whole}">{html.escape(text[:LONG - 1])}…</td>'


def _convert_for_frames(relation: duckdb.DuckDBPyRelation, plain: bool = False) -> duckdb.DuckDBPyRelation:
    """Converts values that frames lack: infinity, the end of what is still open, to NULL.

    `plain`: intervals, which polars lacks, as microseconds (30 days a month, as pandas gets them); within others as texts.
    """
    # By name, since of those that stand twice only the first can be replaced.
    cells = {}
    for name, kind in _kinds(relation):
        own = quote_name(name)
        if kind in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP", "DATE"):
            cells[own] = f"CASE WHEN isfinite({own}) THEN {own} END"
        elif plain and _WITHIN.search(kind):
            cells[own] = f"epoch_us({own})" if kind == "INTERVAL" else f"CAST({own} AS {_WITHIN.sub('VARCHAR', kind)})"
    replaced = ", ".join(f"{cell} AS {own}" for own, cell in cells.items())
    return relation.project(f"* REPLACE ({replaced})") if replaced else relation


def _kinds(relation: duckdb.DuckDBPyRelation) -> list[tuple[str, str]]:
    return list(zip(relation.columns, map(str, relation.types)))


def _module(name: str) -> Any:
    try:
        return __import__(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise LakeError(f"{name} is not installed; run `pip install {name}`, or ask for another form") from None
        words = str(error)
    except Exception as error:  # noqa: BLE001: libraries that were built for others fail in many ways
        words = f"{type(error).__name__}: {error}"
    raise LakeError(f"{name} is installed, but cannot be imported ({words}); run `pip install --upgrade {name}`, or ask for another form")
