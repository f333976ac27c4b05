"""Reads every view of a lake with the official DuckDB package: opened, attached, by lake.sql and by the command line.

usage: python peers.py LAKE SETTINGS…    SETTINGS: SQL that moves the session in time, such as SET VARIABLE as_of = '…'
Prints one line of JSON for each of the settings: {view: [rows, digest]}. It is the same in every way and in four session
time zones, else this exits 1. Run it with one environment for each version of the package and compare the lines.
"""

import json
import os
import subprocess
import sys

import duckdb

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")
VIEWS = """SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || '"' || view_name || '"'
  FROM duckdb_views() WHERE NOT internal AND view_name <> 'lake_info' {} ORDER BY 1"""
# Free of the session's zone.
HASH = "SELECT count(*), coalesce(sum(hash(r)), 0)::VARCHAR FROM {} r"


def read(connection, prefix, only):
    names = [row[0] for row in connection.execute(VIEWS.format(only)).fetchall()]
    return {name: list(connection.execute(HASH.format(prefix + name)).fetchone()) for name in names}


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


def by_command_line(folder, zone, settings, names):
    """The same rows and digests by the official command line, from lake.sql."""
    command = os.path.join(os.path.dirname(sys.executable), "duckdb")
    asked = " UNION ALL ".join(f"SELECT '{name}', * FROM ({HASH.format(name)})" for name in names)
    said = subprocess.run([command, "-init", os.path.join(folder, "lake.sql"), "-jsonlines", "-c",
                           f"SET TimeZone = '{zone}'; {settings}; {asked}"], capture_output=True, text=True, check=True)
    rows = [list(json.loads(line).values()) for line in said.stdout.splitlines() if line.startswith("{")]
    return {name: [count, digest] for name, count, digest in rows}


def main():
    folder = os.path.abspath(sys.argv[1])
    connections = list(ways(folder))
    for settings in sys.argv[2:]:
        first = None
        for zone in ZONES:
            for way, connection, prefix, only in connections:
                connection.execute("; ".join(f"SET VARIABLE {name} = NULL" for name in ("as_of", "observed_as_of")))
                connection.execute(f"SET TimeZone = '{zone}'; {settings}")
                seen = read(connection, prefix, only)
                first = first or seen
                if seen != first:
                    sys.exit(f"{way}, {zone}, {settings}: {[name for name in first if seen.get(name) != first[name]]} differ")
            seen = by_command_line(folder, zone, settings, list(first))
            if seen != first:
                sys.exit(f"the command line, {zone}, {settings}: {[name for name in first if seen.get(name) != first[name]]} differ")
        print(json.dumps(first))


main()
