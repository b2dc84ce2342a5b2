"""The names of the family's files: raw, prepared, evaluated."""

PAIRS, ROWS = "pairs.tsv", "rows.npz"
INPUTS, TARGETS, SPLIT, KINDS, GROUPS, ABOUT = (
    "inputs.npy", "targets.npy", "split.npy", "kinds.npy", "groups.npy", "about.json",
)  # fmt: skip
MAPS, FIRST, DRAWN = "maps.npy", "first.npy", "drawn.npy"
