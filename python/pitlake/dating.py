"""Answer of `lake.when`: the time from whose knowledge a table comes."""

from __future__ import annotations

from typing import Any, NamedTuple


class Range(NamedTuple):
    """Half-open range of times, as ISO text.

    Attributes:
        start: First time of the range; None if it has no beginning.
        end: End of the range, exclusive; None if it has no end.
    """

    start: str | None
    end: str | None


class Dating:
    """Time from whose knowledge a table comes.

    Attributes:
        verdict: `dated`: the lake answers the whole table at the times shown. `contradicted`: not at the claimed time. `mixed`: each
            column has such times, but none is common to all. `unmatched`: a column has none.
        as_of: Ranges of `as_of` in which the lake answers every cell.
        observed_as_of: Ranges of `observed_as_of` in which the lake answers every cell.
        columns: What each compared column was taken for, with the ranges of its own.
        contradiction: The first cells that contradict, with the lake's answers; None if none does.
        facts: The whole document that `pitlake when --json` prints.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.verdict: str = facts["verdict"]
        self.as_of = [Range(one["from"], one["until"]) for one in facts["as_of"]]
        self.observed_as_of = [Range(one["from"], one["until"]) for one in facts["observed_as_of"]]
        self.columns: list[dict[str, Any]] = facts["columns"]
        self.contradiction: dict[str, Any] | None = facts["contradiction"]

    def __bool__(self) -> bool:
        """Whether the lake answers the whole table at some time, and at the claimed one."""
        return self.verdict == "dated"

    def __repr__(self) -> str:
        return f"Dating({self.verdict!r}, as_of={self.as_of!r}, observed_as_of={self.observed_as_of!r})"
