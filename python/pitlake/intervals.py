"""The intervals of the metrics API, as `src/time.ts` has them: shortest first, each so many seconds or months long."""

from __future__ import annotations

SECONDS = {"10m": 600, "1h": 3600, "24h": 86_400, "1w": 604_800}
MONTHS = {"1month": 1}
INTERVALS = (*SECONDS, *MONTHS)
