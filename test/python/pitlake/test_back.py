"""The option `back`: earlier points with the knowledge of the decision, against SQL and brute force."""

import random

import pandas as pd
import pytest

import pitlake

ACTIVE = "addresses/active_count_pit"
PROFIT = "addresses/profit_count_pit"
DAY = pd.Timedelta(days=1)
SPANS = {
    "90 days": ("INTERVAL '90 days'", pd.DateOffset(days=90)),
    "1d": ("INTERVAL '1 day'", pd.DateOffset(days=1)),
    "3 months": ("INTERVAL '3 months'", pd.DateOffset(months=3)),
}


@pytest.fixture(scope="module")
def lake(notebooks):
    with pitlake.open(notebooks, progress=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def decisions(lake):
    """Forty decisions at random times, and the ends of knowledge: before the first point, and years after the last."""
    chance = random.Random(1)
    days = [pd.Timestamp("2021-01-01", tz="UTC") + pd.Timedelta(minutes=chance.randrange(5 * 365 * 1440)) for _ in range(40)]
    days += [pd.Timestamp(at, tz="UTC") for at in ("2020-01-01", "2021-01-03", "2026-06-30")]
    return pd.DataFrame({"asset": [chance.choice(["BTC", "ETH"]) for _ in days], "ts": days, "row": range(len(days))})


def earlier(points, asset, ts, offset):
    """The newest point known at `ts` that ended at least so long before the newest one known; None if there is none."""
    known = points[(points["asset"] == asset) & (points["available_at"] <= ts)]
    if known.empty:
        return None
    limit = known["t"].max() + DAY - offset
    found = known[known["t"] + DAY <= limit]
    return None if found.empty else found.loc[found["t"].idxmax()]


def same(left, right):
    return left == right or (pd.isna(left) and pd.isna(right))


@pytest.mark.filterwarnings("ignore::pitlake.LakeWarning")
@pytest.mark.parametrize("back", SPANS)
def test_pit_join_with_back_answers_as_sql_and_brute_force(lake, decisions, back):
    points = lake.points(ACTIVE, ["BTC", "ETH"]).df()
    answer = lake.pit_join(decisions, ACTIVE, back=back).df()
    asked = lake.sql(f"FROM pit_join(given, '{ACTIVE}', '24h', back := {SPANS[back][0]}) ORDER BY row", frames={"given": decisions}).df()
    pd.testing.assert_frame_equal(answer, asked)
    assert answer["row"].tolist() == list(range(len(decisions)))
    for row in answer.itertuples():
        point = earlier(points, row.asset, row.ts, SPANS[back][1])
        assert same(row.t, None if point is None else point["t"])
        assert same(row.v, None if point is None else point["v"])
        assert same(row.age, None if point is None else row.ts - (point["t"] + DAY))
    assert answer["t"].notna().sum() > 30


@pytest.mark.filterwarnings("ignore::pitlake.LakeWarning")
@pytest.mark.parametrize("back", SPANS)
def test_panel_with_back_answers_as_sql_and_brute_force(lake, decisions, back):
    metrics = {"active": ACTIVE, "profit": PROFIT}
    panel = lake.panel(decisions, metrics, back=back, fields=("v", "t")).df()
    asked = lake.sql(f"""SELECT row, metric, t, v FROM pit_long(given, ['{ACTIVE}', '{PROFIT}'], '24h', back := {SPANS[back][0]})""",
                     frames={"given": decisions}).df().set_index(["metric", "row"])
    for column, metric in metrics.items():
        points = lake.points(metric, ["BTC", "ETH"]).df()
        for row in panel.rename(columns={f"{column}.t": "at", column: "value"}).itertuples():
            point = earlier(points, row.asset, row.ts, SPANS[back][1])
            assert same(row.at, None if point is None else point["t"])
            assert same(row.value, None if point is None else point["v"])
            assert same(row.at, asked.loc[(metric, row.row), "t"]) and same(row.value, asked.loc[(metric, row.row), "v"])


@pytest.mark.parametrize("back", ["90", "soon", "-3d"])
def test_back_that_is_no_span_is_refused(lake, decisions, back):
    with pytest.raises(pitlake.LakeError, match="back: expected a span such as 90d or 3month"):
        lake.pit_join(decisions, ACTIVE, back=back)
