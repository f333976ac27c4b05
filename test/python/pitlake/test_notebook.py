"""What a notebook has: the magic, and a bar on long work."""

import io
import threading
import time

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

import pitlake
from pitlake import progress

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


class Slow:
    """A connection whose query goes on until it was asked so often how far it is."""

    def __init__(self, shares):
        self.shares, self.asked = list(shares), threading.Event()

    def query_progress(self):
        share = self.shares.pop(0)
        if not self.shares:
            self.asked.set()
            self.shares.append(share)
        return share


def test_a_bar_shows_how_far_long_work_is_and_goes():
    connection, out = Slow([-1.0, 10.0, 50.0, 99.0]), io.StringIO()
    with progress.bar(connection, True, out, patience=0.001):
        assert connection.asked.wait(60)
        deadline = time.monotonic() + 60
        while " 99 %" not in out.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    said = out.getvalue()
    assert " 50 %" in said and "███" in said and said.endswith(" " * 36 + "\r")


def test_no_bar_where_none_is_wanted_or_nothing_takes_long():
    out = io.StringIO()
    with progress.bar(Slow([50.0]), False, out, patience=0.0):
        pass
    with progress.bar(Slow([50.0]), True, out, patience=60):
        pass
    with progress.bar(object(), True, out, patience=0.0):
        pass
    assert out.getvalue() == ""
    assert progress.wanted(True) and not progress.wanted(False)


def test_the_bar_of_a_real_query_tells_shares(small, monkeypatch):
    """What DuckDB tells of a query that is under way is a share, or that it cannot tell."""
    with pitlake.open(small, progress=True, threads=1) as lake:
        told, out = [], io.StringIO()
        monkeypatch.setattr("sys.stderr", out)
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        answer = lake.sql("SELECT sum(a.range * b.range) AS n FROM range(3000) AS a, range(3000) AS b").df()
        assert answer["n"][0] == (2999 * 3000 // 2) ** 2
        told.append(out.getvalue())
    assert all("%" in text or text == "" for text in told)
