"""Values as SQL text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Union

from .errors import refusal

Moment = Union[str, date, datetime]
Span = Union[str, timedelta, int]
Names = Union[str, Sequence[str]]

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def quote(text: object) -> str:
    """An SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"


def quote_name(name: object) -> str:
    """An SQL identifier."""
    return '"' + str(name).replace('"', '""') + '"'


def listed(names: Names) -> str:
    """SQL literals by comma."""
    return ", ".join(map(quote, [names] if isinstance(names, str) else names))


def moment_text(value: Moment) -> str:
    """The text of an instant; what has no zone is UTC. A text goes as it is: the lake reads it."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=timezone.utc)
        at = value.astimezone(timezone.utc)
        return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond:06}Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value).strip()


def utc_sql(x: str) -> str:
    """The SQL of a moment of any type as TIMESTAMPTZ: what has a zone is its instant, everything else is UTC."""
    return f"""CASE WHEN typeof({x}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST({x} AS TIMESTAMPTZ)
    WHEN typeof({x}) = 'VARCHAR' AND regexp_matches(CAST({x} AS VARCHAR), ':[0-9.]+ *([+-]|[A-Za-z])') THEN CAST(CAST({x} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST({x} AS TIMESTAMP)) END"""


def span_sql(name: str, value: Span) -> str:
    """The SQL of a duration: a timedelta, `15m` as on the command line, `15 minutes` as in SQL, or 0."""
    if isinstance(value, timedelta):
        micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return f"to_microseconds({micros})"
    short = re.fullmatch(r"(\d+)\s*([smhdw])|0", str(value).strip())
    if short:
        return f"to_seconds({int(short[1] or 0) * UNITS[short[2] or 's']})"
    if not re.fullmatch(r"\s*(\d+(\.\d+)?\s+[A-Za-z]+\s*)+", str(value)):
        raise refusal(name, "a time such as 15m or 2d", repr(value))
    return f"CAST({quote(value)} AS INTERVAL)"
