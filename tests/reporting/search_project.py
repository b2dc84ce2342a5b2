"""A hand-made search experiment: two point sets counted, one benchmark, the printed rows beside;
numbers that can be reckoned by hand."""

import itertools
from pathlib import Path

import results_project
from results_project import PROFILE

from stages import files

EXPERIMENT = "neighbours"
HOME = Path("reports") / EXPERIMENT / PROFILE
SEEN, QUERIES, POINTS = 40_000, 200, 50_000
METHODS = {
    "linear": 1.0,
    "kdtree": 0.2,
    "forest": 0.1,
    "trajectory": 0.05,
    "boxes": 0.04,
    "compiled": 0.02,
}  # share of what is seen, k = 1000
SEGMENTS, FETCH = (20, 50, 100), (1, 4)
EXAMPLE = {
    "run": [[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]],
    "query": [2.0, 3.0, 0.0, 0.0],
    "rival": [2.0, 5.5, 0.0, 0.0],
    "scale": [1.0] * 4,
    "projection": [2.0, 0.0, 0.0],
    "distance_to_line": 3.0,
    "deviation": 1.0,
    "nearest": 1,
    "true": 4.0,
    "rival_true": 6.25,
    "printed": 8.0,
    "segment": 4.0,
    "box": 4.0,
}


def cell(share: float, wrong: int = 0, seen: int = SEEN) -> dict:
    """A cell as measure.py writes it, its interval a tenth to either side."""

    def number(value, unit):
        return {"value": value, "low": 0.9 * value, "high": 1.1 * value, "unit": unit, "n": QUERIES}

    return {
        "queries": QUERIES,
        "metrics": {
            "comparisons": number(share * seen, "points"),
            "seen": number(float(seen), "points"),
            "comparisons_share": number(share, "1"),
            "wrong_rows": number(float(wrong), "queries"),
        },
    }


def cells() -> dict[str, dict]:
    """All cells of a set: every method at two k and scales, the tree's leaves, one bound alone,
    the surface over K and F."""
    found = {
        f"{method}-{arm}-k{k}": cell(share * (1 if k == 1000 or method == "linear" else 0.5))
        for (method, share), arm, k in itertools.product(
            METHODS.items(), ("iso", "aniso"), (16, 1000)
        )
    }
    found |= {
        f"kdtree-{kind}-leaf{leaf}-k1000": cell(0.3, seen=SEEN if kind == "masked" else POINTS)
        for kind in ("plain", "scaled", "masked")
        for leaf in (10, 100)
    }
    found |= {f"trajectory-{bound}_bound-k1000": cell(0.05) for bound in ("segment", "box")}
    return found | {
        f"trajectory-K{k}-F{f}": cell(0.001 * k + 0.01 * f) for k in SEGMENTS for f in FETCH
    }


GOALS = [
    {
        "goal": "boxes over cKDTree, smoothed_random_walk, iso, k=16",
        "value": 0.25,
        "bar": 0.5,
        "at": "most",
        "passed": True,
    },
    {
        "goal": "boxes at 33,000,000 points: build_s",
        "value": 61.0,
        "bar": 60.0,
        "at": "most",
        "passed": False,
    },
]
LARGE = [
    {
        "method": "boxes",
        "points": 1_000_000,
        "build_s": 0.5,
        "peak_mib": 64.0,
        "ms": 1.0,
        "slower": 1.0,
        "larger": 1.0,
    },
    {
        "method": "boxes",
        "points": 33_000_000,
        "build_s": 61.0,
        "peak_mib": 1900.0,
        "ms": 4.0,
        "slower": 4.0,
        "larger": 33.0,
    },
]
MACHINE = {
    "cpu": "Some CPU",
    "cores": 2,
    "threads": 1,
    "gpu": "Some GPU",
    "memory_gib": 8.0,
    "versions": {},
}
EPOCH = {
    "points": 1_000_000,
    "steps": 1440,
    "targets": 700,
    "context": 64,
    "steps_timed": 200,
    "seconds": 41.4,
}


def timed(name: str, ms: float, device: str = "cpu", **more) -> dict:
    """One line of a benchmark."""
    return {
        "set": "smoothed_random_walk",
        "method": name,
        "arm": "aniso",
        "k": 1000,
        "device": device,
        "points": 1_000_000,
        "ms": ms,
        "rounds_ms": [ms] * 5,
        **more,
    }


