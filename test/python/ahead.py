"""Tries functions for look-ahead, as research writes them in pandas; prints what came of each. FOLDER is a lake."""

import json
import random
import sys
from pathlib import Path

import pandas as pd

import pitlake

folder = sys.argv[1]


def known(lake):
    """What was known each day."""
    days = lake.calendar("2024-03-01", "2024-03-25", "1 day", ["BTC"])
    return lake.panel(days, {"v": "addresses/active_count_pit"}).df()[["ts", "v"]]


def daily(lake):
    """The points themselves, by the day that they describe."""
    frame = lake.points("addresses/active_count_pit", "BTC", since="2024-03-01", until="2024-03-25").df()
    return frame[["t", "v"]].rename(columns={"t": "ts"}).set_index("ts")


class Scaler:
    """As those of scikit-learn: fitted on a sample, then applied."""

    def fit(self, values):
        self.low, self.high = values.min(), values.max()
        return self

    def transform(self, values):
        return (values - self.low) / (self.high - self.low)


def normalised(lake):
    frame = known(lake)
    return frame.assign(v=(frame["v"] - frame["v"].mean()) / frame["v"].std())


def centred(lake):
    frame = known(lake)
    return frame.assign(v=frame["v"].rolling(3, center=True).mean())


def filled(lake):
    frame = known(lake)
    return frame.assign(v=frame["v"].where(frame.index % 5 > 0).bfill())


def shifted(lake):
    frame = known(lake)
    return frame.assign(v=frame["v"].shift(-1))


def scaled(lake):
    frame = known(lake)
    return frame.assign(v=Scaler().fit(frame["v"]).transform(frame["v"]))


def resampled(lake):
    """A week's mean under the label of its first day."""
    return known(lake).set_index("ts").resample("W-MON", label="left", closed="left").mean()


def interpolated(lake):
    frame = known(lake)
    return frame.assign(v=frame["v"].where(frame.index % 4 != 1).interpolate())


def honest(lake):
    return known(lake)


def wondering(lake):
    """An asset that there is not, which is noted; rows that count the notes do not differ by that."""
    days = lake.calendar("2024-03-01", "2024-03-25", "1 day", ["BTC", "BTX"])
    frame = lake.panel(days, {"v": "addresses/active_count_pit"}).df()
    return frame.assign(noted=len(lake.notes))


def trailing(lake):
    frame = known(lake)
    return frame.assign(v=frame["v"].rolling(3).mean(), before=frame["v"].shift(1), top=frame["v"].cummax())


def expanding(lake):
    frame = known(lake)
    seen = frame["v"].expanding()
    return frame.assign(v=(frame["v"] - seen.min()) / (seen.max() - seen.min()))


def of_later(lake):
    """Which products there will be at the end of the year, told each day."""
    lake.refresh()
    there = " ".join(lake.universe("2024-11-01").df()["product_id"])
    return known(lake).assign(there=there)


def of_then(lake):
    """Which products there were."""
    frame = known(lake).iloc[::8]
    return frame.assign(there=[" ".join(lake.universe(ts).df()["product_id"]) for ts in frame["ts"]])


def raising(lake):
    frame = known(lake)
    if frame["v"].iloc[-1] == frame["v"].iloc[-2]:
        raise ValueError("nothing new came")
    return frame


def broken(lake):
    raise KeyError("no such column")


def drawn(lake):
    frame = known(lake)
    return frame.assign(v=random.random())


def reading(lake):
    """The files of the lake as they stand, which no world cuts."""
    return lake.sql(f"SELECT t AS ts, v FROM read_parquet('{lake.folder}/points/**/*.parquet')").df()


def signalled(lake):
    """The last score that was sent by then."""
    return lake.sql("SELECT d.ts, s.score AS v FROM decided AS d ASOF LEFT JOIN scores AS s ON s.available_at <= d.ts").df()


def hurried(lake):
    """The score of a day before it was sent."""
    return lake.sql("SELECT d.ts, s.score AS v FROM decided AS d LEFT JOIN scores AS s ON CAST(s.available_at AS DATE) = CAST(d.ts AS DATE)").df()


def spelled(lake):
    """The score of a day before it was sent; the column says when in letters of another case, the rows their instant, too."""
    return lake.sql("SELECT d.ts AS TS, s.score AS v FROM decided AS d LEFT JOIN spelt AS s ON s.day = CAST(d.ts AS DATE) + 1").df()


