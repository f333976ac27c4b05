"""Adapter for qlib."""

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
    """Looks up metric values as known at the end of each session, for `StaticDataLoader` of qlib.

    Args:
        lake: The open lake.
        sessions: Timestamps of the sessions. Without a zone they are UTC.
        assets: Asset ids of the metrics API.
        metrics: Names of metrics, or a dict of column and metric.
        step: Length of a session.
        label: Whether the timestamp of a session is its open (`"open"`) or its close (`"close"`).
        options: Options of `lake.panel`, such as `interval`, `latency` and `max_age`.

    Returns:
        A frame with the index (datetime, instrument), the columns (feature, name) and the stored doubles.

    >>> StaticDataLoader(features(lake, sessions, ["BTC"], {"active": "addresses/active_count_pit"}))  # doctest: +SKIP
    """
    import pandas

    named = named_metrics(metrics)
    found = known_at(lake, sessions, assets, named, step=step, label=label, **options)
    frame = found[list(named)].rename_axis(["datetime", "instrument"]).sort_index()
    frame.columns = pandas.MultiIndex.from_product([["feature"], list(named)])
    return frame


def write(folder: str | Path, frame: pandas.DataFrame, prices: Mapping[str, pandas.DataFrame] | None = None) -> None:
    """Writes a frame of `features`, and prices, as a folder for `qlib.init(provider_uri=…)`.

    The format of qlib has floats of 32 bits and names in lower case.

    Args:
        folder: Folder to write to.
        frame: What `features` returned.
        prices: Bars of each asset, a frame by asset id. Their columns become features, too.

    >>> write("qlib-data", features(lake, sessions, ["BTC"], ["price_usd"]), {"BTC": bars})  # doctest: +SKIP
    >>> qlib.init(provider_uri="qlib-data")  # doctest: +SKIP
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
