"""The names of the joint nowcast's files, prepared and evaluated, and of its companions."""

TASKS, ABOUT, PICTURE = "tasks.safetensors", "about.json", "picture.npz"
SKY, MAP = "sky.safetensors", "map.safetensors"  # of a real sky alone
SPLITS = ("val", "test")
OPTIMUM, OPTIMUM_AIRCRAFT, OPTIMUM_GRID = "optimum", "optimum_aircraft", "optimum_grid"
LINEAR, INCREMENTS, KALMAN, PRIOR = "grid_linear", "increments", "kalman", "prior"
KRIGING = "kriging"
# Companions and the laws that preparation kept of them: the exact ones of simulated skies alone,
# kriging of the aircraft's winds of real ones alone.
COMPANIONS = {OPTIMUM: "both", OPTIMUM_AIRCRAFT: "aircraft", OPTIMUM_GRID: "grid",
              LINEAR: "linear", INCREMENTS: "increments", KRIGING: "winds"}  # fmt: skip
