"""What cannot be answered ends in one exception, with the fix in its text."""

import datetime as dt
import gzip
import json
import re
import warnings

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import ROOT

import pitlake
from pitlake.errors import translate_errors
from pitlake.fence import refuse_files

SUPPLY = "supply/current_pit"
ONE = pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime(["2024-03-04"], utc=True)})


def refused(ask) -> str:
    with pytest.raises(pitlake.LakeError) as caught:
        ask()
    return str(caught.value)


def test_no_lake(tmp_path, own):
    assert "expected the folder of a lake, got no such folder" in refused(lambda: pitlake.open(tmp_path / "none"))
    (tmp_path / "bare").mkdir()
    assert "run `pitlake fetch`" in refused(lambda: pitlake.open(tmp_path / "bare"))
    (own / "lake.duckdb").rename(own / "aside")
    assert "run `pitlake views`" in refused(lambda: pitlake.open(own))
    (own / "lake.duckdb").write_bytes(b"no database at all, but long enough to be read as the head of one" * 100)
    assert "that DuckDB can open" in refused(lambda: pitlake.open(own))
    assert list((own / "locks").glob("pin-*")) == [], "a lake that does not open is not pinned"
    (own / "aside").replace(own / "lake.duckdb")
    (own / "lake.sql").unlink()
    moved = own.rename(own.parent / "moved")
    assert "run `pitlake views`" in refused(lambda: pitlake.open(moved))


@pytest.mark.parametrize(("limits", "said"), [
    ({"memory": "lots"}, 'memory: expected a size such as 1GB, got "lots"'),
    ({"threads": 0}, "threads: expected a number of threads, 1 or more, got 0"),
    ({"threads": "two"}, 'threads: expected a number of threads, 1 or more, got "two"'),
    ({"as_of": "soon"}, 'as_of: expected an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC, got "soon"'),
])
def test_a_lake_that_does_not_open_leaves_nothing_open(own, monkeypatch, limits, said):
    opened, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *given, **more: opened.append(connect(*given, **more)) or opened[-1])
    assert refused(lambda: pitlake.open(own, **limits)) == said
    for one in opened:
        with pytest.raises(duckdb.ConnectionException, match="closed"):
            one.execute("SELECT 1")
    assert opened and list((own / "locks").glob("pin-*")) == []


def test_other_layouts(own):
    assert pitlake.lake.LAYOUT == int((ROOT / "src/lake/ledger/entry.ts").read_text().split("layoutNumber = ")[1].split("\n")[0])
    newest = own / "journal" / "0000000002.json.gz"
    newest.write_bytes(gzip.compress(b'{"schema_version": 99, "version": 2}'))
    said = refused(lambda: pitlake.open(own))
    assert "layout 99" in said and "run `pip install --upgrade ./python` in a newer checkout" in said
    for entry in (own / "journal").iterdir():
        entry.unlink()
    (own / "journal" / "0000000001.json").write_text('{"schema_version": 5, "version": 1}')
    said = refused(lambda: pitlake.open(own))
    assert "layout 5" in said and "made by an unreleased version of pitlake: fetch the data again" in said


