"""Answers questions of the benches over a lake's own files, or over its published table: `scale_peers.py ENGINE [SPEC.json]`.

ENGINE is duckdb, polars, pandas, chdb or delta (polars over deltalake). A spec names the question, files, range and metric, and has its SQL over the
relation `p` for DuckDB. Without a file each line of input is a spec, and each line of output seconds of processor and answer. All sort and join by the exact rule: what
was overtaken before it came is no answer. Nobody may take more than 12 GB.
"""

import json
import os
import resource
import sys
from datetime import datetime, timedelta, timezone

NAMES = ("metric", "interval", "asset", "t", "available_at", "v")


def at(seconds):
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)


def middle(spec):
    return at((spec["since"] + spec["until"]) // 2)


class DuckDB:
    def __init__(self):
        import duckdb

        self.db = duckdb.connect(config={"threads": 2})
        self.db.execute("SET TimeZone = 'UTC'")

    def ask(self, spec):
        self.db.execute(f"CREATE OR REPLACE TEMP VIEW p AS FROM {spec['relation']}")
        made = self.db.execute(spec["sql"])
        return [dict(zip([name[0] for name in made.description], row)) for row in made.fetchall()]


class Polars:
    def points(self, spec):
        import polars as pl

        text = {"metric": pl.String, "interval": pl.String}
        own = [pl.scan_parquet(spec["own"], hive_partitioning=True, hive_schema=text).select(NAMES)] if spec["own"] else []
        recent = [pl.scan_parquet(spec["recent"]).select(NAMES)] if spec["recent"] else []
        return pl.concat(own + recent)

    def ask(self, spec):
        import polars as pl

        points = self.points(spec)
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
            known = known.select("asset", pl.col("available_at").dt.cast_time_unit("us"), "v").sort("available_at")
            return decisions.join_asof(known, left_on="ts", right_on="available_at", by="asset")

        if name == "count":
            return [{"rows": points.select(pl.len()).collect(engine="streaming").item()}]
        if name == "latest of all series":
            return latest(points)
        if name == "latest as of the middle":
            return latest(points.filter(pl.col("available_at") <= middle(spec)))
        if name.startswith("pit_join"):
            return summed(joined(1_000_000, 76, spec["big"], "10m"))
        if name.startswith("pit_long"):
            return together([summed(joined(10_000, 21, metric, "1h"))[0] for metric in spec["hourly"]])
        year = points.filter((pl.col("metric") == spec["big"]) & (pl.col("interval") == "10m") & (pl.col("t") >= at(until - 365 * 86_400)))
        whole = pl.when(pl.col("v").count() == 6).then(pl.col("v").sum())
        return summed(year.group_by("asset", pl.col("t").dt.truncate("1h")).agg(whole.alias("v")))


def together(parts):
    return [{"rows": sum(one["rows"] for one in parts), "known": sum(one["known"] for one in parts), "cents": str(sum(int(one["cents"]) for one in parts))}]


class Delta(Polars):
    def points(self, spec):
        import polars as pl

        return pl.scan_delta(spec["table"]).select(NAMES)


class Pandas:
    def ask(self, spec):
        import pandas as pd
        from deltalake import DeltaTable

        table = DeltaTable(spec["table"])
        name, since, until = spec["name"], spec["since"], spec["until"]

        def read(columns, filters=None):
            return pd.read_parquet(table.file_uris(), columns=list(columns), filters=filters)

        def summed(frame):
            cents = int((frame["v"] * 100).round().sum())
            return [{"rows": len(frame), "known": int(frame["v"].count()), "cents": str(cents)}]

        def of(metric, interval):
            return [("metric", "==", metric), ("interval", "==", interval)]

        def joined(count, assets, metric, interval):
            row = pd.RangeIndex(count).to_series()
            ts = pd.to_datetime(since + row * 7919 * 1_000_003 % (until - since), unit="s", utc=True).astype("datetime64[us, UTC]")
            decisions = pd.DataFrame({"asset": "A" + (row % assets).astype(str).str.zfill(2), "ts": ts}).sort_values("ts")
            points = read(("asset", "t", "available_at", "v"), of(metric, interval)).sort_values(["asset", "available_at", "t"])
            points = points[points["t"] >= points.groupby("asset", sort=False)["t"].cummax()]
            points = points.drop_duplicates(["asset", "available_at"], keep="last").sort_values("available_at", kind="stable")
            points["available_at"] = points["available_at"].astype("datetime64[us, UTC]")
            return pd.merge_asof(decisions, points[["asset", "available_at", "v"]], left_on="ts", right_on="available_at", by="asset")

        if name == "count":
            return [{"rows": len(read(["metric"]))}]
        if name.startswith("latest"):
            past = [("available_at", "<=", middle(spec))] if "middle" in name else None
            points = read(("metric", "interval", "asset", "t", "v"), past)
            return summed(points.loc[points.groupby(["metric", "interval", "asset"], sort=False)["t"].idxmax()])
        if name.startswith("pit_join"):
            return summed(joined(1_000_000, 76, spec["big"], "10m"))
        if name.startswith("pit_long"):
            return together([summed(joined(10_000, 21, metric, "1h"))[0] for metric in spec["hourly"]])
        points = read(("asset", "t", "v"), [*of(spec["big"], "10m"), ("t", ">=", at(until - 365 * 86_400))])
        return summed(points.groupby(["asset", points["t"].dt.floor("h")])["v"].sum(min_count=6).reset_index())


class ClickHouse:
    """ClickHouse within this process; only what lies beneath its working directory may be read."""

    def __init__(self):
        from chdb import session

        self.session = session.Session()

    def ask(self, spec):
        from deltalake import DeltaTable

        files = [os.path.join(spec["table"], name) for name in DeltaTable(spec["table"]).file_uris()]
        p = f"file('{{{','.join(os.path.abspath(name.removeprefix('file://')) for name in files)}}}', Parquet)"
        name, since, until = spec["name"], spec["since"], spec["until"]
        summed = "SELECT count() AS rows, count(v) AS known, toString(sum(toInt64(round(v * 100)))) AS cents FROM"

        def joined(count, assets, where):
            ts = f"toDateTime64({since} + number * 7919 * 1000003 % {until - since}, 6, 'UTC')"
            d = f"SELECT concat('A', leftPad(toString(number % {assets}), 2, '0')) AS asset, {ts} AS ts FROM numbers({count})"
            w = "PARTITION BY metric, asset ORDER BY available_at, t"
            k = f"""SELECT metric, assumeNotNull(asset) AS asset, assumeNotNull(available_at) AS available_at, v, t,
                max(t) OVER ({w} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest,
                leadInFrame(available_at) OVER ({w} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS following
                FROM {p} WHERE {where}"""
            metrics = f"SELECT d.*, m.metric AS metric FROM ({d}) AS d CROSS JOIN (SELECT DISTINCT metric FROM {p} WHERE {where}) AS m"
            exact = f"SELECT metric, asset, available_at, v FROM ({k}) WHERE t >= newest AND (following IS NULL OR following <> available_at)"
            on = "d.metric = k.metric AND d.asset = k.asset AND d.ts >= k.available_at"
            return f"{summed} (SELECT k.v AS v FROM ({metrics}) AS d ASOF LEFT JOIN ({exact}) AS k ON {on})"

        past = f"WHERE available_at <= toDateTime64({(since + until) // 2}, 6, 'UTC')" if "middle" in name else ""
        big = f"metric = '{spec['big']}' AND interval = '10m'"
        texts = {
            "count": f"SELECT count() AS rows FROM {p}",
            "latest": f"{summed} (SELECT argMax(v, t) AS v FROM {p} {past} GROUP BY metric, asset, interval)",
            "pit_join": joined(1_000_000, 76, big),
            "pit_long": joined(10_000, 21, "interval = '1h'"),
            "resample": f"""{summed} (SELECT if(count(v) = 6, sum(v), NULL) AS v FROM {p}
                WHERE {big} AND t >= toDateTime64({until - 365 * 86_400}, 6, 'UTC') GROUP BY asset, toStartOfHour(t))""",
        }
        text = next(text for start, text in texts.items() if name.startswith(start))
        settings = "SETTINGS join_use_nulls = 1, max_threads = 2"
        return [json.loads(line) for line in str(self.session.query(f"{text} {settings}", "JSONEachRow")).splitlines()]


ENGINES = {"duckdb": DuckDB, "polars": Polars, "pandas": Pandas, "chdb": ClickHouse, "delta": Delta}


def processor():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def once(engine, file):
    with open(file) as spec:
        print(json.dumps(engine.ask(json.load(spec)), default=str))
    with open("/proc/self/status") as status:
        most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(json.dumps({"cpu": processor(), "megabytes": round(most / 1024)}), file=sys.stderr)


def main():
    if sys.argv[1] != "chdb":
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    else:
        os.chdir("/")
    engine = ENGINES[sys.argv[1]]()
    if len(sys.argv) > 2:
        return once(engine, sys.argv[2])
    for line in sys.stdin:
        begun = processor()
        try:
            said = {"answer": engine.ask(json.loads(line))}
        except Exception as error:  # what an engine cannot do is told beside what it can
            said = {"failed": str(error)[-300:]}
        print(json.dumps({"seconds": processor() - begun, **said}, default=str), flush=True)


if __name__ == "__main__":
    main()
