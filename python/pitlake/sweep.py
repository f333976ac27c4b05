"""A sweep: one query for each combination of parameters, each recorded before any result is seen."""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import program
from .errors import LakeError, refusal
from .text import column_named, quote_name

if TYPE_CHECKING:
    from .lake import Lake

ADDED = ("observations", "sharpe", "deflated_sharpe", "tries", "query_sha256")
"""The columns that a sweep adds to the parameters."""

_EULER = 0.5772156649015329
_NORMAL = statistics.NormalDist()


@dataclass(frozen=True)
class ReturnStatistics:
    """Moments of the returns of one combination. The Sharpe ratio is that of one period, without a riskless rate."""

    observations: int
    sharpe: float | None
    """None with fewer than three returns, or if they do not vary."""
    skewness: float
    kurtosis: float
    """3 for normal returns."""


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Lists each combination of the values of a grid; the last parameter varies fastest."""
    if not grid:
        raise refusal("sweep: grid", "parameters with their values, such as {'days': [30, 90]}", "none")
    for name, values in grid.items():
        if name in ADDED or name != name.lower() or not name.isidentifier():
            raise refusal("sweep: grid", f"names of parameters in small letters, other than {', '.join(ADDED)}", repr(name), "rename it")
        if isinstance(values, str) or not len(list(values)):
            raise refusal(f"sweep: {name}", "a list of values, at least one", repr(values))
        strange = [value for value in values if not isinstance(value, (str, int, float, bool))]
        if strange:
            raise refusal(f"sweep: {name}", "texts, numbers, True or False", repr(strange[0]))
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def statistics_of(returns: Sequence[float]) -> ReturnStatistics:
    """Computes the moments of returns."""
    count = len(returns)
    if count < 3:
        return ReturnStatistics(count, None, 0.0, 3.0)
    mean = math.fsum(returns) / count
    centered = [value - mean for value in returns]
    second, third, fourth = (math.fsum(value**power for value in centered) / count for power in (2, 3, 4))
    deviation = math.sqrt(second * count / (count - 1))
    if deviation <= 1e-12 * max(map(abs, returns)):
        return ReturnStatistics(count, None, 0.0, 3.0)
    return ReturnStatistics(count, mean / deviation, third / second**1.5, fourth / second**2)


def expected_best(sharpes: Sequence[float], tries: int) -> float:
    """Computes the one-period Sharpe ratio of the best of so many tries by chance, if ratios vary as these do."""
    if tries < 2 or len(sharpes) < 2:
        return 0.0
    best = (1 - _EULER) * _NORMAL.inv_cdf(1 - 1 / tries) + _EULER * _NORMAL.inv_cdf(1 - 1 / (tries * math.e))
    return statistics.stdev(sharpes) * best


def deflated_sharpe(own: ReturnStatistics, chance: float) -> float | None:
    """Computes the probability that the true Sharpe ratio exceeds that of chance (Bailey and López de Prado, 2014)."""
    if own.sharpe is None:
        return None
    spread = 1 - own.skewness * own.sharpe + (own.kurtosis - 1) / 4 * own.sharpe**2
    if spread <= 0:
        return None
    return _NORMAL.cdf((own.sharpe - chance) * math.sqrt(own.observations - 1) / math.sqrt(spread))


def sweep_rows(lake: Lake, query: Callable[..., str], grid: Mapping[str, Sequence[Any]], returns: str, periods: float) -> list[dict[str, Any]]:
    """Computes a row for each combination: its parameters and the columns in `ADDED`."""
    tries = combinations(grid)
    texts = [_text_of(query, parameters) for parameters in tries]
    recorded = _record(lake.folder, texts)
    measured = [statistics_of(_returns_of(lake, text, returns, parameters)) for text, parameters in zip(texts, tries)]
    # The same query twice is one try.
    ratios = {text: one.sharpe for text, one in zip(texts, measured) if one.sharpe is not None}
    chance = expected_best(list(ratios.values()), recorded["count"])
    hashes = dict(zip(dict.fromkeys(texts), (one["sha256"] for one in recorded["queries"])))
    return [{
        **parameters,
        "observations": own.observations,
        "sharpe": None if own.sharpe is None else own.sharpe * math.sqrt(periods),
        "deflated_sharpe": deflated_sharpe(own, chance),
        "tries": recorded["count"],
        "query_sha256": hashes[text],
    } for parameters, text, own in zip(tries, texts, measured)]


def _text_of(query: Callable[..., str], parameters: Mapping[str, Any]) -> str:
    text = query(**parameters)
    if not isinstance(text, str):
        raise refusal("sweep: query", "a function that returns SQL as text", type(text).__name__,
                      "return the query; the lake runs it")
    return text


def _record(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Records all tries in one version, before any of them runs."""
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch) / f"{number}.sql" for number in range(len(texts))]
        for file, text in zip(files, texts):
            file.write_text(text, encoding="utf8")
        return program.asked(folder, ["preregister", *map(str, files)])


def _returns_of(lake: Lake, text: str, returns: str, parameters: Mapping[str, Any]) -> list[float]:
    """Reads the returns of a query, without nulls. Each query has a session of its own for its tables."""
    try:
        answer = lake._sql(lake._open().cursor(), text)
        name = column_named(returns, answer.columns)
        if name is None:
            raise refusal("sweep: returns", f"one of the columns {', '.join(answer.columns)}", returns)
        cells = answer._run(lambda relation: relation.project(f"CAST({quote_name(name)} AS DOUBLE)").fetchall())
        values = [value for value, in cells if value is not None]
        strange = next((value for value in values if not math.isfinite(value)), None)
        if strange is not None:
            raise refusal("sweep: returns", "finite returns", str(strange), "let the query give NULL there")
        return values
    except LakeError as error:
        raise LakeError(f"sweep at {', '.join(f'{name}={value!r}' for name, value in parameters.items())}: {error}") from None
