"""Frames of pandas, polars or pyarrow: decisions as they were given, and what one call lends to its query."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from .errors import refusal

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
