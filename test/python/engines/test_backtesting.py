"""backtesting.py runs, and sees at every bar what the join says."""

import numpy as np
import pytest
from backtesting import Backtest, Strategy
from conftest import METRIC, ahead, joined, known, same

import pitlake
from pitlake.backtests import rows_of
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
    with pytest.raises(pitlake.LakeError, match="give the metric a different name"):
        feed(lake, ohlc, "BTC", {"Close": METRIC}, step="6h")
    with pytest.raises(pitlake.LakeError, match="'open' or 'close'"):
        feed(lake, ohlc, "BTC", METRIC, step="6h", label="middle")


class Following(Strategy):
    """Holds while the column says so."""

    def init(self):
        pass

    def next(self):
        if self.data.signal[-1] and not self.position:
            self.buy(size=10)
        elif not self.data.signal[-1] and self.position:
            self.position.close(0.5 if len(self.data) % 2 else 1)


@pytest.mark.parametrize(("signal", "verdict"), [(known, "clean"), (ahead, "leak")])
@pytest.mark.parametrize(("at_close", "finalized"), [(False, False), (True, True)])
def test_lookahead(lake, bars, prices, signal, verdict, at_close, finalized):
    close = prices["BTC"]
    ohlc = close.to_frame("Close").assign(Open=close.shift(1).fillna(100), High=close + 9, Low=close - 9, Volume=1.0)

    def backtest(own):
        data = ohlc.assign(signal=signal(own, bars))
        return Backtest(data, Following, cash=1_000_000, trade_on_close=at_close, finalize_trades=finalized).run()

    # Who fills at the close of a bar has decided when it had ended, and a bar is named by its open.
    told = lake.lookahead(backtest, cutoffs=6, shift="6h" if at_close else None)
    assert told.verdict == verdict and bool(told) == (verdict == "clean"), str(told)
    assert verdict == "clean" or "\non 2025-" in str(told) or "\non 2026-" in str(told)


def test_fills(prices):
    """However trades are cut, and whether they are closed: what was bought and sold."""
    close = prices["BTC"].head(60)
    ohlc = close.to_frame("Close").assign(Open=close, High=close, Low=close, Volume=1.0)

    class Half(Strategy):
        def init(self):
            pass

        def next(self):
            if len(self.data) == 10:
                self.buy(size=10)
            if len(self.data) == 20:
                self.position.close(0.5)

    rows = rows_of(Backtest(ohlc, Half, cash=1_000_000).run(), "ts", None)
    told = [(close.index.get_loc(one.ts), one.side, one.size) for one in rows.itertuples()]
    assert told == [(10, "buy", 10.0), (20, "sell", -5.0)]
