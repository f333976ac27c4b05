"""Answers questions about a lake by the package, a line of JSON each. usage: PITLAKE_DATA=LAKE python doors.py"""

import json
import sys
import warnings
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "python"))

import pandas as pd  # noqa: E402
import pitlake  # noqa: E402

lakes = {}


def answered(lake, ask):
    [(kind, given)] = ask.items()
    given = dict(given) if isinstance(given, dict) else given
    if kind == "sql":
        return lake.sql(given)
    if kind in ("panel", "join"):
        decisions = pd.DataFrame(given.pop("decisions")) if "decisions" in given else grid(lake, given.pop("calendar"), given)
        if "with" in given:
            given["universe_columns"] = given.pop("with")
        if kind == "panel":
            return lake.panel(decisions, **given)
        return lake.window(decisions, **given) if "n" in given else lake.pit_join(decisions, **given)
    if kind == "points":
        return lake.points(**given)
    if kind == "calendar":
        return lake.calendar(**given)
    if kind == "universe":
        return lake.universe(given["ts"])
    return lake.metrics()


def grid(lake, calendar, given):
    return lake.calendar(*(calendar.split(",") if isinstance(calendar, str) else calendar.values()), assets=given.pop("assets", None))


def plain(value):
    """As JSON has it."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if hasattr(value, "nanoseconds"):
        seconds, parts = value.nanoseconds // 10**9, []
        for count, unit in ((value.months, "month"), (value.days, "day")):
            parts += [f"{count} {unit}{'' if count == 1 else 's'}"] if count else []
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return " ".join([*parts, *([clock] if seconds or not parts else [])])
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def said(question):
    try:
        key = json.dumps(question["knowledge"])
        lake = lakes.get(key) or lakes.setdefault(key, pitlake.open(**question["knowledge"]))
        answer = answered(lake, question["ask"])
        return {"rows": [plain(row) for row in answer.arrow().to_pylist()], "notes": lake.notes}
    except pitlake.LakeError as error:
        return {"refused": str(error)}
    except TypeError as error:
        return {"refused": f"TypeError: {error}"}


warnings.simplefilter("ignore")
for line in sys.stdin:
    print(json.dumps(said(json.loads(line))), flush=True)
