"""What was known when, for PySpark (4.0 or later, with Delta Lake) over the tables at {{uri}}.

    from pitlake_pyspark import Lake
    lake = Lake(spark, "{{uri}}")
    lake.points(as_of=instant)
    lake.pit_join(decisions, "supply/current_pit", "24h", currency="usd", max_age=172800)
    lake.universe(as_of=instant)

Decisions are a DataFrame with asset and ts (TIMESTAMP) and whatever else is yours. Options are those of the lake's own
joins; durations are seconds or timedeltas, instants are datetimes (without a zone they mean UTC). `lake_version` opens all tables as
they were at one version of the lake.
"""

import re
from datetime import datetime, timedelta, timezone

POINTS = """
{{points}}
"""

PIT_JOIN = """
{{text pit_join}}
"""

UNIVERSE = """
{{text universe}}
"""


class Lake:
    """The published tables, all of one version of the lake."""

    def __init__(self, spark, uri={{uri_text}}, lake_version=None):
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        self.spark = spark
        self.uri = uri.replace("s3://", "s3a://", 1).rstrip("/")
        versions = spark.read.format("delta").load(f"{self.uri}/versions").collect()
        known = [row.lake_version for row in versions]
        wanted = max(known) if lake_version is None else lake_version
        if wanted not in known:
            raise ValueError(f"lake version {wanted} was not published; there are {sorted(set(known))}")
        self.lake_version = wanted
        self.at = {}
        for row in sorted((row for row in versions if row.lake_version <= wanted), key=lambda row: row.lake_version):
            self.at[row.table_name] = row.delta_version

    def table(self, name):
        """A table as it was at this version of the lake."""
        return self.spark.read.format("delta").option("versionAsOf", self.at[name]).load(f"{self.uri}/{name}")

    def points(self, *, as_of=None, observed_as_of=None, backfill="strict"):
        """Every point as known at as_of and as held at observed_as_of."""
        options = {"as_of": as_of, "observed_as_of": observed_as_of, "backfill": backfill}
        return self.ask(POINTS, options, points=self.table("points"))

    def pit_join(self, decisions, metric, interval, *, currency=None, exchange=None, network=None, max_age=None,
                 latency=None, skip_nulls=False, as_of=None, observed_as_of=None, backfill="strict"):
        """Each row of the decisions, and the newest point of a metric that was knowable at its ts."""
        taken = {"t", "available_at", "v", "o", "age_us"} & set(decisions.columns)
        if taken:
            raise ValueError(f"rename {sorted(taken)} in the decisions: the join adds columns of these names")
        options = {"metric": metric, "interval": interval, "currency": currency, "exchange": exchange, "network": network,
                   "max_age": max_age, "latency": latency, "skip_nulls": skip_nulls, "as_of": as_of,
                   "observed_as_of": observed_as_of, "backfill": backfill}
        tables = {"decisions": decisions, "points": self.table("points"), "endpoints": self.table("endpoints")}
        return self.ask(PIT_JOIN, options, **tables)

    def universe(self, *, as_of=None, observed_as_of=None):
        """The products known at as_of, with issuer and asset as known then."""
        names = ["history_products", "history_issuers", "history_assets"]
        options = {"as_of": as_of, "observed_as_of": observed_as_of}
        return self.ask(UNIVERSE, options, **{name: self.table(name) for name in names})

    def ask(self, query, options, **frames):
        """A query with its options as literals: with Delta Lake's parser Spark binds no parameters."""
        return self.spark.sql(re.sub(r":(\w+)", lambda option: literal(options[option[1]]), query), **frames)


def literal(value):
    """An option as Spark SQL says it; a datetime without a zone means UTC."""
    if value is None or isinstance(value, (bool, int, float)):
        return "NULL" if value is None else str(value).lower()
    if isinstance(value, timedelta):
        return str(value / timedelta(seconds=1))
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return f"timestamp_micros({(moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)})"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return "'" + re.sub(r"[{}]", lambda brace: brace[0] * 2, text) + "'"
