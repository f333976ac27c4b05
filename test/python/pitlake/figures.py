"""What the package costs, each beside a named baseline in one process on the same files, contents equal both ways.

Seconds are processor time of all threads: on a busy machine a clock tells what others do. The clock is told beside it.

With a fourth argument the seconds of each round are left in that file, as `[{"name": …, "times": {way: [seconds]}}]`.

usage: POLARS_MAX_THREADS=2 python figures.py WIDE_LAKE METRICS.json NOTEBOOK_LAKE [TIMES.json]
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

try:
    import pitlake
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))
    import pitlake

THREADS, ROUNDS = 2, 5

# Processor seconds of each way to the same answer, a list for each question.
FIGURES = []


def keep(name, times):
    FIGURES.append({"name": f"{name} (processor)", "times": times})


SINCE, UNTIL = "2015-01-01", "2024-12-29"


def first_panel(folder):
    """Seconds of a process of its own: import, open, a panel of six months, two assets and five metrics."""
    code = f"""import time; start = time.perf_counter(), time.process_time()
import pitlake
lake = pitlake.open({str(folder)!r})
days = lake.calendar("2026-01-01", "2026-07-01", "1 day", ["BTC", "ETH"])
frame = lake.panel(days, ["addresses/active_count_pit", "price_usd", "supply/current_pit", "indicators/sopr_adjusted_pit",
                          "addresses/profit_count_pit"]).df()
assert frame.shape == (362, 7)
print(time.process_time() - start[1], time.perf_counter() - start[0])"""
    place = str(Path(pitlake.__file__).parent.parent)
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONPATH": place}).stdout
    return tuple(map(float, said.split()))


def shown(lake, days, metrics):
    """Rows that showing the panel of all decisions computes, against those of the panel itself."""
    answer = lake.panel(days, metrics)
    start = time.process_time()
    text = answer._repr_html_()
    return text.count("<tr>") - 1, time.process_time() - start


def frontier(points):
    newest = pl.col("t").cum_max().over("asset")
    following = pl.col("available_at").shift(-1).over("asset")
    return points.sort("asset", "available_at", "t").filter(
        (pl.col("t") >= newest) & following.ne_missing(pl.col("available_at"))).sort("available_at")


def by_polars(files, days):
    """One ASOF join a metric, the points that were overtaken gone before."""
    decisions = days.lazy().sort("ts")
    cells = []
    for metric, file in files:
        points = frontier(pl.scan_parquet(file, hive_partitioning=False).select("asset", "t", "available_at", "v"))
        joined = decisions.join_asof(points.rename({"v": metric}), left_on="ts", right_on="available_at", by="asset",
                                     strategy="backward", check_sortedness=False)
        cells.append(joined.select("n", metric))
    wide = [days] + [cell.sort("n").select(pl.exclude("n")) for cell in pl.collect_all(cells)]
    return pl.concat(wide, how="horizontal")


def decisions_of(lake, count):
    """So many decisions of three assets at random times, as Arrow and as a frame of pandas."""
    chance = random.Random(1)
    first, last = (int(datetime.fromisoformat(f"{at}T00:00:00+00:00").timestamp()) for at in (SINCE, UNTIL))
    times = [chance.randrange(first, last) * 1_000_000 for _ in range(count)]
    assets = [f"A{chance.randrange(3)}" for _ in range(count)]
    table = pa.table({"asset": assets, "ts": pa.array(times, pa.timestamp("us", "UTC")), "row": range(count)})
    return table, table.to_pandas()


def join_of_million(lake, bare, metric, file):
    """Processor seconds of `pit_join` for a million decisions: the package, the bare macro and polars, answers equal."""
    table, frame = decisions_of(lake, 1_000_000)
    bare.register("given", table)
    numbered = pl.from_arrow(table).with_row_index("n")
    calls = {
        "macro": lambda: bare.sql(f"FROM pit_join(given, '{metric}', '24h')").to_arrow_table(),
        "arrow": lambda: lake.pit_join(table, metric).arrow(),
        "pandas": lambda: lake.pit_join(frame, metric).df(),
        "polars": lambda: by_polars([(metric, file)], numbered),
    }
    seconds, answers = {name: [] for name in calls}, {}
    for round_ in range(-1, ROUNDS):
        for name, call in calls.items():
            start = time.process_time()
            answer = call()
            elapsed = time.process_time() - start
            if round_ >= 0:
                seconds[name].append(elapsed)
            elif name in ("arrow", "polars"):
                answers[name] = answer["v"].to_pylist() if name == "arrow" else answer[metric].to_list()
            del answer
    assert answers["arrow"] == answers["polars"], "polars says otherwise"
    others = {"the macro in DuckDB 2.0": seconds["macro"], "polars by hand": seconds["polars"]}
    keep("Python, pit_join of a million decisions, Arrow in and out", {"pitlake": seconds["arrow"], **others})
    keep("Python, pit_join of a million decisions, pandas in and out", {"pitlake": seconds["pandas"], **others})
    said = {name: statistics.median(own) for name, own in seconds.items()}
    print(f"pit_join of a million decisions: {', '.join(f'{name} {own:.2f} s' for name, own in said.items())}; "
          f"ratio of arrow to the macro {said['arrow'] / said['macro']:.2f}, to polars {said['arrow'] / said['polars']:.2f}")


def processor():
    """Processor seconds of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def trial_of_function(folder):
    """Processor seconds of testing an honest function of 180 rows for look-ahead, the command `pitlake` included."""
    def known(lake):
        days = lake.calendar("2026-01-01", "2026-06-30", "1 day", ["BTC"])
        return lake.panel(days, {"v": "addresses/active_count_pit"}).df()[["ts", "v"]]

    start = processor()
    verdict = pitlake.lookahead(known, folder)
    assert verdict.verdict == "clean" and verdict.facts["rows"] == 180, verdict.facts
    return processor() - start


