"""What a query may not do where its answer must follow from the lake alone."""

from __future__ import annotations

import json
import re

import duckdb

from .doubts import nodes_in
from .errors import refusal

READERS = r"read_\w+|\w+_scan|scan_\w+|\w*glob|sniff_\w+|parquet_\w+|query|query_table|getenv"
OUTSIDE = ("ATTACH", "DETACH", "COPY", "COPY_DATABASE", "EXPORT", "LOAD", "PRAGMA", "EXTENSION", "CALL", "LOGICAL_PLAN", "EXECUTE")
_MAKES = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:\"[^\"]+\"|\w+)\s+AS\b", re.I)


def refuse_files(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuses SQL that reads or names a file: what files hold is not cut at an instant."""
    for statement in connection.extract_statements(text):
        kind = statement.type.name
        got = kind if kind in OUTSIDE else _reader_in(connection, statement.query or text)
        if got is not None:
            raise refusal("lookahead", "SQL over the views and macros of the lake", got, "what files hold is not cut at an instant, "
                          "which would hide a leak: read them outside of the function, and lend them by frames=")


def _reader_in(connection: duckdb.DuckDBPyConnection, statement: str) -> str | None:
    """What of a statement reads a file."""
    words = re.sub(r"--[^\n]*|/\*.*?\*/", " ", statement, flags=re.S)
    row = connection.execute("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", [_MAKES.sub("", words)]).fetchall()[0]
    tree = json.loads(row[0]).get("statements", [])
    if not tree:
        # Not a SELECT: its words tell.
        called = re.search(rf"\b({READERS})\"?\s*\(", re.sub(r"'(?:[^']|'')*'", "''", words), re.I)
        named = re.search(r"\b(?:from|join|using|pivot)\s+('[^']*'|\"[^\"]*[./\\*][^\"]*\")", words, re.I)
        return f"{called[1].lower()}()" if called else f"the file {named[1]}" if named else None
    for node in nodes_in(tree):
        name = str(node.get("function_name", ""))
        if re.fullmatch(READERS, name, re.I):
            return f"{name.lower()}()"
        if node.get("type") == "BASE_TABLE" and re.search(r"[./\\*]", str(node["table_name"])):
            return f"the file {node['table_name']!r}"
    return None
