"""A query as DuckDB reads it, in the shape that DuckDB 1.5 gives it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb


def parsed(connection: duckdb.DuckDBPyConnection, text: str) -> list[dict[str, Any]]:
    """Every node of the statements; none where the text is no SELECT."""
    row = connection.execute("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", [text]).fetchall()[0]
    return list(nodes_in(json.loads(row[0], object_hook=_as_before).get("statements", [])))


def nodes_in(root: Any) -> Iterator[dict[str, Any]]:
    """The objects below a value, the outer before the inner."""
    if isinstance(root, dict):
        yield root
    for part in root.values() if isinstance(root, dict) else root if isinstance(root, list) else []:
        yield from nodes_in(part)


def _as_before(node: dict[str, Any]) -> dict[str, Any]:
    """DuckDB 2.0 writes constants and arguments under other names."""
    if "literal" in node:
        node["value"] = {"value": node["literal"]["text"] if node["literal"]["kind"] == "STRING" else None}
    if "arguments" in node:
        node["children"] = [one["expression"] for one in node.pop("arguments")]
    return node
