"""Runs a command of pitlake and says what its ending means for whoever schedules it. Needs nothing but Python 3.9.

PITLAKE_COMMAND is the program (default: pitlake), PITLAKE_HOME the folder of pitlake.yaml (default: the current one).
Address and key of the providers come from the environment, as everywhere.
"""

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, the JSON document on stdout, the words on stderr."""

    code: int
    document: dict
    words: str

    @property
    def done(self) -> bool:
        """It did its work, whatever it found: 0; 4 and 6 where it came to a report of its own."""
        return self.code == 0 or (self.code in (4, 6) and "error" not in self.document)

    @property
    def later(self) -> bool:
        """The same command brings more later: a spent quota, a full disk, another job, what nobody foresaw."""
        return not self.done and self.code in (1, 5, 6, 7)

    @property
    def wait(self) -> float:
        """For how many seconds, an hour at most: until the quota comes back, where the provider says when."""
        at = self.document.get("resume_at")
        if at is None:
            return 60.0 if self.code == 7 else 600.0
        left = datetime.fromisoformat(at.replace("Z", "+00:00")) - datetime.now(timezone.utc)
        return min(max(left.total_seconds(), 60.0), 3600.0)

    def facts(self) -> dict:
        """What the report says in single values, and the exit code."""
        plain = {key: value for key, value in self.document.items() if isinstance(value, (str, int, float, bool))}
        return {**plain, "exit_code": self.code}


def run(*argv: str) -> Ended:
    """Runs `pitlake <argv> --json`; whoever is stopped meanwhile stops it in good order."""
    command = shlex.split(os.environ.get("PITLAKE_COMMAND", "pitlake"))
    process = subprocess.Popen(
        [*command, *argv, "--json"],
        cwd=os.environ.get("PITLAKE_HOME"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, words = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    try:
        document = json.loads(out)
    except ValueError:
        document = {"error": {"kind": "unexpected"}}
    return Ended(process.returncode, document, words.strip())
