"""Values of metrics as known at each bar."""

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
    """Returns the end of each bar: the time at which a strategy can decide on it.

    Args:
        bars: Timestamps of the bars. Without a zone they are UTC.
        step: Length of a bar, such as `"1h"`. Not used if `label` is `"close"`.
        label: Whether the timestamp of a bar is its open (`"open"`) or its close (`"close"`).

    Returns:
        The ends, UTC.

    >>> decided_at(pandas.DatetimeIndex(["2024-03-02"]), "1h", "open")[0]  # doctest: +SKIP
    Timestamp('2024-03-02 01:00:00+0000', tz='UTC')
    """
    import pandas

    if label not in ("open", "close"):
        raise refusal("label", "'open' or 'close': which end of a bar its name stands at", repr(label))
    if not isinstance(bars, pandas.DatetimeIndex):
        raise refusal("bars", "a DatetimeIndex", type(bars).__name__)
    at = bars.tz_localize("UTC") if bars.tz is None else bars.tz_convert("UTC")
    return at if label == "close" else at + pandas.Timedelta(step)


def known_at(lake: Lake, bars: pandas.DatetimeIndex, assets: Names, metrics: Names | Mapping[str, str], *, step: Any,
             label: Label = "open", **options: Any) -> pandas.DataFrame:
    """Looks up metric values as known at the end of each bar, minus `latency`, for engines without an adapter.

    Args:
        lake: The open lake.
        bars: Timestamps of the bars. Without a zone they are UTC.
        assets: Asset ids of the metrics API.
        metrics: Names of metrics, or a dict of column and metric.
        step: Length of a bar, such as `"1h"`.
        label: Whether the timestamp of a bar is its open (`"open"`) or its close (`"close"`).
        options: Options of `lake.panel`, such as `interval`, `latency` and `max_age`.

    Returns:
        A row for each bar and asset, which are the index. The column `decided_at` is the end of the bar. The others are values.

    >>> known_at(lake, bars.index, ["BTC"], ["supply/current_pit"], step="1D")["supply/current_pit"].iloc[-1]  # doctest: +SKIP
    2.0
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
