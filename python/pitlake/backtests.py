"""Rows of a backtest: the fills of an engine, or its positions, each at the instant of its decision."""

from __future__ import annotations

from typing import Any

from .errors import refusal
from .result import Result
from .text import column_named


def rows_of(result: Any, ts: str, shift: Any) -> Any:
    """Builds a frame with `ts` from statistics of backtesting.py, a vectorbt portfolio, a nautilus engine or positions.

    `shift` is the time from the label of a row to its decision. Any other result stays as it is.
    """
    if isinstance(result, Result):
        result = result.frame() if shift is None else result.df()
    made_by = type(result).__module__.partition(".")[0]
    frame = {"backtesting": _backtesting, "vectorbt": _vectorbt, "nautilus_trader": _nautilus}.get(made_by, lambda own: own)(result)
    if not hasattr(frame, "reset_index"):
        if shift is not None:
            raise refusal("lookahead: shift", "what an engine made, or a frame of pandas", type(frame).__name__)
        return frame
    if frame is not result:
        frame = frame.rename(columns={"ts": ts})
    if frame.ndim == 1:
        frame = frame.to_frame("position" if frame.name is None else str(frame.name))
    ts = column_named(ts, (*frame.columns, *frame.index.names)) or ts
    if ts not in (*frame.columns, *frame.index.names) and str(frame.index.dtype).startswith("datetime"):
        frame = frame.rename_axis(ts)
    if any(frame.index.names):
        frame = frame.reset_index()
    if shift is not None and ts in frame.columns:
        import pandas

        frame = frame.assign(**{ts: pandas.to_datetime(frame[ts], utc=True) + pandas.Timedelta(shift)})
    return frame


def _fills(made: list[tuple[Any, str, float, float]]) -> Any:
    """Sums what was bought and sold at an instant and a price, however an engine cuts an order into trades."""
    import pandas

    frame = pandas.DataFrame(made, columns=["ts", "asset", "price", "size"])
    # Who has not traded yet has columns of the same types.
    frame = frame.astype({"asset": "string", "price": "float64", "size": "float64"})
    frame = frame.assign(ts=pandas.to_datetime(frame["ts"], utc=True), side=frame["size"].gt(0).map({True: "buy", False: "sell"}).astype("string"))
    return frame.groupby(["ts", "asset", "side", "price"], as_index=False)["size"].sum()


def _backtesting(stats: Any) -> Any:
    """Lists both ends of closed trades, the begin of open ones: no entry depends on whether its exit is known."""
    strategy = stats["_strategy"]
    trades = [*strategy.closed_trades, *strategy.trades]
    entered = [(trade.entry_time, "", trade.entry_price, trade.size) for trade in trades]
    left = [(trade.exit_time, "", trade.exit_price, -trade.size) for trade in trades if trade.exit_price is not None]
    return _fills(entered + left).drop(columns="asset")


def _vectorbt(portfolio: Any) -> Any:
    orders = portfolio.orders.records_readable
    sizes = orders["Size"].where(orders["Side"] == "Buy", -orders["Size"])
    return _fills(list(zip(orders["Timestamp"], orders["Column"].map(str), orders["Price"], sizes)))


def _nautilus(engine: Any) -> Any:
    fills = engine.trader.generate_fills_report()
    if len(fills) == 0:
        return _fills([])
    sizes = fills["last_qty"].astype(float).where(fills["order_side"] == "BUY", -fills["last_qty"].astype(float))
    return _fills(list(zip(fills["ts_event"], fills["instrument_id"].map(str), fills["last_px"].astype(float), sizes)))
