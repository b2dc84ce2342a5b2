"""`python -m tests.benchmarks.bench_neighbours`: what a search costs, side by side in one run, with
the goals it is held to.

Writes reports/neighbours/PROFILE/benchmarks.json (kept in git: the one file of the experiment that
no stage can make again to the bit) and prints the speed table with pass or miss. The prepared set
is the profile's own, all its rows up to --points; the synthetic sets have --points points. Goals
are ratios to SciPy's cKDTree, asked for more neighbours until enough are causal, in the same
process.
"""

import argparse
import datetime
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from tqdm import tqdm

from stages import files, params
from stages.errors import InputError, reported
from stages.neighbours.experiment import sets
from stages.neighbours.experiment.sets import RANDOM, SIMULTANEOUS, SMOOTH
from tests.benchmarks import clock, races, scale

GOALS = {  # method -> set -> k -> ratio to the yardstick, at most
    "boxes": {SMOOTH: {16: 0.5, 100: 0.4, 1000: 0.2}, RANDOM: {16: 1.0, 100: 0.6, 1000: 0.25}},
    "compiled": {name: {16: 0.05, 100: 0.05, 1000: 0.1} for name in (SMOOTH, RANDOM)},
}
BUILD_S = 1.0  # a million points
LARGE = {
    "build_s": 60.0,
    "taken_mib": 2048.0,
}  # 33 million points: seconds; points and index together, at the peak
EPOCH_S = 60.0
GPU = {"speed_up": 16.0, "ms": 0.16}


def goal(name: str, value: float, bar: float, most: bool = True) -> dict:
    """A goal and whether it is met: `value` at most (or at least) `bar`."""
    return {
        "goal": name,
        "value": value,
        "bar": bar,
        "at": "most" if most else "least",
        "passed": value <= bar if most else value >= bar,
    }


def goals(found: dict) -> list[dict]:
    """Every goal of the issue about which something was measured."""
    rows = [
        goal(
            f"{row['method']} over cKDTree, {row['set']}, {row['arm']}, k={row['k']}",
            row["ratio"],
            GOALS[row["method"]][row["set"]][row["k"]],
        )
        for row in found["speed"]
        if row["k"] in GOALS.get(row["method"], {}).get(row["set"], {})
    ]
    rows += [
        goal(f"wrong answers of {name}", sum(row.get("wrong_rows", 0) for row in found[name]), 0)
        for name in ("speed", "per_query", "tables")
    ]
    rows += [
        goal(
            f"build {row['method']} on {row['set']}, s a million points",
            row["seconds"] * 1e6 / row["points"],
            BUILD_S,
        )
        for row in found["builds"]
        if row["method"] in ("boxes", "compiled", "trajectory")
    ]
    return rows + large_goals(found) + gpu_goals(found)


def large_goals(found: dict) -> list[dict]:
    """Goals of the largest index and of a trained model's epoch."""
    rows = []
    for row in found["large"]:
        if row["larger"] > 1:
            rows += [
                goal(f"{row['method']} at {row['points']:,} points: {what}", row[what], bar)
                for what, bar in LARGE.items()
            ]
            rows.append(
                goal(
                    f"{row['method']} at {row['larger']:.0f} times the points: slower",
                    row["slower"],
                    row["larger"],
                )
            )
    if found["epoch"]:
        name = "an epoch of GKA-MLP-TNN over a day of a million points, s"
        rows.append(goal(name, found["epoch"]["seconds"], EPOCH_S))
    return rows


def gpu_goals(found: dict) -> list[dict]:
    """Goals of the searches that run where the points are."""
    rows = []
    for row in found["tables"]:
        if (row["device"], row["set"]) == ("cuda", SMOOTH) and row["method"] in (
            "boxes",
            "trajectory",
        ):
            name = f"{row['method']} over linear search on the GPU"
            rows += [
                goal(name, row["speed_up"], GPU["speed_up"], most=False),
                goal(f"{row['method']} on the GPU, ms a query", row["ms"], GPU["ms"]),
            ]
    return rows


