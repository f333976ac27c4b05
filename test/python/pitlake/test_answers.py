"""The forms of an answer, and what is read to show one."""

import datetime as dt
import html
import re
import struct
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import command

import pitlake

SUPPLY = "supply/current_pit"


def test_forms_tell_the_same(lake):
    answer = lake.points(SUPPLY)
    frame, polars, table = answer.df(), answer.pl(), answer.arrow()
    assert list(frame.columns) == polars.columns == table.column_names == answer.columns
    assert frame["v"].tolist() == polars["v"].to_list() == table["v"].to_pylist() == [1, 2, 3]
    assert str(frame["t"].dt.tz) == "UTC" and polars["t"].dtype.time_zone == "UTC"
    assert str(table.schema.field("t").type) == "timestamp[us, tz=UTC]"
    assert polars["available_at"][0].timestamp() == frame["available_at"][0].timestamp()


def test_index_on_request(lake):
    indexed = lake.points(SUPPLY).df(index="t")
    assert isinstance(indexed.index, pd.DatetimeIndex) and str(indexed.index.tz) == "UTC"
    assert indexed["v"].tolist() == [1, 2, 3]
    assert lake.points(SUPPLY).df(index=["asset", "t"]).index.names == ["asset", "t"]
    with pytest.raises(pitlake.LakeError, match="index: expected one of the columns .*, got day"):
        lake.points(SUPPLY).df(index="day")


def test_infinity_is_nat_in_pandas(lake):
    products = lake.history("products").df()
    assert 0 < products["valid_to"].isna().sum() < len(products) and str(products["valid_to"].dt.tz) == "UTC"


def test_wide_and_xarray_have_both_keys(lake):
    days = lake.calendar("2024-03-03", "2024-03-05", "1 day", ["BTC", "ETH"])
    panel = lake.panel(days, {"a": SUPPLY, "b": "indicators/sopr_adjusted_pit"})
    with pytest.warns(pitlake.LakeWarning, match="for asset 'ETH'"):
        wide = panel.wide()
    assert list(wide.columns) == [("a", "BTC"), ("a", "ETH"), ("b", "BTC"), ("b", "ETH")]
    assert wide.columns.names == ["metric", "asset"] and str(wide.index.tz) == "UTC"
    assert wide["a", "BTC"].tolist() == [1, 2] and wide["a", "ETH"].isna().all()
    with pytest.warns(pitlake.LakeWarning):
        cube = panel.xarray()
    assert dict(cube.sizes) == {"ts": 2, "asset": 2} and float(cube["a"].sel(asset="BTC")[1]) == 2
    with pytest.raises(pitlake.LakeError, match="tell the rows apart"):
        lake.points(SUPPLY, currency="*").xarray()


def test_shown_rows_are_all_that_is_read(lake):
    """Ten million million rows would take days."""
    endless = lake.sql("SELECT range AS n, '<b>' AS tag FROM range(10_000_000_000_000)")
    page = endless._repr_html_()
    assert page.count("<tr>") == 11 and "&lt;b&gt;" in page and "<b>" not in page
    assert "first 10 rows; more follow" in page and "version 1" in page
    assert repr(endless).splitlines()[-1] == "… more rows follow" and len(repr(endless).splitlines()) == 12
    shown = lake.metrics()._repr_html_()
    assert "max-height" in shown and all(len(html.unescape(cell)) <= 60 for cell in re.findall(r"<td[^>]*>([^<]*)</td>", shown))
    assert "more" not in repr(lake.points(SUPPLY)) and "3 rows" in lake.points(SUPPLY)._repr_html_()


def test_a_shown_panel_reads_its_first_decisions_alone(lake):
    days = lake.calendar("2024-01-01", "2025-01-01", "10 minutes", ["BTC"])
    panel = lake.panel(days, SUPPLY)
    rows, more = panel._head()
    assert more and [row[1] for row in rows] == [f"2024-01-01 0{n // 6}:{n % 6}0:00+00" for n in range(10)]
    plan = panel._connection.sql("EXPLAIN ANALYZE " + panel._preview).fetchall()[0][1]
    whole = panel._connection.sql("EXPLAIN ANALYZE " + panel._relation.sql_query()).fetchall()[0][1]
    assert "52,704" in whole and "52,704" not in plan


