"""Why an answer may hold nothing, and what may have been meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from .errors import near
from .frames import kind_of
from .queries import DIMENSIONS, PRICE, PRICED, Standards
from .tree import nodes_in, parsed

OFTEN_NULL = {*DIMENSIONS, "o", "extra", "computed_at", "component"}
JOINS = ("pit_join", "pit_long", "pit_window", "resample")


def is_empty(frame: Any, column: str) -> bool:
    """Whether there are rows, and nothing in the column."""
    if len(frame) == 0:
        return False
    if kind_of(frame) == "pyarrow":
        return bool(frame[column].null_count == len(frame))
    own = frame[column]
    return bool((own.is_null() if kind_of(frame) == "polars" else own.isna()).all())


def is_doubtful(frame: Any) -> bool:
    """Whether a result is one to wonder about: no rows, or a column that tells nothing although it mostly does."""
    names = frame.column_names if kind_of(frame) == "pyarrow" else list(frame.columns)
    return len(frame) == 0 or any(is_empty(frame, name) for name in names if name not in OFTEN_NULL)


def empty_assets(frame: Any, column: str) -> list[str]:
    """The assets for which the column holds nothing."""
    kind = kind_of(frame)
    if kind == "pyarrow":
        if frame[column].null_count == 0:
            return []
        assets = frame["asset"]
        full = assets.filter(frame[column].is_valid()).unique().to_pylist()
        return sorted({asset for asset in assets.unique().to_pylist() if asset is not None} - set(full))
    if kind == "polars":
        found = frame.filter(frame[column].is_not_null())["asset"].unique().to_list()
        return sorted(set(frame["asset"].drop_nulls().unique().to_list()) - set(found))
    return sorted(set(frame["asset"].dropna()) - set(frame.loc[frame[column].notna(), "asset"].dropna()))


class Doubter:
    """What may be wrong with a question that found nothing, by a session of its own without `as_of`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, standards: Standards) -> None:
        self._connection, self._standards = connection, standards

    def of_metric(self, name: str, interval: str | None, assets: Sequence[str], dimensions: Mapping[str, str | None],
                  component: str | None, everywhere: bool = True) -> str | None:
        """Why a metric may have told nothing of these assets; None where the lake just had nothing to tell."""
        path, _, pointer = name.partition("#")
        known = list(self._standards)
        if path not in self._standards:
            return f"unknown metric {path!r}{near(path, known)}"
        rows = self._held(PRICED if path == PRICE else path)
        if not rows:
            return f"the lake holds nothing of {path!r}: fetch it first"
        held = [row for row in rows if interval in (None, "*", row[0])]
        if not held:
            return f"{path!r} is not held at {interval}{near(str(interval), sorted({row[0] for row in rows}))}"
        own = sorted({row[1] for row in held})
        lost = [asset for asset in assets if asset not in own]
        if lost:
            return f"nothing is held of {path!r} for asset {lost[0]!r}{near(str(lost[0]), own)}"
        for place, dimension in enumerate(DIMENSIONS, 2):
            wanted = dimensions.get(dimension) or self._standards[path].get(dimension)
            there = sorted({row[place] for row in held if row[place] is not None})
            if path != PRICE and there and wanted not in (None, "*", *there):
                return f"nothing is held of {path!r} with {dimension} {wanted!r}{near(str(wanted), there)}"
        return self._of_null(path, pointer or component) if everywhere and path != PRICE else None

    def of_query(self, query: str) -> list[str | None]:
        """What may be wrong with a query that found nothing, by the texts in it."""
        tree = parsed(self._connection, query)
        calls = [node for node in tree if isinstance(node.get("function_name"), str)]
        names = {str(call["function_name"]).lower() for call in calls}
        tables = {node["table_name"].lower() for node in tree if node.get("type") == "BASE_TABLE"}
        texts, found = _texts_in(tree), list[Any]()
        if PRICE in _compared(tree, "metric") and "points" in tables:
            found.append(f"{PRICE} is a view of its own, not a metric of points: FROM {PRICE}")
        for call in calls:
            if call["function_name"].lower() in JOINS:
                found += self._of_join(call)
        for path in (text.partition("#")[0] for text in texts):
            if re.fullmatch(r"[a-z0-9_]+/[a-z0-9_]+", path, re.I) and path not in self._standards:
                found.append(f"unknown metric {path!r}{near(path, list(self._standards))}")
        wanted = [metric for metric in _compared(tree, "metric") if metric in self._standards and metric != PRICE]
        found += [self._of_filter(metric, tree) for metric in wanted]
        if tables & {"universe", "products", "issuers", "deployments"} or "pit_universe" in names or any(
                node.get("schema_name") == "history" for node in tree):
            start = self._rows("SELECT CAST(min(known_since) AS VARCHAR) FROM registry_start")[0][0]
            found.append(f"the registry knows nothing before its first snapshot{f', {start}' if start else ': there is none'}")
        assets = [row[0] for row in self._rows("SELECT DISTINCT asset FROM points")] if texts else []
        small = [asset.lower() for asset in assets]
        found += [f"{text!r} is no asset{near(text, assets)}" for text in texts if text not in assets and text.lower() in small]
        return found

    def _rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, list(parameters)).fetchall()

    def _held(self, metric: str) -> list[tuple[Any, ...]]:
        columns = '"interval", asset, currency, exchange, network'
        return self._rows(f"SELECT DISTINCT {columns} FROM points WHERE metric = ?", [metric])

    def _of_null(self, path: str, pointer: str | None) -> str | None:
        """Whether a metric of objects was asked without a part of them, or for one that there is not."""
        known = [row[0] for row in self._rows(
            "SELECT DISTINCT component FROM (SELECT component FROM components WHERE metric = ? LIMIT 5000) ORDER BY 1", [path]
        )]
        if not known:
            return f"{path!r} holds plain numbers: ask it without #{pointer}" if pointer else None
        if not pointer:
            parts = " or ".join(repr(f"{path}#{part}") for part in known[:2])
            return f"{path!r} holds objects or lists: ask for a part of them, such as {parts}"
        return None if pointer in known else f"{path!r} has no part {pointer!r}{near(pointer, known, 2)}"

    def _of_filter(self, metric: str, tree: list[dict[str, Any]]) -> str | None:
        """What a WHERE wants of a metric that is not held."""
        rows = self._held(metric)
        if not rows:
            return f"the lake holds nothing of {metric!r}: fetch it first"
        for place, column in enumerate(("interval", "asset", *DIMENSIONS)):
            there = sorted({row[place] for row in rows if row[place] is not None})
            for text in _compared(tree, column):
                if text not in there:
                    word = "for" if column == "asset" else "with"
                    return f"nothing is held of {metric!r} {word} {column} {text!r}{near(text, there)}"
        return None

    def _of_join(self, call: dict[str, Any]) -> list[str | None]:
        """Why a join may have told nothing of its metrics."""
        named = {part["alias"].lower(): _texts_in(part) for part in call["children"] if part.get("alias")}
        places = [_texts_in(part) for part in call["children"] if not part.get("alias")]
        first = call["function_name"].lower() == "resample"
        none: list[str] = []
        metrics = [*places, none, none, none][0 if first else 1]
        intervals = none if first else [*places, none, none, none][2]
        option = {name: next(iter(named.get(name, none)), None) for name in (*DIMENSIONS, "component")}
        component = option.pop("component")
        interval = intervals[0] if intervals else None
        return [self.of_metric(metric, interval, [], option, component) for metric in metrics]


def _texts_in(root: Any) -> list[str]:
    """The constant texts below a node, each once."""
    found = [node["value"].get("value") for node in nodes_in(root) if node.get("class") == "CONSTANT"]
    return list(dict.fromkeys(text for text in found if isinstance(text, str)))


def _compared(tree: list[dict[str, Any]], column: str) -> list[str]:
    """The texts that a column is compared with, by `=` or IN."""
    found: list[str] = []
    for node in tree:
        kind = node.get("type")
        parts = [node["left"], node["right"]] if kind == "COMPARE_EQUAL" else node["children"] if kind == "COMPARE_IN" else []
        if any((part.get("column_names") or [""])[-1].lower() == column for part in parts):
            found += [text for part in parts if part.get("class") == "CONSTANT" for text in _texts_in(part)]
    return found
