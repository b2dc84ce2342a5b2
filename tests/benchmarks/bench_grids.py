"""`python -m tests.benchmarks.bench_grids [race | full]`: the grid model against the same written
straightforwardly (plain_grids.py), and against the TNP of all tokens, in one run, as ratios. `...
spreads PROFILE` trains cells of the profile with three more seeds in a scratch folder and writes
data/spreads/PROFILE/on_off_grid.json; `--only SET/CELL ...` these alone.

A grid of 120 x 240, 1,500 points, 3,000 targets, one task a step; coarsened by the encoder to 30 x
60, windows of 5 (reference code I), 9 nearest cells; width 128, 8 heads, 5 layers. The TNP has the
grid averaged to 30 x 60; `full` times one step of it on the full grid (minutes) between steps of
ours, on grids of 40, 60 and 120 rows or of `--rows`, and writes them beside mini's results: E-8.
Memory is counted (stages/fields/processes/laws.py).
Goals: a step .5 of the straightforward form and .25 of the TNP, memory .5 of either; ends with 1
where one is missed. `--quick`: a third of the grid's rows, and no goal is held.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from stages import files, seeds
from stages.fields.grids import costs, measure
from stages.fields.grids.fresh import Fresh
from stages.fields.grids.settings import coupled_of, grids_of
from stages.fields.models import build
from stages.fields.processes.laws import Peak
from stages.layers.grid import Grid, GriddedBatch
from stages.params import load
from stages.spreads import of_seeds, place
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from tests.benchmarks.clock import Contender, machine, race
from tests.benchmarks.plain_grids import PlainGridTNP

SIZE = {"width": 128, "heads": 8, "layers": 5, "surface": "sphere", "nearest": 3}
SWIN = SIZE | {"encoder": "mhca", "coarsen": "encoder", "patch": 4, "window": 5}
TIME, MEMORY = {"straightforward": 0.5, "TNP of all tokens": 0.25}, 0.5  # goals: ours over theirs
FURTHER = (1, 2, 3)  # the seeds beside the cells' own: two of MHCA differed by .2 nats
EXPERIMENT = "on_off_grid"
AROUND = 3  # steps of ours before the one on the full grid, and after it


def task(rows: int, points: int, targets: int) -> GriddedBatch:
    """A random task, places evenly over the sphere."""
    generator = seeds.torch_stream(0, "bench", "grids", rows)

    def places(count: int):
        north = torch.rad2deg(torch.asin(2 * torch.rand(1, count, generator=generator) - 1))
        return torch.stack((north, 360 * torch.rand(1, count, generator=generator) - 180), 2)

    def drawn(*shape: int):
        return torch.randn(*shape, generator=generator)

    step = 180 / rows
    axes = (-90 + step * (torch.arange(rows) + 0.5), -180 + step * (torch.arange(2 * rows) + 0.5))
    mask = torch.ones(1, rows, 2 * rows, dtype=torch.bool)
    grid = Grid(axes, drawn(1, rows, 2 * rows, 1), mask, sphere=True)
    real = [torch.ones(1, count, dtype=torch.bool) for count in (points, targets)]
    return GriddedBatch(places(points), drawn(1, points, 1), real[0], places(targets), real[1],
                        drawn(1, targets, 1), grid)  # fmt: skip


def pooled(batch: GriddedBatch, patch: int) -> GriddedBatch:
    """The same with the grid averaged over patches."""
    grid = batch.grid
    assert grid is not None
    coarse = grid.coarse(patch)
    values = torch.nn.functional.avg_pool2d(grid.values.movedim(3, 1), patch).movedim(1, 3)
    whole = Grid(coarse.axes, values, torch.ones_like(coarse.mask), sphere=True)
    parts = {name: value for name, value in vars(batch).items() if name != "grid"}
    return GriddedBatch(**parts, grid=whole)


def step(model, batch):
    """A training step, ready to be called."""
    adam = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def call() -> None:
        adam.zero_grad()
        model(batch).loss(batch.target_y).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        adam.step()

    return call


def main_full(sizes: list[int]) -> None:
    """Seconds of a processor of one step on the full grid, of so many rows, and of ours before and
    after it; written after every size, beside what the file has of others."""
    file = Path("reports", EXPERIMENT, "mini", costs.BENCHMARKS)
    known = files.read_json(file)["rows"] if file.exists() else {}
    for rows in sizes:
        seeds.everything(0)
        batch = task(rows, 1500, 3000)
        ours = step(build("grid_tnp", {}, SWIN, 2, 1, 1), batch)
        full = step(build("grid_tnp", {}, SIZE | {"encoder": "mhca"}, 2, 1, 1), batch)
        ours()  # what is compiled or laid out once
        around = [spent(ours) for _ in range(AROUND)]
        whole = spent(full)
        around += [spent(ours) for _ in range(AROUND)]
        known[str(rows)] = {"ours_cpu_s": around, "full_cpu_s": whole}
        files.write_json(file, {"machine": machine(), "rows": known})
        low, high = (whole / one for one in (max(around), min(around)))
        counted = costs.full_over_coarse(rows)
        told = (
            f"{rows} x {2 * rows} cells: {whole:.1f} s of one core, {low:.1f} to {high:.1f} times"
        )
        print(f"{told} ours, {counted:.0f} times the multiplications", flush=True)


def spent(call: Callable[[], object]) -> float:
    """Seconds of a processor that this process takes for a call: who else uses it counts less than
    on the clock."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main_race(quick: bool) -> bool:
    """Print one row a rival, and the goals; whether all are met."""
    seeds.everything(0)
    batch = task(40 if quick else 120, 1500, 3000)
    ours, naive = build("grid_tnp", {}, SWIN, 2, 1, 1), build(
        "grid_tnp", {}, SIZE | {"encoder": "none"}, 2, 1, 1
    )  # fmt: skip
    plain = PlainGridTNP(ours)
    with torch.no_grad():
        gap = float((ours(batch).mean - plain(batch).mean).abs().max())
    assert gap < 1e-4, f"another answer than the plain one, by {gap:.2g}"
    whole = build("grid_tnp", {}, SWIN | {"reading": "all"}, 2, 1, 1)
    rivals = {
        "straightforward": step(plain, batch),
        "TNP of all tokens": step(naive, pooled(batch, 4)),
        "reading all cells": step(whole, batch),
    }
    contenders = {"ours": Contender(step(ours, batch), 1)}
    contenders |= {name: Contender(call, 1) for name, call in rivals.items()}
    times, held = race(contenders, 2 if quick else 3), {}
    for name, contender in contenders.items():
        with Peak() as peak:
            contender.call()
        held[name] = peak.most / 1e6
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s); one training step")
    print(f"{'rival':20} {'ours ms':>9} {'rival ms':>9} {'ratio':>6} {'[min, max]':14} "
          f"{'ours MB':>8} {'rival MB':>9} {'ratio':>6}")  # fmt: skip
    for name in rivals:
        ratio = times.ratios("ours", name)
        print(
            f"{name:20} {times.median('ours'):9.0f} {times.median(name):9.0f} "
            f"{ratio['ratio']:6.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]   "
            f"{held['ours']:8.0f} {held[name]:9.0f} {held['ours'] / held[name]:6.2f}"
        )
    print(f"TNP on the full grid: {costs.full_over_coarse():.0f} times our multiplications, "
          "counted; document G: 80 times the time, on a card")  # fmt: skip
    goals = [
        (f"{what} over {name}", found, bar)
        for name, most in TIME.items()
        for what, found, bar in (("step", times.ratios("ours", name)["ratio"], most),
                                 ("memory", held["ours"] / held[name], MEMORY))
    ]  # fmt: skip
    for what, found, bar in goals:
        print(f"goal: {what} at most {bar:g}: {found:.2f}, {'met' if found <= bar else 'missed'}")
    return all(found <= bar for _, found, bar in goals)