def test_parameters_frames_and_temporary_tables(lake):
    assert lake.sql("SELECT ? + ? AS n", [1, 2]).df()["n"].tolist() == [3]
    assert lake.sql("SELECT $n AS n, $at::VARCHAR AS at", {"n": None, "at": dt.date(2024, 1, 2)}).pl().rows() == [(None, "2024-01-02")]
    mine = pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime(["2024-03-04"], utc=True)})
    joined = f"SELECT v FROM pit_join('mine', '{SUPPLY}', '24h')"
    for frame in (mine, pl.from_pandas(mine), pa.Table.from_pandas(mine), lake.calendar("2024-03-04", "2024-03-05", "1 day", ["BTC"])):
        assert lake.sql(joined, frames={"mine": frame}).df()["v"].tolist() == [2]
    lake.sql("CREATE TEMP TABLE kept AS SELECT 7 AS n")
    assert lake.sql("FROM kept").df()["n"].tolist() == [7]
    assert lake.sql("CREATE TEMP TABLE one AS SELECT 1 AS n; SELECT n + 1 AS m FROM one").df()["m"].tolist() == [2]


def test_an_answer_as_decisions(lake):
    days = lake.calendar("2024-03-03", "2024-03-05", "1 day", ["BTC"])
    first = lake.panel(days, {"a": SUPPLY})
    both = lake.panel(first, {"b": SUPPLY}, latency="1d").df()
    assert both["a"].tolist() == [1, 2] and both["b"].isna().tolist() == [True, False] and both["b"][1] == 1
    assert lake.panel(lake.sql("SELECT 'BTC' AS asset, TIMESTAMP '2024-03-04' AS ts"), SUPPLY).df()[SUPPLY].tolist() == [2]


def test_status_is_one_row(lake):
    row = lake.status().df().iloc[0]
    assert (row["version"], row["series"], row["points"], row["failed_windows"]) == (1, 4, 12, 0)
    assert str(row["registry_since"]).startswith("2024-01-21")


def test_state_of_knowledge(small):
    with pitlake.open(small, as_of=dt.datetime(2024, 3, 3)) as then:
        assert then.points(SUPPLY).df()["v"].tolist() == [1]
        assert "as_of 2024-03-03" in repr(then) and "as_of" in then.points(SUPPLY)._repr_html_()
        assert len(then.universe("2024-08-01").df()) > 0
        with pytest.warns(pitlake.LakeWarning, match="registry is not known at this as_of: it is known since 2024-01-21T"):
            assert len(then.universe("2024-01-02").df()) == 0
        assert then.points(SUPPLY).df()["v"].tolist() == [1]
    zone = dt.timezone(dt.timedelta(hours=9))
    with pitlake.open(small, as_of=dt.datetime(2024, 3, 3, 9, 9, 59, tzinfo=zone)) as then:
        assert then.points(SUPPLY).df()["v"].tolist() == [1]
    with pitlake.open(small, observed_as_of="2024-03-31") as then, pytest.warns(pitlake.LakeWarning):
        assert len(then.points(SUPPLY).df()) == 0
    with pitlake.open(small, set={"mine": 7}, threads=1, memory="1GB") as then:
        assert then.sql("SELECT getvariable('mine') AS n").df()["n"].tolist() == [7]
        assert then.sql("SELECT current_setting('threads') AS n").df()["n"].tolist() == [1]


def test_decisions_beyond_what_is_settled(notebooks):
    """The lake was filled until the July of 2026; of what should be known later nothing is."""
    with pitlake.open(notebooks) as lake, warnings.catch_warnings():
        warnings.simplefilter("ignore", pitlake.LakeWarning)
        days = lake.sql("SELECT 'BTC' AS asset, unnest([TIMESTAMPTZ '2026-06-01 12:00:00Z', TIMESTAMPTZ '2030-01-01 00:00:00Z']) AS ts")
        for beyond, told in ((None, 2), ("value", 2), ("null", 1)):
            asked = {} if beyond is None else {"unresolved": beyond}
            for answer, column in ((lake.panel(days, {"v": SUPPLY}, **asked), "v"), (lake.pit_join(days, SUPPLY, **asked), "v"),
                                   (lake.window(days, SUPPLY, n=1, **asked), "t")):
                cells = answer.df()[column].tolist()
                assert [not pd.isna(cell) for cell in cells] == [True, True][:told] + [False] * (2 - told), (beyond, column)
                assert len(lake.notes) == told - 1 and (told == 1 or "1, from 2030-01-01T00:00:00Z on; `unresolved='null'`" in lake.notes[0])
        with pytest.raises(pitlake.LakeError, match='unresolved: expected value, null, got "nul"; did you mean `null`'):
            lake.panel(days, SUPPLY, unresolved="nul")


@pytest.mark.parametrize("resource", ["products", "venues"])
def test_a_history_that_had_not_begun(small, resource):
    with pitlake.open(small, as_of="2024-01-02") as then, pytest.warns(pitlake.LakeWarning, match="registry is not known at this as_of: it is known since 2024-01-21T"):
        assert len(then.history(resource).df()) == 0