def benchmark() -> dict:
    """benchmarks.json: times of one set, a GPU's among them."""
    tables = [
        timed("linear", 9.5, build_s=0.5),
        timed("trajectory", 1.25, build_s=0.75),
        timed("kdtree-masked-leaf100", 123.4, build_s=4.5),
        timed("ckdtree-plain-leaf10", 0.25, build_s=0.125),
        timed("linear", 2.5, "cuda", build_s=0.01),
        timed("trajectory", 0.125, "cuda", build_s=2.0),
    ]
    speed = [
        {**timed(name, ms), "arm": arm, "k": k, "ratio": ms / 4.0}
        for name, ms in (("yardstick", 4.0), ("compiled", 0.3), ("boxes", 1.0), ("linear", 8.0))
        for arm in ("iso", "aniso")
        for k in (16, 1000)
    ]
    surface = [
        {**timed("trajectory", 10.0), "segments": k, "fetch": f, "speed_up": 0.05 * k / f}
        for k in SEGMENTS
        for f in FETCH
    ]
    return {
        "profile": PROFILE,
        "date": "2026-01-02",
        "points": 1_000_000,
        "quiet": True,
        "others_cores": 0.01,
        "seconds": 60.0,
        "speed": speed,
        "tables": tables,
        "surface": surface,
        "goals": GOALS,
        "large": LARGE,
        "builds": [],
        "per_query": [],
        "machine": MACHINE,
        "epoch": EPOCH,
    }


def counted(pairs: int, above: int, wrong: int) -> dict:
    one = {
        "pairs": pairs,
        "queries": QUERIES,
        "above": {"printed": above, "segment": 0, "box": 0},
        "wrong": wrong,
    }
    return {
        "k": 1000,
        "run": 100,
        "runs": 500,
        "scales": {"iso": one, "aniso": {**one, "above": {**one["above"], "printed": above // 2}}},
    }


def build(root: Path, times: bool = True) -> None:
    """The experiment into `root`, the working folder; also where it stands beside others."""
    if not (root / "stages").exists():
        (root / "stages").symlink_to(results_project.ROOT / "stages")
    if not Path("data/published").exists():
        Path("data/published").mkdir(parents=True)
    Path("data/published/c.csv").write_text(
        "table,experiment,dataset,model,variant,size,split,metric,unit,direction,mean,std,n_runs,"
        "note\n"
        "thesis 1.3,x,tnn_smoothed_random_walk,tnn,device=cpu,,none,comparisons,none,min,58408,,,\n"
        "thesis 1.3,x,tnn_smoothed_random_walk,tnn,device=cpu,,none,query_time,ms,min,1.60,,,\n"
        "thesis A.2,x,tnn_smoothed_random_walk,tnn,device=cpu,,none,creation_time,ms,min,1000,,,\n"
        "thesis 1.3,x,tnn_smoothed_random_walk,tnn,device=gpu,,none,query_time,ms,min,0.39,,,\n"
        "thesis 1.3,x,tnn_original,linear_search,device=cpu,,none,comparisons,none,min,811372,,,\n"
    )
    for name in ("simulated", "smoothed_random_walk"):
        files.write_json(
            HOME / "evaluated" / name / "metrics.json",
            {"cells": cells(), "points": POINTS, "trajectories": 100, "window": 0.05},
        )
        files.write_json(
            HOME / "evaluated" / name / "bound.json",
            {"counterexample": EXAMPLE, "counted": counted(10_000, 2_500, 17)},
        )
        results_project.record("evaluate", name, experiment=EXPERIMENT)
    for stage in ("acquire", "decode", "validate", "prepare"):
        results_project.record(stage, "simulated")
    results_project.record("tabulate", experiment=EXPERIMENT)
    files.write_json(HOME / "benchmarks.json", benchmark() if times else {})
    (HOME.parent / "companions.csv").write_text(
        "set,arm,table,dataset,model,variant\nsmoothed_random_walk,trajectory,thesis "
        "1.3,tnn_smoothed_random_walk,tnn,device=cpu\n"
        "smoothed_random_walk,trajectory,thesis A.2,tnn_smoothed_random_walk,tnn,device=cpu\n"
        "smoothed_random_walk,trajectory-gpu,thesis 1.3,tnn_smoothed_random_walk,tnn,device=gpu\n"
        "original,linear,thesis 1.3,tnn_original,linear_search,device=cpu\n"
    )
