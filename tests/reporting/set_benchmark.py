"""A benchmark of models of sets, made by hand."""

import itertools

POINTS = (256, 4_096, 16_384)


GROWS = {
    "hypermixer": (1e-2, 1),
    "msa": (1e-5, 2),
    "torch": (2e-5, 2),
    "layer ours": (4e-6, 2),
    "layer flash": (5e-6, 2),
    "layer math": (9e-6, 2),
}
MODELS = [
    {
        "setting": "wind",
        "model": "msa",
        "arm": "traditional",
        "size": "20k",
        "work": "step",
        "ms": 3.0,
        "torch_ms": 6.0,
        "ratio": 0.5,
        "low": 0.4,
        "high": 0.6,
        "mib": 2.0,
        "mib_ratio": 0.9,
    },
    {
        "setting": "wind",
        "model": "geofno",
        "arm": "plain",
        "size": "20k",
        "work": "step",
        "skipped": "two axes",
    },
]
MACHINE = {"cpu": "A processor", "cores": 2, "threads": 1, "gpu": None, "versions": {}}


def contexts() -> list[dict]:
    """Times and memory by contender and number of points."""
    rows = []
    for name, points in itertools.product(GROWS, POINTS):
        factor, power = GROWS[name]
        ms = factor * points**power
        other = GROWS["layer flash" if name.startswith("layer") else "torch"]
        rows.append(
            {"contender": name, "points": points}
            | (
                {"skipped": "would need up to 9 GiB"}
                if (name, points) == ("layer math", 16_384)
                else {
                    "ms": ms,
                    "rounds_ms": [ms],
                    "mib": 0.01 * points,
                    "ratio": ms / (other[0] * points ** other[1]),
                    "mib_ratio": 1.0,
                }
            )
        )
    return rows


def times():
    """A benchmark in which MSA grows quadratically and HyperMixer linearly; the plain kernel was
    left out at the largest size."""
    growth = [
        {
            "contender": name,
            "points": [4_096, 16_384],
            "time": float(GROWS[name][1]),
            "low": GROWS[name][1] - 0.1,
            "high": GROWS[name][1] + 0.1,
            "memory": 1.0,
        }
        for name in GROWS
        if name != "layer math"
    ]
    return {
        "date": "2026-01-01",
        "machine": MACHINE,
        "device": "cpu",
        "quick": False,
        "size": "20k",
        "most_gib": 4.0,
        "minutes": 6.0,
        "quiet": False,
        "others_cores": 1.4,
        "models": MODELS,
        "contexts": contexts(),
        "growth": growth,
        "goals": [
            {"goal": "a", "value": 0.5, "bar": 0.7, "met": True},
            {"goal": "b", "value": 1.5, "bar": 1.1, "met": False},
        ],
    }
