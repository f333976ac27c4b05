"""What a query may not do where its answer must follow from the lake alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import duckdb

from .errors import READ_ONLY, WRITES, refusal

READERS = r"read_\w+|\w+_scan|scan_\w+|\w*glob|sniff_\w+|parquet_\w+|query|query_table|getenv"
OUTSIDE = ("ATTACH", "DETACH", "COPY", "COPY_DATABASE", "EXPORT", "LOAD", "PRAGMA", "EXTENSION", "CALL", "LOGICAL_PLAN", "EXECUTE")
READING = ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE")
_SIGNS = re.compile(r"""(e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\2\$)|--[^\n]*|/\*.*?\*/""", re.S | re.I)
_WRITES = re.compile(r"\bAS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\(\s*(COPY|INSERT|UPDATE|DELETE|MERGE|TRUNCATE)\b\s*[\w\"(]", re.I)
_MAKES = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:\"[^\"]+\"|\w+)\s+AS\b", re.I)


def refuse_files(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuses SQL that reads or names a file: what files hold is not cut at an instant."""
    # DuckDB 2.0 runs a COPY or an INSERT in a WITH as a SELECT; before it was an error of the parser.
    writes = _WRITES.search(_bare(text))
    for statement in [] if writes else connection.extract_statements(text):
        kind = statement.type.name
        _refuse(kind if kind in OUTSIDE else _reader_in(connection, statement.query or text))
    _refuse(f"{writes[1].upper()} in a WITH" if writes else None)


def refuse_hidden(text: str) -> None:
    """Refuses what writes behind the word WITH, where nobody looks for it."""
    if _WRITES.search(_bare(text)):
        raise refusal("SQL", WRITES, "a statement that writes, in a WITH", READ_ONLY)


def _refuse(got: str | None) -> None:
    if got is not None:
        raise refusal("lookahead", "SQL over the views and macros of the lake", got, "what files hold is not cut at an instant, "
                      "which would hide a leak: read them outside of the function, and lend them by frames=")


def _bare(text: str) -> str:
    """Without comments, its texts empty."""
    return _SIGNS.sub(lambda sign: (sign[1] if sign[1].startswith('"') else "''") if sign[1] else " ", text)


def _reader_in(connection: duckdb.DuckDBPyConnection, statement: str) -> str | None:
    """What of a statement reads a file, or writes one."""
    words = _SIGNS.sub(lambda sign: sign[1] or " ", statement)
    tree = parsed(connection, _MAKES.sub("", words))
    if not tree:
        # Not a SELECT: its words tell.
        called = re.search(rf"\b({READERS})\"?\s*\(", _bare(words), re.I)
        named = re.search(r"\b(?:from|join|using|pivot)\s+('[^']*'|\"[^\"]*[./\\*][^\"]*\")", words, re.I)
        return f"{called[1].lower()}()" if called else f"the file {named[1]}" if named else None
    for node in tree:
        name, kind = str(node.get("function_name", "")), str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in READING:
            return f"{kind.split('_')[0]} in a WITH"
        if re.fullmatch(READERS, name, re.I):
            return f"{name.lower()}()"
        if kind == "BASE_TABLE" and re.search(r"[./\\*]", str(node["table_name"])):
            return f"the file {node['table_name']!r}"
    return None


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