def measure_all(
    search: params.Search, prepared: dict[str, Path], plan: races.Plan, large: int, steps: int
) -> dict:
    """All races; `prepared` are the folders of prepared sets, `large` the points of the largest
    index (0: left out)."""
    found: dict = {"speed": [], "per_query": [], "builds": [], "surface": [], "tables": []}
    names = [*prepared, SMOOTH, RANDOM, SIMULTANEOUS]
    progress = tqdm(total=len(names) + 2, desc="bench", unit="part", disable=None)
    for name in names:
        points = races.late(sets.build(name, prepared.get(name), search))
        if name in (*prepared, SMOOTH):  # figure 1.4 is about trajectories
            found["surface"] += races.surface(points, plan)
        options = {"trajectory": races.fastest(found["surface"], name)}
        indexes, builds = races.built(points, plan, options)
        found["builds"] += builds
        if name in (SMOOTH, RANDOM):
            found["speed"] += races.speed(points, indexes, plan)
        if name == SMOOTH:
            found["per_query"] += races.per_query(points, indexes, plan)
        found["tables"] += races.tables(points, indexes, builds, plan)
        if torch.cuda.is_available():
            found["tables"] += races.on_gpu(points, options, plan)
            found["surface"] += (
                races.surface(points, plan, "cuda") if name in (*prepared, SMOOTH) else []
            )
        progress.update()
    found["epoch"] = scale.epoch(search.points, steps) if steps else None
    progress.update()
    found["large"] = scale.large(search.points, large) if large else []
    progress.update()
    progress.close()
    return found


def run(
    profile: params.Profile,
    points: int,
    large: int,
    plan: Callable[[params.Search], races.Plan] = races.Plan,
    steps: int = 200,
) -> dict:
    """The content of benchmarks.json: where it was measured, all races, all goals. DataError
    where a prepared set is missing."""
    search = profile.search.model_copy(update={"points": points})
    prepared = {
        name: Path("data", profile.profile, "prepared", name) for name in search.sets.original
    }
    start, before = time.monotonic(), clock.busy()
    found = measure_all(search, prepared, plan(search), large, steps)
    others = clock.others(before)
    return {
        "profile": profile.profile,
        "date": datetime.date.today().isoformat(),
        "machine": clock.machine(),
        "points": points,
        "seconds": round(time.monotonic() - start, 1),
        "others_cores": round(others, 3),
        "quiet": others <= clock.OTHERS,
        **found,
        "goals": goals(found),
    }


def as_text(content: dict) -> str:
    """The speed table and the goals, as text."""
    machine = content["machine"]
    lines = [
        (
            f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads, GPU: "
            f"{machine['gpu'] or 'no GPU here'}; others used {content['others_cores']:.2f} cores; "
            f"{content['seconds']:.0f} s"
        )
    ]
    if not content["quiet"]:
        lines.append(
            f"WARNING: other processes used more than {clock.OTHERS} cores: run it again on a "
            "quiet machine"
        )
    lines.append(
        f"{'set':22} {'arm':6} {'k':>5} {'method':12} {'ms/query':>9} {'ratio':>7} {'wrong':>6}"
    )
    lines += [
        f"{row['set']:22} {row['arm']:6} {row['k']:5} {row['method']:12} {row['ms']:9.4f} "
        f"{row['ratio']:7.3f} {row['wrong_rows']:6}"
        for row in content["speed"]
    ]
    lines += [
        f"{'pass' if row['passed'] else 'MISS'}  {row['goal']}: {row['value']:.3g} (at {row['at']} "
        f"{row['bar']:g})"
        for row in content["goals"]
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_neighbours", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--profile", default="mini")
    parser.add_argument(
        "--points",
        type=int,
        default=1_000_000,
        help="of a synthetic set; at most as many of a prepared one",
    )
    parser.add_argument(
        "--skip-33m", action="store_true", help="leave the index over 33 million points out"
    )
    options = parser.parse_args(argv)
    return reported(lambda: measure(options))


def measure(options: argparse.Namespace) -> None:
    """Measure what the command asks for, write it and print it."""
    known = params.load().profiles
    if options.profile not in known or known[options.profile].search is None:
        raise InputError(
            "no such profile, or it searches no neighbours",
            found=repr(options.profile),
            expected=params.nearest(options.profile, known).lstrip("; "),
        )
    if options.points < 10_000:
        raise InputError(
            "too few points to measure anything",
            found=str(options.points),
            expected="--points of at least 10000",
        )
    content = run(known[options.profile], options.points, 0 if options.skip_33m else scale.POINTS)
    files.write_json(Path("reports/neighbours", options.profile, "benchmarks.json"), content)
    print(as_text(content))


if __name__ == "__main__":
    sys.exit(main())
