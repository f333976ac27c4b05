"""Frames of pandas, polars or pyarrow: decisions as they were given, and what one call lends to its query."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb

from .errors import refusal
from .text import quote

_KNOWN_NAMES = """SELECT lower(view_name) FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'
UNION SELECT lower(table_name) FROM duckdb_tables() WHERE NOT internal AND schema_name = 'main'"""


def known_names(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Lists the names, in small letters, of the lake's views and of the caller's temporary tables."""
    return {name for name, in connection.execute(_KNOWN_NAMES).fetchall()}


class LentFrames:
    """Frames that one call lends to its query, by name.

    A connection knows a name once, and DuckDB looks it up again whenever rows are computed. So the frames are registered
    only while their own query is bound or run: no other call sees them, and none replaces them.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, lock: threading.RLock, frames: Mapping[str, Any]) -> None:
        self._connection, self._lock, self._frames = connection, lock, dict(frames)
        if self._frames:
            self._refuse_known_names()

    def _refuse_known_names(self) -> None:
        """Refuses a name that the lake, or a temporary table of the caller, already has."""
        known = known_names(self._connection)
        for name in self._frames:
            if not (isinstance(name, str) and name.strip()):
                raise refusal("frames", "a name for each frame", repr(name))
            if name.lower() in known or name.lower().startswith("_pit_"):
                raise refusal("frames", "names that the lake does not have", name, "lend the frame by another name")

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Registers the frames under their names until the block ends."""
        if not self._frames:
            yield
            return
        with self._lock:
            try:
                for name, frame in self._frames.items():
                    self._connection.register(name, frame)
                yield
            finally:
                for name in self._frames:
                    self._connection.unregister(name)


def write_frame(where: str, frame: Any, file: str) -> None:
    """Writes a frame of pandas, polars or pyarrow as Parquet, with its named index."""
    with duckdb.connect() as own:
        own.execute("SET TimeZone = 'UTC'")
        columns = frame.reset_index() if hasattr(frame, "reset_index") and any(frame.index.names) else frame
        refuse_mixed_dates(columns)
        try:
            own.register("frame", columns)
        except duckdb.Error:
            raise refusal(where, "a frame of pandas, polars or pyarrow", type(frame).__name__) from None
        own.execute(f"COPY (FROM frame) TO {quote(file)} (FORMAT parquet)")


def kind_of(frame: Any) -> str:
    """Names the library of a frame."""
    return str(type(frame).__module__).split(".")[0]


def frame_of_decisions(frame: Any, keys: Sequence[str], where: str) -> Any:
    """Converts decisions to a frame that DuckDB reads, the keys among its columns."""
    kind = kind_of(frame)
    if kind == "pandas" and hasattr(frame, "columns"):
        frame = _flat(frame, where)
    elif kind == "polars" and hasattr(frame, "lazy"):
        frame = frame.lazy().collect()
    elif not (kind == "pyarrow" and hasattr(frame, "column_names")):
        raise refusal(where, "a frame of pandas, polars or pyarrow, or an answer of the lake", type(frame).__name__,
                      "pandas.DataFrame(…) makes one of a list of records")
    names = list(map(str, frame.column_names if kind == "pyarrow" else frame.columns))
    check_columns(names, keys)
    return _in_utc(frame, names[[name.lower() for name in names].index("ts")], where) if kind == "pandas" else frame


def check_columns(names: Sequence[str], keys: Sequence[str]) -> None:
    """Refuses duplicate names, and decisions without the columns by which they are found."""
    small = [name.lower() for name in names]
    twice = next((name for name in names if small.count(name.lower()) > 1), None)
    if twice is not None:
        raise refusal("decisions", "each column once", f"{twice!r} twice", "drop or rename one of them")
    lacking = [key for key in keys if key not in small]
    if lacking:
        raise refusal("decisions", f"columns {' and '.join(keys)}", ", ".join(names) or "none")


