"""Keeps vacuum from the files that an open lake reads, by the lake's own locks: a pin is a lock file and its holder beside it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import time
from pathlib import Path


class Pin:
    """Held until it is released, or its process ends. In a folder that cannot be written nothing is held."""

    def __init__(self, folder: Path) -> None:
        name = f"pin-python-{os.getpid()}-{secrets.token_hex(4)}"
        self._lock, self._holder = folder / "locks" / f"{name}.lock", folder / "locks" / f"{name}.json"
        self._owner = os.getpid()
        self._hold = self._take()

    @property
    def held(self) -> bool:
        return self._hold is not None

    def since(self, micros: int) -> None:
        """From here on only what was in the view at this instant, or came later, is kept; before that everything is."""
        if self._hold is None:
            return
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "command": "pitlake in Python", "since": micros}
        self._holder.write_text(json.dumps(holder) + "\n", encoding="utf8")

    def release(self) -> None:
        """Lets go. A process that was forked from the one that took the pin leaves it alone."""
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
