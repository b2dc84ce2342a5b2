"""The races of `make bench-neighbours`: every search side by side on the same queries, and the
answers checked.

The speed table takes SciPy's cKDTree, asked for more neighbours until enough are causal, as its
yardstick. The tables of the thesis (1.3, 1.4, A.1-A.3) ask for the largest k: linear search, TNN
and the k-d trees, of which the plain and scaled ones do not mask; figure 1.4 is TNN over K and F. A
row is {"set", "method", "k", "arm", "device", "points", "queries", "ms", "rounds_ms",
"others", ...}; ms is per query, `others` are the cores that other processes used. Shapes: N points,
M queries, k neighbours.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from stages import seeds
from stages.neighbours import methods
from stages.neighbours.contract import Index
from stages.neighbours.experiment.measure import KDTREES, SCALES, Truth, brute_force, wrong_rows
from stages.neighbours.experiment.sets import PointSet
from stages.params import Search
from tests.benchmarks.clock import Contender, Times, once, race
from tests.benchmarks.yardstick import expand_and_filter

YARDSTICK = "yardstick"
FAST = ("boxes", "compiled", "forest")  # asked all queries
SLOW = ("trajectory", "linear")
EARLY = 0.01  # of the points
# relative difference of squared distances that is the yardstick's rounding: it is not bound to the
# contract's
FORGIVEN = 1e-5
GPU = ("linear", "trajectory", "boxes")  # what runs where the points are


@dataclass(frozen=True)
class Plan:
    """How much of each race is run: repeats of a build, queries of slow searches and of the tree
    in Python, rounds."""

    search: Search
    rounds: int = 5
    builds: int = 3
    slow: int = 64
    python: int = 8


def late(points: PointSet) -> PointSet:
    """The same set without the queries that see less than EARLY of it: for them the yardstick
    would ask for nearly all points."""
    return replace(
        points,
        queries=points.queries[torch.from_numpy(points.seen() >= EARLY * len(points.points))],
    )


def few(points: PointSet, queries: int) -> PointSet:
    """The same set, asked by its first `queries` queries only."""
    return replace(points, queries=points.queries[:queries])


def asking(
    index: Index, points: PointSet, k: int, scale: Tensor, masked: bool = True
) -> Callable[[], object]:
    """A query ready to be called."""
    queries = points.asked.to(index.points.device)
    scale = scale.to(index.points.device)
    return lambda: index.query(queries, k, window=points.window if masked else None, scale=scale)


def described(times: Times, name: str, contender: Contender, **more) -> dict:
    """The common part of a row."""
    return {
        "ms": times.median(name),
        "rounds_ms": times.rounds_ms[name],
        "others": times.others,
        "queries": contender.queries,
        **more,
    }


def built(
    points: PointSet, plan: Plan, options: dict[str, dict]
) -> tuple[dict[str, Index], list[dict]]:
    """An index of each method, and how long each took to build (seconds)."""
    indexes, rows = {}, []
    for method in (*FAST, *SLOW):

        def make(method: str = method) -> None:
            indexes[method] = methods.build(
                method, points.points, points.trajectory, **options.get(method, {})
            )

        seconds = [once(make) for _ in range(plan.builds)]
        rows.append(
            {
                "set": points.name,
                "method": method,
                "points": len(points.points),
                "seconds": statistics.median(seconds),
                "rounds_s": seconds,
            }
        )
    return indexes, rows


def expanding(points: PointSet, scale: np.ndarray) -> Callable[[int], object]:
    """The yardstick, ready to be asked for k neighbours: a tree over scaled points, and queries
    scaled alike."""
    root, table, asked = np.sqrt(scale), points.points.numpy(), points.asked.numpy()
    tree, times = cKDTree(table * root), table[:, 3].astype(np.float64)
    latest = asked[:, 3].astype(np.float64) - points.window
    return lambda k: expand_and_filter(tree, asked * root, k, times, latest)


def speed(points: PointSet, indexes: dict[str, Index], plan: Plan) -> list[dict]:
    """Every method over the yardstick at every k and scale."""
    rows, asked = [], {name: few(points, plan.slow) if name in SLOW else points for name in indexes}
    for arm, weights in SCALES.items():
        scale = torch.tensor(weights)
        truth = brute_force(
            points.points.numpy(),
            points.asked.numpy(),
            max(plan.search.neighbours),
            scale.numpy(),
            points.window,
        )
        yardstick = expanding(points, scale.numpy())
        for k in plan.search.neighbours:
            contenders = {YARDSTICK: Contender(partial(yardstick, k), len(points.queries))}
            contenders |= {
                name: Contender(asking(index, asked[name], k, scale), len(asked[name].queries))
                for name, index in indexes.items()
            }
            times = race(contenders, plan.rounds)
            for name, contender in contenders.items():
                rows.append(
                    {
                        "set": points.name,
                        "arm": arm,
                        "k": k,
                        "method": name,
                        "points": len(points.points),
                        "device": "cpu",
                        "ratio": times.ratio(name, YARDSTICK),
                        "wrong_rows": wrong(contender, truth, k, name == YARDSTICK),
                        **described(times, name, contender),
                    }
                )
    return rows


def wrong(contender: Contender, truth: Truth, k: int, rounded: bool = False) -> int:
    """How many of a contender's answers are not the truth, in any bit or (`rounded`) by more
    than rounding."""
    answer, truth = contender.call(), tuple(part[: contender.queries] for part in truth)
    if not rounded:
        return int(wrong_rows(answer, truth).sum())
    return int((~np.isclose(answer[0], truth[0][:, :k], rtol=FORGIVEN, atol=0)).any(1).sum())


def per_query(points: PointSet, indexes: dict[str, Index], plan: Plan) -> list[dict]:
    """One index, asked with one scale, with another, and with another one for each query:
    nothing is built in between."""
    rng = seeds.stream(plan.search.seed, "search", points.name, "scales")
    k = sorted(plan.search.neighbours)[len(plan.search.neighbours) // 2]
    each = np.exp(rng.normal(size=(len(points.queries), 4)))
    scales = {
        **{arm: torch.tensor(weights) for arm, weights in SCALES.items()},
        "per_query": torch.from_numpy(each.astype(np.float32)),
    }
    rows = []
    for method in ("boxes", "compiled", "trajectory"):
        contenders = {
            arm: Contender(asking(indexes[method], points, k, scale), len(points.queries))
            for arm, scale in scales.items()
        }
        times = race(contenders, plan.rounds)
        for arm, contender in contenders.items():
            truth = brute_force(
                points.points.numpy(), points.asked.numpy(), k, scales[arm].numpy(), points.window
            )
            rows.append(
                {
                    "set": points.name,
                    "method": method,
                    "arm": arm,
                    "k": k,
                    "points": len(points.points),
                    "over_iso": times.ratio(arm, "iso"),
                    "wrong_rows": wrong(contender, truth, k),
                    **described(times, arm, contender),
                }
            )
    return rows


def surface(points: PointSet, plan: Plan, device: str = "cpu") -> list[dict]:
    """TNN over points a segment and segments a fetch, and linear search beside it, at the
    largest k, isotropic."""
    k = max(plan.search.neighbours)
    scale = torch.tensor(SCALES["iso"])
    asked = few(points, plan.slow)
    place = points.points.to(device), points.trajectory.to(device)
    indexes: dict[str | tuple[int, int], Index] = {"linear": methods.build("linear", *place)}
    for segment in plan.search.segments:
        for fetch in plan.search.fetch:
            indexes[segment, fetch] = methods.build(
                "trajectory", *place, segment=segment, fetch=fetch
            )
    contenders = {
        name: Contender(asking(index, asked, k, scale), len(asked.queries))
        for name, index in indexes.items()
    }
    times = race(contenders, plan.rounds)
    return [
        {
            "set": points.name,
            "segments": name[0],
            "fetch": name[1],
            "k": k,
            "device": device,
            "points": len(points.points),
            "speed_up": 1 / times.ratio(name, "linear"),
            **described(times, name, contender),
        }
        for name, contender in contenders.items()
        if name != "linear"
    ]


def fastest(rows: list[dict], name: str) -> dict[str, int]:
    """TNN's options where its surface is lowest; {} for a set whose surface was not measured."""
    mine = [row for row in rows if row["set"] == name and row["device"] == "cpu"]
    best = min(mine, key=lambda row: row["ms"], default=None)
    return {"segment": best["segments"], "fetch": best["fetch"]} if best else {}


