"""NautilusTrader runs, and a strategy knows at every bar what the join says."""

import pandas as pd
import pytest
from conftest import ASSETS, METRIC, joined, same
from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
from nautilus_trader.config import LoggingConfig
from nautilus_trader.model.currencies import USDT
from nautilus_trader.model.data import Bar, BarType, CustomData, DataType
from nautilus_trader.model.enums import AccountType, OmsType, OrderSide
from nautilus_trader.model.identifiers import ClientId, Venue
from nautilus_trader.model.objects import Money, Price, Quantity
from nautilus_trader.test_kit.providers import TestInstrumentProvider
from nautilus_trader.trading.strategy import Strategy

from pitlake.engines.nautilus import Known, KnownPoint, points


class Watching(Strategy):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.known, self.seen, self.arrived = kind, Known(), [], []

    def on_start(self):
        self.subscribe_bars(self.kind)
        self.subscribe_data(DataType(KnownPoint), client_id=ClientId("LAKE"))

    def on_data(self, data):
        self.arrived.append((self.clock.timestamp_ns(), data))
        self.known.take(data)

    def on_bar(self, bar):
        self.seen.append((self.clock.timestamp_ns(), *(self.known.value(METRIC, asset) for asset in ASSETS)))


@pytest.mark.parametrize("latency", ["0s", "15 minutes"])
def test_every_bar(lake, bars, latency):
    instrument = TestInstrumentProvider.btcusdt_binance()
    kind = BarType.from_str(f"{instrument.id}-6-HOUR-LAST-EXTERNAL")
    arrivals = points(lake, METRIC, ASSETS, since="2025-09-01", latency=latency)
    # Bars at the ends of their intervals, and at the very instants at which points arrive.
    ends = [at.value for at in (bars + pd.Timedelta("6h")).as_unit("ns")]
    ends = sorted({*ends, *(one.ts_init for one in arrivals if ends[0] <= one.ts_init <= ends[-1])})
    price, size = Price(100, instrument.price_precision), Quantity(1, instrument.size_precision)
    engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
    engine.add_venue(Venue("BINANCE"), OmsType.NETTING, AccountType.CASH, [Money(1_000_000, USDT)], base_currency=None)
    engine.add_instrument(instrument)
    engine.add_data(arrivals, client_id=ClientId("LAKE"))
    engine.add_data([Bar(kind, price, price, price, price, size, at, at) for at in ends])
    watching = Watching(kind)
    engine.add_strategy(watching)
    engine.run()
    wait = pd.Timedelta(latency)
    stored = lake.points(METRIC, ASSETS).df().set_index(["asset", "t"])
    for clock, point in watching.arrived[::7]:
        row = stored.loc[point.asset, pd.Timestamp(point.ts_event, tz="UTC") - pd.Timedelta("1D")]
        assert clock == point.ts_init == (row["available_at"] + wait).as_unit("ns").value
        assert point.value == row["v"] or pd.isna(row["v"])
    times, *values = zip(*watching.seen)
    assert list(times) == ends
    # In a first span nothing of before the first point is known to the engine, and all of it to the lake.
    for asset, own in zip(ASSETS, values):
        same(own, joined(lake, pd.DatetimeIndex(times, tz="UTC"), asset, METRIC, latency))
    engine.dispose()


class Following(Watching):
    """Holds while more addresses were active than before."""

    def on_bar(self, bar):
        now = self.known.value(METRIC, "BTC")
        rising, held = now > getattr(self, "before", now), not self.portfolio.is_flat(self.instrument.id)
        self.before = now
        if rising != held:
            side = OrderSide.BUY if rising else OrderSide.SELL
            self.submit_order(self.order_factory.market(self.instrument.id, side, Quantity(1, self.instrument.size_precision)))


@pytest.mark.parametrize(("early", "verdict"), [(False, "clean"), (True, "leak")])
def test_lookahead(lake, bars, prices, early, verdict):
    instrument = TestInstrumentProvider.btcusdt_binance()
    kind = BarType.from_str(f"{instrument.id}-6-HOUR-LAST-EXTERNAL")
    size = Quantity(1000, instrument.size_precision)
    ends = [at.value for at in (bars + pd.Timedelta("6h")).as_unit("ns")]
    closes = [Price(one, instrument.price_precision) for one in prices["BTC"]]

    def backtest(own):
        arrivals = points(own, METRIC, "BTC")
        if early:
            # As files of history are read: each value at the end of the day that it describes.
            told = [KnownPoint(METRIC, "BTC", one.data.value, one.ts_event, one.ts_event) for one in arrivals]
            arrivals = [CustomData(DataType(KnownPoint), one) for one in sorted(told, key=lambda one: one.ts_init)]
        engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
        engine.add_venue(Venue("BINANCE"), OmsType.NETTING, AccountType.CASH, [Money(1_000_000, USDT)], base_currency=None)
        engine.add_instrument(instrument)
        engine.add_data(arrivals, client_id=ClientId("LAKE"))
        engine.add_data([Bar(kind, one, one, one, one, size, at, at) for at, one in zip(ends, closes)])
        following = Following(kind)
        following.instrument = instrument
        engine.add_strategy(following)
        engine.run()
        return engine

    told = lake.lookahead(backtest, cutoffs=8)
    assert told.verdict == verdict, str(told)
