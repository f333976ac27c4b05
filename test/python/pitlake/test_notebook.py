"""What a notebook has: the magic, and a bar on long work."""

import sys

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

import pitlake

SUPPLY = "supply/current_pit"


@pytest.fixture
def shell(lake):
    own = InteractiveShell.instance()
    own.reset()
    own.run_line_magic("load_ext", "pitlake") if "pitlake" not in own.extension_manager.loaded else None
    own.push({"lake": lake})
    return own


def test_magic_asks_the_lake_and_lends_frames(shell):
    shell.push({"mine": pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime(["2024-03-04"], utc=True)}), "frame": 3})
    answer = shell.run_cell_magic("pit", "lake -o told", f"SELECT v FROM pit_join('mine', '{SUPPLY}', '24h')")
    assert isinstance(answer, pitlake.Result) and answer.df()["v"].tolist() == [2]
    assert shell.user_ns["told"] is answer
    assert shell.run_cell_magic("pit", "", "SELECT 1 AS n").df()["n"].tolist() == [1]


def test_magic_says_what_it_lacks(shell):
    for line, words in (("other", "an open lake in the variable other"), ("lake --out x", "%%pit .LAKE. .-o NAME."), ("mine", "pitlake.open")):
        with pytest.raises(pitlake.LakeError, match=words):
            shell.run_cell_magic("pit", line, "SELECT 1")


@pytest.mark.parametrize("said, shown", [(True, True), (False, False), (None, False)])
def test_the_bar_of_the_engine_is_shown_where_it_is_wanted(small, said, shown, monkeypatch):
    """Unless said that is a terminal, or a notebook; DuckDB 2.0 shows it anywhere. A test has neither."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with pitlake.open(small, progress=said) as lake:
        told = lake.sql("SELECT current_setting('enable_progress_bar') AS shown, sum(range) AS n FROM range(10)").df()
        assert told["shown"].tolist() == [shown] and told["n"].tolist() == [45]
