"""backtesting.py runs, and sees at every bar what the join says."""

import numpy as np
import pytest
from backtesting import Backtest, Strategy
from conftest import METRIC, joined, same

import pitlake
from pitlake.engines.backtesting import feed


@pytest.mark.parametrize(("label", "latency"), [("open", "0s"), ("open", "15 minutes"), ("close", "1 day")])
def test_every_bar(lake, bars, prices, label, latency):
    close = prices["BTC"]
    ohlc = close.to_frame("Close").assign(Open=close, High=close, Low=close, Volume=1.0)
    data = feed(lake, ohlc, "BTC", {"active": METRIC}, step="6h", label=label, latency=latency)
    seen = []

    class Watching(Strategy):
        def init(self):
            pass

        def next(self):
            seen.append((self.data.index[-1], self.data.active[-1]))
            if not self.position:
                self.buy(size=1)

    done = Backtest(data, Watching, cash=1_000_000, finalize_trades=True).run()
    assert done["# Trades"] > 0
    times, values = zip(*seen)
    ends = [at + np.timedelta64(6 if label == "open" else 0, "h") for at in times]
    same(values, joined(lake, ends, "BTC", METRIC, latency))
    assert len(seen) >= len(bars) - 2


def test_names(lake, prices):
    ohlc = prices[["BTC"]].rename(columns={"BTC": "Close"}).head(60)
    assert list(feed(lake, ohlc, "BTC", METRIC, step="6h").columns) == ["Close", "addresses_active_count_pit"]
    with pytest.raises(pitlake.LakeError, match="name the metric otherwise"):
        feed(lake, ohlc, "BTC", {"Close": METRIC}, step="6h")
    with pytest.raises(pitlake.LakeError, match="'open' or 'close'"):
        feed(lake, ohlc, "BTC", METRIC, step="6h", label="middle")
