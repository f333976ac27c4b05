"""Runs query.sql with and without its future, on the rows in data/. Needs Python 3.9 and `pip install duckdb` (1.5 or later)."""
import collections, json, math, os, pathlib, sys
import duckdb

os.chdir(pathlib.Path(__file__).resolve().parent)
expected = json.loads(pathlib.Path("expected.json").read_text(encoding="utf8"))

def rows(world):
    with duckdb.connect(config={"threads": 1}) as lake:
        lake.execute("SET TimeZone = 'UTC'")
        for name in ("views.sql", world):
            lake.execute(pathlib.Path(name).read_text(encoding="utf8"))
        *before, query = lake.extract_statements(pathlib.Path("query.sql").read_text(encoding="utf8"))
        for statement in before:
            lake.execute(statement)
        lake.execute("CREATE TEMP TABLE answer AS " + query.query.strip().rstrip(";"))
        return collections.Counter(lake.execute(expected["compared"]).fetchall())

def near(one, other):
    try:  # The last digits of a sum may differ between versions of DuckDB.
        return one == other or math.isclose(float(one), float(other), rel_tol=1e-9)
    except (TypeError, ValueError):
        return False

with_future, without = rows("with.sql"), rows("without.sql")
found = {"only_with_the_future": with_future - without, "only_without_it": without - with_future}
shown = {side: [row for row in expected[side] if any(all(map(near, row, other)) for other in found[side])] for side in found}
for side in found:
    print(f"{side}: {sum(found[side].values())} rows; {len(shown[side])} of {len(expected[side])} expected ones are among them")
    print(*("  " + str(dict(zip(expected["columns"], row))) for row in shown[side][:3]), sep="\n")
# A version of DuckDB that orders equal values differently may show a part of the expected rows only.
print("REPRODUCED" if any(shown.values()) else "NOT REPRODUCED: the expected rows do not differ")
sys.exit(0 if any(shown.values()) else 1)
