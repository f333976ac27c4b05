"""The one exception of this package, and its one warning."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

_HERE = str(Path(__file__).parent) + os.sep


class LakeError(ValueError):
    """A question that the lake cannot answer; the message says what was expected and what to do."""


class LakeWarning(UserWarning):
    """Something that should be known of an answer, although it was not asked."""


def refusal(subject: str, expected: str, got: object = None, fix: str = "") -> LakeError:
    """`subject: expected …, got …; fix`."""
    came = "" if got is None else f", got {got}"
    return LakeError(f"{subject}: expected {expected}{came}{f'; {fix}' if fix else ''}")


@contextmanager
def told(where: str = "SQL") -> Iterator[None]:
    """What DuckDB refuses, in words that say what helps."""
    try:
        yield
    except duckdb.Error as error:
        raise _refused(where, error) from None


def _refused(where: str, error: duckdb.Error) -> LakeError:
    text = re.split(r"\n\s*\nLINE \d+: ", str(error))[0]
    words = re.sub(r"\s*\n\s*", " ", re.sub(r"^(?:[A-Z][\w -]*? Error: )+", "", text)).strip()
    lost = re.search(r'No files found that match the pattern "([^"]+)"|Cannot open file "([^"]+\.parquet)"', str(error))
    if lost:
        words += ": the lake was moved, copied or vacuumed since; open it anew"
    elif re.search(r"Table with name .* does not exist", words):
        words += "; a frame is lent by its name: frames={'name': frame}"
    elif "read-only mode" in words:
        words += "; CREATE TEMP TABLE is allowed"
    elif "has no unit: " in words:
        words += "; a time is '15m' or '15 minutes'"
    elif lacking := re.search(r"has no interval (.+), but", words):
        from .intervals import meant

        same = meant(lacking[1])
        words += f"; did you mean {same!r}?" if same else ""
    return LakeError(f"{where}: {words}")


def warn(doubts: Iterable[str]) -> None:
    """Warns at the line that asked, outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    for doubt in dict.fromkeys(doubts):
        warnings.warn(doubt, LakeWarning, stacklevel=level)
