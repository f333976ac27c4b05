"""Command line, if it is installed: some answers come only from it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import LakeError


def command() -> list[str]:
    """Returns the words that run it: those of `PITLAKE_COMMAND`, else `pitlake` on the path."""
    said = shlex.split(os.environ.get("PITLAKE_COMMAND", ""))
    found = shutil.which("pitlake") if not said else None
    if not said and found is None:
        raise LakeError(
            "the command line `pitlake` is not on the path: start Python in `make shell` of a checkout of pitlake, or set "
            "PITLAKE_COMMAND to what runs it, such as `node CHECKOUT/scripts/launch.cjs`"
        )
    return said or [str(found)]


def asked(folder: Path, arguments: Sequence[str], ends: Sequence[int] = (0,)) -> dict[str, Any]:
    """Runs the command with `--json` and returns its document; an exit code outside `ends` is an error."""
    line = [*command(), *arguments, "--data", str(folder), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, encoding="utf8")
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if done.returncode not in ends or not isinstance(document, dict):
        raise LakeError(done.stderr.strip() or f"`{' '.join(line)}` ended with {done.returncode}")
    return document


def asked_about(query: str | Path, folder: Path, name: str, options: Sequence[str], ends: Sequence[int] = (0,)) -> dict[str, Any]:
    """Runs the command on a query, which is in a file or is the text itself."""
    if isinstance(query, Path):
        return asked(folder, [name, str(query), *options], ends)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "query.sql"
        file.write_text(query, encoding="utf8")
        return asked(folder, [name, str(file), *options], ends)