def main_spreads(profile: str, only: list[str] | None) -> None:
    """Spreads over seeds, by kind of model, of all metrics; written after every cell, of those
    until then. What rounding moves, measured elsewhere, stays."""
    parameters, file = load(), place(EXPERIMENT, profile)
    kept = files.read_json(file) if file.exists() else {"between": [], "rounding": {}, "seeds": {}}
    told, found = grids_of(parameters, profile), {}
    for dataset in told.datasets:
        mine = [*parameters.trained(EXPERIMENT, profile).of(dataset).values()]
        mine = [cell for cell in mine if only is None or f"{dataset}/{cell.name}" in only]
        if not mine:
            continue
        home = Path("reports", EXPERIMENT, profile, "evaluated", dataset, "metrics.json")
        known = files.read_json(home)["cells"]
        for cell in mine:
            found[f"{dataset}/{cell.name}"] = {"metrics": known[cell.name]["metrics"]}
            for seed in FURTHER:
                named = cells.Cell(cell.model, cell.arm, cell.size, seed, cell.training)
                metrics = again(parameters, told, profile, cell.dataset, named)
                found[f"{dataset}/{named.name}"] = {"metrics": metrics}
                print(dataset, named.name, metrics["log_likelihood"]["value"], flush=True)
            measured = of_seeds({"cells": found}, by_set=True)
            files.write_json(file, kept | {"seeds": (kept["seeds"] if only else {}) | measured})


def again(parameters, told, profile: str, dataset: str, cell: cells.Cell) -> dict:
    """The metrics of a cell that is trained here."""
    coupled = coupled_of(parameters, dataset)
    budget = shell.varied(cell, told.training[dataset])
    prepared = Path("data", profile, "prepared", dataset)
    fresh = Fresh.open(prepared, coupled, budget, cell.seed, torch.device("cpu"))
    seeds.everything(cell.seed)
    model = build(cell.model, cells.arguments(cell, parameters), None, coupled.axes, 1, 1)
    settings = loop.Settings(
        budget.steps, budget.validate_every, budget.patience, budget.learning_rate,
        parameters.training.clip, cell.seed, slices=budget.tasks, schedule=budget.schedule,
    )  # fmt: skip
    scratch = Checkpoints(files.WORK / "spreads" / f"{dataset}-{cell.name}")
    scratch.clear()
    loop.train(model, fresh, settings, scratch)
    scratch.clear()
    data = measure.Data.open(prepared, coupled, told, parameters.training.seed)
    return measure.scored(measure.said(model.eval(), data), data).entry["metrics"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("race", "full", "spreads"), nargs="?", default="race")
    parser.add_argument("profile", nargs="?", default="mini")
    parser.add_argument("--quick", action="store_true", help="a grid of 40 x 80")
    parser.add_argument("--rows", nargs="+", type=int, default=[40, 60, 120], help="of `full`")
    parser.add_argument("--only", nargs="+", metavar="SET/CELL", help="of the spreads, these cells")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.what == "race":
        return 0 if main_race(asked.quick) or asked.quick else 1
    if asked.what == "full":
        main_full(asked.rows)
        return 0
    main_spreads(asked.profile, asked.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
