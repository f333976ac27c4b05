"""Prints signatures and docstrings of the Python package as JSON, for scripts/reference-pages.ts; imports nothing of it."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "pitlake"
SHOWN = ("__len__", "__getitem__", "__iter__")
"""Calls with signs of their own, such as `len(answer)`, that belong to the reference."""


def parsed(module: str) -> ast.Module:
    """The syntax tree of a module of the package."""
    return ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf8"))


def parameters_of(function: ast.FunctionDef) -> list[dict[str, Any]]:
    """Parameters in their order, without `self`: `star` is true for the first that must be named."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    named = list(zip(plain, defaults)) + list(zip(given.kwonlyargs, given.kw_defaults))
    found = [
        {
            "name": parameter.arg,
            "type": None if parameter.annotation is None else ast.unparse(parameter.annotation),
            "default": None if default is None else ast.unparse(default),
            "star": bool(given.kwonlyargs) and parameter is given.kwonlyargs[0],
        }
        for parameter, default in named
        if parameter.arg != "self"
    ]
    if given.kwarg is not None:
        kind = given.kwarg.annotation
        found.append({"name": f"**{given.kwarg.arg}", "type": None if kind is None else ast.unparse(kind), "default": None, "star": False})
    return found


def function_facts(function: ast.FunctionDef) -> dict[str, Any]:
    """What the reference shows of a function or method."""
    decorators = [ast.unparse(one) for one in function.decorator_list]
    return {
        "kind": "property" if "property" in decorators else "function",
        "name": function.name,
        "parameters": parameters_of(function),
        "returns": None if function.returns is None else ast.unparse(function.returns),
        "docstring": ast.get_docstring(function) or "",
        "members": [],
    }


def class_facts(node: ast.ClassDef) -> dict[str, Any]:
    """What the reference shows of a class and its public members."""
    members = [
        function_facts(one)
        for one in node.body
        if isinstance(one, ast.FunctionDef) and (not one.name.startswith("_") or one.name in SHOWN)
    ]
    return {"kind": "class", "name": node.name, "parameters": [], "returns": None, "docstring": ast.get_docstring(node) or "", "members": members}


def exports() -> list[dict[str, Any]]:
    """Everything that the package exports, in the order of `__all__`."""
    package = parsed("__init__")
    modules = {alias.asname or alias.name: (node.module or "", alias.name) for node in package.body
               if isinstance(node, ast.ImportFrom) for alias in node.names}
    names = next(ast.literal_eval(node.value) for node in package.body
                 if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    found = []
    for exported in names:
        module, name = modules[exported]
        node = next(one for one in parsed(module).body if isinstance(one, (ast.ClassDef, ast.FunctionDef)) and one.name == name)
        found.append(class_facts(node) if isinstance(node, ast.ClassDef) else function_facts(node))
    return found


ENGINES = {
    "vectorbt": ["frames"],
    "backtesting": ["feed"],
    "zipline": ["KnownLoader"],
    "nautilus": ["points", "KnownPoint", "Known"],
    "qlib": ["features", "write"],
    "bars": ["known_at", "decided_at"],
    "events": ["events"],
}
"""Public names of each adapter for a backtesting engine."""


def engines() -> list[dict[str, Any]]:
    """The adapters for backtesting engines; their names begin with the module."""
    found = []
    for module, names in ENGINES.items():
        nodes = {one.name: one for one in parsed(f"engines/{module}").body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        for name in names:
            node = nodes[name]
            facts = {**class_facts(node), "members": []} if isinstance(node, ast.ClassDef) else function_facts(node)
            found.append({**facts, "name": f"{module}.{name}"})
    return found


def types() -> list[dict[str, str]]:
    """Named types of parameters: an assignment of the module `text` with a text below it."""
    body = parsed("text").body
    return [
        {"name": ast.unparse(one.targets[0]), "docstring": str(below.value.value)}
        for one, below in zip(body, body[1:])
        if isinstance(one, ast.Assign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    ]


if __name__ == "__main__":
    json.dump({"package": ast.get_docstring(parsed("__init__")), "exports": exports(), "engines": engines(), "types": types()}, sys.stdout)