def test_metrics_and_options(lake):
    for ask in (lambda: lake.panel(ONE, "supply/curent_pit"), lambda: lake.pit_join(ONE, "supply/curent_pit"),
                lambda: lake.window(ONE, "supply/curent_pit", n=2)):
        assert "SQL: unknown metric supply/curent_pit; did you mean `supply/current_pit` or" in refused(ask)
    assert "metrics: expected paths of metrics, each metric once, got supply" in refused(lambda: lake.panel(ONE, [SUPPLY, SUPPLY]))
    assert "each metric once, got nothing" in refused(lambda: lake.panel(ONE, []))
    assert "interval: expected 10m, 1h, 24h, 1w, 1month, 3month, got \"2h\"" in refused(lambda: lake.panel(ONE, SUPPLY, "2h"))
    assert "has no interval 10m: expected 24h" in refused(lambda: lake.panel(ONE, "indicators/accumulation_trend_score_pit", "10m").df())
    for options, said in (("'1d'", "did you mean `24h`?"), ("'24h', latency := 15", "expected a time such as '15 minutes', '1 hour', '1 day' or '1 month', got '15'")):
        assert said in refused(lambda: lake.sql(f"FROM pit_join('d', '{SUPPLY}', {options})", frames={"d": ONE}).df())
    for time in ("soon", 15, "15", 1.5, True, "1 day 3", "1 month"):
        for ask in (lambda: lake.panel(ONE, SUPPLY, latency=time), lambda: lake.pit_join(ONE, SUPPLY, latency=time),
                    lambda: lake.window(ONE, SUPPLY, n=2, latency=time)):
            assert f"latency: expected a time such as 15m or 2d, got {json.dumps(time)}" in refused(ask)
        assert "max_age: expected a time such as 15m or 2d" in refused(lambda: lake.panel(ONE, SUPPLY, max_age=time))
        if time != "1 month":
            assert "step: expected a time such as 15m or 2d" in refused(lambda: lake.calendar("2024-01-01", "2024-02-01", time))
    for time, meant in (("15min", "15m"), ("1D", "1d"), ("2 hrs", "2h")):
        assert refused(lambda: lake.panel(ONE, SUPPLY, latency=time)).endswith(f'got "{time}"; did you mean `{meant}`?')
    for step, meant in (("15min", "15m"), ("MS", "1month"), ("ME", "1month"), ("2mo", "2month"), ("2Q", "6month")):
        assert refused(lambda: lake.calendar("2024-01-01", "2024-02-01", step)).endswith(f'got "{step}"; did you mean `{meant}`?')
    for time in (0, "0", "0m", "0 minutes", dt.timedelta(0)):
        assert lake.panel(ONE, SUPPLY, latency=time).df()[SUPPLY].tolist() == [2]
    for interval, meant in (("1d", "24h"), ("daily", "24h"), ("60m", "1h"), ("7 days", "1w"), ("1mo", "1month"), ("10 min", "10m"),
                            ("MS", "1month"), ("ME", "1month"), ("QS", "3month"), ("1D", "24h"), ("15min", "10m")):
        assert f'got "{interval}"; did you mean `{meant}`?' in refused(lambda: lake.panel(ONE, SUPPLY, interval))
    assert refused(lambda: lake.panel(ONE, SUPPLY, "1m")).endswith('got "1m"; did you mean `10m`?')
    assert "fields: expected v, o, t, available_at, age, got \"w\"" in refused(lambda: lake.panel(ONE, SUPPLY, fields=["w"]))
    for n in (0, "3", True, 1.5):
        assert "window: n: expected" in refused(lambda: lake.window(ONE, SUPPLY, n=n))
    assert "did you mean 'products'?" in refused(lambda: lake.history("product"))
    assert "as_of: expected an instant such as" in refused(lambda: pitlake.open(lake.folder, as_of="soon"))
    assert "backfill: expected rule, strict, got \"all\"" in refused(lambda: pitlake.open(lake.folder, backfill="all"))
    assert "price_usd alone" in refused(lambda: lake.points([SUPPLY, "price_usd"]))
    assert "assets: expected names, at least one, got []" in refused(lambda: lake.points(SUPPLY, []))
    assert "assets: expected names, at least one, got []" in refused(lambda: lake.calendar("2024-03-01", "2024-03-02", assets=[]))
    reversed_ = refused(lambda: lake.calendar("2024-03-06", dt.datetime(2024, 3, 3)))
    assert "calendar: expected since before until, got 2024-03-06 and 2024-03-03" in reversed_
    assert len(lake.calendar("2024-03-06", "2024-03-06T00:00:00Z").df()) == 0
    assert 'since: expected an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC, got "soon"' in refused(lambda: lake.calendar("soon", "2024-03-06"))


def test_sql(lake):
    assert 'column "nope"' in refused(lambda: lake.sql("SELECT nope FROM points"))
    assert "a frame is lent by its name: frames={'name': frame}" in refused(lambda: lake.sql("FROM ONE"))
    assert "frames={" in refused(lambda: lake.sql(f"FROM pit_join('ONE', '{SUPPLY}', '24h')"))
    assert "CREATE TEMP TABLE is allowed" in refused(lambda: lake.sql("CREATE TABLE mine AS SELECT 1"))
    assert "pitlake.open(…, as_of=…)" in refused(lambda: lake.sql("SELECT 1; set variable AS_OF = '2024-01-01'"))
    assert lake.sql("SELECT 'SET VARIABLE as_of' AS said").df()["said"].tolist() == ["SET VARIABLE as_of"]
    lake.close()
    assert "closed" in refused(lambda: lake.sql("SELECT 1"))


