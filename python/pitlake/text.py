"""Values as SQL text, and the intervals of the metrics API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Union

Moment = Union[str, date, datetime]
Span = Union[str, timedelta, int]
Names = Union[str, Sequence[str]]

# As `src/base/time.ts` has them: shortest first, each so many seconds or months long.
SECONDS = {"10m": 600, "1h": 3600, "24h": 86_400, "1w": 604_800}
MONTHS = {"1month": 1}
INTERVALS = (*SECONDS, *MONTHS)
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


def meant(text: str) -> str | None:
    """The interval that is as long as `1d`, `60 min`, `weekly` or `1mo`."""
    said = re.fullmatch(r"(\d*)\s*(mo|[smhdw])[a-z]*", text.strip().lower())
    length = int(said[1] or 1) * UNITS.get(said[2], 1) if said else 0
    return next((name for name, own in (MONTHS if said and said[2] == "mo" else SECONDS).items() if own == length), None)
