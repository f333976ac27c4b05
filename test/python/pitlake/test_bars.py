"""When something may be decided on a bar, whichever end it is named by."""

import pandas as pd
import pytest

from pitlake.engines.bars import decided_at
from pitlake.errors import LakeError

NAMES = pd.date_range("2024-03-01", periods=3, freq="6h")


def test_a_bar_named_by_its_open_is_decided_a_step_later_and_one_named_by_its_close_at_once():
    ends = pd.date_range("2024-03-01 06:00", periods=3, freq="6h", tz="UTC")
    assert list(decided_at(NAMES, "6h", "open")) == list(ends)
    assert list(decided_at(ends, "6h", "close")) == list(ends)
    assert list(decided_at(ends.tz_convert("America/New_York"), "6h", "close")) == list(ends)


def test_another_end_is_refused():
    with pytest.raises(LakeError, match="label"):
        decided_at(NAMES, "6h", "middle")
