"""The one exception of this package, and its one warning."""

from __future__ import annotations

import difflib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from .text import INTERVALS, meant_interval

_HERE = str(Path(__file__).parent) + os.sep


class LakeError(ValueError):
    """The one exception of this package.

    The message states what was expected, what was given and what helps.

    >>> lake.history("product")
    Traceback (most recent call last):
    ...
    pitlake.errors.LakeError: history: expected a resource of the registry, got 'product'; did you mean 'products'?
    """


class LakeWarning(UserWarning):
    """The one warning of this package: a note about an answer.

    It explains, for example, why an answer may be empty. `lake.notes` has the same text.

    >>> import pitlake, warnings
    >>> with warnings.catch_warnings(record=True) as noted:
    ...     answer = lake.points("supply/curent_pit").df()
    >>> noted[0].category is pitlake.LakeWarning
    True
    """


def refusal(subject: str, expected: str, got: object = None, fix: str = "") -> LakeError:
    """Builds the error `subject: expected …, got …; fix`."""
    came = "" if got is None else f", got {got}"
    return LakeError(f"{subject}: expected {expected}{came}{f'; {fix}' if fix else ''}")


@contextmanager
def translate_errors(near_metrics: Callable[[str], Sequence[str]], query: str | None = None) -> Iterator[None]:
    """Converts DuckDB's refusals to the words of every other interface, with their place in the user's `query`."""
    try:
        yield
    except duckdb.Error as error:
        raise _refused(error, near_metrics, query) from None


WRITES = "a query that only reads"
READ_ONLY = "the lake is read-only; CREATE TEMP TABLE is allowed"
_WRONG_CALL = (r"Macro (\w+)\(\) (?:does not support|has multiple overloads that match) the supplied arguments\."
               r".*Candidate macros: (.*)")
_UNIT = r"""^\w+ has no unit: (.*)$|extract specifier "([^"]*)" not recognized|[Cc]ould not convert string '([^']*)' to INTERVAL"""


def _refused(error: duckdb.Error, near_metrics: Callable[[str], Sequence[str]], query: str | None) -> LakeError:
    text = re.split(r"\n\s*\nLINE \d+: ", str(error))[0]
    words = re.sub(r"\s*\n\s*", " ", re.sub(r"^(?:[A-Z][\w -]*? Error: )+", "", text)).strip()
    where = f"SQL{_place(str(error), query)}"
    if lacking := _lacking(error):
        return lacking
    if isinstance(error, (duckdb.InternalException, duckdb.FatalException)):
        # Its words are for the makers of the engine: a stack with paths and addresses.
        return refusal("SQL", "a query that DuckDB can run", "an internal error of DuckDB", _AFTER[type(error)])
    if re.match("Maximum call stack size|Max expression depth limit|memory exhausted at", words):
        return refusal("SQL", "a query that is nested less deeply", "one too deep to read")
    if unknown := re.search(r"unknown metric (.*): the view endpoints lists them all", words):
        meant = [f"`{name}`" for name in near_metrics(unknown[1])]
        said = " or ".join(filter(None, [", ".join(meant[:-1]), *meant[-1:]]))
        return LakeError(f"{where}: unknown metric {unknown[1]}; {f'did you mean {said}?' if said else 'the view endpoints lists them all'}")
    if other := re.fullmatch(r"(\S+ has no \w+) (.*), but (.*)", words):
        known = other[3].split(",")
        second = f"a panel or join has one interval: query this metric in a second one, with the interval {known[0]}"
        fix = meant_word(other[2], known) or (second if other[1].endswith(" has no interval") else "")
        return refusal(f"{where}: {other[1]} {other[2]}", ", ".join(known), None, fix)
    if call := re.match(_WRONG_CALL, words):
        return refusal(f"{where}: {call[1]}", f"{call[1]}({', '.join(_needed(call[2]))}), then options by name", "other arguments",
                       "an option is named with :=")
    if none := re.search("'no interval ([^']*)' to ", words):
        return refusal("SQL", f"an interval ({', '.join(INTERVALS)})", none[1], meant_word(none[1], INTERVALS))
    if span := re.search(_UNIT, words):
        return refusal(where, "a time such as '15 minutes', '1 hour', '1 day' or '1 month'", f"'{next(filter(None, span.groups()))}'")
    if written := re.search(r'statement of type "(\w+)".*read-only mode', words):
        return refusal("SQL", WRITES, written[1], READ_ONLY)
    lost = re.search(r'No files found that match the pattern "([^"]+)"|Cannot open file "([^"]+\.parquet)"', str(error))
    if lost:
        words += ": the lake was moved, copied or vacuumed since; open it again"
    elif re.search(r"Table with name .* does not exist", words):
        words += "; a frame is lent by its name: frames={'name': frame}"
    return LakeError(f"{where}: {words}")


_AFTER = {
    duckdb.InternalException: "write it in another way",
    duckdb.FatalException: "write it in another way, and call lake.refresh() first: DuckDB answers nothing more until then",
}


def _needed(candidates: str) -> list[str]:
    """Lists the parameters that every form of a macro needs, from DuckDB's list of its forms."""
    forms = [form.split(", ") for form in re.findall(r"\w+\(([^()]*)\)", candidates)]
    return [name for name in forms[0] if " := " not in name and all(name in form for form in forms)] if forms else []


def _lacking(error: duckdb.Error) -> LakeError | None:
    """Builds the error for too little memory, or disk for what does not fit into it; DuckDB advises other settings."""
    full = isinstance(error, duckdb.IOException) and re.search("No space left on device|Disk quota exceeded", str(error))
    if not full and not isinstance(error, duckdb.OutOfMemoryException):
        return None
    if full or "max_temp_directory_size" in str(error):
        return LakeError("SQL: more disk than it may take; query less data at once, or leave it more of the disk")
    return LakeError("SQL: more memory than it may take; query less data at once, or raise it: pitlake.open(…, memory=…)")


def _place(message: str, query: str | None) -> str:
    """Finds line and column of the caret under DuckDB's excerpt, which it may have cut."""
    found = re.search(r"\nLINE (\d+): (.*)\n( *)\^", message)
    if found is None or query is None:
        return ""
    line, excerpt = int(found[1]), found[2]
    caret, cut = len(found[3]) - len(f"LINE {line}: "), excerpt.startswith("...")
    shown = excerpt.removeprefix("...").removesuffix("...")
    begin = query.split("\n")[line - 1].rfind(shown) if cut else 0
    return f" (line {line} column {max(begin + caret - (3 if cut else 0), 0) + 1})"


def meant_word(word: str, known: Sequence[str], sure: float = 0.7) -> str:
    """Names the word that may have been meant; for intervals the one of the same length, or the next shorter one."""
    same = meant_interval(word, known)
    near = [same] if same is not None else difflib.get_close_matches(word, known, 1, sure)
    return f"did you mean `{near[0]}`?" if near else ""


def warn(doubts: Iterable[str]) -> None:
    """Warns at the line of the caller, outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    for doubt in dict.fromkeys(doubts):
        warnings.warn(doubt, LakeWarning, stacklevel=level)
