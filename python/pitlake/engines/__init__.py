"""From the lake to backtesting engines, without losing the clocks on the way: docs/how-to/engines.md."""
