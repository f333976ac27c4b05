"""Asks the published tables of the golden lake in one engine after the other by the texts that lie beside them.

`python readers.py DEST GOLDEN.json ENGINE…` prints one line of JSON for each engine: how many decisions it answered,
and every question with a different answer. DEST is a folder of Delta tables, published after each of three commits.
"""

import importlib.util
import json
import os
import re
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import polars as pl

from golden import ANSWER, DIMENSIONS, Golden

UNIVERSE = ["product_id", "name", "status", "issuer_id", "issuer_name", "issuer_status", "asset_id", "asset_name", "ticker",
            "valid_from"]


def text_of(dest, name):
    return (dest / "readers" / name).read_text()


def module_of(dest, name):
    """A published Python file, imported from where it lies."""
    spec = importlib.util.spec_from_file_location(name, dest / "readers" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def iso(us):
    return datetime.fromtimestamp(us // 10**6, timezone.utc).replace(microsecond=us % 10**6)


def quoted(value):
    """A value as SQL says it."""
    if isinstance(value, bool) or not isinstance(value, str):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'"


class DuckDB:
    """DuckDB with its extension delta, both from packages."""

    every, questions = 3, 1

    def __init__(self, dest, change=lambda text: text):
        import duckdb
        import duckdb_extension_delta

        extension = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
        self.session = duckdb.connect(config={"threads": 2})
        self.session.execute(f"SET TimeZone = 'Asia/Kolkata'; LOAD '{extension}'")
        self.session.execute(change(text_of(dest, "duckdb.sql")))

    def pit_join(self, decisions, ask):
        self.session.register("decisions", decisions.to_arrow())
        options = "".join(f", {name} := {quoted(value)}" for name, value in ask["options"].items())
        return self.session.sql(
            f"FROM pit_join('decisions', {quoted(ask['metric'])}, {quoted(ask['interval'])}{options})"
        ).pl()

    def universe(self, at):
        return self.session.sql(f"FROM universe(as_of := '{at.isoformat()}')").pl()


class ClickHouse:
    """ClickHouse within this process."""

    every, questions = 3, 1

    def __init__(self, dest):
        # Only what lies beneath its folder of user files may be read: here the working directory.
        os.chdir(dest)
        from chdb import session

        self.session = session.Session()
        self.session.query("CREATE DATABASE golden ENGINE = Atomic; USE golden")
        self.file = dest / "decisions.parquet"
        self.session.query("CREATE TABLE pit_decisions (id Int64, asset Nullable(String), ts Nullable(DateTime64(6))) ENGINE = Memory")
        for statement in text_of(dest, "clickhouse.sql").split(";\n\n"):
            self.session.query(statement)

    def frame(self, query):
        import io

        return pl.read_parquet(io.BytesIO(self.session.query(query, "Parquet").bytes()))

    def pit_join(self, decisions, ask):
        decisions.write_parquet(self.file)
        self.session.query("TRUNCATE TABLE pit_decisions")
        self.session.query(f"INSERT INTO pit_decisions SELECT * FROM file('{self.file}', Parquet)")
        options = json.dumps(ask["options"])
        return self.frame(f"SELECT * FROM pit_join(metric = '{ask['metric']}', interval = '{ask['interval']}', options = '{options}')")

    def universe(self, at):
        return self.frame(f"""SELECT * FROM universe(options = '{{"as_of": "{at.isoformat()}"}}')""")


class Polars:
    """polars over deltalake."""

    every, questions = 3, 1

    def __init__(self, dest, lake_version=None):
        self.lake = module_of(dest, "pitlake_polars").Lake(str(dest), lake_version)

    def pit_join(self, decisions, ask):
        return self.lake.pit_join(decisions, ask["metric"], ask["interval"], **ask["options"])

    def universe(self, at):
        return self.lake.universe(as_of=at)


class Spark:
    """Spark SQL in local mode, by session variables."""

    every, questions = 11, 1

    def __init__(self, dest):
        self.session, self.dest = spark_session(), dest
        self.session.sql("CREATE OR REPLACE TEMPORARY VIEW pit_decisions AS SELECT 0L AS id, '' AS asset, current_timestamp() AS ts")
        text = "\n".join(line for line in text_of(dest, "spark.sql").splitlines() if not line.startswith("--"))
        for statement in text.rstrip().rstrip(";").split(";\n"):
            self.session.sql(statement)
        self.options = re.findall(r"VARIABLE pit_(\w+)", text)

    def ask(self, view, options):
        for name in self.options:
            value = options.get(name)
            if value is not None and name.endswith("as_of"):
                value = f"TIMESTAMP {quoted(value)}"
            elif value is not None:
                value = quoted(value)
            self.session.sql(f"SET VAR pit_{name} = {value or 'DEFAULT'}")
        return frame_of(self.session.sql(f"SELECT * FROM {view}"))

    def pit_join(self, decisions, ask):
        spark_frame(self.session, decisions, self.dest).createOrReplaceTempView("pit_decisions")
        return self.ask("pit_join", {**ask["options"], "metric": ask["metric"], "interval": ask["interval"]})

    def universe(self, at):
        return self.ask("universe", {"as_of": at.isoformat()})


class PySpark:
    """Spark in local mode, by the published Python file."""

    every, questions = 11, 3

    def __init__(self, dest, lake_version=None):
        self.session, self.dest = spark_session(), dest
        self.lake = module_of(dest, "pitlake_pyspark").Lake(self.session, str(dest), lake_version)

    def pit_join(self, decisions, ask):
        frame = spark_frame(self.session, decisions, self.dest)
        options = {name: datetime.fromisoformat(value) if name.endswith("as_of") else value for name, value in ask["options"].items()}
        return frame_of(self.lake.pit_join(frame, ask["metric"], ask["interval"], **options))

    def universe(self, at):
        return frame_of(self.lake.universe(as_of=at))


def spark_session():
    """A session of this machine alone; the jars are those that SPARK_JARS names."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "2",
        # Queries over little data spend their time on plans, not on rows.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.jars": os.environ["SPARK_JARS"],
    }
    builder = SparkSession.builder.master("local[2]").appName("pitlake")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_frame(session, frame, dest):
    frame.write_parquet(dest / "decisions.parquet")
    return session.read.parquet(str(dest / "decisions.parquet"))


def frame_of(frame):
    return pl.from_arrow(frame.toArrow())


ENGINES = {"spark": Spark, "pyspark": PySpark, "duckdb": DuckDB, "clickhouse": ClickHouse, "polars": Polars}


def told(frame):
    """An answer as the oracle tells it."""
    clocks = [pl.col(name).dt.convert_time_zone("UTC").dt.cast_time_unit("us").to_physical() for name in ("t", "available_at")]
    return frame.select(ANSWER.keys()).with_columns(*clocks).cast(ANSWER).sort("id")


def check(name, engine, golden, dimensions, held=None, until_first=False):
    """Every question, and the universe around the polls; what differs is named."""
    begun, asked, answered, differences = time.monotonic(), 0, 0, []
    for number, ask in list(enumerate(golden.asks))[:: engine.questions]:
        decisions = golden.decisions(ask)
        owed = golden.owed(ask, dimensions(ask), held)
        found = told(engine.pit_join(decisions, ask))
        asked, answered = asked + len(owed), answered + owed["t"].count()
        if not found.equals(owed):
            differences.append(f"question {number}: {first_difference(found, owed, decisions)}")
            if until_first:
                break
    universes = 0 if held else check_universe(engine, golden, differences)
    return {"engine": name, "decisions": asked, "answered": answered, "universes": universes, "differences": differences,
            "seconds": round(time.monotonic() - begun, 1)}


def check_universe(engine, golden, differences):
    moments = golden.moments()[:: engine.every]
    for at in moments:
        found = engine.universe(iso(at)).select(UNIVERSE)
        clock = pl.col("valid_from").dt.convert_time_zone("UTC").dt.cast_time_unit("us").to_physical()
        rows = sorted(found.with_columns(clock).rows())
        if rows != golden.universe(at):
            differences.append(f"universe at {iso(at)}: {len(rows)} products")
    return len(moments)


def first_difference(found, owed, decisions):
    if len(found) != len(owed):
        return f"{len(found)} rows instead of {len(owed)}"
    for one, other, decision in zip(found.rows(), owed.rows(), decisions.rows()):
        if one != other:
            return f"{decision} gives {one} instead of {other}"
    return "columns differ"


def dimensions_of(dest):
    """By which dimensions a question's series is told: the option, else the catalogue's default."""
    endpoints = {row["metric"]: row for row in pl.read_delta(str(dest / "endpoints")).to_dicts()}

    def of(ask):
        defaults = [endpoints[ask["metric"]][f"default_{name}"] for name in DIMENSIONS]
        return tuple(default and ask["options"].get(name, default) for name, default in zip(DIMENSIONS, defaults))

    return of


def versions(dest, golden):
    """The same questions at each published version of the lake, by the Python file that opens tables by version."""
    published = sorted(set(pl.read_delta(str(dest / "versions"))["lake_version"]))
    for version, held in zip(published, golden.commits, strict=True):
        yield {**check(f"polars at {version}", Polars(dest, version), golden, dimensions_of(dest), held), "version": version}


# What a text would say that forgets a rule: where it is said, and what would stand there.
PLANTED = {
    "overtaken points stay": ("f.t >= f.newest AND ", ""),
    "ties stay": ("AND (f.following IS NULL OR f.following <> f.available_at)", ""),
    "the edge is not known yet": ("ORDER BY l.k_us, l.kind ", "ORDER BY l.k_us, l.kind DESC "),
    "an older one steps in": ("OR epoch_us(d.ts) - f.end_us <= ", "OR epoch_us(d.ts) - f.end_us < "),
    "nulls do not count": ("AND (NOT coalesce(CAST(skip_nulls AS BOOLEAN), false) OR ", "AND ("),
    "the cut is open": ("END <= CASE WHEN typeof(as_of)", "END < CASE WHEN typeof(as_of)"),
}


def planted(dest, golden):
    """Whether any of the questions notices each of the mistakes; instants rounded down are one, too."""
    of = dimensions_of(dest)
    for name, (said, instead) in PLANTED.items():
        # Where a line breaks does not matter: a space of the text looked for stands for any white space.
        pattern = re.compile(r"\s+".join(map(re.escape, said.split())))

        def change(text):
            if not pattern.search(text):
                sys.exit(f"nothing to plant: {said}")
            return pattern.sub(lambda _: f" {instead} ", text)

        yield {"planted": name, "noticed": len(check("duckdb", DuckDB(dest, change), golden, of, 10**18, True)["differences"])}
    for name, rounded in {"down": lambda us: us // 1000 * 1000, "to the nearest": lambda us: (us + 500) // 1000 * 1000}.items():
        wrong = Golden(sys.argv[2], rounded, honest=False)
        differing = sum(not golden.owed(ask, of(ask)).equals(wrong.owed(ask, of(ask))) for ask in golden.asks[:2])
        yield {"planted": f"rounded {name}", "noticed": differing}


# Questions that are mistakes: an answer of NULLs would be taken for one.
WRONG = [
    ("no/such_pit", "24h", {}),
    ("supply/current_pit", "1d", {}),
    ("supply/current_pit", "24h", {"currency": "eur"}),
    ("supply/current_pit", "24h", {"latency": -1}),
    ("supply/current_pit", "24h", {"backfill": "rules"}),
    ("supply/current_pit", "24h", {"max_ages": 1}),
    ("supply/current_pit", "24h", {"max_age": "2 days"}),
    ("supply/current_pit", "24h", {"as_of": "yesterday"}),
]


def refused(dest, golden):
    """The mistakes that an engine answered all the same."""
    decisions = golden.decisions({"decisions": [["BTC", 1_709_251_200_000_000]]})
    for name in ("polars", "duckdb", "clickhouse"):
        engine, answered = ENGINES[name](dest), []
        for metric, interval, options in WRONG:
            try:
                engine.pit_join(decisions, {"metric": metric, "interval": interval, "options": options})
                answered.append([metric, interval, options])
            except Exception:  # each engine has its own
                pass
        yield {"engine": name, "answered": answered}


def prices_owed(dest, decisions, skip_nulls):
    """The price of each decision by brute force: of all pairs that were known the one with the largest t."""
    points = pl.read_delta(str(dest / "points")).filter(metric="supply/current_pit", interval="24h")
    usd, native = (points.filter(currency=name).select("asset", "t", "available_at", "v") for name in ("usd", "native"))
    pairs = []
    for asset, t, known, v, known_native, coins in usd.join(native, on=["asset", "t"], suffix="_native").rows():
        price = v / coins if v is not None and coins else None
        if price is not None or not skip_nulls:
            pairs.append((asset, t, max(known, known_native), price))
    found = []
    for number, asset, ts in decisions.rows():
        known = [(t, price) for name, t, at, price in pairs if name == asset and ts is not None and at <= ts]
        found.append((number, *max(known, key=lambda one: one[0], default=(None, None))))
    return sorted(found)


def prices(dest, golden):
    """`price_usd` in each engine against brute force, and the columns of an answer: those of the decisions, then five."""
    instants = [iso(us) for us in range(1_706_000_000_000_000, 1_722_000_000_000_000, 331_000_000_000)]
    rows = [(number, asset, ts) for number, (asset, ts) in enumerate((asset, ts) for asset in ("BTC", "ETH", "NONE") for ts in instants)]
    decisions = pl.DataFrame(rows, schema={"id": pl.Int64, "asset": pl.String, "ts": pl.Datetime("us", "UTC")}, orient="row")
    for name in ("polars", "duckdb", "clickhouse"):
        engine, wrong, answered = ENGINES[name](dest), [], 0
        for options in ({}, {"skip_nulls": True}):
            owed = prices_owed(dest, decisions, bool(options))
            found = engine.pit_join(decisions, {"metric": "price_usd", "interval": "24h", "options": options})
            clock = pl.col("t").dt.convert_time_zone("UTC").dt.cast_time_unit("us")
            told_rows = sorted(found.with_columns(clock).select("id", "t", "v").rows())
            wrong += [[list(map(str, one)), list(map(str, other))] for one, other in zip(told_rows, owed, strict=True) if one != other][:3]
            answered += sum(price is not None for _, _, price in owed)
        yield {"engine": name, "columns": found.columns, "answered": answered, "wrong": wrong}


MORE = {"prices": prices, "versions": versions, "planted": planted, "refused": refused}


def main():
    dest, golden = Path(sys.argv[1]).resolve(), Golden(sys.argv[2])
    for name in sys.argv[3:]:
        if name in MORE:
            lines = MORE[name](dest, golden)
        else:
            lines = [check(name, ENGINES[name](dest), golden, dimensions_of(dest))]
        for line in lines:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
