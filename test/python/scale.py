"""Measures pit_join of the published texts over made-up tables: `python scale.py FOLDER POINTS DECISIONS ENGINE`.

`scripts/peers.sh readers` prints the Python for it. Prints seconds of processor time (not of the clock: another job may be at work) and the peak of memory.
"""

import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
from deltalake import write_deltalake

import readers

PROJECT = Path(__file__).parents[2]
TEXTS = """const { mkdirSync, writeFileSync } = await import('node:fs')
const { readerTexts } = await import('./src/publish/readers/texts.ts')
mkdirSync(`${process.argv[1]}/readers`, { recursive: true })
for (const { path, text } of readerTexts(process.argv[1])) writeFileSync(`${process.argv[1]}/${path}`, text)"""
METRIC, ASSETS, STEP = "indicators/sopr_adjusted_pit", 100, 600_000_000


def make(dest, points):
    """A hundred assets with a point every ten minutes, one of fifty a day late; the tables that a join reads."""
    node = ["node", "-r", "./scripts/fixed-node.cjs", "--input-type=module", "-e", TEXTS, str(dest)]
    subprocess.run(node, cwd=PROJECT, check=True)
    n = pl.int_range(points // ASSETS, eager=True)
    late = pl.when(pl.col("n") % 50 == 0).then(86_400_000_000).otherwise(0)
    text = {name: pl.lit(None, pl.String) for name in ("currency", "exchange", "network", "o", "extra")}
    instant = pl.Datetime("us", "UTC")
    for asset in range(ASSETS):
        frame = pl.DataFrame({"n": n}).with_columns(at=pl.col("n") * STEP + 1_262_304_000_000_000)
        known = (pl.col("at") + STEP + 60_000_000 + late).cast(instant)
        rows = frame.select(
            metric=pl.lit(METRIC), asset=pl.lit(f"A{asset}"), interval=pl.lit("10m"), **text, t=pl.col("at").cast(instant),
            available_at=known, available_rule_at=known, observed_at=known, computed_at=known, basis=pl.lit("assumed"), v=pl.col("n") / 7,
        )
        write_deltalake(dest / "points", rows.to_arrow(), mode="append")
    endpoints = {"metric": [METRIC], **{f"default_{name}": [None] for name in ("currency", "exchange", "network")}}
    many = {name: [["x"]] for name in ("currencies", "exchanges", "networks")}
    types = {f"default_{name}": pl.String for name in ("currency", "exchange", "network")}
    write_deltalake(dest / "endpoints", pl.DataFrame({**endpoints, **many}, schema_overrides=types).to_arrow())
    names = ("id", "name", "symbol", "isin", "status", "jurisdiction", "issuer_id", "asset_id", "asset_class", "ticker")
    clocks = {name: pl.Series([None], dtype=instant) for name in ("valid_from", "valid_to")}
    for resource in ("products", "issuers", "assets"):
        write_deltalake(dest / f"history_{resource}", pl.DataFrame({**dict.fromkeys(names, [""]), **clocks}).to_arrow())
    versions = {"lake_version": [1, 1], "table_name": ["points", "endpoints"], "delta_version": [ASSETS - 1, 0]}
    write_deltalake(dest / "versions", pl.DataFrame(versions).to_arrow())


def main():
    dest, points, count, name = Path(sys.argv[1]).resolve(), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if not (dest / "points").exists():
        make(dest, points)
    length = points // ASSETS * STEP
    row = pl.int_range(count, eager=True)
    decisions = pl.DataFrame({"id": row}).with_columns(
        asset=pl.format("A{}", row % ASSETS), ts=(row * 7919 * 1_000_003 % length + 1_262_304_000_000_000).cast(pl.Datetime("us", "UTC"))
    )
    engine = readers.ENGINES[name](dest)
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = engine.pit_join(decisions, {"metric": METRIC, "interval": "10m", "options": {}})
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: {points} points, {count} decisions, {found['t'].count()} answered: {seconds:.1f} s, {used.ru_maxrss / 2**20:.1f} GB")


if __name__ == "__main__":
    main()
