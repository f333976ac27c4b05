"""Values in the order in which they became known, for event-driven engines."""

from __future__ import annotations

from typing import Any

from ..lake import Lake
from ..queries import span_sql
from ..result import Result
from ..text import MONTHS, SECONDS, Moment, Names, Span

_LENGTHS = {**{name: f"to_seconds({count})" for name, count in SECONDS.items()}, **{name: f"to_months({count})" for name, count in MONTHS.items()}}
_ENDS = f"""CASE "interval" {' '.join(f"WHEN '{name}' THEN t + {length}" for name, length in _LENGTHS.items())} ELSE t END"""
_SERIES = 'metric, asset, "interval", currency, exchange, network, t'
_SAME = " AND ".join(f"p.{name} IS NOT DISTINCT FROM w.{name}" for name in _SERIES.split(", "))


def events(lake: Lake, metrics: Names, assets: Names | None = None, interval: str | None = None, *, latency: Span | None = None,
           since: Moment | None = None, until: Moment | None = None, **dimensions: Any) -> Result:
    """Reads values in the order in which they became known, one row for each.

    The column `at` is the time from which a strategy can act on the value: `available_at` plus the latency. The column `ends`
    is the end of the interval. Rows are sorted by `at`, then by `ends`, then by series. Data that arrives later does not change
    the order of earlier rows. Each vintage of a revisable series has a row.

    Args:
        lake: The open lake.
        metrics: Name of a metric, or several names.
        assets: Asset ids of the metrics API. Default: all.
        interval: Interval of the points. Default: that of the catalogue.
        latency: Time that you need to act, such as `"15m"`.
        since: Earliest `t`.
        until: End of `t`, exclusive.
        dimensions: Further options of `lake.points`, such as `currency` and `exchange`.

    Returns:
        The rows. Iterate over them for one event at a time, or call `.df()` for a frame.

    >>> from pitlake.engines.events import events
    >>> [(str(one.at), one.v) for one in events(lake, "supply/current_pit", "BTC", until="2024-03-03")]
    [('2024-03-02 00:10:00+00:00', 1.0), ('2024-03-03 00:10:00+00:00', 2.0)]
    """
    points = lake.points(metrics, assets, interval, since=since, until=until, **dimensions)
    wait = "" if latency is None else f" + {span_sql('latency', latency)}"
    return points.over(f"""SELECT available_at{wait} AS at, {_ENDS} AS ends, * FROM (
  SELECT p.* REPLACE (coalesce(w.available_at, p.available_at) AS available_at, coalesce(w.observed_at, p.observed_at) AS observed_at,
    if(w.ordinal IS NULL, p.v, w.v) AS v, if(w.ordinal IS NULL, p.o, w.o) AS o, coalesce(w.basis, p.basis) AS basis)
  FROM given AS p LEFT JOIN vintages AS w ON {_SAME}
) ORDER BY "at", ends, {_SERIES}, observed_at""", ("at",))
