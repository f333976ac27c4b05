"""NautilusTrader: points as data that arrive when they became known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nautilus_trader.core.data import Data
from nautilus_trader.model.data import CustomData, DataType

from ..text import Moment, Names, Span
from .events import events

if TYPE_CHECKING:
    from ..lake import Lake


class KnownPoint(Data):  # type: ignore[misc]
    """A point of a metric: `ts_event` is the end of its interval, `ts_init` when it was known and could be acted on."""

    def __init__(self, metric: str, asset: str, value: float, ts_event: int, ts_init: int) -> None:
        self.metric, self.asset, self.value = metric, asset, value
        self._event, self._init = ts_event, ts_init

    @property
    def ts_event(self) -> int:
        """End of the interval, in nanoseconds."""
        return self._event

    @property
    def ts_init(self) -> int:
        """`available_at` and the latency, in nanoseconds."""
        return self._init


class Known:
    """What a strategy knows: of each metric and asset the point of the latest interval that has arrived."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], KnownPoint] = {}

    def take(self, point: KnownPoint) -> None:
        """For `on_data`. A late point of an earlier interval does not take the place of a later one."""
        held = self._latest.get((point.metric, point.asset))
        if held is None or held.ts_event <= point.ts_event:
            self._latest[point.metric, point.asset] = point

    def value(self, metric: str, asset: str) -> float:
        """The latest value; NaN where nothing is known."""
        held = self._latest.get((metric, asset))
        return float("nan") if held is None else held.value


def points(lake: Lake, metric: str, assets: Names, *, interval: str | None = None, since: Moment | None = None,
           until: Moment | None = None, latency: Span | None = None, **options: Any) -> list[CustomData]:
    """The points of a metric in the order in which they arrive, for `BacktestEngine.add_data(…, client_id=…)`.

    Add them before the bars: what arrives with a bar is known at it. A strategy subscribes to `DataType(KnownPoint)` and
    hands what comes in `on_data` to `Known.take`.
    """
    told = events(lake, metric, assets, interval, since=since, until=until, latency=latency, **options).df()
    kind = DataType(KnownPoint)
    at, ends = (told[name].dt.as_unit("ns").astype("int64") for name in ("at", "ends"))
    return [CustomData(kind, KnownPoint(metric, *one)) for one in zip(told["asset"], told["v"], ends, at)]
