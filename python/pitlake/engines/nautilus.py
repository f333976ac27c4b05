"""Adapter for NautilusTrader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nautilus_trader.core.data import Data
from nautilus_trader.model.data import CustomData, DataType

from ..text import Moment, Names, Span
from .events import events

if TYPE_CHECKING:
    from ..lake import Lake


class KnownPoint(Data):  # type: ignore[misc]
    """A point of a metric as data of NautilusTrader.

    Attributes:
        metric: Name of the metric.
        asset: Asset id of the metrics API.
        value: Value of the point.
        ts_event: End of the interval, in nanoseconds.
        ts_init: `available_at` plus the latency, in nanoseconds.
    """

    def __init__(self, metric: str, asset: str, value: float, ts_event: int, ts_init: int) -> None:
        self.metric, self.asset, self.value = metric, asset, value
        self._event, self._init = ts_event, ts_init

    @property
    def ts_event(self) -> int:
        """End of the interval, in nanoseconds."""
        return self._event

    @property
    def ts_init(self) -> int:
        """`available_at` plus the latency, in nanoseconds."""
        return self._init


class Known:
    """Memory of a strategy: the point of the latest interval that has arrived, for each metric and asset.

    Pass each point that arrives in `on_data` to `take(point)`. `value(metric, asset)` returns the latest value, or NaN if no
    point has arrived yet.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], KnownPoint] = {}

    def take(self, point: KnownPoint) -> None:
        """Stores a point that arrived in `on_data`. A late point of an earlier interval does not replace a later one."""
        held = self._latest.get((point.metric, point.asset))
        if held is None or held.ts_event <= point.ts_event:
            self._latest[point.metric, point.asset] = point

    def value(self, metric: str, asset: str) -> float:
        """Returns the latest value; NaN if no point has arrived yet."""
        held = self._latest.get((metric, asset))
        return float("nan") if held is None else held.value


def points(lake: Lake, metric: str, assets: Names, *, interval: str | None = None, since: Moment | None = None,
           until: Moment | None = None, latency: Span | None = None, **options: Any) -> list[CustomData]:
    """Reads the points of a metric in the order of arrival, for `BacktestEngine.add_data(…, client_id=…)`.

    Add the points to the engine before the bars. A point that arrives at the time of a bar is then known at that bar. The
    strategy subscribes to `DataType(KnownPoint)` and passes what arrives in `on_data` to `Known.take`.

    Args:
        lake: The open lake.
        metric: Name of the metric.
        assets: Asset ids of the metrics API.
        interval: Interval of the points. Default: that of the catalogue.
        since: Earliest `t`.
        until: End of `t`, exclusive.
        latency: Time that you need to act, such as `"15m"`.
        options: Further options of `lake.points`, such as `currency` and `exchange`.

    Returns:
        A `KnownPoint` for each point, wrapped as `CustomData`.

    >>> engine.add_data(points(lake, "price_usd", ["BTC"], latency="15m"), client_id=ClientId("LAKE"))  # doctest: +SKIP
    """
    rows = events(lake, metric, assets, interval, since=since, until=until, latency=latency, **options).df()
    kind = DataType(KnownPoint)
    at, ends = (rows[name].dt.as_unit("ns").astype("int64") for name in ("at", "ends"))
    return [CustomData(kind, KnownPoint(metric, *one)) for one in zip(rows["asset"], rows["v"], ends, at)]
