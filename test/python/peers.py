"""Reads every view of a lake with the official DuckDB package: opened, attached, and by lake.sql, in four time zones.

usage: python peers.py LAKE [DUCKDB]    DUCKDB: the official command line, to read lake.sql with as well
Prints one line a view: rows and a digest, the same in every way and zone, else exits 1. Run it in one environment for
each version of the package and compare the lines.
"""

import os
import subprocess
import sys

import duckdb

SETTINGS = "SET VARIABLE as_of = '2019-06-01T12:00:00+02:00'; "
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")
VIEWS = """SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || '"' || view_name || '"'
  FROM duckdb_views() WHERE NOT internal AND view_name <> 'lake_info' {} ORDER BY 1"""
# Zone-free and quick, to compare ways and zones; the text, taken under UTC, to compare versions of the package.
HASH = "SELECT count(*), coalesce(sum(hash(r)), 0)::VARCHAR FROM {} r"
TEXT = "SELECT count(*), coalesce(sum(hash(CAST(r AS VARCHAR))), 0)::VARCHAR FROM {} r"


def read(connection, prefix, only, digest):
    names = [row[0] for row in connection.execute(VIEWS.format(only)).fetchall()]
    return {name: connection.execute(digest.format(prefix + name)).fetchone() for name in names}


def ways(folder):
    database = os.path.join(folder, "lake.duckdb")
    with open(os.path.join(folder, "lake.sql"), encoding="utf-8") as file:
        script = file.read()
    opened = duckdb.connect(database, read_only=True)
    yield "open", opened, "", ""
    attached = duckdb.connect()
    attached.execute(f"ATTACH '{database}' AS lake (READ_ONLY)")
    yield "attach", attached, "lake.", "AND database_name = 'lake'"
    scripted = duckdb.connect()
    scripted.execute(script)
    yield "script", scripted, "", ""


def main():
    folder = os.path.abspath(sys.argv[1])
    first, shown = None, {}
    for way, connection, prefix, only in ways(folder):
        for zone in ZONES:
            connection.execute(f"SET TimeZone = '{zone}'")
            connection.execute(SETTINGS)
            seen = read(connection, prefix, only, HASH)
            first = first or seen
            if seen != first:
                sys.exit(f"{way} under {zone}: {[name for name in first if seen.get(name) != first[name]]} differ")
        if way == "open":
            connection.execute("SET TimeZone = 'UTC'")
            shown = read(connection, prefix, only, TEXT)
        connection.close()
    if len(sys.argv) > 2:
        command = [sys.argv[2], "-init", os.path.join(folder, "lake.sql"), "-csv", "-noheader", "-c",
                   SETTINGS + "SELECT count(*) FROM points"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
        if said != str(first['"points"'][0]):
            sys.exit(f"the command line counts {said} points")
    for name, (rows, digest) in shown.items():
        print(f"{name} {rows} {digest}")


main()
