"""Adapter for vectorbt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..text import Names
from .bars import Label, known_at

if TYPE_CHECKING:
    import pandas

    from ..lake import Lake


def frames(lake: Lake, close: pandas.DataFrame, metrics: Names | Mapping[str, str], *, step: Any, label: Label = "open",
           **options: Any) -> dict[str, pandas.DataFrame]:
    """Looks up metric values as known at the end of each bar, as a frame for each metric.

    vectorbt fills an order at the close of the same bar. To fill at the next open instead, shift the frames by one bar.

    Args:
        lake: The open lake.
        close: Closing prices: a row for each bar, a column for each asset id.
        metrics: Names of metrics, or a dict of column and metric.
        step: Length of a bar, such as `"1h"`.
        label: Whether the timestamp of a bar is its open (`"open"`) or its close (`"close"`).
        options: Options of `lake.panel`, such as `interval`, `latency` and `max_age`.

    Returns:
        A dict of frames by metric, or by column. Each frame has the shape of `close`.

    >>> known = frames(lake, close, {"active": "addresses/active_count_pit"}, step="1h", latency="15m")  # doctest: +SKIP
    >>> rising = known["active"].shift(1).diff() > 0  # doctest: +SKIP
    """
    found = known_at(lake, close.index, list(close.columns), metrics, step=step, label=label, **options)
    names = [name for name in found.columns if name != "decided_at"]
    return {name: found[name].unstack("asset").reindex(index=close.index, columns=close.columns) for name in names}
