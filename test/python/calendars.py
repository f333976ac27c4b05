"""Prints the sessions of exchanges as the package exchange_calendars knows them: a line of JSON for each exchange."""

import json
import sys
import warnings

import exchange_calendars

warnings.simplefilter("ignore")
for code in sys.argv[1:]:
    schedule = exchange_calendars.get_calendar(code, start="2000-01-01", end="2030-12-31").schedule
    rows = [[str(day.date()), int(opens.timestamp()), int(closes.timestamp())] for day, opens, closes in
            zip(schedule.index, schedule["open"], schedule["close"])]
    print(json.dumps({"code": code, "rows": rows}))
