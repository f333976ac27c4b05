"""What the golden lake owes to every question: brute force over what was put in, by the rules of time and nothing else.

Instants are whole microseconds. What is published is rounded up to milliseconds, so the rules hold for the rounded
instants; nothing may be answered that the lake itself did not know yet.
"""

import json
import sys
from collections import defaultdict
from datetime import datetime, timedelta, timezone

import polars as pl

DIMENSIONS = ("currency", "exchange", "network")
ANSWER = {"id": pl.Int64, "t": pl.Int64, "available_at": pl.Int64, "v": pl.Float64, "o": pl.String, "age_us": pl.Int64}


def ceiled(us):
    """The first whole millisecond that is not earlier."""
    return -(-us // 1000) * 1000


def micros(text):
    """ISO text as microseconds."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


class Golden:
    """What was put in."""

    def __init__(self, path, rounded=ceiled, honest=True):
        told = json.load(open(path))
        self.asks, self.commits, self.events = told["asks"], told["commits"], told["events"]
        self.rounded, self.honest = rounded, honest
        self.series = defaultdict(list)
        for point in told["points"]:
            key = (point["metric"], point["interval"], *(point[name] for name in DIMENSIONS))
            self.series[key].append(point)

    def decisions(self, ask):
        """The decisions of a question, as a frame with asset and ts."""
        rows = ask["decisions"]
        return pl.DataFrame(
            {"id": range(len(rows)), "asset": [row[0] for row in rows], "ts": [row[1] for row in rows]},
            schema={"id": pl.Int64, "asset": pl.String, "ts": pl.Int64},
        ).with_columns(pl.col("ts").cast(pl.Datetime("us", "UTC")))

    def owed(self, ask, dimensions, held=None):
        """The answer to every decision; `held`: only what the lake held by that commit."""
        options = ask["options"]
        cut = min(micros(options.get("observed_as_of", "9999-01-01")), held or 10**18)
        as_of = micros(options.get("as_of", "9999-01-01"))
        latency, max_age = (round(options.get(name, 0) * 10**6) for name in ("latency", "max_age"))
        clock = "available_rule_at" if options.get("backfill") == "rule" else "available_at"
        known = defaultdict(list)
        for point in self.series[(ask["metric"], ask["interval"], *dimensions)]:
            available = self.rounded(point[clock])
            nothing = point["v"] is None and point["o"] is None
            if available <= as_of and point["observed_at"] <= cut and not (nothing and options.get("skip_nulls")):
                known[point["asset"]].append((point["t"], available, point))
        for points in known.values():
            points.sort(key=lambda one: -one[0])
        rows = []
        for number, (asset, ts) in enumerate(ask["decisions"]):
            at = None if ts is None else ts - latency
            best = next((one for one in known.get(asset, []) if one[1] <= at), None) if at is not None else None
            if best is None or ("max_age" in options and ts - best[2]["end"] > max_age):
                rows.append((number, None, None, None, None, None))
                continue
            t, available, point = best
            if self.honest and point[clock] > at:
                sys.exit(f"the owed answer itself is earlier than the lake: {point} at {at}")
            rows.append((number, t, available, point["v"], point["o"], ts - point["end"]))
        return pl.DataFrame(rows, schema=ANSWER, orient="row")

    def universe(self, at):
        """The products at an instant with the names of issuer and asset: the last event of each id by then, as it happened."""
        last = {}
        for event in sorted(self.events, key=lambda event: event["at"]):
            if "id" in event and ceiled(event["at"]) <= at:
                last[event["table"], event["id"]] = event
        there = {key: event for key, event in last.items() if event["op"] is not None}
        rows = []
        for (table, name), event in there.items():
            if table != "history.products":
                continue
            issuer = there.get(("history.issuers", event["issuer_id"]), {})
            asset = there.get(("history.assets", event["asset_id"]), {})
            rows.append((name, event["name"], event["status"], event["issuer_id"], issuer.get("name"), issuer.get("status"),
                         event["asset_id"], asset.get("name"), asset.get("ticker"), ceiled(event["at"])))
        return sorted(rows)

    def moments(self):
        """The instants of all polls, a microsecond and half a millisecond before and after them, and one before all."""
        polls = sorted({event["at"] for event in self.events})
        return [polls[0] - 10**9] + [ceiled(poll) + shift for poll in polls for shift in (-500, -1, 0, 1)]
