"""Limits of SQL that a caller writes: what it may be, and what it may read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import duckdb

from .errors import READ_ONLY, WRITES, refusal

READERS = r"read_\w+|\w+_scan|scan_\w+|\w*glob|sniff_\w+|parquet_\w+|query|query_table|getenv"
OUTSIDE = ("ATTACH", "DETACH", "COPY", "COPY_DATABASE", "EXPORT", "LOAD", "PRAGMA", "EXTENSION", "CALL", "LOGICAL_PLAN", "EXECUTE")
_SIGNS = re.compile(r"""(e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\2\$)|--[^\n]*|/\*.*?\*/""", re.S | re.I)
_WRITES = re.compile(r"\bAS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\(\s*(COPY|INSERT|UPDATE|DELETE|MERGE|TRUNCATE)\b\s*[\w\"(]", re.I)


def refuse_files(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuses SQL that reads or names a file: the content of files is not cut at an instant."""
    # DuckDB 2.0 runs a COPY or an INSERT in a WITH as a SELECT; before it was an error of the parser.
    writes = _WRITES.search(_bare(text))
    for statement in [] if writes else connection.extract_statements(text):
        kind = statement.type.name
        _refuse(kind if kind in OUTSIDE else _reader_in(connection, statement.query or text))
    _refuse(f"{writes[1].upper()} in a WITH" if writes else None)


def refuse_hidden(text: str) -> None:
    """Refuses a statement that writes behind the word WITH, where a reader does not expect it."""
    if _WRITES.search(_bare(text)):
        raise refusal("SQL", WRITES, "a statement that writes, in a WITH", READ_ONLY)


def one_select(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement | None:
    """Parses a text that is exactly one SELECT; None for any other text."""
    statements = connection.extract_statements(text)
    return statements[0] if len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT else None


def is_one_expression(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    """Whether a text is exactly one expression: the tree around it must equal the tree around `true`."""
    shell = _shell_around(connection, text)
    return shell is not None and shell == _shell_around(connection, "true")


def _shell_around(connection: duckdb.DuckDBPyConnection, expression: str) -> dict[str, Any] | None:
    """Parses the SELECT of one expression, and removes that; None if the text is a different statement or none."""
    if "\0" in expression:
        # DuckDB reads a statement up to its first NUL.
        return None
    [(tree,)] = connection.execute(
        "SELECT CAST(system.main.json_serialize_sql(CAST($1 AS VARCHAR)) AS VARCHAR)", [f"SELECT (\n{expression}\n)"]).fetchall()
    statements = json.loads(tree).get("statements", [])
    node: dict[str, Any] = statements[0]["node"] if len(statements) == 1 else {}
    return {**node, "select_list": None} if len(node.get("select_list", [])) == 1 else None


def refuse_import(statements: Iterable[duckdb.Statement]) -> None:
    """Refuses IMPORT DATABASE: it is one statement that runs all those of a file."""
    if any(one.type == duckdb.StatementType.PRAGMA and re.search(r"\bIMPORT\b", _bare(one.query), re.I) for one in statements):
        raise refusal("SQL", WRITES, "IMPORT", READ_ONLY)


def _refuse(got: str | None) -> None:
    if got is not None:
        raise refusal("lookahead", "SQL over the views and macros of the lake", got, "what files hold is not cut at an instant, "
                      "which would hide a leak: read them outside of the function, and lend them by frames=")


def _bare(text: str) -> str:
    """Removes the comments of a statement, and empties its texts."""
    return _SIGNS.sub(lambda sign: (sign[1] if sign[1].startswith('"') else "''") if sign[1] else " ", text)


def _reader_in(connection: duckdb.DuckDBPyConnection, statement: str) -> str | None:
    """Finds what reads a file in a statement: the lake reports it for a SELECT, for others their words do."""
    [(asked,)] = connection.execute("SELECT CAST(asked AS VARCHAR) FROM question_asked([CAST(? AS VARCHAR)])", [statement]).fetchall()
    tables: list[str] = json.loads(asked)["tables"]
    found = [f"{name}()" if re.fullmatch(READERS, name) else f"the file {name!r}" for name in tables if re.fullmatch(rf"{READERS}|.*[./\\*].*", name)]
    if tables:
        return found[0] if found else None
    words = _SIGNS.sub(lambda sign: sign[1] or " ", statement)
    called = re.search(rf"\b({READERS})\"?\s*\(", _bare(words), re.I)
    named = re.search(r"\b(?:from|join|using|pivot)\s+('[^']*'|\"[^\"]*[./\\*][^\"]*\")", words, re.I)
    return f"{called[1].lower()}()" if called else f"the file {named[1]}" if named else None
