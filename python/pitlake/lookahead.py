"""Look-ahead test of a function: runs it without the future, or with a different one, and compares its rows."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from .backtests import rows_of
from .errors import LakeError, LakeWarning, refusal
from .fence import refuse_files
from .frames import write_frame
from .lake import Lake, Seat, open as open_lake, read_variables
from .program import command
from .text import quote, utc_sql


@dataclass(frozen=True)
class Verdict:
    """Outcome of `pitlake.lookahead`.

    It is true if the verdict is clean. `print(verdict)` shows a leak as a sentence.

    Attributes:
        verdict: `"clean"`, `"leak"` or `"undecided"`.
        reason: Reason of an undecided verdict; else None.
        differences: Rows that used the future, with their values with and without it.
        depends_on: Assumptions on which the rows depend.
        notes: Notes of the answers, and what no run can test.
        facts: The whole document that `pitlake lookahead --json` prints.
    """

    verdict: str
    reason: str | None
    differences: tuple[Mapping[str, Any], ...]
    depends_on: tuple[str, ...]
    notes: tuple[str, ...]
    facts: Mapping[str, Any]

    def __bool__(self) -> bool:
        """Whether the verdict is clean."""
        return self.verdict == "clean"

    def __str__(self) -> str:
        said = self.verdict if self.reason is None else f"{self.verdict}, {self.reason}"
        runs = f"{self.facts['rows']} rows tried in {self.facts['cutoffs']} runs and {self.facts['changed']} on altered data"
        turns = f"it depends on {', '.join(self.depends_on)}" if self.depends_on else ""
        return "\n".join([said, *map(_sentence, self.differences[:1]), runs, *filter(None, [turns]), *self.notes])


def _sentence(one: Mapping[str, Any]) -> str:
    """Describes a differing row as the command line and the page do."""
    (_, ts), *others = one["row"].items()
    at = f"on {_said(ts)}" + (f" ({', '.join(f'{name} {_said(value)}' for name, value in others)})" if others else "")
    at_end = _said(one["as_of"])
    otherwise = {"cut": f"with only the data known at {at_end}", "calendar": f"with no decisions after {at_end}"}.get(
        one["future"], "with different later data")
    if one["column"] is None:
        there, then = ("no row", "one") if one["full"] is None else ("a row", "none")
        return f"{at} there is {there}; {otherwise} there is {then}"
    return f"{at} it gives {one['column']} {_said(one['full'])}; {otherwise} {_said(one['truncated'])}"


def _said(value: Any) -> str:
    """Formats a value as it is read: a midnight is its day."""
    if isinstance(value, str):
        return re.sub(r"\.0+Z$", "Z", re.sub(r"T00:00:00(?:\.0+)?Z$", "", value))
    return f"{value:,.8g}" if isinstance(value, float) else json.dumps(value)


class _World(Seat):
    """Lake in a world: its views are in a throw-away database over the same files."""

    def __init__(self, folder: Path, database: Path, variables: Mapping[str, object], noted: list[str],
                 asked: list[str], whole: bool) -> None:
        # What only another world lacks says nothing of the lake.
        self.wants_notes = whole
        self._world, self._noted, self._asked = database, noted, asked
        super().__init__(folder, variables, {}, False)

    def _begin(self, folder: Path, database: Path) -> None:
        super()._begin(folder, self._world)

    def check_files(self) -> None:
        """Skips the check: it was made when the lake of this world was opened."""

    def check_sql(self, text: str) -> None:
        refuse_files(self.session, text)
        self._asked.append(text)

    def note(self, doubts: Sequence[str]) -> None:
        """Keeps notes for the verdict: a function that reads them sees others in each world, and looks like a leak."""
        self._noted += dict.fromkeys(doubts)

    def cursor(self, subject: str = "", **variables: object) -> duckdb.DuckDBPyConnection:
        """Opens a session; whatever instant is requested, it goes no further than its world."""
        own = super().cursor(subject, **variables)
        end = self.variables.get("as_of")
        if end is not None and variables.get("as_of") is not None:
            asked = utc_sql("getvariable('as_of')")
            own.execute(f"SET VARIABLE as_of = least({asked}, {utc_sql(quote(str(end)))})").fetchall()
        if self._end is not None:
            own.execute(f"""CREATE OR REPLACE TEMP MACRO calendar(since, until, step := '1 day') AS TABLE
                SELECT own.ts FROM lake.main.calendar(since, until, step := step) AS own WHERE own.ts <= {self._end} ORDER BY own.ts""").fetchall()
        return own

    @property
    def _end(self) -> str | None:
        """SQL of the instant at which calendars and decisions end in this world; None if they continue."""
        end = self.variables.get("proof_calendar")
        return None if end is None else f"({utc_sql(quote(str(end)))})"

    def until_end(self, decisions: str) -> str:
        """Builds the SQL of the decisions in this world: how many come after its end reveals the future, too."""
        return decisions if self._end is None else f"SELECT * FROM ({decisions}) WHERE coalesce(ts <= {self._end}, true)"


def lookahead(work: Callable[[Lake], Any], path: str | Path | None = None, *, ts: str = "ts", labels: Sequence[str] = (),
              cutoffs: int = 50, tolerance: float = 0.0, shift: Any = None, own: Mapping[str, Any] | None = None,
              set: Mapping[str, object] | None = None) -> Verdict:
    """Tests whether a function looks ahead.

    pitlake runs the function on the lake and on the lake cut at many times. It also runs it on lakes whose later points are
    missing or have different values. If a row whose `ts` is at or before the cut differs, it used the future. The verdict
    contains the notes of its answers; in the function `lake.notes` is empty. This needs the command `pitlake` on the path or in `PITLAKE_COMMAND`.

    Args:
        work: Function that takes a lake and returns a frame with `ts` as a column or the index, or the result of a backtest.
        path: Folder of the lake. Default: `PITLAKE_DATA`, else `data`.
        ts: Column with the time of each row.
        labels: Columns that may look ahead, such as the target of a model.
        cutoffs: Number of times at which the lake is cut.
        tolerance: Relative difference of numbers that counts as equal.
        shift: Time from the timestamp of a row to its decision, for the result of a backtest.
        own: Your own data, frames or files, by the names under which the function reads them. Rows with `available_at` are
            known from then on, all other rows always. A date in `available_at` counts from the end of its day.
        set: Further session variables by name, without `as_of`: the test itself sets it.

    Returns:
        The verdict. It is true if the function is clean.

    >>> import pitlake
    >>> def honest(lake):
    ...     return lake.panel(lake.calendar("2024-03-02", "2024-03-05", "1 day", ["BTC"]), ["supply/current_pit"])
    >>> pitlake.lookahead(honest, lake.folder).verdict  # doctest: +SKIP
    'clean'
    """
    with open_lake(path) as lake:
        folder = lake.folder

    def read_rows(lake: Lake) -> Any:
        return rows_of(work(lake), ts, shift)

    options = ["--ts", ts, "--cutoffs", str(cutoffs), "--tolerance", repr(tolerance), "--data", str(folder), "--json"]
    name = getattr(work, "__name__", "function")
    with tempfile.TemporaryDirectory() as scratch:
        given = {key: _file_of(key, frame, Path(scratch) / f"{n}.parquet") for n, (key, frame) in enumerate((own or {}).items())}
        files = [word for key, file in given.items() for word in ("--own", f"{key}={file}")]
        line = [*command(), "lookahead", name, "--function", *options, *(["--labels", ",".join(labels)] if labels else []), *files]
        # Without as_of, which the test sets itself.
        stand = {key: value for key, value in read_variables(set or {}).items() if key != "as_of"}
        return _proved(work, line, lambda asked: _answered(
            read_rows, folder, {**asked, "variables": {**stand, **asked["variables"]}}))


def _file_of(name: str, given: Any, file: Path) -> str:
    """Returns the file that was named, or writes the rows of a frame to one."""
    if isinstance(given, (str, Path)):
        return str(Path(given).resolve())
    write_frame(f"own: {name}", given, str(file))
    return str(file)


def _proved(work: Callable[[Lake], Any], line: Sequence[str], answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Verdict:
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          encoding="utf8") as peer:
        assert peer.stdin is not None and peer.stdout is not None and peer.stderr is not None
        try:
            _say(peer, {"text": _text_of(work)})
            for said in peer.stdout:
                if not said.rstrip().endswith("}"):
                    peer.stdin.close()
                    return _verdict(json.loads(said + peer.stdout.read()), _notes_of(work))
                _say(peer, answer(json.loads(said)))
        except BrokenPipeError:
            pass
        finally:
            if peer.poll() is None:
                peer.stdin.close()
        raise LakeError(peer.stderr.read().strip() or "pitlake lookahead ended without a verdict")


def _say(peer: subprocess.Popen[str], document: Mapping[str, Any]) -> None:
    assert peer.stdin is not None
    peer.stdin.write(json.dumps(document) + "\n")
    peer.stdin.flush()


def _text_of(work: Callable[..., Any]) -> str:
    """Reads the text of a function, which names the metrics that it reads; if it is empty all arrivals count."""
    try:
        return inspect.getsource(work)
    except (OSError, TypeError):
        return ""


def _notes_of(work: Callable[..., Any]) -> list[str]:
    """Notes what no run can show: a lake that the function names itself is whole in each."""
    try:
        seen = inspect.getclosurevars(inspect.unwrap(work))
    except TypeError:
        return []
    names = [name for name, value in {**seen.globals, **seen.nonlocals}.items() if isinstance(value, Lake)]
    return [f"it names the lake {name}, which is not cut: ask the lake that it is given" for name in names]


def _answered(work: Callable[[Lake], Any], folder: Path, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    noted: list[str] = []
    texts: list[str] = []
    world = Lake(lambda: _World(folder, Path(asked["database"]), asked["variables"], noted, texts, asked["whole"]))
    with world as lake, warnings.catch_warnings():
        # What there is to note of the whole lake stands in the verdict.
        warnings.simplefilter("ignore", LakeWarning)
        try:
            frame = work(lake)
        except Exception as error:  # noqa: BLE001: whatever it raises is reported
            return {"raised": f"{type(error).__name__}: {error}"}
        _write(lake, frame, Path(asked["rows"]))
    return {"done": True, "notes": noted, "asked": list(dict.fromkeys(texts))}


def _write(lake: Lake, frame: Any, file: Path) -> None:
    """Writes the rows as Parquet."""
    own = lake._open().cursor()
    try:
        own.register("_pit_rows", frame)
    except Exception:
        raise refusal("lookahead", "a frame of pandas, polars or pyarrow", type(frame).__name__) from None
    own.execute(f"COPY (SELECT * FROM _pit_rows) TO {quote(file)} (FORMAT parquet)").fetchall()


def _verdict(facts: Mapping[str, Any], notes: Sequence[str]) -> Verdict:
    if "verdict" not in facts:
        raise LakeError(str(facts.get("error", facts)))
    return Verdict(facts["verdict"], facts["reason"], tuple(facts["differences"]), tuple(facts["depends_on"]),
                   (*notes, *facts["notes"]), facts)
