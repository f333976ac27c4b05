"""Answers that are put in order without a sort: the rows of the sorted query, whatever the decisions are."""

import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pitlake
from pitlake.result import _told

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
        assert table.equals(_told(answer._relation).to_arrow_table())
        pd.testing.assert_frame_equal(answer.df(), _told(answer._relation).df(), check_exact=True)
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
