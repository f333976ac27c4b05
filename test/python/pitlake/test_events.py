"""What became known, in the order in which it did: against the points, sorted here."""

import pandas as pd
import pitlake
import pytest

from pitlake.engines.events import events

METRIC, OTHER = "addresses/active_count_pit", "indicators/sopr_adjusted_pit"


@pytest.fixture(scope="module")
def told(notebooks):
    with pitlake.open(notebooks) as lake:
        yield lake


def test_each_point_comes_when_it_was_known(told):
    found = events(told, [METRIC, OTHER], ["BTC", "ETH"], latency="15m").df()
    points = told.points([METRIC, OTHER], ["BTC", "ETH"]).df()
    points = points.assign(at=points["available_at"] + pd.Timedelta("15min"), ends=points["t"] + pd.Timedelta("1D"))
    wanted = points.sort_values(["at", "ends", "metric", "asset", "t"], kind="stable")
    assert len(found) > 500 and found["at"].duplicated().any() and (found["t"].diff() < pd.Timedelta(0)).any()
    names = ["at", "ends", "metric", "asset", "v"]
    assert found[names].astype(str).values.tolist() == wanted[names].astype(str).values.tolist()


def test_one_by_one(told):
    found = events(told, [METRIC, OTHER], since="2025-01-01")
    seen, frame = list(found), found.df()
    assert len(seen) == len(frame) > 500 and seen[0]._fields == tuple(frame.columns)
    assert [(one.at, str(one.v)) for one in seen] == list(zip(frame["at"], map(str, frame["v"])))


def test_what_comes_later_moves_nothing(told, notebooks):
    whole = events(told, METRIC, "BTC").df()
    for cut in whole["at"].quantile([0.1, 0.5, 0.77]):
        with pitlake.open(notebooks, as_of=cut.to_pydatetime()) as then:
            known = events(then, METRIC, "BTC").df()
        pd.testing.assert_frame_equal(known, whole[whole["at"] <= cut.to_pydatetime()])


def test_each_vintage_comes(told):
    vintages = told.sql("FROM vintages ORDER BY available_at, t").df()
    assert (vintages["ordinal"] > 1).any()
    for (metric, asset), own in vintages.groupby(["metric", "asset"]):
        found = events(told, metric, asset, "*", currency="*", exchange="*", network="*").df().fillna({"v": -1})
        own = own.fillna({"v": -1})
        assert sorted(zip(found["at"], found["t"], found["v"])) == sorted(zip(own["available_at"], own["t"], own["v"]))
    prices = events(told, "price_usd", "BTC").df()
    assert prices["at"].is_monotonic_increasing and len(prices) == len(told.points("price_usd", "BTC").df())


def test_a_backtest_that_asks_a_lake_of_its_own_is_told(lake):
    def backtest(own):
        return lake.panel(lake.calendar("2024-03-02", "2024-03-05", "1 day", ["BTC"]), ["supply/current_pit"]).df()

    said = lake.lookahead(backtest)
    assert said.verdict == "clean" and said.notes[0] == "it names the lake lake, which is not cut: ask the lake that it is given"


def test_positions_and_the_sentence(lake):
    days = pd.date_range("2024-03-01", "2024-03-03", tz="UTC")

    def held(own):
        return own.points("supply/current_pit", "BTC").df().set_index("t")["v"].reindex(days).fillna(0)

    said = lake.lookahead(held)
    assert said.verdict == "leak" and "\non 2024-03-0" in str(said) and " it gives v " in str(said)
    assert "; with only the data known at 2024-03-0" in str(said) or "; with different later data " in str(said)
    # Said of the end of the next day, everything of a day is known.
    assert lake.lookahead(held, shift="2D").verdict == "clean"
    with pytest.raises(pitlake.LakeError, match="no column ts|raises on the whole lake: LakeError: lookahead: shift"):
        raise pitlake.LakeError(str(lake.lookahead(lambda own: own.sql("SELECT 1 AS a").pl(), shift="1D")))