def _flat(frame: Any, where: str) -> Any:
    """Moves `ts` and `asset`, in any case of letters, from the index to columns."""
    import pandas

    small = {str(name).lower() for name in frame.columns}
    if "ts" not in small and isinstance(frame.index, pandas.DatetimeIndex) and frame.index.name is None:
        frame = frame.rename_axis("ts")
    levels = [name for name in frame.index.names if str(name).lower() in {"ts", "asset"} - small]
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise refusal(where, "plain columns", "columns of several levels", "stack() brings them into one")
    return (frame.reset_index(level=levels) if levels else frame).reset_index(drop=True)


def _in_utc(frame: Any, name: str, where: str) -> Any:
    """Converts objects in several zones to UTC, each the same instant as before."""
    import pandas

    own = frame[name]
    if own.dtype != object or not any(hasattr(value, "tzinfo") for value in own):
        return frame
    zoned = {value.tzinfo is not None for value in own if hasattr(value, "tzinfo") and not pandas.isna(value)}
    if len(zoned) > 1:
        raise refusal(where, "instants with a zone, or instants without one", "both in one column",
                      "bring them to UTC: pandas.to_datetime(…, utc=True)")
    return frame if zoned == {False} else frame.assign(**{name: pandas.to_datetime(own, utc=True)})


def refuse_mixed_dates(frame: Any) -> None:
    """Refuses a column with dates and times: DuckDB reads such a date as its midnight, not as the whole day."""
    if kind_of(frame) != "pandas":
        return
    for name, column in frame.items():
        if column.dtype != object:
            continue
        kinds = {isinstance(value, datetime.datetime) for value in column.dropna() if isinstance(value, datetime.date)}
        if len(kinds) > 1:
            raise refusal(f"column {name}", "dates alone, or times alone", "both", "give each date a time, such as the end of its day")


_FURTHEST = 1 << 62
"""Microseconds from 1970 up to which an instant is surely one: the engine has an infinity at the very end."""


@dataclass(frozen=True)
class ArrowDecisions:
    """Decisions that DuckDB reads as they are, without a table of its own, because it would change nothing in them."""

    columns: Any
    """Columns of the caller as an answer has them: a table of pyarrow, texts as `string` and `ts` in UTC."""
    encoded_assets: Any
    """The column `asset` as an array of numbers and the texts that they stand for."""
    zoned: bool
    """Whether `ts` had a zone."""
    lender: Any
    """The frame whose memory the columns share; pandas copies it before a change for as long as it is referred to."""

    def numbered(self, number: str) -> Any:
        """Builds the table that DuckDB reads, with the number of each decision."""
        import numpy
        import pyarrow

        table = self.columns.set_column(self.columns.column_names.index("asset"), "asset", self.encoded_assets)
        return table.add_column(0, number, pyarrow.array(numpy.arange(1, len(table) + 1)))

    def frame_of_pandas(self) -> Any:
        """Returns the columns of the caller as DuckDB would give them back to pandas; None if they came in another form."""
        if kind_of(self.lender) != "pandas":
            return None
        import pandas

        empty = any(self.columns[name].null_count == len(self.columns) for name in self.columns.column_names)
        if empty or str(self.lender["ts"].dtype) != "datetime64[us, UTC]" or self.lender["ts"].dt.tz is not datetime.timezone.utc:
            # It finds the type of an empty column anew, and knows one zone alone.
            return None
        return pandas.DataFrame({name: self.lender[name] for name in self.columns.column_names})

    @cached_property
    def assets(self) -> list[str]:
        """Assets of the decisions, each once."""
        names: list[str] = self.encoded_assets.dictionary.to_pylist()
        return names

    @cached_property
    def asset_numbers(self) -> Any:
        """For each decision the place of its asset among `assets`, and the place after the last if it has none."""
        return self.encoded_assets.indices.fill_null(len(self.assets)).to_numpy(zero_copy_only=False)

    def ends(self) -> Any:
        """Builds a table of the assets, each with the newest `ts` of all: enough to see how far decisions reach."""
        import pyarrow
        import pyarrow.compute

        ts = self.columns["ts"]
        assets = [*self.assets, *([None] if self.encoded_assets.null_count else [])]
        newest = pyarrow.compute.max(ts)
        return pyarrow.table({"asset": pyarrow.array(assets, pyarrow.string()), "ts": pyarrow.array([newest.as_py()] * len(assets), ts.type)})

    def empty_assets(self, frame: Any, column: str) -> tuple[bool, list[str]]:
        """Checks whether a column of an answer has a value, and for which assets it has none; one row for each decision."""
        import numpy

        kind, own = kind_of(frame), frame[column]
        if len(own) and (own.null_count == 0 if kind == "pyarrow" else own.null_count() == 0 if kind == "polars" else not own.hasnans):
            return True, []
        there = own.is_valid() if kind == "pyarrow" else own.is_not_null() if kind == "polars" else own.notna()
        counts = numpy.bincount(self.asset_numbers[there.to_numpy()], minlength=len(self.assets) + 1)
        return bool(counts.any()), sorted(name for name, count in zip(self.assets, counts) if count == 0)


