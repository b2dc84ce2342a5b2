"""`python -m tests.benchmarks.bench_fields`: what the models of thesis chapter 3 cost, beside
torch's nn.TransformerEncoder, in one run.

First every model at about 20,000 parameters, and MSA at 5k, 20k and 100k, at 700 + 700 points of
one set (wind: X=3, I=O=2) and at 64 + 256 points of 8 sets (Poisson: X=2, I=3, O=1): ms and peak
memory of a training step, and their ratios to the yardstick of MSA's shape. Then time and memory of
a step against the context's size (figure C.4), and the exponents of their growth. Writes
reports/sparse_fields/PROFILE/benchmarks.json (kept in git: no stage can make it again to the bit),
which the report shows as figure C.4.
How it is measured: tests/benchmarks/scaling.py. One thread; on the CPU, unless TRADEWIND_DEVICE
names another device.
Goals: MSA's step 0.7, its evaluation at 100k 0.4, its memory 1 times the yardstick's; HyperMixer
grows by an exponent of 1.1.
"""

import argparse
import datetime
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stages import files, params
from stages.errors import InputError, reported

if TYPE_CHECKING:
    import torch

    from tests.benchmarks import scaling

STEP, EVALUATION, MEMORY, EXPONENT = 0.7, 0.4, 1.0, 1.1  # at most; see above
JUDGED = ("5k", "20k", "100k")  # sizes of MSA
SIZES = {"perceiver": "12k"}  # of the others: 20k
ARMS = {
    "gng": "plain",
    "geofno": "plain",
    "kernel_mlp": "plain",
}  # of the others, and of MSA: traditional, as the yardstick's encoders
NODES = {
    3: "shared_wind_small",
    2: "traditional",
}  # arm of GEN by position axes: 128 k-means nodes, or a lattice of 49
OTHERS = ("tfs", "cnp", "gen", "gng", "perceiver", "hypermixer", "geofno", "kernel_mlp")
DIMS = {"wind": (3, 2, 2), "poisson": (2, 3, 1)}  # X, I, O
SHAPES = {"wind": (1, 700, 700), "poisson": (8, 64, 256)}  # sets, context points, targets
QUICK_SHAPES = {"wind": (1, 160, 40), "poisson": (2, 16, 16)}
POINTS, ABOVE = (256, 1024, 4096, 8192, 16384, 25000, 50000), 4096
QUICK_POINTS, QUICK_ABOVE = (32, 64, 128), 32
ROUNDS, QUICK_ROUNDS = 9, 3


def plan(x_dim: int, quick: bool) -> "list[tuple[scaling.Contender, str]]":
    """What is timed in a setting: contender and work, MSA first."""
    from tests.benchmarks.scaling import Contender

    sizes = JUDGED[:2] if quick else JUDGED
    judged = [
        (Contender("msa", size=size), work) for size in sizes for work in ("step", "evaluation")
    ]
    arms = {**ARMS, "gen": NODES[x_dim]}
    return judged + [
        (Contender(name, arms.get(name, "traditional"), SIZES.get(name, "20k")), "step")
        for name in OTHERS
    ]


def measure_all(
    models: dict[str, params.Model],
    where: "torch.device",
    quick: bool,
    size: str,
    most_gib: float,
    minutes: float,
) -> dict:
    """Rows of both tables, and the exponents; figure C.4 has what is left of the minutes."""
    from tqdm import tqdm

    from tests.benchmarks import scaling

    start = time.monotonic()
    settings = [
        scaling.Setting(name, *shape, DIMS[name])
        for name, shape in (QUICK_SHAPES if quick else SHAPES).items()
    ]
    plans = [
        (setting, contender, work)
        for setting in settings
        for contender, work in plan(setting.dims[0], quick)
    ]
    rounds, points, above = (
        (QUICK_ROUNDS, QUICK_POINTS, QUICK_ABOVE) if quick else (ROUNDS, POINTS, ABOVE)
    )
    scaling.kernel(
        "ours", 16, 1, 16, where
    )()  # what a device's libraries take once and for all is no model's
    with tqdm(total=len(plans) + len(points), desc="bench", disable=None) as bar:
        rows = []
        for setting, contender, work in plans:
            rows.append(scaling.pair(contender, models, setting, where, work, rounds))
            bar.update()
        steps = []
        left = 60 * minutes - (time.monotonic() - start)
        for rung in scaling.ladder(
            scaling.contenders(models, size, where), points, where, 1024 * most_gib, left
        ):
            steps += rung
            bar.update()
    return {"models": rows, "contexts": steps, "growth": scaling.growth(steps, above)}


