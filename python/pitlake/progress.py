"""A bar on the standard error while a query takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

PATIENCE = 1.0
WIDTH = 30


def wanted(choice: bool | None) -> bool:
    """Whether bars are shown: as was said, else on a terminal and in a notebook."""
    if choice is not None:
        return choice
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def bar(connection: Any, on: bool, out: TextIO | None = None, patience: float = PATIENCE) -> Iterator[None]:
    """Shows how far the query is that the connection is at, as far as DuckDB can tell."""
    told = getattr(connection, "query_progress", None)
    if not on or told is None:
        yield
        return
    stream, done = out or sys.stderr, threading.Event()

    def watch() -> None:
        shown = False
        while not done.wait(patience if not shown else 0.2):
            share = told()
            if share < 0:
                continue
            full = int(WIDTH * min(share, 100) / 100)
            stream.write(f"\r{'█' * full}{'░' * (WIDTH - full)} {share:3.0f} %")
            stream.flush()
            shown = True
        if shown:
            stream.write("\r" + " " * (WIDTH + 6) + "\r")
            stream.flush()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