FUTURE = "SET VARIABLE as_of = '2030-01-01'"
NOW = "SET VARIABLE as_of = '2024-03-03T12:00:00'"


@pytest.mark.parametrize("query", [
    f"-- a comment\n{FUTURE}; SELECT 1",
    "SET /* a /* nested */ comment */ VARIABLE as_of = '2030-01-01'",
    "SET VARIABLE\n--\n\"AS_OF\" = '2030-01-01'; SELECT 1",
    "RESET VARIABLE /**/ as_of",
    f"{FUTURE}; CREATE TEMP TABLE future AS FROM points; {NOW}; FROM future",
    f"{FUTURE}; SELECT nope",
    f"BEGIN; {FUTURE}; COMMIT",
    "CREATE TEMP MACRO getvariable(x) AS NULL",
    "CREATE TEMP MACRO getvariable() AS NULL; SELECT 1",
])
def test_a_query_cannot_move_a_lake_to_another_state_of_knowledge(small, query):
    with pitlake.open(small, as_of="2024-03-03T12:00:00") as lake:
        supply = f"SELECT v FROM points WHERE metric = '{SUPPLY}' AND currency = 'native' ORDER BY t"
        earlier = lake.sql(supply)
        assert "expected a query that leaves as_of alone; open the lake in that state: pitlake.open(…, as_of=…)" in refused(lambda: lake.sql(query))
        for answer in (earlier, lake.sql(supply), lake.sql(f"SELECT 1; {supply}"), lake.sql(f"-- a comment\n{NOW}; {supply}")):
            assert answer.df()["v"].tolist() == [1, 2]
        assert "does not exist" in refused(lambda: lake.sql("FROM future"))


def test_a_lake_without_as_of_cannot_be_given_one_by_a_query(lake):
    assert "leaves as_of alone" in refused(lambda: lake.sql(f"-- a comment\n{FUTURE}; SELECT 1"))
    assert "leaves backfill alone" in refused(lambda: lake.sql("SET VARIABLE /**/ backfill = 'rule'"))
    assert lake.sql("SELECT getvariable('as_of') AS a, getvariable('backfill') AS b").df().isna().all(axis=None)


def test_a_script_sets_variables_of_its_own(lake):
    answer = lake.sql("SET VARIABLE days = 2; CREATE TEMP TABLE d AS SELECT getvariable('days') AS n; SELECT n + $1 AS n FROM d", [5])
    assert answer.df()["n"].tolist() == [7] == lake.sql("SELECT getvariable('days') + 5 AS n").df()["n"].tolist()
    assert lake.sql("SELECT 1; PIVOT d ON n USING sum(n)").columns == ["2"]


def test_a_script_of_a_file_is_refused(lake, tmp_path):
    for script in (f"{FUTURE};", f"{FUTURE}; CREATE TEMP TABLE future AS FROM points; RESET VARIABLE as_of;"):
        (tmp_path / "schema.sql").write_text(script)
        (tmp_path / "load.sql").write_text("")
        # DuckDB 1.5 reads the file itself, and stumbles over most.
        assert re.search("got IMPORT|leaves as_of alone|internal error", refused(lambda: lake.sql(f"/* a /* b */ */ IMPORT DATABASE '{tmp_path}'")))
        assert lake.sql("SELECT getvariable('as_of') AS at").df()["at"].isna().all()
        assert "does not exist" in refused(lambda: lake.sql("FROM future"))


@pytest.mark.parametrize("condition", [
    f"true) LIMIT 0; {FUTURE}; SELECT 1 FROM universe WHERE (true",
    "true) UNION ALL SELECT 'x' WHERE (true",
    "true), (true",
    "true) AND (true)) LIMIT 0 --",
    "true)\0",
])
def test_a_condition_on_the_universe_is_one_expression(small, condition):
    with pitlake.open(small, registry_backfill=True) as lake:
        said = refused(lambda: lake.panel(ONE[["ts"]], SUPPLY, universe=condition))
        assert said.startswith("universe: expected one condition, got ") or "Parser Error" in said or "syntax error" in said
        assert lake.sql("SELECT getvariable('as_of') AS at").df()["at"].isna().all()
        assert 'universe: expected a text, got 1' in refused(lambda: lake.panel(ONE[["ts"]], SUPPLY, universe=1))
        assert "universe: expected columns with other names than those of metrics, got status" in refused(
            lambda: lake.panel(ONE[["ts"]], {"Status": SUPPLY}, universe="true"))
        for one in ("true -- a comment", "status = 'active' OR (SELECT true)", "product_id IN ('x', ')')"):
            assert SUPPLY in lake.panel(ONE[["ts"]], SUPPLY, universe=one).columns


