"""Rivals that no document has: what forecasts without a gradient."""
