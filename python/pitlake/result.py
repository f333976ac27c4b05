"""An answer of the lake, in the form in which it is wanted."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import duckdb

from .errors import LakeError, refusal, told, warn
from .text import quote_name

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

    from .lake import Seat

SHOWN = 10
# So many signs of a cell are shown on a page.
LONG = 60
_WITHIN = re.compile(r"""(?<!["'])\bINTERVAL\b(?!["'])""")

Doubts = Callable[[Any], "Sequence[str]"]

class Result:
    """Rows that are computed when they are asked for, as pandas, polars, Arrow or xarray.

    Asked again they are the same: the lake behind them stands at one version. Showing one in a notebook reads the rows
    that are shown, and no others.

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
        relation: duckdb.DuckDBPyRelation | None,
        *,
        preview: str | None = None,
        keys: Sequence[str] = (),
        doubts: Doubts | None = None,
    ) -> None:
        self._seat, self._connection, self._relation = seat, connection, relation
        self._preview = preview
        self._keys, self._doubts = list(keys), doubts

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [] if self._relation is None else list(self._relation.columns)

    def df(self, index: str | Sequence[str] | None = None) -> pandas.DataFrame:
        """A pandas frame; instants are UTC with their zone, an open end is NaT. `index="ts"` makes the column the index."""
        library = _module("pandas")
        frame = library.DataFrame() if self._relation is None else self._run(_told(self._relation).df)
        self._wonder(frame)
        if index is None:
            return frame
        names = [index] if isinstance(index, str) else list(index)
        lost = [name for name in names if name not in frame.columns]
        if lost:
            raise refusal("df: index", f"one of the columns {', '.join(self.columns)}", lost[0])
        return frame.set_index(names if len(names) > 1 else names[0])

    def pl(self) -> polars.DataFrame:
        """A polars frame; instants are UTC with their zone, an open end is null, a time such as `age` is a duration."""
        library = _module("polars")
        _module("pyarrow")
        frame = library.DataFrame()
        if self._relation is not None:
            times = [name for name, kind in _kinds(self._relation) if kind == "INTERVAL"]
            frame = library.from_arrow(self._run(_told(self._relation, plain=True).to_arrow_table))
            frame = frame.with_columns(library.col(name).cast(library.Duration("us")) for name in times)
        self._wonder(frame)
        return cast("polars.DataFrame", frame)

    def arrow(self) -> pyarrow.Table:
        """A table of pyarrow; an open end is null."""
        library = _module("pyarrow")
        table = library.table({}) if self._relation is None else self._run(_told(self._relation).to_arrow_table)
        self._wonder(table)
        return cast("pyarrow.Table", table)

    def xarray(self, dims: Sequence[str] | None = None) -> xarray.Dataset:
        """A dataset of xarray with a variable for each column that is no dimension; a panel's dimensions are `ts` and `asset`."""
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
        """A panel with a row for each `ts` and columns (metric, asset).

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
        """A frame of whatever is installed."""
        try:
            return self.arrow()
        except LakeError:
            return self.df()

    def over(self, query: str, keys: Sequence[str]) -> Result:
        """A query over these rows, which it names `given`."""
        own = self._relation
        # As text: `DuckDBPyRelation.query` would make a view, in a database that is read only.
        relation = None if own is None else self._run(lambda: self._connection.sql(f"WITH given AS ({own.sql_query()}) {query}"))
        return Result(self._seat, self._connection, relation, keys=keys, doubts=self._doubts)

    def __iter__(self) -> Iterator[Any]:
        """The rows one by one, as named tuples of what `.df()` holds."""
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
        """The first rows as texts, and whether there are more."""
        if self._relation is None:
            return [], False
        with told(self._seat.near_metrics):
            head = self._relation if self._preview is None else self._connection.sql(self._preview)
        texts = head.limit(SHOWN + 1).project("CAST(COLUMNS(*) AS VARCHAR)")
        rows = [tuple("" if cell is None else cell for cell in row) for row in self._run(texts.fetchall)]
        return rows[:SHOWN], len(rows) > SHOWN

    def _run(self, work: Callable[[], Any]) -> Any:
        with told(self._seat.near_metrics):
            return work()

    def _wonder(self, frame: Any) -> None:
        """Says what may be wrong with an answer in which nothing was found."""
        if self._doubts is not None:
            self._seat.note(self._doubts(frame))
            warn(self._seat.notes)

def _cell(text: str) -> str:
    """A cell of a page; what is long stands whole where the pointer rests."""
    whole = html.escape(text)
    return f"<td>{whole}</td>" if len(text) <= LONG else f'<td title="{whole}">{html.escape(text[:LONG - 1])}…</td>'


def _told(relation: duckdb.DuckDBPyRelation, plain: bool = False) -> duckdb.DuckDBPyRelation:
    """What frames have words for: infinity, the end of what is still open, as NULL.

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
    told = ", ".join(f"{cell} AS {own}" for own, cell in cells.items())
    return relation.project(f"* REPLACE ({told})") if told else relation


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
