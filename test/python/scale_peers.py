"""Answers one question of the bench of sizes over a lake's own files: `scale_peers.py duckdb|polars SPEC.json`.

SPEC: the SQL with the relation `p` for DuckDB; the name of the question, files, range and metric for polars. The last line of what is printed is the
answer. Nobody may take more than 12 GB.
"""

import json
import resource
import sys
from datetime import datetime, timedelta, timezone

resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))


def duck(spec):
    import duckdb

    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"CREATE TEMP VIEW p AS FROM {spec['relation']}")
    made = db.execute(spec["sql"])
    return [dict(zip([name[0] for name in made.description], row)) for row in made.fetchall()]


def polars(spec):
    import polars as pl

    names = ("metric", "interval", "asset", "t", "available_at", "v")
    text = {"metric": pl.String, "interval": pl.String}
    own = [pl.scan_parquet(spec["own"], hive_partitioning=True, hive_schema=text).select(names)] if spec["own"] else []
    recent = [pl.scan_parquet(spec["recent"]).select(names)] if spec["recent"] else []
    points = pl.concat(own + recent)
    at = lambda seconds: datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    name, since, until = spec["name"], spec["since"], spec["until"]

    def summed(frame):
        cents = (pl.col("v") * 100).round().cast(pl.Int64).sum()
        row = frame.select(rows=pl.len(), known=pl.col("v").count(), cents=cents).collect(engine="streaming").row(0, named=True)
        return [{"rows": row["rows"], "known": row["known"], "cents": str(row["cents"] or 0)}]

    def latest(frame):
        return summed(frame.group_by("metric", "asset", "interval").agg(pl.col("v").sort_by("t").last()))

    def joined(count, assets, metric, interval):
        row = pl.int_range(count, eager=True)
        ts = ((since + row * 7919 * 1_000_003 % (until - since)) * 1_000_000).cast(pl.Datetime("us", "UTC"))
        asset = pl.format("A{}", (row % assets).cast(pl.String).str.zfill(2))
        decisions = pl.LazyFrame({"id": row}).with_columns(asset=asset, ts=ts).sort("ts")
        known = points.filter((pl.col("metric") == metric) & (pl.col("interval") == interval)).sort("asset", "available_at", "t")
        known = known.filter(pl.col("t") >= pl.col("t").cum_max().over("asset")).unique(["asset", "available_at"], keep="last", maintain_order=True)
        known = known.select("asset", "available_at", "v").sort("available_at")
        return decisions.join_asof(known, left_on="ts", right_on="available_at", by="asset")

    if name == "count":
        return [{"rows": points.select(pl.len()).collect(engine="streaming").item()}]
    if name == "latest of all series":
        return latest(points)
    if name == "latest as of the middle":
        return latest(points.filter(pl.col("available_at") <= at((since + until) // 2)))
    if name.startswith("pit_join"):
        return summed(joined(1_000_000, 76, spec["big"], "10m"))
    if name.startswith("pit_long"):
        each = [summed(joined(10_000, 21, metric, "1h"))[0] for metric in spec["hourly"]]
        total = {key: sum(int(one[key]) for one in each) for key in ("rows", "known", "cents")}
        return [{**total, "cents": str(total["cents"])}]
    year = points.filter((pl.col("metric") == spec["big"]) & (pl.col("interval") == "10m") & (pl.col("t") >= at(until - 365 * 86_400)))
    whole = pl.when(pl.col("v").count() == 6).then(pl.col("v").sum())
    return summed(year.group_by("asset", pl.col("t").dt.truncate("1h")).agg(whole.alias("v")))


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        answer = {"duckdb": duck, "polars": polars}[sys.argv[1]](json.load(file))
    print(json.dumps(answer, default=str))
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as file:
        most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "megabytes": round(most / 1024)}), file=sys.stderr)
