"""What was known when, for polars over the tables at {{uri}}; needs the packages polars and deltalake.

    from pitlake_polars import Lake
    lake = Lake("{{uri}}")
    lake.points(as_of=instant)
    lake.pit_join(decisions, "supply/current_pit", "24h", currency="usd", max_age=172800)
    lake.universe(as_of=instant)

Decisions are a DataFrame with asset and ts (a datetime; without a zone it means UTC) and whatever else is yours. Options
are those of the lake's own joins; durations are seconds or timedeltas. `lake_version` opens all tables as they were at
one version of the lake; `storage_options` are those of deltalake.
"""

from datetime import datetime, timedelta, timezone

import polars as pl
from deltalake import DeltaTable

UTC = pl.Datetime("us", "UTC")
LENGTHS = {{lengths}}
MONTHS = {{months}}
REVISABLE = {{revisable}}
PRICE, PRICED = "price_usd", "supply/current_pit"
ADDED = ["t", "available_at", "v", "o", "age_us"]


class Lake:
    """The published tables, all of one version of the lake."""

    def __init__(self, uri={{uri_text}}, lake_version=None, storage_options=None):
        self.uri = uri.rstrip("/")
        self.storage_options = storage_options
        versions = pl.scan_delta(f"{self.uri}/versions", storage_options=storage_options).collect()
        wanted = versions["lake_version"].max() if lake_version is None else lake_version
        if wanted not in versions["lake_version"].to_list():
            raise ValueError(f"lake version {wanted} was not published; there are {versions['lake_version'].unique().to_list()}")
        self.lake_version = wanted
        known = versions.filter(pl.col("lake_version") <= wanted).sort("lake_version")
        self.at = dict(zip(known["table_name"], known["delta_version"]))

    def delta(self, name):
        """A table as it was at this version of the lake, for deltalake."""
        return DeltaTable(f"{self.uri}/{name}", version=self.at[name], storage_options=self.storage_options)

    def table(self, name):
        """A table as it was at this version of the lake, a LazyFrame."""
        return pl.scan_delta(self.delta(name))

    def points(self, *, as_of=None, observed_as_of=None, backfill="strict"):
        """Every point as known at as_of and as held at observed_as_of, a LazyFrame; of a revised one the last value."""
        points = self.vintages(as_of=as_of, observed_as_of=observed_as_of, backfill=backfill)
        if not REVISABLE:
            return points
        series = ["metric", "asset", "interval", "currency", "exchange", "network", "t"]
        return points.sort("available_at", "observed_at").unique(series, keep="last", maintain_order=True)

    def vintages(self, *, as_of=None, observed_as_of=None, backfill="strict"):
        """The same with every value that a point had by then."""
        if backfill not in ("strict", "rule"):
            raise ValueError(f"backfill is 'strict' or 'rule', not {backfill!r}")
        points = self.table("points")
        if backfill == "rule":
            filled = pl.col("available_rule_at") < pl.col("available_at")
            points = points.with_columns(
                basis=pl.when(filled).then(pl.lit("backfilled")).otherwise(pl.col("basis")),
                available_at=pl.col("available_rule_at"),
            )
        if as_of is not None:
            points = points.filter(pl.col("available_at") <= instant(as_of))
        if observed_as_of is not None:
            points = points.filter(pl.col("observed_at") <= instant(observed_as_of))
        return points.select({{columns}})

    def pit_join(self, decisions, metric, interval, *, currency=None, exchange=None, network=None, max_age=None,
                 latency=None, skip_nulls=False, as_of=None, observed_as_of=None, backfill="strict"):
        """Each row of the decisions in its order, and the newest point of a metric that was knowable at its ts."""
        taken = [name for name in ADDED if name in decisions.columns]
        if taken:
            raise ValueError(f"rename {taken} in the decisions: the join adds columns of these names")
        if interval not in [*LENGTHS, *MONTHS]:
            raise ValueError(f"no such interval: {interval!r}")
        points = self.vintages(as_of=as_of, observed_as_of=observed_as_of, backfill=backfill)
        wanted = self.dimensions(PRICED if metric == PRICE else metric, {"currency": currency, "exchange": exchange, "network": network})
        if metric == PRICE:
            known = prices(points, interval)
        else:
            known = points.filter(
                pl.col("metric") == metric,
                pl.col("interval") == interval,
                *[pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in wanted.items()],
            )
        passing = None
        if metric in REVISABLE:
            known, passing = lasting_and_passing(known, skip_nulls)
        elif skip_nulls:
            known = known.filter(pl.col("v").is_not_null() | pl.col("o").is_not_null())
        asked = decisions.with_row_index("_pit_row").with_columns(_pit_ts=clock(decisions.schema["ts"]))
        asked = asked.with_columns(_pit_k=pl.col("_pit_ts") - duration(latency, "latency"))
        moments = asked.select("_pit_row", "asset", "_pit_k").drop_nulls().sort("_pit_k")
        found = latest(moments, frontier(known), "available_at")
        if passing is not None:
            found = pl.concat([found, latest(moments, passages(passing), "turn")]).drop_nulls("t")
            found = found.sort("_pit_row", "t").unique("_pit_row", keep="last", maintain_order=True)
        end = ends(interval)
        rows = asked.join(found, on="_pit_row", how="left").sort("_pit_row")
        rows = rows.with_columns(age_us=(pl.col("_pit_ts") - end).dt.total_microseconds())
        if max_age is not None:
            fresh = pl.col("age_us") <= duration(max_age, "max_age") // timedelta(microseconds=1)
            rows = rows.with_columns(pl.when(fresh).then(pl.col(name)).alias(name) for name in ADDED)
        return rows.select(*decisions.columns, *ADDED)

    def dimensions(self, metric, asked):
        """The values by which a metric's series is told: what is asked for, else the catalogue's; None where it takes none."""
        found = self.table("endpoints").filter(pl.col("metric") == metric).collect().to_dicts()
        if not found:
            raise ValueError(f"no such metric in endpoints: {metric!r}")
        many = {"currency": "currencies", "exchange": "exchanges", "network": "networks"}
        wanted = {}
        for name, value in asked.items():
            standard = found[0][f"default_{name}"]
            if standard is not None and value is not None and value not in found[0][many[name]]:
                raise ValueError(f"no such {name}: {value!r}")
            wanted[name] = None if standard is None else standard if value is None else value
        return wanted

    def universe(self, *, as_of=None, observed_as_of=None):
        """The products known at as_of, with issuer and asset as known then, a DataFrame."""
        products, issuers, assets = (
            versions(self.table(f"history_{name}"), as_of, observed_as_of) for name in ("products", "issuers", "assets")
        )
        issuers = issuers.select("id", issuer_name="name", issuer_status="status", jurisdiction="jurisdiction")
        assets = assets.select("id", "asset_class", "ticker", asset_name="name")
        return (
            products.join(issuers, left_on="issuer_id", right_on="id", how="left")
            .join(assets, left_on="asset_id", right_on="id", how="left")
            .select(pl.col("id").alias("product_id"), "name", "symbol", "isin", "status", "issuer_id", "issuer_name",
                    "issuer_status", "jurisdiction", "asset_id", "asset_name", "asset_class", "ticker", "valid_from")
            .collect()
        )


