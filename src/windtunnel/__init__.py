"""Windtunnel: from raw market data to a decision about how to train."""

__version__ = "0.1.0"
