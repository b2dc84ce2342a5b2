"""The problems beside wind, one home each: what makes the raw bytes of a simulated one, in the
format of the real files, and what reads raw bytes to sets of points (problem.py)."""
