"""Adapters from a lake to backtesting engines. An engine sees no value before its `available_at`: docs/how-to/engines.md."""
