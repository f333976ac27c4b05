"""The pipeline engine of zipline runs, and sees at every session what the join says at its cut-off."""

import datetime

import numpy as np
import pandas as pd
import pytest
import pytz
import sqlalchemy
from conftest import ASSETS, METRIC, OTHER, joined, same
from zipline.assets import AssetDBWriter, AssetFinder
from zipline.pipeline import CustomFactor, Pipeline
from zipline.pipeline.data import Column, DataSet
from zipline.pipeline.domain import EquitySessionDomain
from zipline.pipeline.engine import SimplePipelineEngine

from pitlake.engines.zipline import KnownLoader

SESSIONS = pd.date_range("2025-11-01", "2026-03-01", freq="1D")
CUTOFF = datetime.time(8, 45, tzinfo=pytz.utc)


class Facts(DataSet):
    active = Column(float)
    sopr = Column(float)


class Mean(CustomFactor):
    inputs = [Facts.active]
    window_length = 3

    def compute(self, today, assets, out, active):
        out[:] = active.sum(axis=0)


@pytest.mark.parametrize("latency", ["0s", "15 minutes", "9 hours"])
def test_every_session(lake, latency):
    engine = sqlalchemy.create_engine("sqlite://")
    begin, end = SESSIONS[0] - pd.Timedelta("30D"), SESSIONS[-1] + pd.Timedelta("30D")
    equities = pd.DataFrame({"symbol": ASSETS, "start_date": begin, "end_date": end, "exchange": "LAKE"}, index=[1, 2])
    exchanges = pd.DataFrame({"exchange": ["LAKE"], "canonical_name": ["LAKE"], "country_code": ["US"]})
    AssetDBWriter(engine).write(equities=equities, exchanges=exchanges)
    domain = EquitySessionDomain(SESSIONS, "US", CUTOFF)
    loader = KnownLoader(lake, {"active": METRIC, "sopr": OTHER}, {1: "BTC", 2: "ETH"}, latency=latency)
    running = SimplePipelineEngine(lambda column: loader, AssetFinder(engine), domain)
    pipeline = Pipeline({"active": Facts.active.latest, "sopr": Facts.sopr.latest, "sum": Mean()}, domain=domain)
    told = running.run_pipeline(pipeline, SESSIONS[4], SESSIONS[-1])
    cutoffs = [session.tz_localize("UTC") + pd.Timedelta(hours=8, minutes=45) for session in SESSIONS]
    for sid, asset in enumerate(ASSETS, 1):
        own = told[[getattr(equity, "sid", equity) == sid for equity in told.index.get_level_values(1)]]
        for name, metric in (("active", METRIC), ("sopr", OTHER)):
            same(own[name], joined(lake, cutoffs[4:], asset, metric, latency))
        # Each row of a window as it was knowable at its own session.
        values = joined(lake, cutoffs, asset, METRIC, latency)
        same(own["sum"], np.array([values[n - 2 : n + 1].sum() for n in range(4, len(cutoffs))]))
