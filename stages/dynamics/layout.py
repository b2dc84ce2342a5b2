"""The names of the family's files: raw, prepared, evaluated."""

OBSERVED, STATES, GROWTH, META = "observed.npy", "states.npy", "growth.npy", "meta.json"
SERIES, STARTS, ABOUT = "series.npy", "starts.npy", "about.json"
CURVES, IMAGES = "curves.json", "images.npy"
