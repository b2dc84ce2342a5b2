"""The readers of the problems beside wind, one file each: raw bytes, simulated or real, to sets
of points (sets.py)."""
