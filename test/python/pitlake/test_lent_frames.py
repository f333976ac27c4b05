"""Frames that a call lends to its query: each call sees its own, and none hides what the lake has."""

import pandas as pd
import polars as pl
import pytest
from IPython.core.interactiveshell import InteractiveShell

import pitlake

SUPPLY = "supply/current_pit"
JOINED = f"SELECT v FROM pit_join('mine', '{SUPPLY}', '24h')"


def decisions(day):
    return pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime([f"2024-03-0{day}"], utc=True)})


FORMS = {
    "df": lambda answer: answer.df()["v"].tolist(),
    "pl": lambda answer: answer.pl()["v"].to_list(),
    "arrow": lambda answer: answer.arrow()["v"].to_pylist(),
    "shown rows": lambda answer: [float(line) for line in repr(answer).splitlines()[1:]],
    "a query over it": lambda answer: answer.over("SELECT v FROM given", ["v"]).df()["v"].tolist(),
    "its head": lambda answer: answer.head(1).df()["v"].tolist(),
    "a column": lambda answer: answer["v"].tolist(),
    "its rows": lambda answer: [row.v for row in answer],
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_keeps_its_frame_when_a_later_call_lends_another_by_that_name(lake, form):
    first = lake.sql(JOINED, frames={"mine": decisions(4)})
    second = lake.sql(JOINED, frames={"mine": pl.from_pandas(decisions(3))})
    lake.sql("SELECT 1", frames={"mine": pd.DataFrame({"x": [1]})})
    assert [FORMS[form](first), FORMS[form](second), FORMS[form](first)] == [[2], [1], [2]]


def test_a_lent_frame_is_unknown_to_the_next_call(lake):
    lake.sql("FROM mine", frames={"mine": decisions(4)}).df()
    with pytest.raises(pitlake.LakeError, match="Table with name mine does not exist.*frames="):
        lake.sql("FROM mine")


def test_a_temporary_table_made_of_a_lent_frame_stays(lake):
    lake.sql("CREATE TEMP TABLE taken AS FROM mine", frames={"mine": decisions(4)})
    assert len(lake.sql("FROM taken", frames={"mine": decisions(3)})) == 1


def test_notes_of_an_answer_read_the_frame_that_it_was_lent(lake):
    strange = lake.sql(JOINED, frames={"mine": decisions(4).assign(asset="btc")})
    lake.sql("SELECT 1", frames={"mine": decisions(4)})
    with pytest.warns(pitlake.LakeWarning, match="for asset 'btc'"):
        strange.df()


@pytest.mark.parametrize("name", ["points", "POINTS", "universe", "lake_info", "kept", "_pit_answer", "", 3])
def test_a_name_that_the_lake_has_is_refused(lake, name):
    lake.sql("CREATE TEMP TABLE kept AS SELECT 7 AS n")
    before = lake.sql("SELECT count(*) AS n FROM points").df()["n"].tolist()
    with pytest.raises(pitlake.LakeError, match="frames: expected (names that the lake does not have|a name for each frame), got"):
        lake.sql("SELECT 1 AS n", frames={"other": decisions(4), name: decisions(4)})
    assert lake.sql("SELECT count(*) AS n FROM points").df()["n"].tolist() == before == [12]
    assert lake.sql("FROM kept").df()["n"].tolist() == [7]


@pytest.mark.parametrize("name", ["frame", "frames", "query", "library"])
def test_variables_of_the_package_are_no_tables(lake, name):
    with pytest.raises(pitlake.LakeError, match="does not exist"):
        lake.sql(f"FROM {name}", frames={"mine": decisions(4)}).df()


@pytest.mark.parametrize(("cell", "refused"), [
    ("SELECT count(*) AS n FROM points", True),
    ("SELECT count(*) AS n FROM versions JOIN points ON true", True),
    ("SELECT count(*) AS n FROM pit_join('points', 'supply/current_pit', '24h')", True),
    ("SELECT points AS n FROM status_row", False),
])
def test_a_cell_refuses_a_frame_of_the_notebook_with_the_name_of_a_view_that_it_reads(lake, cell, refused):
    shell = InteractiveShell.instance()
    shell.reset()
    if "pitlake" not in shell.extension_manager.loaded:
        shell.run_line_magic("load_ext", "pitlake")
    shell.push({"lake": lake, "points": decisions(4), "status_row": pd.DataFrame({"points": [12]})})
    if refused:
        with pytest.raises(pitlake.LakeError, match="names that the lake does not have, got points"):
            shell.run_cell_magic("pit", "", cell)
    else:
        assert shell.run_cell_magic("pit", "", cell).df()["n"].tolist() == [12]
