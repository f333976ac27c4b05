"""Whether the files that the views read are as they were committed, as the command line looks when it opens a lake."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from .errors import refusal

MOST_READ = 500_000_000
"""So much is read on opening of files that nobody proved where they stand: a second's work."""


def refuse_changed(folder: Path, version: int) -> None:
    """Refuses a lake in which such a file has another size, or other bytes since it was last proved."""
    proved = _json(folder / "exports" / "proved.json")
    left = MOST_READ
    for path, size, checksum in [*_committed(folder, version), *_made(folder, version)]:
        try:
            own = os.stat(folder / path)
        except OSError:
            # One that is missing is named by whoever reads it.
            continue
        made = "made for the views" if size is None else "committed"
        fix = "run `pitlake views`: it makes them anew" if size is None else "run `pitlake doctor` to see what is damaged and what helps"
        if size is not None and size != own.st_size:
            raise refusal(path, f"the {size} bytes that were {made}", f"{own.st_size} bytes", fix)
        if proved.get(path) == _told(own) or own.st_size > left:
            continue
        left -= own.st_size
        if not _digest(folder / path).startswith(checksum):
            raise refusal(path, f"the bytes that were {made}", "others", fix)


def _committed(folder: Path, version: int) -> list[tuple[str, int | None, str]]:
    """What the index says of the files of a version; nothing where there is none, or it cannot be read."""
    try:
        index = sqlite3.connect(f"{(folder / 'ledger.sqlite').as_uri()}?mode=ro", uri=True, timeout=1)
        try:
            return index.execute(
                """SELECT DISTINCT path, bytes, sha256 FROM files
                WHERE added_version <= ?1 AND (removed_version IS NULL OR removed_version > ?1)""", [version]).fetchall()
        finally:
            index.close()
    except sqlite3.Error:
        return []


def _made(folder: Path, version: int) -> Iterator[tuple[str, int | None, str]]:
    """What was made for the views of this version; the names begin with the checksum of the bytes."""
    manifest = _json(folder / "lake.manifest.json")
    tables = manifest.get("tables")
    if manifest.get("version") != version or not isinstance(tables, dict):
        return
    for path in sorted({path for paths in tables.values() for path in paths}):
        named = re.search(r"^exports/.*-([0-9a-f]{16})-\d{10,}-", path)
        if named:
            yield path, None, named[1]


def _told(facts: os.stat_result) -> str:
    """What tells a file apart without reading it, as the command line writes it down: milliseconds as doubles."""
    times = (moment // 10**9 * 1e3 + moment % 10**9 / 1e6 for moment in (facts.st_mtime_ns, facts.st_ctime_ns))
    return " ".join([str(facts.st_ino), str(facts.st_size), *(repr(time).removesuffix(".0") for time in times)])


def _digest(path: Path) -> str:
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            whole.update(part)
    return whole.hexdigest()


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}
