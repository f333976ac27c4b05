"""Values as SQL text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Union

Moment = Union[str, date, datetime]
Span = Union[str, timedelta, int]
Names = Union[str, Sequence[str]]


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