def main():
    os.environ.setdefault("PITLAKE_COMMAND", f"node {Path(__file__).resolve().parents[3] / 'scripts' / 'launch.cjs'}")
    wide, listed, notebooks, *kept = sys.argv[1:]
    files = json.loads(Path(listed).read_text())
    metrics = [metric for metric, _ in files]
    lake = pitlake.open(wide, threads=THREADS, progress=False)
    days = lake.calendar(SINCE, UNTIL, "1 day", [f"A{n}" for n in range(10)])
    numbered = days.pl().with_row_index("n")
    query = lake.panel(days, metrics)._relation.sql_query()
    bare = duckdb.connect(config={"threads": THREADS})
    bare.execute("SET TimeZone = 'UTC'").fetchall()
    bare.execute(f"ATTACH '{wide}/lake.duckdb' AS lake (READ_ONLY)").fetchall()
    bare.execute("USE lake").fetchall()
    bare.execute("SET parquet_metadata_cache = true").fetchall()
    table = query.split("FROM ")[1].split(")")[0].strip()
    grid = f"SELECT row_number() OVER () AS _pit_decision, asset, ts FROM ({days._relation.sql_query()})"
    bare_calls = {
        "pitlake": lambda: lake.panel(days, metrics).arrow(),
        "DuckDB": lambda: (bare.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {grid}").fetchall(), bare.sql(query).to_arrow_table())[1],
        "polars": lambda: by_polars(files, numbered),
    }
    seconds = {name: [] for name in bare_calls}
    for round_ in range(-1, ROUNDS):
        answers = {}
        turn = max(0, round_) % 3
        for name in [*bare_calls][turn:] + [*bare_calls][:turn]:
            start = time.process_time(), time.perf_counter()
            answer = bare_calls[name]()
            elapsed = time.process_time() - start[0], time.perf_counter() - start[1]
            answers[name] = (answer if isinstance(answer, pl.DataFrame) else pl.from_arrow(answer)).select("asset", "ts", *metrics)
            if round_ >= 0:
                seconds[name].append(elapsed)
            del answer
        for name in ("DuckDB", "polars"):
            assert answers["pitlake"].equals(answers[name]), f"{name} says otherwise"
    processor = {name: [cpu for cpu, _ in own] for name, own in seconds.items()}
    keep(f"Python, panel of {len(metrics)} metrics x 10 assets x {len(numbered) // 10} days",
         {"pitlake": processor["pitlake"], "the same SQL in DuckDB 2.0": processor["DuckDB"], "polars by hand": processor["polars"]})
    said = {name: [statistics.median(own) for own in zip(*seconds[name])] for name in bare_calls}
    ratios = {name: statistics.median(ours[0] / theirs[0] for ours, theirs in zip(seconds["pitlake"], seconds[name])) for name in bare_calls}
    times = ", ".join(f"{name} {cpu:.2f} s (by the clock {clock:.2f})" for name, (cpu, clock) in said.items())
    print(f"panel of {len(metrics)} metrics x 10 assets x {len(numbered) // 10} days: {times}; ratio to the same SQL in DuckDB "
          f"{ratios['DuckDB']:.2f} (bound 1.2), to polars' ASOF loop {ratios['polars']:.2f} (goal 1, bound 1.5)")
    first = sorted(first_panel(notebooks) for _ in range(ROUNDS))[ROUNDS // 2]
    print(f"import, open and a panel of 6 months x 2 assets x 5 metrics: {first[0]:.2f} s (by the clock {first[1]:.2f}; bound 1)")
    rows, took = shown(lake, days, metrics)
    print(f"_repr_html_ of that panel shows {rows} rows and takes {took / said['pitlake'][0]:.2f} of it (bound 0.33)")
    join_of_million(lake, bare, *files[0])
    trial = statistics.median(trial_of_function(notebooks) for _ in range(ROUNDS))
    print(f"lookahead of a function, 180 rows: {trial:.2f} s (goal 8)")
    for place in kept:
        Path(place).write_text(json.dumps(FIGURES))
    good = ratios["DuckDB"] <= 1.2 and ratios["polars"] <= 1.5 and first[0] < 1 and took <= said["pitlake"][0] / 3
    sys.exit(0 if good else 1)


main()