def arrow_decisions(frame: Any) -> ArrowDecisions | None:
    """Converts decisions that DuckDB can read where they are; None if it has to convert anything in them first."""
    kind = kind_of(frame)
    try:
        import numpy  # noqa: F401: answers are put in order with it
        import pyarrow

        lender = frame
        if kind == "pandas":
            lender = frame.copy(deep=False)
            frame = _arrow_of_pandas(lender)
        elif kind == "polars":
            frame = frame.to_arrow()
        if not isinstance(frame, pyarrow.Table) or len(frame) == 0:
            return None
        names = frame.column_names
        if {"asset", "ts"} - set(names) or any(name.lower().startswith("_pit_") for name in names):
            return None
        columns = pyarrow.table([_same_in_duckdb(name, frame[name]) for name in names], names)
        encoded = columns["asset"].dictionary_encode().combine_chunks()
        return ArrowDecisions(columns, encoded, frame["ts"].type.tz is not None, lender)
    except (ImportError, _Different):
        return None


class _Different(Exception):
    """A column comes back from DuckDB in a different type or with different values."""


def _same_in_duckdb(name: str, column: Any) -> Any:
    """Converts a column to the type in which DuckDB gives it back; refuses those in which it may change a value."""
    import pyarrow
    import pyarrow.compute

    own, types = column.type, pyarrow.types
    if name == "ts":
        if not types.is_timestamp(own) or own.unit != "us":
            raise _Different
        micros = column.cast(pyarrow.int64())
        ends = pyarrow.compute.min_max(micros).as_py()
        if not all(abs(end or 0) < _FURTHEST for end in ends.values()):
            raise _Different
        return micros.cast(pyarrow.timestamp("us", "UTC"))
    if types.is_large_string(own) and column.nbytes < 1 << 30:
        return column.cast(pyarrow.string())
    if types.is_string(own) or name != "asset" and (types.is_integer(own) or types.is_float32(own) or types.is_float64(own)):
        return column
    raise _Different


def _arrow_of_pandas(frame: Any) -> Any:
    """Converts a frame of plain columns to a table over the same memory; from pandas 3 on a change later makes a copy."""
    import numpy
    import pandas
    import pyarrow

    if int(pandas.__version__.split(".")[0]) < 3:
        raise _Different
    arrays = {}
    for name, column in frame.items():
        kind = column.dtype
        plain = kind.kind in "iufM" if isinstance(kind, numpy.dtype) else isinstance(kind, pandas.DatetimeTZDtype) or kind == "str"
        if not isinstance(name, str) or not plain:
            raise _Different
        made = pyarrow.array(column, from_pandas=True)
        arrays[name] = made if isinstance(made, pyarrow.ChunkedArray) else pyarrow.chunked_array([made])
    return pyarrow.table(arrays)
