"""Folder of a lake: checks that its files are as committed, finds its views, and keeps vacuum away."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from .errors import refusal
from .text import literal_path

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
        fix = "run `pitlake views`: it rebuilds them" if size is None else "run `pitlake doctor` to see what is damaged and what helps"
        if size is not None and size != own.st_size:
            raise refusal(path, f"the {size} bytes that were {made}", f"{own.st_size} bytes", fix)
        if proved.get(path) == _file_identity(own) or own.st_size > left:
            continue
        left -= own.st_size
        if not _digest(folder / path).startswith(checksum):
            raise refusal(path, f"the bytes that were {made}", "others", fix)


def lag_of_mirror(folder: Path) -> str | None:
    """Reports in words that a mirror is older than its source lake on this machine; None if it is not."""
    own = _json(folder / "lake.json")
    source = own.get("mirror_of")
    if not isinstance(source, str) or "://" in source or _json(Path(source) / "lake.json").get("lake") != own.get("lake"):
        return None
    newest, made = _newest_version(Path(source)), _newest_version(folder)
    if made >= newest:
        return None
    return f"the data of this mirror are of version {made}, the lake is at {newest}: run pitlake pull {source}"


def _newest_version(folder: Path) -> int:
    """Finds the newest version in the journal of a folder, by its names alone; 0 if there is none."""
    try:
        names = os.listdir(folder / "journal")
    except OSError:
        return 0
    return max((int(found[1]) for name in names if (found := re.fullmatch(r"(\d{10,15})(?:\.json\.gz|\.checkpoint\.jsonl)", name))), default=0)


def lag_of_views(folder: Path) -> str | None:
    """Reports in words that the views of a lake are older than its journal; None if they are current."""
    # Listed first: a version that comes meanwhile, with its views, is then no lag.
    newest = _newest_version(folder)
    made = _version_of_views(folder)
    if newest == 0 or made is None or made >= newest:
        return None
    return f"the views of this lake are of version {made}, the lake is at {newest}: run pitlake views"


def _version_of_views(folder: Path) -> int | None:
    """Reads the version that the first line of `lake.sql` names; None if there is none."""
    try:
        with (folder / "lake.sql").open(encoding="utf8") as script:
            named = re.search(r" as of version (\d+):", script.readline())
    except OSError:
        return None
    return int(named[1]) if named else None


def _committed(folder: Path, version: int) -> list[tuple[str, int | None, str]]:
    """Reads the files of a version from the index; empty if there is none, or it cannot be read."""
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
    """Yields the files that were made for the views of this version; their names contain the checksum of the bytes."""
    manifest = _json(folder / "lake.manifest.json")
    tables = manifest.get("tables")
    if manifest.get("version") != version or not isinstance(tables, dict):
        return
    for path in sorted({path for paths in tables.values() for path in paths}):
        named = re.search(r"^exports/.*-([0-9a-f]{16})-\d{10,}-", path)
        if named:
            yield path, None, named[1]


def _file_identity(facts: os.stat_result) -> str:
    """Identifies a file without reading it, in the form that the command line records: milliseconds as doubles."""
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


def _first_line(file: Path) -> str:
    """Reads the first line of a text; empty if there is none."""
    if not file.exists():
        return ""
    with file.open(encoding="utf8") as text:
        return text.readline()


@contextmanager
def made_here(folder: Path, database: Path) -> Iterator[Path]:
    """Makes a database of the views in `lake.sql` if that was made for another folder; else yields the folder's own."""
    script = folder / "lake.sql"
    built = re.match(r"-- The lake in (.*) as of version \d+:", _first_line(script) if database.parent == folder else "")
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


_QUOTES = tuple("'" * count for count in (1, 2, 4, 8))
"""Quotes of a text, of a text within a text, and so on: at each level every quote stands twice."""


def _renamed(script: str, built: str, folder: str) -> str:
    """Moves a script of views to another folder: its first line and the paths in it.

    The path of a file is a pattern, that of the folder is none. The command line has the same rule (`moved-script.ts`).
    """
    head = f"\\A-- The lake in {re.escape(built)}(?= as of version )"
    starts = [
        f"{quotes}(?:{'|'.join(re.escape(_spelled(path, quotes)) for path in (built, literal_path(built)))})(?=/|{quotes}(?!{quotes}))"
        for quotes in _QUOTES
    ]

    def moved(found: re.Match[str]) -> str:
        quotes = "'" * (len(found[0]) - len(found[0].lstrip("'")))
        if quotes == "":
            return f"-- The lake in {folder}"
        is_file = script[found.end()] == "/"
        return quotes + _spelled(literal_path(folder) if is_file else folder, quotes)

    return re.sub(f"{head}|(?<!')(?:{'|'.join(starts)})", moved, script)


def _spelled(path: str, quotes: str) -> str:
    """Escapes the quotes of a path within these quotes."""
    return path.replace("'", quotes * 2)


class Pin:
    """Keeps vacuum from the files that an open lake reads, by the lake's own locks: a lock file and its holder's file.

    The lock stays until it is released, or its process ends. In a folder that cannot be written there is none.
    """

    def __init__(self, folder: Path) -> None:
        name = f"pin-python-{os.getpid()}-{secrets.token_hex(4)}"
        self._lock, self._holder = folder / "locks" / f"{name}.lock", folder / "locks" / f"{name}.json"
        self._owner = os.getpid()
        self._hold = self._take()

    @property
    def held(self) -> bool:
        return self._hold is not None

    def since(self, micros: int) -> None:
        """Narrows the pin, which keeps everything, to files that were in the view at this instant, or came later."""
        if self._hold is None:
            return
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "command": "pitlake in Python", "since": micros}
        self._holder.write_text(json.dumps(holder) + "\n", encoding="utf8")

    def release(self) -> None:
        """Releases the pin. A process that was forked from the one that took it leaves it alone."""
        hold, self._hold = self._hold, None
        if hold is None or os.getpid() != self._owner:
            return
        self._holder.unlink(missing_ok=True)
        hold.close()
        self._lock.unlink(missing_ok=True)

    def _take(self) -> sqlite3.Connection | None:
        for _ in range(100):
            hold = None
            try:
                self._lock.parent.mkdir(exist_ok=True)
                hold = sqlite3.connect(self._lock, timeout=0, isolation_level=None, check_same_thread=False)
                hold.execute("BEGIN EXCLUSIVE")
                return hold
            except sqlite3.OperationalError as error:
                if hold is not None:
                    hold.close()
                if "locked" not in str(error):
                    return None
                # Whoever looks whether it is free holds it for a moment.
                time.sleep(0.005)
            except OSError:
                return None
        return None
