"""What stands between a question on the side and the lake: one SELECT that writes nothing, and notes in Python's words."""

import duckdb
import pytest

import pitlake
from pitlake.doubts import _words, one_select, read_only

SUPPLY = "supply/current_pit"


@pytest.fixture
def own():
    with duckdb.connect() as connection:
        connection.execute("CREATE SEQUENCE s")
        yield connection


@pytest.mark.parametrize(("text", "is_one"), [
    ("SELECT 1", True),
    ("SELECT 1;", True),
    ("SELECT 1; SELECT 2", False),
    ("CREATE TABLE a AS SELECT 1", False),
    ("", False),
])
def test_one_select_is_exactly_one(own, text, is_one):
    assert (one_select(own, text) is not None) == is_one


def test_a_question_on_the_side_writes_to_no_database(own):
    query = one_select(own, "SELECT nextval('s')")
    with pytest.raises(duckdb.Error, match="read-only"):
        read_only(own, query, [])
    # The connection is free for the next question.
    assert read_only(own, one_select(own, "SELECT $1 + 1"), [1]) == [(2,)]
    assert own.execute("SELECT nextval('s')").fetchall() == [(1,)]


@pytest.mark.parametrize(("words", "spelt"), [
    ("{option registry_backfill=true} helps", "`registry_backfill=True` helps"),
    ("{option unresolved=null} helps", "`unresolved='null'` helps"),
    ("{option universe} of {subject}", "universe of it"),
])
def test_a_note_spells_an_option_as_python_does(words, spelt):
    assert _words("it", {}, [], [], words) == spelt


def test_counts_of_several_rows_that_are_0_are_no_reason_for_notes(lake):
    lake.sql("SELECT v, count(*) FILTER (asset = 'BTX') AS n FROM points WHERE metric = $1 GROUP BY v", [SUPPLY]).df()
    assert lake.notes == ()


def test_a_note_looks_past_as_of(small):
    with pitlake.open(small, as_of="2024-03-01") as then, pytest.warns(pitlake.LakeWarning, match="was known before 2024-03-02"):
        assert len(then.points(SUPPLY).df()) == 0
