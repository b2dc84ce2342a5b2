"""The names under which an evaluation of neural processes on winds keeps what only they are asked:
the share of winds within the central interval of LEVEL; and how their winds of a whole level flow,
of the fields in levels-CELL.parquet."""

COVERAGE, LEVEL = "coverage_50", 0.5
LEVELS, MINUTES = "levels", 4  # test minutes whose levels are kept, evenly over the test
DIVERGENCE, SHEAR, RATIO = "divergence_per_s", "shear_per_s", "divergence_over_shear"
SLOPE, EXACT = "spectral_slope", "divergence_over_shear_exact"
TRUE = "_truth"  # after a name: of the simulated sky itself, on the same places
