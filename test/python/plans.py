"""The plans of queries as the DuckDB of this Python tells them: the engine that is next reads the same texts.

usage: python plans.py < QUESTIONS    QUESTIONS: {"setup": SQL that makes the catalogue, "queries": [SQL, …]}
Prints {"version", "plans": [{"plan", "names"} or {"why"}, …]}.
"""

import json
import sys

import duckdb

asked = json.load(sys.stdin)
connection = duckdb.connect()
connection.execute(asked["setup"])


def told(query):
    plan = "SELECT CAST(json_serialize_plan(?, optimize := false) AS VARCHAR)"
    answer = json.loads(connection.execute(plan, [query]).fetchone()[0])
    if answer["error"]:
        return {"why": answer["error_message"]}
    names = [row[0] for row in connection.execute(f"DESCRIBE {query}").fetchall()]
    return {"plan": answer["plans"][0], "names": names}


print(json.dumps({"version": duckdb.__version__, "plans": [told(query) for query in asked["queries"]]}))
