"""A lake that was moved or copied: its views anew, over the files where they are now."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb


@contextmanager
def made_here(folder: Path, database: Path) -> Iterator[Path]:
    """A database of the views in `lake.sql` where that was made for another folder; else the folder's own."""
    script = folder / "lake.sql"
    head = script.open(encoding="utf8").readline() if database.parent == folder and script.exists() else ""
    built = re.match(r"-- The lake in (.*) as of version \d+:", head)
    if built is None or Path(built[1]).resolve() == folder:
        yield database
        return
    # In a file, since what is attached for reading alone nobody changes; once it is open it needs no name.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        views = Path(scratch) / "lake.duckdb"
        with duckdb.connect(str(views)) as engine:
            for statement in engine.extract_statements(_renamed(script.read_text(encoding="utf8"), built[1], str(folder))):
                if re.match(r"(?:\s|--[^\n]*\n)*CREATE (?:OR REPLACE )?(?:SCHEMA|VIEW|MACRO)\b", statement.query):
                    engine.execute(statement)
        yield views


def _renamed(script: str, built: str, folder: str) -> str:
    """The script with the paths of its files in another folder: a file's path is a pattern, that of the folder is none."""
    for quotes in ("'", "''"):
        # Within a text that is SQL each quote stands twice.
        old, new, files = (path.replace("'", quotes * 2) for path in (built, folder, _literal(folder)))
        told = "|".join(map(re.escape, {old, _literal(old)}))
        script = re.sub(f"(?<!'){quotes}(?:{told})(?=(['/]))", lambda found: quotes + (new if found[1] == "'" else files), script)
    return script


def _literal(path: str) -> str:
    """The path with what DuckDB would take for a pattern made literal."""
    return re.sub(r"[*?[]", r"[\g<0>]", path)
