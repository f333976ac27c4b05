"""Reads Delta tables with delta-rs and with polars and prints what it found, a JSON document a line.

usage: delta.py rows|files TABLE[@VERSION]...
"""

import json
import sys
from datetime import timezone

import polars as pl
from deltalake import DeltaTable, write_deltalake


def cell(value):
    if hasattr(value, "isoformat"):
        at = value.astimezone(timezone.utc) if hasattr(value, "astimezone") else value
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if hasattr(value, "hour") else at.isoformat()
    return value


def told(folder, version):
    table = DeltaTable(folder, version=version)
    read = table.to_pyarrow_table()
    frames = (pl.from_arrow(read), pl.scan_delta(folder, version=version).collect())
    rust, polars = ([{name: cell(value) for name, value in row.items()} for row in frame.to_dicts()] for frame in frames)
    try:
        write_deltalake(folder, read.slice(0, 1), mode="append")
        refusal = None
    except Exception as error:
        refusal = str(error)
    return {"rust": rust, "polars": polars, "refusal": refusal}


def main():
    what, *tables = sys.argv[1:]
    for folder, _, version in (table.partition("@") for table in tables):
        if what == "rows":
            print(json.dumps(told(folder, int(version) if version else None)))
        else:
            table = DeltaTable(folder)
            print(json.dumps({"version": table.version(), "files": len(table.file_uris())}))


main()