@pytest.mark.parametrize(("query", "parameters", "note"), [
    ("SELECT count(*) AS n FROM points WHERE asset = 'BTX'", None, "'BTX' is no asset; did you mean 'BTC'?"),
    ("SELECT count(*) AS n FROM points WHERE asset = ?", ["BTX"], "'BTX' is no asset; did you mean 'BTC'?"),
    ("SELECT avg(v) AS n FROM points WHERE metric = $m AND t > '2030-01-01'", {"m": SUPPLY}, "is stored from 2024-03-01T00:00:00Z"),
    ("SELECT max(v) AS n FROM points WHERE \"interval\" = '1d'", None, "'points' is not stored at 1d; did you mean '24h'?"),
    ("WITH d AS (SELECT 'btc' AS asset, TIMESTAMPTZ '2024-03-04' AS ts) SELECT v FROM pit_join('d', ?, '24h')", [SUPPLY], "for asset 'btc'"),
    ("SELECT count(*) AS n FROM points WHERE metric = ? AND v < 0", [SUPPLY], None),
    ("SELECT 0 AS n", None, None),
    ("FROM resample('supply/current_pit', '24h', '1w', component := '/a')", None, "'supply/current_pit' has plain numbers: query it without #/a"),
    ("FROM resample('indicators/cost_basis_distribution_quantiles_pit#/no', '24h', '1w')", None, "has no part '/no'"),
])
def test_an_answer_of_one_row_that_tells_nothing(lake, query, parameters, note):
    for form in ("df", "pl", "arrow"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pitlake.LakeWarning)
            getattr(lake.sql(query, parameters), form)()
        assert (note in lake.notes[0] and len(lake.notes) == 1) if note else lake.notes == ()


def test_decisions_without_an_instant_are_noted(lake):
    """Also among others that are answered."""
    some = pd.DataFrame({"asset": ["BTC", "BTC"], "ts": pd.to_datetime(["2024-03-04", None], utc=True)})
    for answer in (lake.panel(some, SUPPLY), lake.pit_join(some, SUPPLY)):
        with pytest.warns(pitlake.LakeWarning, match="decisions without a ts: 1"):
            answer.df()


def test_resample_makes_coarser_points(lake):
    weeks = lake.resample(SUPPLY, "24h", "1w", "sum", "BTC", currency="usd", min_parts=3).df()
    assert weeks["v"].tolist() == [600] and weeks["interval"].tolist() == ["1w"] and weeks["parts"].tolist() == [3]
    same = lake.sql("FROM resample($m, '24h', '1w', 'sum', currency := 'usd', min_parts := 3)", {"m": SUPPLY}).df()
    assert same.equals(weeks)
    assert len(lake.resample(SUPPLY, "24h", "24h", "max", currency="native", since="2024-03-02", until=dt.date(2024, 3, 3))) == 1


def test_resample_answers_the_named_assets_alone(own, tmp_path):
    rows = [f"{asset},2024-03-{day:02},{day * size}" for asset, size in (("A", 1), ("B", 10)) for day in range(4, 11)]
    (tmp_path / "two.csv").write_text("\n".join(["asset,t,value", *rows]))
    done = command("import", tmp_path / "two.csv", "--as", "two", "--interval", "24h", "--data", own)
    assert done.returncode == 0, done.stderr
    with pitlake.open(own) as lake:
        for assets, sums in ((None, [["A", 49], ["B", 490]]), ("B", [["B", 490]]), (["A"], [["A", 49]]), (["B", "A"], [["A", 49], ["B", 490]])):
            assert lake.resample("own/two", "24h", "1w", "sum", assets).df()[["asset", "v"]].values.tolist() == sums


@pytest.mark.parametrize(("given", "note"), [
    ({"metric": "indicators/cost_basis_distribution_quantiles_pit#/no"}, "has no part '/no'"),
    ({"metric": SUPPLY, "assets": "btc", "currency": "native"}, "for asset 'btc'; did you mean 'BTC'?"),
])
def test_resample_without_values_is_noted(lake, given, note):
    with pytest.warns(pitlake.LakeWarning, match=note):
        lake.resample(from_interval="24h", to_interval="1w", **given).df()


@pytest.mark.parametrize(("given", "words"), [
    ({"from_interval": "1d"}, "from_interval: expected 10m, .*; did you mean `24h`"),
    ({"to_interval": "MS"}, "to_interval: expected .*; did you mean `1month`"),
    ({"agg": "avrage"}, "agg: expected mean, sum"),
    ({"min_parts": 0}, "resample: min_parts: expected how many parts"),
    ({"metric": "supply/curent_pit"}, "unknown metric supply/curent_pit; did you mean `supply/current_pit`"),
])
def test_resample_refuses_what_it_does_not_know(lake, given, words):
    with pytest.raises(pitlake.LakeError, match=words):
        lake.resample(**{"metric": SUPPLY, "from_interval": "24h", "to_interval": "1w", **given}).df()


