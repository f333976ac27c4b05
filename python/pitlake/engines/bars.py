"""What was knowable at each bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..errors import refusal
from ..text import Names

if TYPE_CHECKING:
    import pandas

    from ..lake import Lake

Label = Literal["open", "close"]


def decided_at(bars: pandas.DatetimeIndex, step: Any, label: Label) -> pandas.DatetimeIndex:
    """When a bar has ended: nothing is decided on it before. `label` says whether it is named by its open or its close."""
    import pandas

    if label not in ("open", "close"):
        raise refusal("label", "'open' or 'close': which end of a bar its name stands at", repr(label))
    if not isinstance(bars, pandas.DatetimeIndex):
        raise refusal("bars", "a DatetimeIndex", type(bars).__name__)
    at = bars.tz_localize("UTC") if bars.tz is None else bars.tz_convert("UTC")
    return at if label == "close" else at + pandas.Timedelta(step)


def known_at(lake: Lake, bars: pandas.DatetimeIndex, assets: Names, metrics: Names | Mapping[str, str], *, step: Any,
             label: Label = "open", **options: Any) -> pandas.DataFrame:
    """Each bar and asset with the value of each metric that was knowable when the bar had ended, minus `latency`.

    The options are those of `lake.panel`: `interval`, `latency`, `fields` and the others. The index is (bar, asset), bars as they were given; `decided_at` is the instant of the decision.
    """
    import pandas

    names = [assets] if isinstance(assets, str) else list(assets)
    ended = decided_at(bars, step, label)
    grid = pandas.DataFrame({
        "bar": [bar for bar in bars for _ in names],
        "asset": names * len(bars),
        "ts": pandas.DatetimeIndex([at for at in ended for _ in names], tz="UTC"),
    })
    frame = lake.panel(grid, metrics, **options).df()
    frame["bar"] = grid["bar"]
    return frame.rename(columns={"ts": "decided_at"}).set_index(["bar", "asset"])
