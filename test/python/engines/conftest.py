"""The lake of the notebooks, and what a join says about it: the engines are held against that."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
if "PITLAKE_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "python"))

os.environ.setdefault("PITLAKE_COMMAND", f"node {ROOT / 'scripts' / 'launch.cjs'}")

import pitlake  # noqa: E402

METRIC, OTHER = "addresses/active_count_pit", "indicators/sopr_adjusted_pit"
ASSETS = ["BTC", "ETH"]


@pytest.fixture(scope="session")
def lake():
    with pitlake.open(os.environ.get("PITLAKE_NOTEBOOK_LAKE", ROOT / ".cache" / "notebook-lake")) as opened:
        yield opened


@pytest.fixture(scope="session")
def bars():
    """Bars of six hours, named by their open: most decisions fall between arrivals, some days come late."""
    return pd.date_range("2025-11-01", "2026-03-01", freq="6h", tz="UTC", inclusive="left")


@pytest.fixture(scope="session")
def prices(bars):
    rng = np.random.default_rng(1)
    return pd.DataFrame({asset: 100 * np.exp(np.cumsum(rng.normal(0, 0.01, len(bars)))) for asset in ASSETS}, index=bars)


def joined(lake, instants, asset, metric=METRIC, latency="0s"):
    """Value and arrival by `pit_join` as SQL says it, and whether anything was taken before it was known."""
    decisions = pd.DataFrame({"n": range(len(instants)), "asset": asset, "ts": instants})
    query = f"SELECT n, v, available_at FROM pit_join('decisions', '{metric}', '24h', latency := INTERVAL '{latency}') ORDER BY n"
    told = lake.sql(query, frames={"decisions": decisions}).df()
    wait = pd.Timedelta(latency)
    known = told["available_at"].isna() | (told["available_at"] + wait <= pd.DatetimeIndex(instants))
    assert known.all() and told["v"].nunique() > len(instants) / 10
    return told["v"].to_numpy(dtype="float64")


def same(seen, told):
    """Bit for bit; nothing known is NaN on both sides."""
    seen, told = np.asarray(seen, dtype="float64"), np.asarray(told, dtype="float64")
    assert len(seen) == len(told) > 50
    np.testing.assert_array_equal(seen, told)


def known(lake, bars):
    """What was knowable when each bar had ended: of BTC, whether no fewer addresses were active than three days before: where nothing new comes it holds on."""
    from pitlake.engines.bars import known_at

    told = known_at(lake, bars, "BTC", {"active": METRIC}, step="6h")["active"].to_numpy(dtype="float64")
    return pd.Series(told, index=bars).pipe(lambda own: own >= own.shift(12))


def ahead(lake, bars):
    """The same by the day that a value describes: nobody has it before that day has ended, and the lag."""
    days = lake.points(METRIC, "BTC").df().set_index("t")["v"].tz_convert("UTC")
    told = days.reindex(bars, method="ffill")
    return told >= told.shift(12)