def tables(
    points: PointSet, indexes: dict[str, Index], builds: list[dict], plan: Plan
) -> list[dict]:
    """Tables 1.3, 1.4 and A: ms per query and seconds of building, on this set."""
    k, scale = max(plan.search.neighbours), torch.tensor(SCALES["aniso"])
    asked, python = few(points, plan.slow), few(points, plan.python)
    seconds = {row["method"]: row["seconds"] for row in builds if row["set"] == points.name}
    contenders = {
        name: Contender(asking(index, asked, k, scale), len(asked.queries))
        for name, index in indexes.items()
    }
    arms = dict.fromkeys(contenders, "aniso")
    for leaf in plan.search.leaves:
        made: dict[str, object] = {}

        def make(leaf: int = leaf, made: dict = made) -> None:
            made["python"] = methods.build("kdtree", points.points, points.trajectory, leaf=leaf)

        def compiled(leaf: int = leaf, made: dict = made) -> None:
            made["scipy"] = cKDTree(points.points.numpy(), leafsize=leaf)

        seconds |= dict.fromkeys(
            (f"kdtree-{variant}-leaf{leaf}" for variant in KDTREES), once(make)
        )
        seconds[f"ckdtree-plain-leaf{leaf}"] = once(compiled)
        for variant, (arm, masked) in KDTREES.items():
            name = f"kdtree-{variant}-leaf{leaf}"
            contenders[name] = Contender(
                asking(made["python"], python, k, torch.tensor(SCALES[arm]), masked),
                len(python.queries),
            )
            arms[name] = arm
        tree, queries = made["scipy"], asked.asked.numpy()
        contenders[f"ckdtree-plain-leaf{leaf}"] = Contender(
            lambda tree=tree, queries=queries: tree.query(queries, k), len(queries)
        )
        arms[f"ckdtree-plain-leaf{leaf}"] = "iso"
    times = race(contenders, plan.rounds)
    return [
        {
            "set": points.name,
            "method": name,
            "arm": arms[name],
            "k": k,
            "device": "cpu",
            "points": len(points.points),
            "build_s": seconds[name],
            **described(times, name, contender),
        }
        for name, contender in contenders.items()
    ]


def on_gpu(points: PointSet, options: dict[str, dict], plan: Plan) -> list[dict]:
    """Linear search, TNN and boxes on the GPU, at the largest k: rows of `tables`, each with its
    speed-up over linear search."""
    k, scale = max(plan.search.neighbours), torch.tensor(SCALES["aniso"])
    place = points.points.cuda(), points.trajectory.cuda()
    seconds, indexes = {}, {}
    for method in GPU:

        def make(method: str = method) -> None:
            indexes[method] = methods.build(method, *place, **options.get(method, {}))

        seconds[method] = once(make)
    contenders = {
        name: Contender(asking(index, points, k, scale), len(points.queries))
        for name, index in indexes.items()
    }
    truth = brute_force(
        points.points.numpy(), points.asked.numpy(), k, scale.numpy(), points.window
    )
    times = race(contenders, plan.rounds)
    found = []
    for name, contender in contenders.items():
        found.append(
            {
                "set": points.name,
                "method": name,
                "arm": "aniso",
                "k": k,
                "device": "cuda",
                "points": len(points.points),
                "build_s": seconds[name],
                "speed_up": 1 / times.ratio(name, "linear"),
                "wrong_rows": wrong(contender, truth, k),
                **described(times, name, contender),
            }
        )
    return found