def prices(points, interval):
    """The price that the supply in usd and the supply in coins imply: known when both are."""
    supply = points.filter(pl.col("metric") == PRICED, pl.col("interval") == interval)
    supply = supply.with_columns(pl.col("exchange").fill_null(""), pl.col("network").fill_null(""))
    native = supply.filter(pl.col("currency") == "native").select("asset", "exchange", "network", "t", known_at="available_at", coins="v")
    both = supply.filter(pl.col("currency") == "usd").join(native, on=["asset", "exchange", "network", "t"])
    return both.select("asset", "t", available_at=pl.max_horizontal("available_at", "known_at"),
                       v=pl.when(pl.col("coins") != 0).then(pl.col("v") / pl.col("coins")), o=pl.lit(None, pl.String))


def lasting_and_passing(known, skip_nulls):
    """The vintages of points, those that stay answers and those of points that an empty vintage withdraws; each with its next."""
    point, empty = ["asset", "t"], pl.col("v").is_null() & pl.col("o").is_null() & skip_nulls
    rows = known.select(*point, "available_at", "observed_at", "v", "o").collect().sort(*point, "available_at", "observed_at")
    rows = rows.with_columns(
        next=pl.col("available_at").shift(-1).over(point),
        empty=empty,
        withdrawn=empty.reverse().cum_max().reverse().over(point),
    )
    rows = rows.filter(~pl.col("empty"), pl.col("next").is_null() | (pl.col("next") > pl.col("available_at")))
    return rows.filter(~pl.col("withdrawn")).lazy(), rows.filter(pl.col("withdrawn"))


def passages(passing):
    """At each instant at which one of these comes or ends, the newest one that counts; nulls where none does."""
    turns = pl.concat([passing.select("asset", turn=name) for name in ("available_at", "next")]).unique()
    alive = turns.join(passing, on="asset").filter(pl.col("available_at") <= pl.col("turn"), pl.col("turn") < pl.col("next"))
    alive = alive.sort("t").unique(["asset", "turn"], keep="last", maintain_order=True)
    return turns.join(alive, on=["asset", "turn"], how="left").sort("turn")


def latest(moments, rows, clock):
    """For each moment the last of the rows by then."""
    found = moments.join_asof(rows, left_on="_pit_k", right_on=clock, by="asset", strategy="backward", coalesce=False,
                              check_sortedness=False)
    return found.select("_pit_row", "t", "available_at", "v", "o")


def frontier(known):
    """What was not yet overtaken when it arrived, the last of each arrival: one row for an asset and instant."""
    order = ["asset", "available_at", "t"]
    return (
        known.select("asset", "t", "available_at", "v", "o").collect().sort(order)
        .filter(pl.col("t") >= pl.col("t").cum_max().over("asset"))
        .unique(["asset", "available_at"], keep="last", maintain_order=True)
        .sort("available_at")
    )


def versions(history, as_of, observed_as_of):
    """The versions of a resource that were known at both instants."""
    for cut in (as_of, observed_as_of):
        if cut is not None:
            history = history.filter(pl.col("valid_from") <= instant(cut))
    still = pl.col("valid_to").is_null()
    for cut in (as_of, observed_as_of):
        if cut is not None:
            still = still | (instant(cut) < pl.col("valid_to"))
    return history.filter(still)


def ends(interval):
    """The end of the interval that starts at t."""
    if interval in MONTHS:
        return pl.col("t").dt.offset_by(f"{MONTHS[interval]}mo")
    return pl.col("t") + timedelta(seconds=LENGTHS[interval])


def clock(dtype):
    """The column ts as an instant in microseconds."""
    ts = pl.col("ts")
    if getattr(dtype, "time_zone", None) is None:
        return ts.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return ts.dt.convert_time_zone("UTC").cast(UTC)


def instant(value):
    """A moment as polars compares it; text is ISO 8601, and without a zone it means UTC."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return pl.lit(moment.astimezone(timezone.utc), UTC)


def duration(value, name):
    """Seconds or a timedelta; None is none at all."""
    length = value if isinstance(value, timedelta) else timedelta(seconds=value or 0)
    if length < timedelta(0):
        raise ValueError(f"{name} is negative")
    return length
