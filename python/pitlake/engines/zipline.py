"""Adapter for zipline-reloaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zipline.lib.adjusted_array import AdjustedArray
from zipline.pipeline.loaders.base import PipelineLoader

from ..errors import refusal
from .bars import known_at

if TYPE_CHECKING:
    from ..lake import Lake


class KnownLoader(PipelineLoader):  # type: ignore[misc]
    """Loads the columns of a data set from metrics, with values as known at the cut-off of each session.

    The domain of the pipeline sets the cut-off (`data_query_cutoff_for_sessions`). In a window, each row has the value that
    was known at the cut-off of its session.

    Args:
        lake: The open lake.
        metrics: Metric of each column of the data set, by the name of the column.
        assets: Asset id of the metrics API, by sid.
        options: Options of `lake.panel`, such as `interval`, `latency` and `max_age`.

    >>> loader = KnownLoader(lake, {"active": "addresses/active_count_pit"}, {0: "BTC"}, latency="15m")  # doctest: +SKIP
    """

    def __init__(self, lake: Lake, metrics: Mapping[str, str], assets: Mapping[int, str], **options: Any) -> None:
        self._lake, self._metrics, self._assets, self._options = lake, dict(metrics), dict(assets), options

    def load_adjusted_array(self, domain: Any, columns: Any, dates: Any, sids: Any, mask: Any) -> dict[Any, Any]:
        lost = [column.name for column in columns if column.name not in self._metrics]
        if lost:
            raise refusal("KnownLoader", "a metric for each column", f"none for {lost[0]!r}")
        cutoffs = domain.data_query_cutoff_for_sessions(dates)
        names = [self._assets.get(int(sid), "") for sid in sids]
        wanted = {column.name: self._metrics[column.name] for column in columns}
        found = known_at(self._lake, cutoffs, sorted(set(names)), wanted, step=0, label="close", **self._options)
        arrays = {}
        for column in columns:
            wide = found[column.name].unstack("asset").reindex(index=cutoffs, columns=names)
            values = wide.to_numpy(dtype="float64", copy=True)
            values[~mask] = float("nan")
            arrays[column] = AdjustedArray(values, adjustments={}, missing_value=column.missing_value)
        return arrays