def spelled_then(lake):
    return lake.sql("SELECT d.ts AS TS, s.score AS v FROM decided AS d ASOF LEFT JOIN spelt AS s ON s.Available_At <= d.ts").df()


def dated(lake):
    """The score of the day itself, which is known at the end of the day: its frame has the date alone."""
    return lake.sql("SELECT d.ts, s.score AS v FROM decided AS d ASOF LEFT JOIN dates AS s ON s.day <= CAST(d.ts AS DATE)").df()


def dated_then(lake):
    return lake.sql("SELECT d.ts, s.score AS v FROM decided AS d ASOF LEFT JOIN dates AS s ON s.available_at <= d.ts").df()


def fraction(lake):
    """Its place among all rows, which tells how many come later."""
    frame = known(lake)
    return frame.assign(v=(frame.index + 1) / len(frame))


def hourly(lake):
    days = lake.calendar("2024-03-02", "2024-03-03", "10 minutes", ["BTC"])
    return lake.panel(days, {"v": "addresses/active_count_pit"}).df()[["ts", "v"]]


def hour_size(lake):
    """How many rows the hour of a row will have had."""
    frame = hourly(lake)
    return frame.assign(v=frame.groupby(frame["ts"].dt.floor("h"))["ts"].transform("size"))


def hour_place(lake):
    """How many rows the hour of a row had so far."""
    frame = hourly(lake)
    return frame.assign(v=frame.groupby(frame["ts"].dt.floor("h")).cumcount())


def own_fraction(lake):
    """Decisions of its own, which it lends to the lake."""
    days = pd.DataFrame({"asset": "BTC", "ts": pd.date_range("2024-03-02", periods=20, freq="D", tz="UTC")})
    frame = lake.panel(days, {"v": "addresses/active_count_pit"}).df()
    return frame.assign(v=(frame.index + 1) / len(frame))[["ts", "v"]]


def given_fraction(lake):
    """Decisions that it was given by name."""
    frame = lake.sql("SELECT CAST(ts AS TIMESTAMPTZ) AS ts FROM decided ORDER BY ts").df()
    return frame.assign(v=len(frame) - frame.index)


def own_instants(lake):
    """Instants that the lake never sees."""
    return pd.DataFrame({"ts": pd.date_range("2024-03-02", periods=20, freq="D", tz="UTC")}).assign(v=1.0)


def nothing(lake):
    return pd.DataFrame({"a": [1.0]})


def text(lake):
    return "no frame"


works = [normalised, centred, filled, shifted, scaled, resampled, interpolated, daily, of_later, honest, wondering, trailing, expanding,
         of_then, raising, broken, drawn, reading, signalled, hurried, spelled, spelled_then, dated, dated_then, fraction, hour_size, hour_place, own_fraction, given_fraction, own_instants, nothing, text]
instants = pd.date_range("2024-03-01", periods=20, freq="D", tz="UTC")
scores = pd.DataFrame({"available_at": instants + pd.Timedelta(hours=9), "score": [float(n) for n in range(20)]})
spelt = pd.DataFrame({"Available_At": instants + pd.Timedelta(hours=6), "day": instants.date, "score": [float(n * 37 % 11) for n in range(20)]})
dates = pd.DataFrame({"available_at": instants.date, "day": instants.date, "score": [float(n * 37 % 11) for n in range(20)]})
given = {"scores": scores, "spelt": spelt, "dates": dates, "decided": Path(folder).parent / "decided.csv"}
given["decided"].write_text("ts\n" + "\n".join(f"{one:%Y-%m-%dT07:00:00Z}" for one in instants), encoding="utf8")
only = sys.argv[2:]
for work in [work for work in works if not only or work.__name__ in only]:
    try:
        own = given if work in (signalled, hurried, spelled, spelled_then, dated, dated_then, given_fraction) else None
        told = pitlake.lookahead(work, folder, cutoffs=8, tolerance=1e-9, own=own)
        said = {"verdict": told.verdict, "reason": told.reason, "depends_on": told.depends_on, "clean": bool(told), "words": str(told),
                "notes": told.notes}
    except pitlake.LakeError as error:
        said = {"verdict": "error", "reason": str(error)}
    print(json.dumps({"name": work.__name__, **said}), flush=True)
