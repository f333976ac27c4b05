"""qlib: what was knowable at each session, as a frame for its handlers or as files of its own format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..queries import named_metrics
from ..text import Names
from .bars import Label, known_at

if TYPE_CHECKING:
    import pandas

    from ..lake import Lake


def features(lake: Lake, sessions: pandas.DatetimeIndex, assets: Names, metrics: Names | Mapping[str, str], *, step: Any = "1D",
             label: Label = "open", **options: Any) -> pandas.DataFrame:
    """A frame with the index (datetime, instrument) and the columns (feature, name), for `StaticDataLoader`: doubles as they are."""
    import pandas

    named = named_metrics(metrics)
    found = known_at(lake, sessions, assets, named, step=step, label=label, **options)
    frame = found[list(named)].rename_axis(["datetime", "instrument"]).sort_index()
    frame.columns = pandas.MultiIndex.from_product([["feature"], list(named)])
    return frame


def write(folder: str | Path, frame: pandas.DataFrame, prices: Mapping[str, pandas.DataFrame] | None = None) -> None:
    """Writes such a frame, and bars by instrument, as a folder for `qlib.init(provider_uri=…)`.

    Values are floats of 32 bits there: that is qlib's format, and what it computes with. Names become lower case.
    """
    import numpy

    root = Path(folder)
    days = frame.index.get_level_values("datetime").unique().sort_values()
    calendar = [day.strftime("%Y-%m-%d") for day in days]
    _text(root / "calendars" / "day.txt", calendar)
    assets = list(frame.index.get_level_values("instrument").unique())
    _text(root / "instruments" / "all.txt", [f"{asset.upper()}\t{calendar[0]}\t{calendar[-1]}" for asset in assets])
    for asset in assets:
        own = frame.xs(asset, level="instrument").reindex(days)
        columns = {name: own["feature", name] for name in own["feature"].columns}
        if prices is not None:
            columns.update(prices[asset].reindex(days).items())
        for name, values in columns.items():
            path = root / "features" / asset.lower() / f"{re.sub(r'[^a-z0-9_]+', '_', str(name).lower())}.day.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            # The place of the first session, then the values.
            numpy.hstack([[0], values.to_numpy(dtype="float64")]).astype("<f").tofile(path)


def _text(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
