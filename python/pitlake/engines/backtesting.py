"""Adapter for backtesting.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import refusal
from ..queries import named_metrics
from ..text import Names
from .bars import Label, known_at

if TYPE_CHECKING:
    import pandas

    from ..lake import Lake


def feed(lake: Lake, bars: pandas.DataFrame, asset: str, metrics: Names | Mapping[str, str], *, step: Any, label: Label = "open",
         **options: Any) -> pandas.DataFrame:
    """Adds a column for each metric to the bars of one asset, for `Backtest(feed(…), Strategy)`.

    Each column has the value that was knowable at the end of the bar. backtesting.py runs `next` at the end of a bar and fills
    orders at the open of the next one, so do not set `trade_on_close`.

    Args:
        lake: The open lake.
        bars: Prices with a DatetimeIndex, as backtesting.py takes them.
        asset: Asset id of the metrics API.
        metrics: Names of metrics, or a dict of column and metric. A strategy reads the column `active` as `self.data.active[-1]`.
        step: Length of a bar, such as `"1h"`.
        label: Whether the timestamp of a bar is its open (`"open"`) or its close (`"close"`).
        options: Options of `lake.panel`, such as `interval`, `latency` and `max_age`.

    Returns:
        The bars with the new columns.

    >>> data = feed(lake, bars, "BTC", {"active": "addresses/active_count_pit"}, step="1h", latency="15m")  # doctest: +SKIP
    >>> Backtest(data, MyStrategy).run()  # doctest: +SKIP
    """
    named = named_metrics(metrics)
    if isinstance(metrics, str) or not isinstance(metrics, Mapping):
        named = {re.sub(r"\W+", "_", name): metric for name, metric in named.items()}
    clash = next((name for name in named if name in bars.columns), None)
    if clash is not None:
        raise refusal("feed", "bars without a column that is added", repr(clash), "give the metric a different name with a dict")
    found = known_at(lake, bars.index, asset, named, step=step, label=label, **options)
    return bars.assign(**{name: found[name].to_numpy() for name in named})
