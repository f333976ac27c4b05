"""backtesting.py: bars of one asset with a column for each metric."""

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
    """The bars with what was knowable when each had ended, for `Backtest(feed(…), Strategy)`.

    A strategy reads `self.data.active[-1]` where metrics are `{"active": "addresses/active_count_pit"}`. `next` runs at the
    end of a bar; orders fill at the open of the next one: leave `trade_on_close` alone.
    """
    named = named_metrics(metrics)
    if isinstance(metrics, str) or not isinstance(metrics, Mapping):
        named = {re.sub(r"\W+", "_", name): metric for name, metric in named.items()}
    clash = next((name for name in named if name in bars.columns), None)
    if clash is not None:
        raise refusal("feed", "bars without a column that is added", repr(clash), "name the metric otherwise by a dict")
    found = known_at(lake, bars.index, asset, named, step=step, label=label, **options)
    return bars.assign(**{name: found[name].to_numpy() for name in named})