def test_notes_are_those_of_the_last_answer(lake):
    with pytest.warns(pitlake.LakeWarning, match="did you mean 'BTC'") as caught:
        lake.points(SUPPLY, "btc").df()
    [one] = [one for one in caught if one.category is pitlake.LakeWarning]
    assert one.filename == __file__ and lake.notes == (str(one.message),)
    lake.points(SUPPLY).df()
    assert lake.notes == ()


def test_panel_is_that_of_the_command_line(notebooks, tmp_path):
    """Row for row, doubles by their 64 bits."""
    metrics = ["addresses/active_count_pit", "price_usd", "supply/current_pit", "indicators/sopr_adjusted_pit",
               "addresses/supply_distribution_relative_pit#/0.1-1"]
    for number, (flags, options) in enumerate([
        ([], {}),
        (["--latency", "15m", "--max-age", "2d", "--fields", "v,t,available_at"],
         {"latency": "15m", "max_age": "2d", "fields": ["v", "t", "available_at"]}),
        (["--skip-nulls", "--currency", "usd"], {"skip_nulls": True, "currency": "usd"}),
        (["--as-of", "2026-03-01"], {}),
        (["--as-of", "2026-03-01", "--unresolved", "null"], {"unresolved": "null"}),
    ]):
        out = tmp_path / f"{number}.parquet"
        done = command("panel", "--calendar", "2026-01-01,2026-07-01,1d", "--assets", "BTC,ETH,NONE", "--metrics", ",".join(metrics),
                       *flags, "--out", out, "--data", notebooks)
        assert done.returncode == 0, done.stderr
        with pitlake.open(notebooks, as_of="2026-03-01" if "--as-of" in flags else None) as lake, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            days = lake.calendar("2026-01-01", "2026-07-01", "1d", ["BTC", "ETH", "NONE"])
            ours = lake.panel(days, metrics, **options).arrow()
            # pyarrow before 17 cannot read this encoding of doubles.
            theirs = lake.sql(f"FROM read_parquet('{out}')").arrow()
        assert bits(theirs) == bits(ours), flags


def bits(table):
    """Every cell as text, doubles by their bytes; in the order of the columns of the decisions."""
    table = table.select(["asset", "ts", *[name for name in table.column_names if name not in ("asset", "ts")]])
    rows = table.to_pylist()
    assert len(rows) == 543
    return table.column_names, [[struct.pack(">d", cell) if isinstance(cell, float) else str(cell) for cell in row.values()] for row in rows]


def test_an_answer_knows_its_length_its_columns_and_its_first_rows(lake):
    answer = lake.points(SUPPLY)
    assert len(answer) == 3 and len(lake.points(SUPPLY, since="2024-03-02")) == 2 and answer
    assert answer["v"].tolist() == [1, 2, 3] and list(answer[["asset", "v"]].columns) == ["asset", "v"]
    assert answer.head(2).df()["v"].tolist() == [1, 2] and len(answer.head()) == 3
    assert [row.v for row in answer] == [1, 2, 3] and len(list(answer)) == 3
    empty = lake.points(SUPPLY, since="2024-04-01")
    assert len(empty) == 0 and empty, "an answer without rows is an answer"


@pytest.mark.parametrize(("ask", "words"), [
    (lambda answer: answer.to_pandas(), "has no to_pandas; take answer.df()"),
    (lambda answer: answer.to_polars, "take answer.pl()"),
    (lambda answer: answer.iloc[0], r"take answer.df\(\).iloc \(pandas\)"),
    (lambda answer: answer.v, r"take answer\['v'\]"),
    (lambda answer: answer[0], r"answer\[…\]: expected one of the columns metric, .*, got 0; rows are in .df\(\).iloc"),
    (lambda answer: answer["w"], "got 'w'"),
    (lambda answer: answer.head(0), "head: n: expected how many rows, 1 or more, got 0"),
])
def test_what_an_answer_does_not_have_is_refused_with_the_call_that_gives_it(lake, ask, words):
    with pytest.raises((AttributeError, pitlake.LakeError), match=words):
        ask(lake.points(SUPPLY))


def test_the_head_of_an_answer_without_rows_is_noted(lake):
    with pytest.warns(pitlake.LakeWarning, match="did you mean 'BTC'"):
        assert len(lake.points(SUPPLY, "btc").head().df()) == 0
