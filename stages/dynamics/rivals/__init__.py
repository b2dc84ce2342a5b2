"""Rivals that no document has: what forecasts without a gradient (spec O12)."""
