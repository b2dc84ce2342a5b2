"""The names of the joint nowcast's files, prepared and evaluated, and of its companions."""

TASKS, ABOUT, PICTURE = "tasks.safetensors", "about.json", "picture.npz"
SPLITS = ("val", "test")
OPTIMUM, OPTIMUM_AIRCRAFT, OPTIMUM_GRID = "optimum", "optimum_aircraft", "optimum_grid"
LINEAR, INCREMENTS, KALMAN, PRIOR = "grid_linear", "increments", "kalman", "prior"
# Companions and the laws that preparation kept of them.
COMPANIONS = {OPTIMUM: "both", OPTIMUM_AIRCRAFT: "aircraft", OPTIMUM_GRID: "grid",
              LINEAR: "linear", INCREMENTS: "increments"}  # fmt: skip
