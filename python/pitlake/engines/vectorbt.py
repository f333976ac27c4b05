"""vectorbt: wide frames of what was knowable at each bar, aligned with its prices."""

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
    """A frame for each metric, of the shape of `close` (a row for each bar, a column for each asset).

    What stands at a bar was knowable when the bar had ended. An order on it fills at the close of that bar at the
    earliest, at `latency` after it in truth: to fill at the next open shift the frames by one bar.
    """
    found = known_at(lake, close.index, list(close.columns), metrics, step=step, label=label, **options)
    names = [name for name in found.columns if name != "decided_at"]
    return {name: found[name].unstack("asset").reindex(index=close.index, columns=close.columns) for name in names}
