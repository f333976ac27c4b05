"""`%%pit` in Jupyter: a cell of SQL on the open lake.

    %load_ext pitlake

    %%pit lake -o frame
    SELECT * FROM pit_join('decisions', 'price_usd', '24h')
"""

from __future__ import annotations

import re
from typing import Any

from .errors import refusal
from .frames import kind_of, known_names
from .lake import Lake


def load_ipython_extension(ipython: Any) -> None:
    """Adds the cell magic `%%pit` to a notebook; `%load_ext pitlake` calls it.

    Args:
        ipython: Shell of the notebook.

    >>> get_ipython().run_line_magic("load_ext", "pitlake")  # doctest: +SKIP
    """

    def pit(line: str, cell: str) -> Any:
        """Runs `%%pit [LAKE] [-o NAME]`: LAKE is a variable (default: lake), NAME one for the answer."""
        return run(ipython, line, cell)

    ipython.register_magic_function(pit, magic_kind="cell", magic_name="pit")


def run(ipython: Any, line: str, cell: str) -> Any:
    """Runs a cell; frames of the notebook that the SQL names are lent to it.

    A frame with the name of a view of the lake is refused if the cell reads that name, since either could be meant.
    """
    match = re.fullmatch(r"\s*(?P<lake>[A-Za-z_]\w*)?\s*(?:-o\s+(?P<out>[A-Za-z_]\w*))?\s*", line)
    if match is None:
        raise refusal("%%pit", "%%pit [LAKE] [-o NAME]", repr(line.strip()))
    names, own = ipython.user_ns, match["lake"] or "lake"
    lake = names.get(own)
    if not isinstance(lake, Lake):
        raise refusal("%%pit", f"an open lake in the variable {own}", type(lake).__name__, f"{own} = pitlake.open(…)")
    words = set(re.findall(r"[A-Za-z_]\w*", cell))
    known = known_names(lake._open().session)
    frames = {name: value for name, value in names.items() if name in words and _is_frame(value)
              and (name.lower() not in known or _reads(cell, name))}
    answer = lake.sql(cell, frames=frames)
    if match["out"]:
        ipython.push({match["out"]: answer})
    return answer


def _reads(cell: str, name: str) -> bool:
    """Whether a cell reads a relation of this name, by its words: `FROM name`, `JOIN name`, or `'name'` for a join."""
    return re.search(rf"""\b(?:from|join)\s+"?{name}\b|'{name}'""", cell, re.I) is not None


def _is_frame(value: Any) -> bool:
    return kind_of(value) in ("pandas", "polars", "pyarrow") and hasattr(value, "columns")
