"""Answers in the words of pandas, polars and Arrow: the same cells, whatever the oldest and the newest of them lack."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import pitlake

SUPPLY = "supply/current_pit"
DAY = dt.timedelta(days=1)


@pytest.fixture
def days(lake):
    return lake.calendar("2024-03-03", "2024-03-06", "1 day", ["BTC"])


def test_times_are_durations_of_polars(lake, days):
    ages = [DAY] * 3
    assert lake.pit_join(days, SUPPLY).pl()["age"].to_list() == ages
    assert lake.window(days, SUPPLY, n=1).pl()["age"].to_list() == ages
    panel = lake.panel(days, {"a": SUPPLY}, fields=["v", "age"])
    assert panel.pl()["a.age"].to_list() == ages == [one.to_pytimedelta() for one in panel.df()["a.age"]]
    assert panel.pl().columns == panel.columns and repr(panel.pl())


def test_any_interval_has_a_form(lake):
    asked = lake.sql("""SELECT INTERVAL '-90 minutes' AS minus, INTERVAL 1 MONTH AS "a ""month", CAST(NULL AS INTERVAL) AS never,
      {'n': INTERVAL 1 DAY, 'INTERVAL': 7} AS part, [INTERVAL 2 HOUR] AS "INTERVAL" """)
    minus, month, never, part, listed = asked.pl().row(0)
    assert (minus, month, never) == (dt.timedelta(minutes=-90), 30 * DAY, None)
    assert part == {"n": "1 day", "INTERVAL": 7} and listed == ["02:00:00"]
    assert asked.df()['a "month'][0] == pd.Timedelta(month)


def test_an_open_end_is_null(lake):
    ends = lake.sql("SELECT id, valid_from, CASE WHEN isfinite(valid_to) THEN epoch_us(valid_to) END AS us, valid_to = 'infinity' AS open "
                    "FROM history.products ORDER BY id, valid_from").df()
    assert ends["open"].any() and not ends["open"].all()
    answer = lake.history("products")
    instants = [None if is_open else us for us, is_open in zip(ends["us"], ends["open"])]
    for told in (answer.pl()["valid_to"].to_list(), answer.arrow()["valid_to"].to_pylist(), list(answer.df()["valid_to"])):
        assert [None if pd.isna(one) else one.timestamp() * 1e6 for one in told] == instants
    assert answer.columns == answer.pl().columns and repr(answer.pl())
    [row] = lake.sql("""SELECT 'infinity'::DATE AS a, '-infinity'::TIMESTAMP AS b, DATE '2024-01-02' AS c,
      TIMESTAMPTZ '11000-01-01 00:00:00+00' AS d""").arrow().to_batches()
    assert [column.null_count for column in row.columns] == [1, 1, 0, 0]


def test_names_that_stand_twice_stay(lake):
    twice = lake.sql("SELECT TIMESTAMPTZ 'infinity' AS t, 1 AS a, TIMESTAMPTZ '2024-01-02 00:00:00+00' AS t, 2 AS a").df()
    assert list(twice.columns) == ["t", "a", "t_1", "a_1"] and twice["a_1"].tolist() == [2] and twice["t_1"].dt.day.tolist() == [2]


def test_rows_keep_their_order(notebooks):
    with pitlake.open(notebooks) as lake:
        answer = lake.sql("SELECT t, row_number() OVER (ORDER BY hash(t, metric, asset)) AS n FROM points ORDER BY n")
        for told in (answer.df()["n"], answer.pl()["n"]):
            assert len(told) > 100_000 and (told.to_numpy() == range(1, len(told) + 1)).all()


@pytest.mark.parametrize("module, said", [
    ("raise ModuleNotFoundError('pyarrow', name='pyarrow')", "pyarrow is not installed; run `pip install pyarrow`"),
    ("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')", "installed, but cannot be imported (No module named 'numpy')"),
    ("raise ImportError('libarrow.so: undefined symbol')", "installed, but cannot be imported (ImportError: libarrow.so"),
    ("raise AttributeError('_ARRAY_API not found')", "installed, but cannot be imported (AttributeError: _ARRAY_API not found)"),
])
def test_what_cannot_be_imported(small, tmp_path, module, said):
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text(module)
    package = Path(pitlake.__file__).parents[1]
    program = f"""import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(package)!r}]
import pitlake
lake = pitlake.open({str(small)!r})
try:
    lake.metrics().arrow()
except pitlake.LakeError as error:
    print(error)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said in done.stdout


EMPTY = [
    (f"metric = '{SUPPLY}' AND asset = 'btc'", "nothing is stored of 'supply/current_pit' for asset 'btc'; did you mean 'BTC'?"),
    ("metric = 'supply/curent_pit'", "unknown metric 'supply/curent_pit'; did you mean 'supply/current_pit'"),
    ("metric IN ('supply/curent_pit', 'x')", "unknown metric 'supply/curent_pit'; did you mean 'supply/current_pit'"),
    ("metric = 'addresses/active_count_pit'", "the lake has no points of 'addresses/active_count_pit'"),
    ("metric = 'price_usd'", "FROM price_usd"),
    ("asset IN ('btc', 'eth')", "did you mean 'BTC'?"),
]


@pytest.mark.parametrize("where, said", EMPTY)
def test_an_empty_answer_says_why(lake, where, said):
    with pytest.warns(pitlake.LakeWarning) as caught:
        assert len(lake.sql(f"SELECT * FROM points WHERE {where}").df()) == 0
    assert any(said in str(one.message) for one in caught), [str(one.message) for one in caught]


def test_an_empty_join_says_why(lake):
    mine = pd.DataFrame({"asset": ["BTC"], "ts": pd.to_datetime(["2024-03-04"], utc=True)})
    with pytest.warns(pitlake.LakeWarning, match="has no points of 'addresses/active_count_pit'"):
        lake.sql("FROM pit_join('mine', 'addresses/active_count_pit', '24h')", frames={"mine": mine}).df()
