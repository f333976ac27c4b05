"""The intervals of the metrics API, as `src/time.ts` has them: shortest first, each so many seconds or months long."""

from __future__ import annotations

import re

SECONDS = {"10m": 600, "1h": 3600, "24h": 86_400, "1w": 604_800}
MONTHS = {"1month": 1}
INTERVALS = (*SECONDS, *MONTHS)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def meant(text: str) -> str | None:
    """The interval that is as long as `1d`, `60 min`, `weekly` or `1mo`."""
    said = re.fullmatch(r"(\d*)\s*(mo|[smhdw])[a-z]*", text.strip().lower())
    length = int(said[1] or 1) * UNITS.get(said[2], 1) if said else 0
    return next((name for name, own in (MONTHS if said and said[2] == "mo" else SECONDS).items() if own == length), None)
