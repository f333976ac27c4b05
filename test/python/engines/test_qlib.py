"""qlib backtests on the folder that was written, and sees at every session what the join says."""

import pandas as pd
import qlib
from conftest import ASSETS, METRIC, OTHER, joined, same
from qlib.backtest import backtest
from qlib.backtest.decision import TradeDecisionWO
from qlib.data import D
from qlib.data.dataset.loader import StaticDataLoader
from qlib.strategy.base import BaseStrategy

from pitlake.engines.qlib import features, write

SESSIONS = pd.date_range("2025-11-01", "2026-03-01", freq="1D")


def test_every_session(lake, tmp_path):
    frame = features(lake, SESSIONS, ASSETS, {"active": METRIC, "sopr": OTHER}, latency="15m")
    flat = pd.DataFrame({"close": 100.0, "open": 100.0, "volume": 1e6, "factor": 1.0, "change": 0.0}, index=SESSIONS)
    write(tmp_path, frame, {asset: flat for asset in ASSETS})
    qlib.init(provider_uri=str(tmp_path), region="us", kernels=1, expression_cache=None, dataset_cache=None)
    loaded = StaticDataLoader(frame).load(ASSETS, SESSIONS[0], SESSIONS[-1])
    ends = [day.tz_localize("UTC") + pd.Timedelta("1D") for day in SESSIONS]
    seen = {asset: [] for asset in ASSETS}

    class Watching(BaseStrategy):
        """Decides on a session by what was written for the one before it, as strategies of qlib do."""

        def generate_trade_decision(self, execute_result=None):
            step = self.trade_calendar.get_trade_step()
            before, _ = self.trade_calendar.get_step_time(step, shift=1)
            day = pd.Timestamp(before).normalize()
            told = D.features(ASSETS, ["$active"], day, day, freq="day", disk_cache=0)["$active"]
            for asset in ASSETS:
                seen[asset].append(told.get((asset, day), float("nan")))
            return TradeDecisionWO([], self)

    backtest(
        start_time=SESSIONS[1], end_time=SESSIONS[-2], strategy=Watching(), benchmark=pd.Series(0.0, index=SESSIONS), account=1e6,
        executor={"class": "SimulatorExecutor", "module_path": "qlib.backtest.executor",
                  "kwargs": {"time_per_step": "day", "generate_portfolio_metrics": False}},
        exchange_kwargs={"freq": "day", "codes": ASSETS, "deal_price": "close", "limit_threshold": None},
    )
    for asset in ASSETS:
        for name, metric in (("active", METRIC), ("sopr", OTHER)):
            same(loaded.xs(asset, level="instrument")["feature", name], joined(lake, ends, asset, metric, "15 minutes"))
        own = joined(lake, ends[: len(seen[asset])], asset, METRIC, "15 minutes")
        same(seen[asset], own.astype("float32"))