@pytest.mark.parametrize("query", [f"SELECT 1; {FUTURE}", FUTURE, "SELECT 1; SELECT 2", "CREATE TEMP TABLE x AS FROM given"])
def test_a_query_over_an_answer_is_one_select(lake, query):
    assert "over: query: expected one SELECT, got " in refused(lambda: lake.points(SUPPLY).over(query, ["asset"]))


def test_a_negative_time_is_refused(lake):
    back = dt.timedelta(hours=-1)
    for ask in (lambda: lake.panel(ONE, SUPPLY, latency=back), lambda: lake.pit_join(ONE, SUPPLY, max_age=back),
                lambda: lake.window(ONE, SUPPLY, n=2, back=back), lambda: lake.calendar("2024-01-01", "2024-02-01", back)):
        assert re.match('(latency|max_age|back|step): expected a .*, got "-1 day, 23:00:00"', refused(ask))
    for digits in ("1٣ months", "٣ d"):
        assert "step: expected a time such as 15m or 2d" in refused(lambda: lake.calendar("2024-01-01", "2024-02-01", digits))


@pytest.mark.parametrize(("given", "said"), [
    ({"backfil": "rule"}, "set: backfil: expected as_of, .*, or a name that a query reads with getvariable; did you mean `backfill`"),
    ({"BACKFILL": "all"}, 'backfill: expected rule, strict, got "all"'),
    ({"registry_backfill": "maybe"}, 'registry_backfill: expected true or false, got "maybe"'),
    ({"AS_OF": "soon"}, "as_of: expected an instant such as"),
])
def test_variables_that_a_lake_does_not_know_are_refused(small, given, said):
    assert re.match(said, refused(lambda: pitlake.open(small, set=given)))


def test_a_variable_of_the_lake_can_be_spelt_in_capitals(small):
    with pitlake.open(small, set={"AS_OF": dt.date(2024, 3, 3), "Days": 5}) as lake:
        assert lake.points(SUPPLY).df()["v"].tolist() == [1]
        assert lake.sql("SELECT getvariable('days') AS n").df()["n"].tolist() == [5]


def test_naive_instants_are_utc_and_said_once(lake):
    with pytest.warns(pitlake.LakeWarning, match="ts has no zone, it is taken as UTC") as caught:
        for frame in (naive(ONE), pl.from_pandas(naive(ONE)), pa.Table.from_pandas(naive(ONE)), naive(ONE).set_index("ts")):
            answer = lake.panel(frame, SUPPLY).df()
            assert answer[SUPPLY].tolist() == [2] and answer["ts"].tolist() == ONE["ts"].tolist()
    [one] = [one for one in caught if one.category is pitlake.LakeWarning]
    assert one.filename == __file__


