"""Decisions as they were given: frames of pandas, polars or pyarrow, or an answer of the lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import refusal


def kind_of(frame: Any) -> str:
    """The library that a frame is of."""
    return str(type(frame).__module__).split(".")[0]


def decided(frame: Any, keys: Sequence[str], where: str) -> Any:
    """The decisions as a frame that DuckDB reads, the keys among its columns."""
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
    """Refuses names that stand twice, and decisions without the columns by which they are found."""
    small = [name.lower() for name in names]
    twice = next((name for name in names if small.count(name.lower()) > 1), None)
    if twice is not None:
        raise refusal("decisions", "each column once", f"{twice!r} twice", "drop or rename one of them")
    lacking = [key for key in keys if key not in small]
    if lacking:
        raise refusal("decisions", f"columns {' and '.join(keys)}", ", ".join(names) or "none")


def _flat(frame: Any, where: str) -> Any:
    """`ts` and `asset` may stand in the index."""
    import pandas

    if "ts" not in frame.columns and isinstance(frame.index, pandas.DatetimeIndex) and frame.index.name is None:
        frame = frame.rename_axis("ts")
    levels = [name for name in ("ts", "asset") if name in frame.index.names and name not in frame.columns]
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise refusal(where, "plain columns", "columns of several levels", "stack() brings them into one")
    return (frame.reset_index(level=levels) if levels else frame).reset_index(drop=True)


def _in_utc(frame: Any, name: str, where: str) -> Any:
    """The frame with objects in several zones brought to UTC, each the same instant as before."""
    import pandas

    own = frame[name]
    if own.dtype != object or not any(hasattr(value, "tzinfo") for value in own):
        return frame
    zoned = {value.tzinfo is not None for value in own if hasattr(value, "tzinfo") and not pandas.isna(value)}
    if len(zoned) > 1:
        raise refusal(where, "instants with a zone, or instants without one", "both in one column",
                      "bring them to UTC: pandas.to_datetime(…, utc=True)")
    return frame if zoned == {False} else frame.assign(**{name: pandas.to_datetime(own, utc=True)})
