"""Values as SQL text, and the intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Union

Moment = Union[str, date, datetime]
"""A time: a text such as `2024-06-01` or `2024-06-01T12:00:00Z`, a date or a datetime. Without a zone it is UTC."""

Span = Union[str, timedelta, int]
"""A length of time: `"15m"`, `"15 minutes"`, a timedelta or 0."""

Names = Union[str, Sequence[str]]
"""One name, or several."""

# As `src/base/time.ts` has them: shortest first, each so many seconds or months long.
SECONDS = {"10m": 600, "1h": 3600, "24h": 86_400, "1w": 604_800}
MONTHS = {"1month": 1, "3month": 3}
INTERVALS = (*SECONDS, *MONTHS)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def quote(text: object) -> str:
    """Formats an SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"


def literal_path(path: str) -> str:
    """Escapes in a path what DuckDB would take for a pattern."""
    return re.sub(r"[*?[]", r"[\g<0>]", path)


def quote_name(name: object) -> str:
    """Formats an SQL identifier."""
    return '"' + str(name).replace('"', '""') + '"'


def column_named(wanted: str, names: Iterable[object]) -> str | None:
    """Finds the column that SQL takes for a name, whatever its case: the one that is spelled so before any other."""
    texts = [name for name in names if isinstance(name, str)]
    return wanted if wanted in texts else next((name for name in texts if name.lower() == wanted.lower()), None)


def listed(names: Names) -> str:
    """Formats SQL literals, separated by commas."""
    return ", ".join(map(quote, [names] if isinstance(names, str) else names))


def moment_text(value: Moment) -> str:
    """Formats an instant as text; without a zone it is UTC. A text stays as it is: the lake reads it."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=timezone.utc)
        at = value.astimezone(timezone.utc)
        return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond:06}Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(value).strip()


def setting_text(value: object) -> str:
    """Spells the value of a session variable for `--set`: numbers as JavaScript writes them, texts in quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        exact = Decimal(repr(value)).normalize()
        sign, digits, _ = exact.as_tuple()
        if 1e-6 <= abs(value) < 1e21 or value == 0:
            return f"{abs(exact) if value == 0 else exact:f}"
        head, *rest = map(str, digits)
        return f"{'-' * sign}{head}{'.' * bool(rest)}{''.join(rest)}e{exact.adjusted():+d}"
    return str(value) if isinstance(value, int) else quote(value)


def utc_sql(x: str) -> str:
    """Builds the SQL of a moment of any type as TIMESTAMPTZ: with a zone it is its instant, everything else is UTC."""
    return f"""CASE WHEN typeof({x}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST({x} AS TIMESTAMPTZ)
    WHEN typeof({x}) = 'VARCHAR' AND regexp_matches(CAST({x} AS VARCHAR), '(?i):[0-9.]+ *(?:[+-]|(?:z|utc|gmt) *$|[a-z_]+/)') THEN CAST(CAST({x} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST({x} AS TIMESTAMP)) END"""


# As `src/base/suggestion.ts` has them: how units of time are spelt, by people and by pandas, their seconds, and how they are spelt here.
_SPELT = (
    (re.compile(r"(?:MS?|ME|mo|months?|monthly)"), 31 * 86_400, "month"),
    (re.compile(r"(?:Q|QS|QE|quarters?|quarterly)"), 93 * 86_400, "month"),
    (re.compile(r"(?:s|secs?|seconds?)", re.I), 1, "s"),
    (re.compile(r"(?:m|mins?|minutes?)", re.I), 60, "m"),
    (re.compile(r"(?:h|hrs?|hours?|hourly)", re.I), 3600, "h"),
    (re.compile(r"(?:d|days?|daily)", re.I), 86_400, "d"),
    (re.compile(r"(?:w|weeks?|weekly)", re.I), 604_800, "w"),
)


def _spelt(text: str) -> tuple[int, int, str] | None:
    """Parses count, seconds and unit of a length of time, however its unit is spelt; months at their longest."""
    said = re.fullmatch(r"(\d{0,15})\s*([A-Za-z]+)", text.strip())
    found = next(((seconds, unit) for spelt, seconds, unit in _SPELT if said and spelt.fullmatch(said[2])), None)
    return None if said is None or found is None else (int(said[1] or 1), *found)


def meant_interval(text: str, known: Sequence[str]) -> str | None:
    """Finds the known interval as long as `1d`, `60 min`, `weekly` or `MS`; else the longest that is shorter."""
    lengths = {name: count * seconds for name in known for count, seconds, _ in filter(None, [_spelt(name)]) if name[0].isdigit()}
    said = _spelt(text)
    shorter = [(length, name) for name, length in lengths.items() if said and length <= said[0] * said[1]]
    return max(shorter)[1] if shorter else None


def meant_span(text: str, months: bool) -> str | None:
    """Spells a length of time as it is spelt here: `15m` for `15min`, `1month` for `MS` if months are allowed."""
    said = _spelt(text)
    if said is None or said[2] == "month" and not months:
        return None
    # Quarters are spelt as three months.
    return f"{said[0] * (said[1] // (31 * 86_400) if said[2] == 'month' else 1)}{said[2]}"
