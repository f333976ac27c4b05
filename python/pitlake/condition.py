"""Conditions on the view `universe` that a caller writes."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from .errors import refusal
from .text import quote


def check_condition(own: duckdb.DuckDBPyConnection, condition: str) -> None:
    """Refuses a text that is not one condition; none of it runs before that is known."""
    select = f"SELECT product_id FROM universe WHERE (\n{condition}\n) LIMIT 0"
    is_one_statement = len(own.extract_statements(select)) == 1
    if is_one_statement and _shell(own, condition) == _shell(own, "true"):
        # DuckDB names an unknown column.
        own.execute(select).fetchall()
        return
    raise refusal("universe", "one condition", condition)


def _shell(own: duckdb.DuckDBPyConnection, expression: str) -> tuple[int, Any]:
    """Parses a SELECT of an expression in brackets: the number of its columns, and the tree around them."""
    sql = quote(f"SELECT (\n{expression}\n)")
    row = own.execute(f"SELECT CAST(system.main.json_serialize_sql(CAST({sql} AS VARCHAR)) AS VARCHAR)").fetchall()[0]
    statements = json.loads(row[0]).get("statements", [])
    node = statements[0]["node"] if len(statements) == 1 else {}
    columns = node.pop("select_list", [])
    return len(columns), node