def goals(found: dict) -> list[dict]:
    """Every goal about which something was measured."""

    def goal(name: str, value: float, bar: float) -> dict:
        return {"goal": name, "value": value, "bar": bar, "met": value <= bar}

    judged = [row for row in found["models"] if row["model"] == "msa"]
    rows = [
        goal(f"MSA {row['size']} step / torch, {row['setting']}", row["ratio"], STEP)
        for row in judged
        if row["work"] == "step"
    ]
    rows += [
        goal(f"MSA 100k evaluation / torch, {row['setting']}", row["ratio"], EVALUATION)
        for row in judged
        if (row["work"], row["size"]) == ("evaluation", "100k")
    ]
    rows += [
        goal(
            f"MSA {row['size']} {row['work']} memory / torch, {row['setting']}",
            row["mib_ratio"],
            MEMORY,
        )
        for row in judged
    ]
    return rows + [
        goal(
            f"HyperMixer's exponent from {fit['points'][0]:,} to {fit['points'][-1]:,} points",
            fit["time"],
            EXPONENT,
        )
        for fit in found["growth"]
        if fit["contender"] == "hypermixer"
    ]


def run(where: "torch.device", quick: bool, size: str, most_gib: float, minutes: float) -> dict:
    """All that is printed, as one JSON object: where it was measured, rows, exponents, goals."""
    from tests.benchmarks import clock

    models = params.load().models
    if size not in JUDGED:
        raise InputError(
            "MSA and HyperMixer have no such size",
            where="--size",
            found=repr(size),
            expected=", ".join(JUDGED),
        )
    start, before = time.monotonic(), clock.busy()
    found = measure_all(models, where, quick, size, most_gib, minutes)
    others = clock.others(before)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": clock.machine(),
        "device": str(where),
        "quick": quick,
        "size": size,
        "most_gib": most_gib,
        "minutes": minutes,
        "seconds": round(time.monotonic() - start, 1),
        "others_cores": round(others, 3),
        "quiet": others <= clock.OTHERS,
        **found,
        "goals": goals(found),
    }


def spread(middle: float, low: float, high: float, places: int) -> str:
    """A median with what it lies between."""
    return f"{middle:.{places}f} ({low:.{places}f}-{high:.{places}f})"


def as_text(content: dict) -> str:
    """The tables and the goals."""
    machine = content["machine"]
    device = machine["gpu"] if content["device"].startswith("cuda") else machine["cpu"]
    lines = [
        (
            f"{device}, torch {machine['versions']['torch']}, {machine['threads']} thread(s); "
            f"others used {content['others_cores']:.2f} cores; {content['seconds']:.0f} s"
        )
    ]
    if not content["quiet"]:
        lines.append("WARNING: other processes were busy: run it again on a quiet machine")
    if content["quick"]:
        lines.append("WARNING: a quick run: its sets are too small to judge the goals by")
    goal_lines = [
        f"{'met ' if row['met'] else 'MISS'}  {row['goal']}: {row['value']:.3g} (at most "
        f"{row['bar']:g})"
        for row in content["goals"]
    ]
    return "\n".join([*lines, *models_table(content), *contexts_table(content), "", *goal_lines])


