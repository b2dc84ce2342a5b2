"""The names of the family's files: raw, prepared, evaluated, searched."""

OBSERVED, STATES, GROWTH, META = "observed.npy", "states.npy", "growth.npy", "meta.json"
SERIES, STARTS, ABOUT = "series.npy", "starts.npy", "about.json"
CURVES, IMAGES = "curves.json", "images.npy"
TRIALS, BEST, IMPORTANCE = "trials.csv", "best.yaml", "importance.csv"
