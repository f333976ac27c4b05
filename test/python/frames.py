"""The notebooks' functions give the same as pandas and as polars frames. usage: PITLAKE_DATA=LAKE python frames.py METRIC"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "notebooks"))

import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
from lake import panel, points, sql, universe  # noqa: E402

METRIC = sys.argv[1]
DECISIONS = pd.DataFrame({"ts": pd.to_datetime(["2024-03-03 00:09", "2024-03-04 00:00"], utc=True), "asset": ["BTC", "BTC"]})
FORMS = {
    "sql": lambda polars: sql("SELECT metric, t, v FROM points ORDER BY t", polars=polars, as_of="2024-03-04"),
    "points": lambda polars: points(METRIC, "BTC", polars=polars, as_of="2024-03-04"),
    "panel": lambda polars: panel(DECISIONS, {"x": METRIC}, polars=polars),
    "universe": lambda polars: universe(polars=polars),
}


def cells(frame):
    rows = frame.rows() if isinstance(frame, pl.DataFrame) else list(frame.itertuples(index=False, name=None))
    return [tuple(None if pd.api.types.is_scalar(cell) and pd.isna(cell) else
                  pd.Timestamp(cell).isoformat() if hasattr(cell, "isoformat") else cell for cell in row) for row in rows]


for name, form in FORMS.items():
    ours, theirs = form(False), form(True)
    assert isinstance(ours, pd.DataFrame) and isinstance(theirs, pl.DataFrame), name
    assert list(ours.columns) == theirs.columns, name
    assert cells(ours) == cells(theirs), f"{name}: {cells(ours)} and {cells(theirs)}"
    zones = {getattr(kind, "time_zone", "UTC") for kind in theirs.dtypes}
    assert zones == {"UTC"}, f"{name}: {zones}"
    print(name, len(theirs))
