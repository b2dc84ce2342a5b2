"""One colour a model, the same in the figures of every experiment.

Those that learn by gradient are apart to an eye without red or green cones, too (a test measures
that). All stand out from white, on which the pages show figures by day and by night.
"""

LEARNED = {
    "msa-traditional": "#f4845f",
    "msa-gaussian": "#1c2430",
    "msa": "#c1121f",
    "tfs": "#3a0ca3",
    "gen": "#01665e",
    "cnp": "#e69f00",
    "hypermixer": "#4cc9f0",
    "perceiver": "#cc79a7",
    "geofno": "#762a83",
    "gng": "#74c69d",
    "kernel_mlp": "#3d8bd9",
}
COLOURS = LEARNED | {
    "day_average": "#9a9a9a",
    "hour_average": "#5f6b7a",
    "persistence": "#b08968",
    "knn": "#8d8741",
    "trend": "#1d6fa5",
    "kernel": "#3f8f5f",
    "mean": "#9a9a9a",
    "nearest": "#5f6b7a",
    "particle": "#7b5ea7",
    "knn_tnn": "#c9a227",
    "gka": "#74c69d",
    "gka_tnn": "#2a9d8f",
    "gka_mlp_tnn": "#c1121f",
    "kalman": "#1d6fa5",
    "kriging": "#e07a1f",
    "optimum": "#000000",
}


def colour(arm: str) -> str:
    """One colour a model, the same in every figure."""
    return next(
        (c for name, c in COLOURS.items() if arm == name or arm.startswith(name + "-")), "#333333"
    )
