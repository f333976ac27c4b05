"""What may be said with a question: it is refused in the words of every other door."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta

import duckdb

from .errors import LakeError, meant_word, refusal
from .intervals import UNITS
from .text import Moment, Span, moment_text, quote, utc_sql

INSTANT = "an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC"
_SPAN = re.compile(r"(\d+)\s*(?:([smhdw])|(second|minute|hour|day|week)s?)")
_MONTHS = re.compile(r"([1-9]\d{0,3})\s*months?")


def wrong(name: str, expected: str, value: object, fix: str = "") -> LakeError:
    """The refusal of a value, which is told as it was given."""
    return refusal(name, expected, "nothing" if value is None else json.dumps(value, ensure_ascii=False, default=str), fix)


def check_text(name: str, value: object) -> None:
    """A text, or None."""
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise wrong(name, "a text", value)


def check_switch(name: str, value: object) -> None:
    """True or false."""
    if isinstance(value, str) or value not in (True, False):
        raise wrong(name, "true or false", value)


def check_choice(name: str, value: object, words: Sequence[str]) -> None:
    """One of these words; the nearest is named, of intervals the one of the same length."""
    if value in words:
        return
    raise wrong(name, ", ".join(words), value, meant_word(value, words) if isinstance(value, str) else "")


def utc_at(connection: duckdb.DuckDBPyConnection, name: str, value: Moment) -> str:
    """The SQL of an instant, which the lake can read."""
    said = utc_sql(quote(moment_text(value)))
    try:
        connection.execute(f"SELECT ({said}) IS NULL").fetchall()
    except duckdb.Error:
        raise wrong(name, INSTANT, value) from None
    return said


def check_names(name: str, values: object) -> None:
    """Names, at least one; None for all."""
    own = [values] if isinstance(values, str) else list(values) if isinstance(values, Iterable) else []
    if values is not None and not (own and all(isinstance(one, str) and one.strip() for one in own)):
        raise wrong(name, "names, at least one", values)


def span_sql(name: str, value: Span, months: bool = False) -> str:
    """The SQL of a duration: a timedelta, `15m` as on the command line, `15 minutes`, or 0; a step may be months."""
    if isinstance(value, timedelta):
        return f"to_microseconds({value // timedelta(microseconds=1)})"
    text = str(value).strip() if isinstance(value, str) or value == 0 and not isinstance(value, bool) else ""
    short, long = _SPAN.fullmatch(text), _MONTHS.fullmatch(text) if months else None
    if short:
        return f"to_seconds({int(short[1]) * UNITS[short[2] or short[3][0]]})"
    if text in ("0", "0.0") or long:
        return f"to_months({long[1]})" if long else "to_seconds(0)"
    raise wrong(name, "a time such as 15m or 2d", value)