def models_table(content: dict) -> list[str]:
    """Lines: a model, its work and what both cost beside the yardstick."""
    lines = [
        (
            f"{'setting':8} {'model':11} {'size':5} {'parameters':>10} {'work':10} {'ms':>9} "
            f"{'torch ms':>9} {'ratio (min-max)':>19} {'MiB':>8} {'torch MiB':>9} {'ratio':>6}"
        )
    ]
    for row in content["models"]:
        head = f"{row['setting']:8} {row['model']:11} {row['size']:5}"
        lines.append(
            f"{head} left out: {row['skipped']}"
            if "skipped" in row
            else (
                f"{head} {row['parameters']:10,} {row['work']:10} {row['ms']:9.2f} "
                f"{row['torch_ms']:9.2f} {spread(row['ratio'], row['low'], row['high'], 2):>19} "
                f"{row['mib']:8.2f} {row['torch_mib']:9.2f} {row['mib_ratio']:6.2f}"
            )
        )
    return lines


def contexts_table(content: dict) -> list[str]:
    """Lines: a step at each size of the context, and the exponents of growth."""
    lines = [
        (
            f"\nA step against the context's size: models of {content['size']}, single layers of "
            f"MSA's shape (figure C.4); at most {content['most_gib']:g} GiB"
        ),
        f"{'points':>7} {'contender':16} {'ms (min-max)':>29} {'ratio':>6} {'MiB':>9} {'ratio':>6}",
    ]
    for row in content["contexts"]:
        head = f"{row['points']:7,} {row['contender']:16}"
        if "skipped" in row:
            lines.append(f"{head} left out: {row['skipped']}")
            continue
        times = spread(row["ms"], min(row["rounds_ms"]), max(row["rounds_ms"]), 1)
        ratios = [
            f"{row[name]:6.2f}" if name in row else f"{'-':>6}" for name in ("ratio", "mib_ratio")
        ]
        lines.append(f"{head} {times:>29} {ratios[0]} {row['mib']:9.2f} {ratios[1]}")
    lines += [
        f"exponent of {fit['contender']} from {fit['points'][0]:,} to {fit['points'][-1]:,} "
        f"points: time {fit['time']:.2f} ({fit['low']:.2f}-{fit['high']:.2f}), memory "
        f"{fit['memory']:.2f}"
        for fit in content["growth"]
    ]
    if not any(fit["contender"] == "hypermixer" for fit in content["growth"]):
        lines.append(
            "WARNING: HyperMixer's exponent was not measured: it ran at fewer than two of the "
            "large sizes"
        )
    return lines


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command: 0 also where a goal is missed, since times are for reading."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_fields", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sets, to see that it works: seconds"
    )
    parser.add_argument(
        "--size",
        default="20k",
        help="of the models and layers of figure C.4: 5k, 20k (default) or 100k",
    )
    parser.add_argument(
        "--most-gib",
        type=float,
        default=4.0,
        metavar="GIB",
        help="what would need more memory is left out (default 4)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=6.0,
        help="what would take longer in all is left out of figure C.4 (default 6)",
    )
    parser.add_argument(
        "--profile",
        default="mini",
        help="in whose results the page shows it (default mini); the same is measured for all",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write what was measured there instead; a quick run writes nothing else",
    )
    options = parser.parse_args(argv)
    return reported(lambda: measure(options))


def measure(options: argparse.Namespace) -> None:
    """Measure what the command asks for, print it, and write it where asked."""
    for name in ("most_gib", "minutes"):
        if not 0 < getattr(options, name) < float("inf"):
            raise InputError(
                "a limit must be a number above 0",
                where="--" + name.replace("_", "-"),
                found=str(getattr(options, name)),
            )
    known = params.load().profiles
    if options.profile not in known:
        raise InputError(
            "no such profile",
            where="--profile",
            found=repr(options.profile),
            expected=params.nearest(options.profile, known).lstrip("; "),
        )
    import torch

    from stages import batches

    torch.set_num_threads(1)
    where = batches.device() if os.environ.get("TRADEWIND_DEVICE") else torch.device("cpu")
    content = run(where, options.quick, options.size, options.most_gib, options.minutes)
    print(as_text(content))
    kept = options.json or (
        None if options.quick else Path("reports/sparse_fields", options.profile, "benchmarks.json")
    )
    if kept:
        files.write_json(kept, content)


if __name__ == "__main__":
    sys.exit(main())