def naive(frame):
    return frame.assign(ts=frame["ts"].dt.tz_localize(None))


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "+05:30"])
def test_other_zones_are_the_same_instants(lake, zone):
    instants = pd.Series(pd.to_datetime(["2024-03-04 00:09:59", "2024-03-04 00:10:00"], utc=True))
    frame = pd.DataFrame({"asset": "BTC", "ts": instants.dt.tz_convert(zone)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", pitlake.LakeWarning)
        for given in (frame, frame.set_index("ts"), pl.from_pandas(frame)) if zone != "+05:30" else (frame, frame.set_index("ts")):
            answer = lake.panel(given, SUPPLY).df()
            assert answer[SUPPLY].tolist() == [2, 3] and answer["ts"].tolist() == instants.tolist()
            assert str(answer["ts"].dt.tz) == "UTC"


def test_mixed_zones(lake):
    tokyo, york = pd.Timestamp("2024-03-04 09:10", tz="Asia/Tokyo"), pd.Timestamp("2024-03-03 19:09:59", tz="America/New_York")
    mixed = pd.DataFrame({"asset": "BTC", "ts": pd.Series([tokyo, york], dtype=object)})
    assert lake.panel(mixed, SUPPLY).df()[SUPPLY].tolist() == [3, 2]
    texts = pd.DataFrame({"asset": "BTC", "ts": ["2024-03-04T09:10:00+09:00", "2024-03-04T00:09:59Z", "2024-03-04 00:10:00"]})
    assert lake.panel(texts, SUPPLY).df()[SUPPLY].tolist() == [3, 2, 3]
    both = pd.DataFrame({"asset": "BTC", "ts": pd.Series([tokyo, pd.Timestamp("2024-03-04")], dtype=object)})
    said = refused(lambda: lake.panel(both, SUPPLY))
    assert "both in one column" in said and "pandas.to_datetime(…, utc=True)" in said


def test_columns(lake):
    twice = pd.concat([ONE, ONE[["ts"]]], axis=1)
    assert "expected each column once, got 'ts' twice; drop or rename" in refused(lambda: lake.panel(twice, SUPPLY))
    assert "twice" in refused(lambda: lake.panel(ONE.assign(TS=1), SUPPLY))
    assert "rename it" in refused(lambda: lake.panel(ONE.assign(x=1), {"X": SUPPLY}))
    assert "rename it" in refused(lambda: lake.pit_join(ONE.assign(v=1), SUPPLY))
    assert "decisions: expected columns asset and ts, got ts" in refused(lambda: lake.panel(ONE[["ts"]], SUPPLY))
    assert "pandas.DataFrame(…) makes one" in refused(lambda: lake.panel([{"asset": "BTC"}], SUPPLY))
    assert "columns of several levels" in refused(lambda: lake.panel(pd.concat({"a": ONE}, axis=1), SUPPLY))
    numbers = ONE.assign(ts=[1709510400])
    assert "unit='s'" in refused(lambda: lake.panel(numbers, SUPPLY))


def test_frames_of_no_rows(lake):
    empty = [ONE.head(0), pd.DataFrame({"asset": [], "ts": []}), pl.from_pandas(ONE).head(0), pl.DataFrame({"asset": [], "ts": []}),
             pa.Table.from_pandas(ONE).slice(0, 0), pd.DataFrame({"asset": pd.Series(dtype=str), "ts": pd.Series(dtype=object)})]
    for frame in empty:
        for answer in (lake.panel(frame, {"x": SUPPLY}), lake.pit_join(frame, SUPPLY), lake.window(frame, SUPPLY, n=3)):
            got = answer.df()
            assert len(got) == 0 and list(got.columns)[:2] == ["asset", "ts"] and len(got.columns) > 2


@pytest.mark.parametrize("query, got", [
    ("SELECT * FROM read_parquet('x.parquet')", "read_parquet()"),
    ('SELECT * FROM "READ_CSV"(\'x\')', "read_csv()"),
    ("SELECT * FROM 'x.parquet'", "the file 'x.parquet'"),
    ('WITH a AS (SELECT * FROM points, "data/x.json" AS b) FROM a', "the file 'data/x.json'"),
    ("CREATE TEMP TABLE x AS SELECT * FROM glob('*')", "glob()"),
    ("CREATE TEMP MACRO x(f) AS TABLE SELECT * FROM parquet_scan(f)", "parquet_scan()"),
    ("PIVOT 'x.csv' ON asset", "the file 'x.csv'"),
    ("SELECT 1; SELECT * FROM query('FROM x')", "query()"),
    ("ATTACH 'x.db' AS x", "ATTACH"),
    ("COPY (SELECT 1) TO 'x'", "COPY"),
    ("WITH a AS (COPY (SELECT 1) TO 'x.csv') FROM a", "COPY in a WITH"),
    ("WITH a AS MATERIALIZED (/* ) */ copy points TO 'x.csv') FROM points", "COPY in a WITH"),
    ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) FROM a", "INSERT in a WITH"),
    ("SELECT * FROM (WITH a AS (DELETE FROM t RETURNING *) FROM a)", "DELETE in a WITH"),
    ("CREATE TEMP TABLE x AS WITH a AS (COPY (SELECT 1) TO 'x.csv') SELECT 1", "COPY in a WITH"),
    ("CREATE TEMP MACRO x() AS TABLE WITH a AS (COPY (SELECT 1) TO 'x.csv') SELECT 1", "COPY in a WITH"),
    ("WITH a AS NOT MATERIALIZED(COPY(SELECT 1) TO 'x.csv') SELECT 1", "COPY in a WITH"),
    ("SELECT (WITH a AS (INSERT INTO t VALUES (1) RETURNING *) FROM a)", "INSERT in a WITH"),
    ("INSERT INTO t WITH a AS (UPDATE u SET n = 1 RETURNING *) FROM a", "UPDATE in a WITH"),
    ("SELECT '--', * FROM read_parquet('x.parquet')", "read_parquet()"),
    ("SELECT E'\\'--', $a$ /* $a$, \"/*\" FROM read_parquet('x.parquet')", "read_parquet()"),
])
def test_sql_that_reads_files_is_refused_where_it_would_hide_a_leak(lake, query, got):
    with pytest.raises(pitlake.LakeError, match=re.escape(f"got {got}; what files hold is not cut")):
        refuse_files(lake._open().session, query)


@pytest.mark.parametrize("query", [
    "SELECT 'read_parquet(x)' AS v FROM points WHERE asset = 'x.parquet' -- FROM 'x.csv'",
    "CREATE TEMP TABLE x AS SELECT * FROM pit_join('d', 'supply/current_pit', '24h')",
    "SET VARIABLE mine = 'a.b'; FROM history.products",
    "SELECT extract(year FROM '2024-01-01'::DATE), substring(asset FROM 'B/C') FROM points",
    "PIVOT points ON asset USING max(v)",
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT * FROM a UNION VALUES (7) -- AS (COPY t TO 'x')",
    "CREATE TEMP MACRO x(copy, update) AS (copy + update)",
])
def test_other_sql_is_not(lake, query):
    refuse_files(lake._open().session, query)


def test_too_large(small):
    with pitlake.open(small, memory="60MB", threads=1) as lake:
        large = "SELECT list(i) FROM range(30000000) AS r (i)"
        for ask in (lambda: lake.sql(large).df(), lambda: lake.sql(large).arrow(), lambda: lake.sql(large).pl()):
            assert refused(ask) == ("SQL: more memory than it may take; query less data at once, or raise it: "
                                    "pitlake.open(…, memory=…)")
        lake.sql("SET max_temp_directory_size = '1MB'")
        assert refused(lambda: lake.sql("SELECT count(DISTINCT hash(i)) FROM range(9000000) AS r (i)").df()) == (
            "SQL: more disk than it may take; query less data at once, or leave it more of the disk")
        assert lake.sql("SELECT 1 AS n").df()["n"].tolist() == [1]


@pytest.mark.parametrize(("kind", "words", "said"), [
    (duckdb.InternalException, "INTERNAL Error: Failed to bind\n\nStack Trace:\n\n/opt/x.so(+0x1) [0x7f]",
     "a query that DuckDB can run, got an internal error of DuckDB; write it in another way"),
    (duckdb.FatalException, "FATAL Error: Failed: database has been invalidated because of /opt/x.so [0x7f]",
     "a query that DuckDB can run, got an internal error of DuckDB; write it in another way, and call lake.refresh() first: "
     "DuckDB answers nothing more until then"),
    (duckdb.BinderException, "Binder Error: Max expression depth limit of 1000 exceeded. Use \"SET max_expression_depth TO x\"",
     "a query that is nested less deeply, got one too deep to read"),
])
def test_internal_errors(kind, words, said):
    def ask():
        with translate_errors(lambda word: []):
            raise kind(words)
    assert refused(ask) == f"SQL: expected {said}"


def test_a_column_of_dates_and_times_is_not_imported(own):
    known = [dt.date(2024, 3, 4), dt.datetime(2024, 3, 5, 8)]
    frame = pd.DataFrame({"asset": "BTC", "t": ["2024-03-01", "2024-03-02"], "value": 1.0, "known": pd.Series(known, dtype=object)})
    with pitlake.open(own) as lake:
        message = refused(lambda: lake.import_frame(frame, "mixed", available_at="known"))
    assert message.startswith("column known: expected dates alone, or times alone, got both")
