"""Questions of the package against a small lake: columns, frames, options, warnings. usage: PITLAKE_DATA=LAKE python panels.py"""

import sys
import warnings
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))

import pandas as pd  # noqa: E402
import pitlake  # noqa: E402
import polars as pl  # noqa: E402
from pitlake import LakeError, LakeWarning  # noqa: E402

PLAIN, NESTED, SUPPLY = "indicators/sopr_adjusted_pit", "indicators/cost_basis_distribution_quantiles_pit", "supply/current_pit"
ONE = pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime(["2024-03-04 00:10"], utc=True)})


def panel(decisions, metrics, interval="24h", *, polars=None, registry_backfill=False, **options):
    own = type(decisions).__module__.startswith("polars") if polars is None else polars
    with pitlake.open(registry_backfill=registry_backfill) as lake:
        answer = lake.panel(decisions, metrics, interval, **options)
        return answer.pl() if own else answer.df()


def points(*metrics, **options):
    with pitlake.open() as lake:
        return lake.points(*metrics, **options).df()


def sql(query, **options):
    with pitlake.open() as lake:
        return lake.sql(query, **options).df()


def universe(at):
    with pitlake.open() as lake:
        return lake.universe(at).df()


def value(metric, decisions=ONE, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = panel(decisions, {"x": metric}, **options)["x"][0]
    return None if got is None or pd.isna(got) else got


def words(ask):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    own = [one for one in caught if one.category is LakeWarning]
    assert all(one.filename == __file__ for one in own), [one.filename for one in own]
    return " | ".join(str(one.message) for one in own)


def refused(ask):
    try:
        ask()
    except LakeError as error:
        return str(error)
    raise AssertionError("not refused")


late = ONE.assign(ts=pd.Timestamp("2024-03-06", tz="UTC"))
assert value(SUPPLY) == 3 and value(SUPPLY, currency="usd") == 300
assert value(PLAIN) is None and value(PLAIN, skip_nulls=True) == 2
assert value(NESTED, component="/a/b") == 30 and value(f"{NESTED}#/a/b", component="/c") == 30
assert value(SUPPLY, latency="1 minute") == 2 and value(SUPPLY, latency=timedelta(minutes=1)) == 2
assert value(SUPPLY, late, max_age="2 days") == 3 and value(SUPPLY, late, max_age=timedelta(days=1)) is None

with pitlake.open() as lake:
    others = [name for name in lake.metrics().df()["metric"] if name not in (PLAIN, NESTED, SUPPLY)][:18]
    held = {"first": SUPPLY, **{name: name for name in others[:6]}, "last": PLAIN, "next": f"{NESTED}#/a/b", **{name: name for name in others[6:]}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        many = lake.panel(ONE, held, fields=["v", "age"], skip_nulls=True).arrow()
        ages = lake.panel(ONE, held, fields=["v", "age"], skip_nulls=True).df()
assert many.column_names == ["asset", "ts", *(name + end for name in held for end in ("", ".age"))]
assert [many[name][0].as_py() for name in ("first", "last", "next")] == [3, 2, 30]
assert [ages[f"{name}.age"][0] for name in ("first", "last", "next")] == [timedelta(minutes=10), timedelta(days=1, minutes=10), timedelta(minutes=10)]
assert all(many[name].null_count == 1 for name in others)
assert f"the lake has no points of {others[0]!r}: fetch it first" in {str(one.message) for one in caught}

odd = ["_row", "_pit_row", "metric", "t", "v", "own", "wide", "decision", 'a"b']
frame = pd.concat([ONE, ONE, ONE], ignore_index=True).assign(**{name: [f"{name} {n}" for n in range(3)] for name in odd})
got = panel(frame, [SUPPLY, PLAIN], skip_nulls=True)
assert list(got.columns) == [*frame.columns, SUPPLY, PLAIN]
assert got[list(frame.columns)].equals(frame) and list(got[SUPPLY]) == [3, 3, 3] and list(got[PLAIN]) == [2, 2, 2]
assert "rename it" in refused(lambda: panel(frame, {"T": SUPPLY}))

for own in (pl.from_pandas(frame), pl.from_pandas(frame).lazy()):
    same = panel(own, SUPPLY)
    assert isinstance(same, pl.DataFrame) and same.columns == [*frame.columns, SUPPLY] and same[SUPPLY].to_list() == [3, 3, 3]
    assert isinstance(panel(own, SUPPLY, polars=False), pd.DataFrame)
for indexed in (ONE.set_index("ts"), ONE.set_index(["asset", "ts"]), ONE.set_index("asset"),
                ONE.set_index("ts").rename_axis(None), ONE.assign(ts=ONE.ts.dt.tz_localize(None)).set_index("ts")):
    same = panel(indexed, SUPPLY)
    assert set(same.columns) == {"asset", "ts", SUPPLY} and same[SUPPLY][0] == 3, same
assert len(panel(ONE.head(0), SUPPLY)) == 0

for interval in (None, "", "2h", 24):
    assert "interval: expected 10m, 1h, 24h, 1w, 1month, 3month, got " in refused(lambda: panel(ONE, SUPPLY, interval))
message = refused(lambda: panel(ONE, "indicators/accumulation_trend_score_pit", "10m"))
assert "has no interval 10m: expected " in message and "Error:" not in message, message
assert "decisions: expected columns asset and ts, got ts" in refused(lambda: panel(ONE.drop(columns="asset"), SUPPLY))
assert "pandas, polars or pyarrow" in refused(lambda: panel([("BTC", "2024-03-04")], SUPPLY))

lower = ONE.assign(asset="btc")
assert "for asset 'btc'; did you mean 'BTC'?" in words(lambda: panel(lower, SUPPLY))
assert "did you mean 'BTC'?" in words(lambda: panel(pd.concat([ONE, lower]), SUPPLY))
assert f"such as '{NESTED}#/a/b'" in words(lambda: panel(ONE, NESTED))
assert "has no part '/a/c'; did you mean '/a/b'?" in words(lambda: panel(ONE, f"{NESTED}#/a/c"))
assert "has plain numbers" in words(lambda: panel(ONE, f"{PLAIN}#/a"))
assert "fetch it first" in words(lambda: panel(ONE, "addresses/active_count_pit"))
assert words(lambda: panel(ONE, SUPPLY)) == "" and "was known before 2024-03-02" in words(lambda: panel(ONE.assign(ts="2020-01-01"), SUPPLY))
assert "did you mean 'indicators/sopr_adjusted_pit'?" in words(lambda: points("indicators/sopr_adjustd_pit"))
assert "did you mean 'BTC'?" in words(lambda: points(SUPPLY, "btc"))
assert "with currency 'eur'" in words(lambda: points(SUPPLY, currency="eur"))
assert "FROM price_usd" in words(lambda: sql("FROM points WHERE metric = 'price_usd'"))
assert "did you mean 'supply/current_pit' or" in words(lambda: sql("FROM points WHERE metric = 'supply/curent_pit'"))
assert "'btc' is no asset; did you mean 'BTC'?" in words(lambda: sql("SELECT max(v) AS v FROM points WHERE asset = 'btc'"))
assert "at this as_of: it is known since 2024-01-21" in words(lambda: universe("2020-01-01"))
instants = pd.DataFrame({"ts": pd.to_datetime(["2024-03-04 00:10", "2024-08-01 00:00"], utc=True), "why": ["a", "b"]})
got = panel(instants, SUPPLY, universe="status = 'active' AND product_id <> 'p1'")
asked = sql("SELECT ts, product_id FROM pit_universe('d', status = 'active' AND product_id <> 'p1') ORDER BY ts, product_id", frames={"d": instants})
assert list(got.columns)[:4] == ["asset", "ts", "why", "product_id"] and 20 < len(got) == len(asked)
assert list(got.product_id) == list(asked.product_id) and (got.ts == asked.ts).all()
same = panel(pl.from_pandas(instants), SUPPLY, universe="status = 'active' AND product_id <> 'p1'")
assert isinstance(same, pl.DataFrame) and same["product_id"].to_list() == list(got.product_id)
before = instants.assign(ts=pd.Timestamp("2024-01-02", tz="UTC"))
assert "expected instants from 2024-01-21" in refused(lambda: panel(before, SUPPLY, universe="true"))
assert len(panel(before, SUPPLY, universe="true", registry_backfill=True)) == 40
assert "rename it" in refused(lambda: panel(instants.assign(asset="BTC"), SUPPLY, universe="true"))
assert "statu" in refused(lambda: panel(instants, SUPPLY, universe="statu = 'active'"))

early = "WITH d AS (SELECT TIMESTAMPTZ '2024-01-02' AS ts) SELECT product_id FROM pit_universe('d')"
assert "before its first snapshot, 2024-01-21" in words(lambda: sql(early))
assert words(lambda: sql(early.replace("01-02", "02-02"))) == ""
filtered = f"FROM points WHERE metric = '{SUPPLY}' AND "
assert f"of '{SUPPLY}' with currency 'usdd'; did you mean 'usd'?" in words(lambda: sql(f"{filtered} currency = 'usdd'"))
assert "with currency 'eur'" in words(lambda: sql(f"{filtered} points.currency IN ('eur')"))
assert "is not stored at 1w" in words(lambda: sql(f"{filtered} 'interval' <> '' AND \"interval\" = '1w'"))
assert "for asset 'BTCC'; did you mean 'BTC'?" in words(lambda: sql(f"{filtered} asset = 'BTCC'"))
assert "fetch it first" in words(lambda: sql("FROM points WHERE metric = 'addresses/active_count_pit' AND asset = 'BTC'"))
assert words(lambda: sql(f"{filtered} currency = 'usd'")) == ""
joined = "WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-04T00:10:00Z' AS ts) SELECT v FROM "
assert "is not stored at 10m" in words(lambda: sql(f"{joined} pit_join('d', '{PLAIN}', '10m')"))
assert "has plain numbers" in words(lambda: sql(f"{joined} pit_join('d', '{PLAIN}', '24h', component := '/a')"))
assert "query a part of them" in words(lambda: sql(f"{joined} pit_join('d', '{NESTED}', '24h')"))
assert words(lambda: sql("FROM points WHERE v > 1e9")) == ""

assert points(SUPPLY)["v"].tolist() == [1, 2, 3] and set(points(SUPPLY, currency="*")["currency"]) == {"native", "usd"}
assert len(points("price_usd")) == 3 and points(SUPPLY, currency="usd")["v"].tolist() == [100, 200, 300]
print("all")
