"""Functions that are marked as point in time, and the program that tests those of a file for `pitlake lookahead`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import LakeError
from .lookahead import _sentence, lookahead

MARK = "__pitlake_point_in_time__"


def point_in_time(work: Callable[..., Any] | None = None, *, ts: str = "ts", labels: Sequence[str] = (), cutoffs: int = 50,
                  tolerance: float = 0.0, shift: Any = None, own: Mapping[str, Any] | None = None,
                  set: Mapping[str, object] | None = None) -> Any:
    """Marks a function that must not look ahead.

    The function stays as it is. `pitlake lookahead FILES…` imports the file and tests each marked function at its top level,
    as `pitlake.lookahead` does. Write the decorator with or without options.

    Args:
        work: Function that takes a lake and returns a frame with `ts`, or the result of a backtest.
        ts: Column with the time of each row.
        labels: Columns that may look ahead, such as the target of a model.
        cutoffs: Number of times at which the lake is cut.
        tolerance: Relative difference of numbers that counts as equal.
        shift: Time from the timestamp of a row to its decision, for the result of a backtest.
        own: Your own data, frames or files, by the names under which the function reads them.
        set: Further session variables by name, without `as_of`: the test itself sets it.

    Returns:
        The function, marked.

    >>> import pitlake
    >>> @pitlake.point_in_time
    ... def signal(lake):
    ...     days = lake.calendar("2024-03-02", "2024-03-05", "1 day", ["BTC"])
    ...     return lake.panel(days, ["supply/current_pit"])
    """
    options = {"ts": ts, "labels": labels, "cutoffs": cutoffs, "tolerance": tolerance, "shift": shift, "own": own, "set": set}

    def mark(function: Any) -> Any:
        setattr(function, MARK, options)
        return function

    return mark if work is None else mark(work)


def _marked_in(file: Path) -> Iterator[tuple[str, Callable[..., Any], Mapping[str, Any]]]:
    """Yields the marked functions of a file, which is imported, with the names under which it defines them."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    spec.loader.exec_module(module)
    for name, value in vars(module).items():
        options = getattr(value, MARK, None)
        if callable(value) and options is not None and getattr(value, "__module__", None) == module.__name__:
            yield name, value, options


def _verdict_of(name: str, work: Callable[..., Any], options: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    try:
        found = lookahead(work, folder, **options)
    except LakeError as error:
        return {"name": name, "verdict": "undecided", "reason": str(error), "leak": None, "depends_on": []}
    leak = _sentence(found.differences[0]) if found.differences else None
    return {"name": name, "verdict": found.verdict, "reason": found.reason, "leak": leak, "depends_on": list(found.depends_on)}


def main(file: str, folder: str) -> None:
    """Prints a line of JSON for each marked function of a file; output of the file itself goes to standard error."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        for name, work, options in _marked_in(Path(file)):
            print(json.dumps(_verdict_of(name, work, options, folder)), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
