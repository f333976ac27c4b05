"""`ts` and `asset` of a frame of pandas: in columns or in the index, in any case of letters."""

import pandas
import pytest

from pitlake.frames import _flat

AT = pandas.to_datetime(["2024-03-01", "2024-03-02"])


@pytest.mark.parametrize(("frame", "columns"), [
    (pandas.DataFrame({"TS": AT, "Asset": "BTC"}, index=AT), ["TS", "Asset"]),
    (pandas.DataFrame({"asset": "BTC"}, index=AT), ["ts", "asset"]),
    (pandas.DataFrame({"v": [1, 2]}, index=pandas.MultiIndex.from_arrays([AT, ["BTC", "ETH"]], names=["TS", "Asset"])), ["TS", "Asset", "v"]),
    (pandas.DataFrame({"ts": AT, "v": [1, 2]}, index=pandas.Index(["BTC", "ETH"], name="ASSET")), ["ASSET", "ts", "v"]),
])
def test_ts_and_asset_are_found_in_columns_and_index_whatever_their_case(frame, columns):
    assert list(_flat(frame, "decisions").columns) == columns
