"""vectorbt runs, and sees at every bar what the join says."""

import numpy as np
import pytest
import vectorbt as vbt
from conftest import ASSETS, METRIC, OTHER, ahead, joined, known, same
from numba import njit
from vectorbt.portfolio import nb

from pitlake.engines.vectorbt import frames


@njit
def order(c, signal, seen):
    seen[c.i, c.col] = signal[c.i, c.col]
    return nb.order_nb(size=1.0 if signal[c.i, c.col] > 0 else -1.0, price=c.close[c.i, c.col])


@pytest.mark.parametrize("latency", ["0s", "15 minutes"])
def test_every_bar(lake, bars, prices, latency):
    found = frames(lake, prices, {"active": METRIC, "sopr": OTHER}, step="6h", latency=latency)
    assert set(found) == {"active", "sopr"}
    for name, metric in (("active", METRIC), ("sopr", OTHER)):
        frame = found[name]
        assert frame.index.equals(prices.index) and list(frame.columns) == list(prices.columns)
        seen = np.full(prices.shape, -1.0)
        portfolio = vbt.Portfolio.from_order_func(prices, order, frame.to_numpy(dtype="float64"), seen)
        assert portfolio.orders.count().sum() > 0
        for place, asset in enumerate(ASSETS):
            same(seen[:, place], joined(lake, bars + np.timedelta64(6, "h"), asset, metric, latency))


@pytest.mark.parametrize(("signal", "verdict"), [(known, "clean"), (ahead, "leak")])
def test_lookahead(lake, bars, prices, signal, verdict):
    def backtest(own):
        holds = signal(own, bars)
        return vbt.Portfolio.from_signals(prices["BTC"], holds, ~holds, freq="6h")

    def positions(own):
        return backtest(own).assets()

    # Fills at the close of the bar that is named by its open.
    for work in (backtest, positions):
        told = lake.lookahead(work, cutoffs=6, shift="6h")
        assert told.verdict == verdict, str(told)
    # Half a bar is not known at its open.
    assert lake.lookahead(backtest, cutoffs=6).verdict == "leak"
