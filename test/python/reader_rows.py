"""The rows that the published readers answer: `python reader_rows.py DEST ASKS.json ENGINE…` prints a line of JSON an engine.

ASKS.json holds `decisions`, rows of asset and microseconds, and `asks`, each with metric, interval and options.
"""

import json
import sys
from pathlib import Path

import polars as pl

from readers import ENGINES, told


def main():
    dest, asked = Path(sys.argv[1]).resolve(), json.loads(Path(sys.argv[2]).read_text())
    rows = [(number, asset, us) for number, (asset, us) in enumerate(asked["decisions"])]
    clock = pl.from_epoch("ts", "us").dt.replace_time_zone("UTC")
    decisions = pl.DataFrame(rows, schema={"id": pl.Int64, "asset": pl.String, "ts": pl.Int64}, orient="row").with_columns(clock)
    for name in sys.argv[3:]:
        engine = ENGINES[name](dest)
        answers = [[list(map(str, row)) for row in told(engine.pit_join(decisions, ask)).rows()] for ask in asked["asks"]]
        print(json.dumps({"engine": name, "answers": answers}), flush=True)


if __name__ == "__main__":
    main()
