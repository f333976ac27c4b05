"""Answers that are put in order without a sort: the rows of the sorted query, whatever the decisions are."""

import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pitlake
from pitlake import unsorted
from pitlake.result import _convert_for_frames

SUPPLY, NESTED = "supply/current_pit", "addresses/supply_distribution_relative_pit"
FORMS = {"arrow": lambda table: table, "polars": pl.from_arrow, "pandas": lambda table: table.to_pandas()}


def decisions(**changes):
    """Three hundred decisions in no order, some twice, some without an asset or a time."""
    chance = random.Random(2)
    first = 1_709_251_200
    rows = [(chance.choice(["BTC", "ETH", "NONE", None]), chance.choice([None, *[first + chance.randrange(6 * 86_400)] * 9])) for _ in range(300)]
    columns = {"weight": pa.array([float(n) for n in range(300)]), "asset": pa.array([asset for asset, _ in rows], pa.string()),
               "ts": pa.array([None if ts is None else ts * 1_000_000 for _, ts in rows], pa.timestamp("us", "UTC"))}
    return pa.table({**columns, **changes})


@pytest.mark.filterwarnings("ignore::pitlake.LakeWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("changes", [{}, {"day": pa.array([1] * 300, pa.date32())}], ids=["read where they are", "in a table of DuckDB"])
def test_frames_have_the_rows_of_the_sorted_query(lake, form, changes):
    given = FORMS[form](decisions(**changes))
    for answer in (
        lake.pit_join(given, SUPPLY),
        lake.panel(given, [SUPPLY, NESTED, "indicators/sopr_adjusted_pit"], fields=("v", "o", "available_at")),
        lake.panel(given, {"a": SUPPLY, "b": "indicators/sopr_adjusted_pit", "c": SUPPLY}),
    ):
        assert answer._unsorted is not None
        table = answer.arrow()
        assert table["weight"].to_pylist() == list(range(300))
        assert table.equals(_convert_for_frames(answer._relation).to_arrow_table())
        pd.testing.assert_frame_equal(answer.df(), _convert_for_frames(answer._relation).df(), check_exact=True)
        assert answer.pl().columns == table.column_names and answer.pl()["ts"].to_list() == table["ts"].to_pylist()


@pytest.mark.filterwarnings("ignore::pitlake.LakeWarning")
def test_a_frame_that_is_changed_later_leaves_its_answer(lake):
    given = decisions().to_pandas()
    answer = lake.pit_join(given, SUPPLY)
    before = answer.df()
    given.loc[:, "weight"] = -1.0
    given["ts"] += pd.Timedelta(days=1)
    before_too = answer.df()
    pd.testing.assert_frame_equal(before, before_too)
    before.loc[:, "weight"] = -2.0
    pd.testing.assert_frame_equal(answer.df(), before_too)


def test_values_of_a_sliced_chunk_are_placed_from_its_offset():
    numpy = pytest.importorskip("numpy")
    column = pa.chunked_array([pa.array([0.0, 1.5, None, 2.5])[1:], pa.array([3.5])])
    placed = unsorted._placed(column, numpy.array([3, 0, 2, 1]))
    assert placed.to_pylist() == [None, 3.5, 2.5, 1.5]


def test_rows_of_the_caller_that_come_in_another_order_are_found():
    numpy = pytest.importorskip("numpy")
    order = unsorted.UnsortedAnswers._order
    assert order(numpy.array([1, 2, 3])) is None
    assert order(numpy.array([3, 1, 2])).tolist() == [1, 2, 0]


def test_answers_that_leave_a_decision_out_are_not_placed():
    numpy = pytest.importorskip("numpy")
    answers = unsorted.UnsortedAnswers(None, "", 1, [])
    assert answers._slots(3, lambda name: numpy.array([2, 3, 1])).tolist() == [1, 2, 0]
    assert answers._slots(3, lambda name: numpy.array([2, 2, 1])) is None
    assert answers._slots(3, lambda name: numpy.array([2, 1])) is None
