"""What is written into SQL: instants, names, members and the columns of a wide panel, without a lake."""

import time
from datetime import date, datetime, timedelta, timezone

import duckdb
import pytest

from pitlake.errors import LakeError
from pitlake.frames import check_columns
from pitlake.queries import FEW, KEY, Options, members_sql, panel_sql
from pitlake.text import listed, moment_text, quote, quote_name, setting_text


@pytest.fixture
def elsewhere(monkeypatch):
    """A machine in another zone."""
    with monkeypatch.context() as own:
        own.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_an_instant_without_a_zone_is_utc_whatever_the_zone_of_the_machine():
    assert moment_text(datetime(2024, 3, 1, 12, 0, 0, 42)) == "2024-03-01T12:00:00.000042Z"
    assert moment_text(datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))) == "2024-03-01T10:00:00.000000Z"
    assert moment_text(date(2024, 3, 1)) == "2024-03-01"
    assert moment_text(" 2024-03-01 ") == "2024-03-01"


def test_quotes_within_are_doubled():
    assert (quote("it's"), quote_name('a"b'), listed("x'y"), listed(["a", "b"])) == ("'it''s'", '"a""b"', "'x''y'", "'a', 'b'")


@pytest.mark.parametrize(("names", "said"), [
    (["asset", "ts", "v", "V"], "'v' twice"),
    (["asset", "TS", "ts"], "'TS' twice"),
    (["asset", "v"], "columns asset and ts"),
    ([], "got none"),
])
def test_columns_are_told_apart_without_regard_to_case(names, said):
    with pytest.raises(LakeError, match=said):
        check_columns(names, ["asset", "ts"])


def test_members_stand_by_moment_product_and_asset_and_a_link_ends_before_its_end():
    with duckdb.connect() as own:
        own.execute("SET TimeZone = 'UTC'")
        own.execute("CREATE TABLE links AS FROM (VALUES ('b', 'X2'), ('b', 'X1'), ('a', 'Z')) AS l(product_id, metric_asset), "
                    "(SELECT TIMESTAMPTZ '-infinity' AS valid_from, TIMESTAMPTZ '2024-03-02' AS valid_to)")
        own.execute("CREATE MACRO pit_universe(moments, condition) AS TABLE "
                    "SELECT m.*, p.product_id FROM query_table(moments) AS m, (VALUES ('c'), ('b'), ('a')) AS p(product_id)")
        moments = f"SELECT * FROM (VALUES (2, TIMESTAMPTZ '2024-03-02'), (1, TIMESTAMPTZ '2024-03-01')) AS d({KEY}, ts)"
        rows = own.execute(f"SELECT day(ts), product_id, asset FROM ({members_sql(moments, 'true')}) ORDER BY {KEY}").fetchall()
    assert rows == [(1, "a", "Z"), (1, "b", "X1"), (1, "b", "X2"), (1, "c", None), (2, "a", None), (2, "b", None), (2, "c", None)]


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 3 * FEW + 5])
def test_each_column_of_a_panel_tells_its_own_metric_however_many_there_are(count):
    named = {f"c{n}": f"m/{n}" for n in range(count)}
    with duckdb.connect() as own:
        own.execute(f"CREATE TABLE decided AS SELECT n AS {KEY}, 'A' || n AS asset, 0 AS ts FROM range(3) AS r(n)")
        own.execute("CREATE MACRO pit_long(decisions, metrics, span) AS TABLE "
                    f"SELECT d.{KEY}, m AS metric, d.{KEY} * 1000 + CAST(m[3:] AS INTEGER) AS v, NULL AS t "
                    f"FROM query_table(decisions) AS d, (SELECT unnest(metrics) AS m)")
        rows = own.execute(panel_sql("decided", named, "24h", ["v"], Options())).fetchall()
    assert [row[2:] for row in rows] == [tuple(d * 1000 + n for n in range(count)) for d in range(3)]


def test_the_module_runs_the_command_line_and_says_so_where_it_is_missing(monkeypatch, capsys):
    from pitlake.__main__ import main
    monkeypatch.setattr("sys.argv", ["pitlake", "catalog", "list", "--json"])
    assert main() == 0
    monkeypatch.delenv("PITLAKE_COMMAND")
    monkeypatch.setenv("PATH", "")
    assert main() == 2
    assert "the command line `pitlake` is not on the path" in capsys.readouterr().err


def test_a_variable_of_a_session_reaches_a_command_with_its_type():
    written = {"5": "'5'", 5: "5", 1.0: "1", 0.1: "0.1", 1e-5: "0.00001", 1e-7: "1e-7", 1e21: "1e+21", "it's": "'it''s'"}
    assert {value: setting_text(value) for value in written} == written
    assert [setting_text(True), setting_text(False)] == ["true", "false"]
