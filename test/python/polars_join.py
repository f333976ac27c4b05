"""Times the joins of a lake against polars and pandas with the same exact rule: in turn, in one process, from the same Parquet files.

usage: POLARS_MAX_THREADS=2 python polars_join.py SPEC.json
SPEC: {"script": SQL that makes the macros, "points": {metric: file}, "decisions": file, "interval", "rounds", "folder"}
Prints {"seconds": {form: [one a round]}}, or fails if the answers differ. The rule: of the points that were knowable at
ts the one with the largest t. So the points that were overtaken before they arrived go, and one an instant stays.
"""

import json
import os
import sys
import time

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq


def frontier(points, series):
    newest = pl.col("t").cum_max().over(series)
    following = pl.col("available_at").shift(-1).over(series)
    kept = points.sort(*series, "available_at", "t").filter(
        (pl.col("t") >= newest) & following.ne_missing(pl.col("available_at")))
    return kept.sort("available_at")


def read(file, metric):
    columns = ("asset", "t", "available_at", "v", "o")
    return pl.scan_parquet(file, hive_partitioning=False).select(*columns, pl.lit(metric).alias("metric"))


def known(decisions, points, by):
    return decisions.join_asof(points, left_on="ts", right_on="available_at", by=by, strategy="backward",
                               coalesce=False, check_sortedness=False)


def in_one_join(spec):
    """What one would write: one join for all metrics."""
    # Names as numbers: comparing texts would be a cost of theirs alone.
    names = pl.Enum(list(spec["points"]))
    points = pl.concat([read(file, metric) for metric, file in spec["points"].items()]).with_columns(
        pl.col("metric").cast(names))
    metrics = pl.LazyFrame({"metric": list(spec["points"])}, schema={"metric": names})
    decisions = pl.scan_parquet(spec["decisions"]).join(metrics, how="cross").sort("ts")
    return known(decisions, frontier(points, ["metric", "asset"]), ["metric", "asset"]).collect()


def metric_by_metric(spec):
    """Tuned by hand: the decisions are sorted once, each metric is joined apart."""
    decisions = pl.scan_parquet(spec["decisions"]).sort("ts").collect().lazy()
    return pl.concat([
        known(decisions, frontier(read(file, metric).drop("metric"), ["asset"]), "asset").with_columns(
            pl.lit(metric).alias("metric"))
        for metric, file in spec["points"].items()
    ]).collect()


def with_pandas(spec):
    """The same in pandas, metric by metric; of the points those that were overtaken go."""
    decisions = pd.read_parquet(spec["decisions"]).sort_values("ts", kind="stable")
    parts = []
    for metric, file in spec["points"].items():
        columns = ["asset", "t", "available_at", "v", "o"]
        points = pq.ParquetFile(file).read(columns=columns).to_pandas()
        points = points.sort_values(["asset", "available_at", "t"])
        series = points.groupby("asset", sort=False)
        kept = (points["t"] >= series["t"].cummax()) & (points["available_at"] != series["available_at"].shift(-1))
        points = points[kept].sort_values("available_at", kind="stable")
        known_ = pd.merge_asof(decisions, points, left_on="ts", right_on="available_at", by="asset")
        parts.append(known_.assign(metric=metric))
    return pd.concat(parts, ignore_index=True)


DIGEST = """SELECT count(*), count(t), CAST(sum(CAST(hash(CAST(id AS BIGINT), asset, CAST(ts AS TIMESTAMPTZ), CAST(metric AS VARCHAR),
  CAST(t AS TIMESTAMPTZ), CAST(available_at AS TIMESTAMPTZ), CAST(v AS DOUBLE), CAST(o AS VARCHAR)) AS HUGEINT)) AS VARCHAR) FROM {}"""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    connection = duckdb.connect(config={"threads": int(os.environ["POLARS_MAX_THREADS"])})
    with open(spec["script"], encoding="utf-8") as file:
        connection.execute(file.read())
    names = "[" + ", ".join("'" + metric.replace("'", "''") + "'" for metric in spec["points"]) + "]"
    connection.execute(f"CREATE VIEW d AS FROM read_parquet('{spec['decisions']}')")

    def ours(_):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS FROM pit_long('d', {names}, '{spec['interval']}')")

    def digest(frame):
        if frame is None:
            return connection.execute(DIGEST.format("answer")).fetchone()
        file = os.path.join(spec["folder"], "polars-answer.parquet")
        if isinstance(frame, pd.DataFrame):
            frame.to_parquet(file)
        else:
            frame.write_parquet(file)
        return connection.execute(DIGEST.format(f"read_parquet('{file}')")).fetchone()

    forms = {"ours": ours, "one join": in_one_join, "metric by metric": metric_by_metric, "pandas": with_pandas}
    seconds = {name: [] for name in forms}
    for round_ in range(-1, spec["rounds"]):
        answers = {}
        # Each goes first by turns: whoever reads the files first pays for the caches of the others.
        turn = max(0, round_) % len(forms)
        for name, form in [*forms.items()][turn:] + [*forms.items()][:turn]:
            start = time.perf_counter()
            frame = form(spec)
            elapsed = time.perf_counter() - start
            answers[name] = digest(frame)
            if round_ >= 0:
                seconds[name].append(elapsed)
            del frame
        if len(set(answers.values())) > 1:
            sys.exit(f"the answers differ: {answers}")
    print(json.dumps({"seconds": seconds}))


main()
