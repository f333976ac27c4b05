"""Sweeps: every try is recorded before any result, and chance grows with their number."""

import hashlib
import json
import math
import random
import shutil
import statistics
from pathlib import Path

import pytest

import pitlake
from pitlake.sweep import combinations, deflated_sharpe, expected_best, statistics_of

EXPECTED = json.loads((Path(__file__).resolve().parents[2] / "golden/sweep.json").read_text(encoding="utf8"))
"""What every library computes."""


@pytest.fixture
def lake(small, tmp_path):
    folder = tmp_path / "lake"
    shutil.copytree(small, folder)
    with pitlake.open(folder) as opened:
        yield opened


def drawn(seed, lift=0.0):
    """SQL of 400 returns that are the same for the same seed."""
    chance = random.Random(seed)
    values = ", ".join(f"({chance.gauss(lift, 1.0)!r})" for _ in range(400))
    return f"SELECT CAST(ret AS DOUBLE) AS ret FROM (VALUES {values}) AS r (ret)"


def test_the_sharpe_ratio_is_that_of_the_statistics_module():
    returns = [random.Random(n).gauss(0.1, 1) for n in range(200)]
    assert statistics_of(returns).sharpe == pytest.approx(statistics.mean(returns) / statistics.stdev(returns), rel=1e-12)


def test_returns_that_never_vary_have_no_sharpe_ratio():
    assert statistics_of([0.1] * 50).sharpe is None


def test_moments_of_normal_returns_are_those_of_the_normal_distribution():
    chance = random.Random(3)
    own = statistics_of([chance.gauss(0, 1) for _ in range(200_000)])
    assert own.skewness == pytest.approx(0, abs=0.02) and own.kurtosis == pytest.approx(3, abs=0.05)


def test_the_expected_best_of_many_tries_is_that_of_a_simulation():
    chance = random.Random(5)
    tries = 50
    simulated = statistics.mean(max(chance.gauss(0, 1) for _ in range(tries)) for _ in range(4000))
    assert expected_best([-1.0, 1.0], tries) / math.sqrt(2) == pytest.approx(simulated, rel=0.02)


def test_one_try_is_not_deflated():
    own = statistics_of([random.Random(n).gauss(0.2, 1) for n in range(300)])
    assert expected_best([own.sharpe], 1) == 0.0
    assert deflated_sharpe(own, 0.0) > 0.99


def test_the_published_example_of_a_deflated_sharpe_ratio_holds():
    one = EXPECTED["published"]
    own = type(statistics_of([]))(one["observations"], one["annual_sharpe"] / math.sqrt(one["periods"]), one["skewness"], one["kurtosis"])
    tried = [math.sqrt(one["annual_variance"] / one["periods"]) * sign / math.sqrt(2) for sign in (-1, 1)]
    assert deflated_sharpe(own, expected_best(tried, one["tries"])) == pytest.approx(one["deflated_sharpe"], abs=0.0005)


@pytest.mark.parametrize("one", EXPECTED["returns"])
def test_moments_are_those_that_every_library_computes(one):
    own = statistics_of(one["returns"])
    assert [own.sharpe, own.skewness, own.kurtosis] == pytest.approx([one["sharpe"], one["skewness"], one["kurtosis"]], rel=1e-12)


def test_a_grid_gives_every_combination_once():
    assert combinations({"days": [1, 2], "asset": ["BTC"]}) == [{"days": 1, "asset": "BTC"}, {"days": 2, "asset": "BTC"}]


@pytest.mark.parametrize("grid", [{}, {"days": []}, {"days": "12"}, {"sharpe": [1]}, {"Days": [1]}, {"days": [None]}, {"a b": [1]}])
def test_a_grid_that_is_none_is_refused(grid):
    with pytest.raises(pitlake.LakeError, match="sweep"):
        combinations(grid)


def test_a_sweep_records_each_try_once_and_counts_those_of_earlier_sweeps(lake):
    seen = lake.version
    first = lake.sweep(lambda seed: drawn(seed), {"seed": [1, 2, 3]}).df()
    assert first["tries"].tolist() == [3, 3, 3] and first["observations"].tolist() == [400] * 3
    assert first["query_sha256"].tolist() == [hashlib.sha256(drawn(seed).encode()).hexdigest() for seed in (1, 2, 3)]
    again = lake.sweep(lambda seed: drawn(seed), {"seed": [3, 4]}).df()
    assert again["tries"].tolist() == [4, 4] and again["sharpe"][0] == first["sharpe"][2]
    # More tries leave less of the same result.
    assert again["deflated_sharpe"][0] != first["deflated_sharpe"][2]
    assert lake.version == seen and lake.refresh() == seen + 2


def test_scripts_of_a_sweep_may_make_the_same_table(lake):
    rows = lake.sweep(lambda n: f"CREATE TEMP TABLE d AS SELECT {n} AS n; SELECT n * i * i AS ret FROM d, range(9) AS r (i)", {"n": [1, 2]})
    assert rows.df()["observations"].tolist() == [9, 9]


@pytest.mark.parametrize(("query", "words"), [
    (lambda n: "SELECT 1 AS other", "sweep at n=1: sweep: returns: expected one of the columns other"),
    (lambda n: "SELECT nope", "sweep at n=1: "),
    (lambda n: "SELECT CAST('inf' AS DOUBLE) AS ret", "finite returns"),
    (lambda n: 7, "a function that returns SQL"),
])
def test_a_try_that_cannot_be_measured_is_named(lake, query, words):
    with pytest.raises(pitlake.LakeError, match=words):
        lake.sweep(query, {"n": [1]})
