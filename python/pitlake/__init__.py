"""Opens a lake of pitlake for reading: what was knowable, and when.

    import pitlake

    lake = pitlake.open("data", as_of="2024-03-01")
    days = lake.calendar("2024-01-01", "2024-03-01", "1 day", ["BTC", "ETH"])
    frame = lake.panel(days, ["addresses/active_count_pit", "price_usd"], latency="15m").df()

pitlake queries the views and macros of `lake.duckdb`, so Python, the command line and TypeScript give the same answers.
"""

from .dating import Dating
from .errors import LakeError, LakeWarning
from .lake import Lake, open
from .lookahead import Verdict, lookahead
from .magic import load_ipython_extension
from .marked import point_in_time
from .result import Result

__all__ = ["Dating", "Lake", "LakeError", "LakeWarning", "Result", "Verdict", "load_ipython_extension", "lookahead",
           "open", "point_in_time"]
__version__ = "0.1.0"
