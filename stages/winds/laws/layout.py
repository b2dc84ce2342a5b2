"""The name under which metrics.json keeps what only neural processes on winds are asked: the share
of winds within the central interval of LEVEL."""

COVERAGE, LEVEL = "coverage_50", 0.5
