"""`python -m tests.benchmarks.bench_processes [race]`: neural processes against the same written
straightforwardly (plain_processes.py), in one run, as ratios. `... spreads PROFILE` trains the
profile's cells with two more seeds in a scratch folder and writes
data/spreads/PROFILE/processes.json. `... memory` counts what an answer of each kind of model holds
at up to 5,000 context points and writes reports/processes/memory.csv, which the tables read
(minutes).

Sizes are the authors' (reference code H): 5 layers, 8 heads of 16, width 128. A step is 16 tasks
of 64 + 128 points in one dimension: forward, negative log-likelihood, backward, Adam. An answer is
one task in two dimensions. Memory is counted (stages/fields/processes/laws.py), not timed.
`--quick` leaves out what takes minutes, `--large` adds 5,000 + 1,000 points. Goals: TETNP's answer
at 3,000 points .25 of the time and .03 of the memory, its step .5; steps of TNP and LBANP .75.
"""

import argparse
import sys
from itertools import product
from pathlib import Path

import torch

from stages import files, seeds
from stages.batches import Batch
from stages.fields.models import build
from stages.fields.processes import measure
from stages.fields.processes.fresh import Fresh
from stages.fields.processes.laws import Peak
from stages.fields.processes.settings import functions_of, processes_of
from stages.params import load
from stages.spreads import ALL, kind_of, of_seeds, place, pooled
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from tests.benchmarks.clock import Contender, race
from tests.benchmarks.plain_processes import PlainLBANP, PlainTETNP, PlainTNP

WIDTH, HEADS, LAYERS, HIDDEN, LATENTS = 128, 8, 5, 128, 32
SIZE = {"width": WIDTH, "heads": HEADS, "layers": LAYERS}
FURTHER = (1, 2)  # the seeds beside the cells' own
EXPERIMENT = "processes"
COUNTED = dict.fromkeys(  # whose memory is counted, in the size of the document's million weights
    ("tnp-attention", "tnp-linear", "tnp-hyper", "pseudo_tnp-perceiver", "pseudo_tnp-te_perceiver",
     "tetnp-post"), "w128"
) | {"convcnp-plain": "w32"}  # fmt: skip
PLANE = "w16_plane"  # of a ConvCNP


def tasks(count: int, contexts: int, targets: int, axes: int) -> Batch:
    """Random tasks."""
    generator = seeds.torch_stream(0, "bench", count, contexts, targets, axes)

    def drawn(points: int, width: int):
        return torch.rand(count, points, width, generator=generator) * 4 - 2

    def mask(points: int):
        return torch.ones(count, points, dtype=torch.bool)

    return Batch(drawn(contexts, axes), drawn(contexts, 1), mask(contexts), drawn(targets, axes),
                 mask(targets), drawn(targets, 1))  # fmt: skip


def step(model, batch: Batch):
    """A training step, ready to be called."""
    adam = torch.optim.Adam(model.parameters(), lr=1e-6)

    def call() -> None:
        adam.zero_grad()
        model(batch).loss(batch.target_y).mean().backward()
        adam.step()

    return call


def answer(model, batch: Batch):
    """An answer, ready to be called."""

    def call():
        with torch.no_grad():
            return model(batch)

    return call


def most(call) -> float:
    """MB that a call holds at once."""
    with Peak() as peak:
        call()
    return peak.most / 1e6


def raced(name: str, ours, plain, goal: str, rounds: int) -> None:
    """One row: times of both, their ratio, and the memory of both."""
    times = race({"ours": Contender(ours, 1), "plain": Contender(plain, 1)}, rounds)
    ratio, held = times.ratios("ours", "plain"), (most(ours), most(plain))
    print(
        f"{name:34} {times.median('ours'):9.1f} {times.median('plain'):9.1f} {ratio['ratio']:6.2f} "
        f"[{ratio['low']:.2f}, {ratio['high']:.2f}]  {held[0]:8.1f} {held[1]:9.1f} "
        f"{held[0] / held[1]:6.3f}  {goal}",
        flush=True,
    )


def models():
    """Ours and the plain ones, in one dimension."""
    seeds.everything(0)
    tnp = build("tnp", {}, SIZE, 1, 1, 1)
    lbanp = build("pseudo_tnp", {}, SIZE | {"latents": LATENTS}, 1, 1, 1)
    te = build("tetnp", {}, SIZE | {"hidden": HIDDEN}, 1, 1, 1)
    return {
        "TNP": (tnp, PlainTNP(tnp, **SIZE), "step .75"),
        "LBANP": (lbanp, PlainLBANP(lbanp, **SIZE), "step .75"),
        "TETNP": (te, PlainTETNP(te), "step .5"),
    }


def main_race(quick: bool, large: bool) -> None:
    """Print one row a model and kind of work."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s)")
    print(f"{'work':34} {'ours ms':>9} {'plain ms':>9} {'ratio':>6} {'[min, max]':14} "
          f"{'ours MB':>8} {'plain MB':>9} {'ratio':>6}  goal")  # fmt: skip
    batch = tasks(16, 64, 128, 1)
    for name, (ours, plain, goal) in models().items():
        raced(f"{name} step, 16 x (64 + 128)", step(ours, batch), step(plain, batch), goal, 3)
    seeds.everything(0)
    te = build("tetnp", {}, SIZE | {"hidden": HIDDEN}, 2, 1, 1).eval()
    plain = PlainTETNP(te)
    for contexts in (300, 1000) if quick else (300, 1000, 3000):
        one = tasks(1, contexts, 10, 2)
        with torch.no_grad():
            gap = float((te(one).mean - plain(one).mean).abs().max())
        assert gap < 1e-5, f"another answer than the plain one, by {gap:.2g}"
        goal = "time .25, memory .03" if contexts == 3000 else ""
        raced(f"TETNP answer, {contexts:,} + 10, 2-D", answer(te, one), answer(plain, one), goal,
              1 if contexts == 3000 else 3)  # fmt: skip
    if large:
        held = most(answer(te, tasks(1, 5000, 1000, 2)))
        print(f"TETNP answer, 5,000 + 1,000, 2-D: {held:.1f} MB (goal: 1,000; printed: 24,083)")


def main_memory() -> None:
    """Count and write; in one layer, for a layer holds nothing of the one before it."""
    parameters, rows = load(), ["model,axes,contexts,targets,mb"]
    for (name, size), axes in product(COUNTED.items(), (1, 2)):
        model, arm = name.split("-")
        wide = PLANE if axes == 2 and model == "convcnp" else size
        given = cells.arguments(cells.Cell(model, arm, wide, 0), parameters)
        seeds.everything(0)
        alone = {} if model == "convcnp" else {"layers": 1}
        network = build(model, {**given, **alone}, None, axes, 1, 1).eval()
        for targets, contexts in product((10, 1000), (10, 100, 1000, 5000)):
            held = most(answer(network, tasks(1, contexts, targets, axes)))
            rows.append(f"{name},{axes},{contexts},{targets},{held:.4g}")
            print(rows[-1], flush=True)
    file = Path("reports", EXPERIMENT, "memory.csv")
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main_spreads(profile: str, only: list[str]) -> None:
    """Spreads over seeds, by kind of model, of all metrics of the profile's cells (or `only` those
    of these names, DATASET/CELL, in their order); written after every cell, of those until then.
    What was measured of other kinds than theirs stays."""
    parameters = load()
    told, found = processes_of(parameters, profile), {}
    for dataset in told.datasets:
        home = Path("reports", EXPERIMENT, profile, "evaluated", dataset, "metrics.json")
        for name, cell in files.read_json(home)["cells"].items():
            found[f"{dataset}/{name}"] = {"metrics": timeless(cell["metrics"])}
    trained = parameters.trained(EXPERIMENT, profile).cells.values()
    known = {f"{cell.dataset}/{cell.name}": cell for cell in trained}
    chosen = [known[name] for name in only or known]
    kinds = {cell.model for cell in chosen}
    file = place(EXPERIMENT, profile)
    kept = files.read_json(file) if only and file.exists() else {}
    found = {name: one for name, one in found.items() if kind_of(name.partition("/")[2]) in kinds}
    for cell, seed in product(chosen, FURTHER):
        metrics = again(parameters, told, profile, cell, seed)
        found[f"{cell.dataset}/{cell.name.removesuffix('s0')}s{seed}"] = {"metrics": metrics}
        print(cell.dataset, cell.name, seed, metrics["log_likelihood"]["value"], flush=True)
        rounding = others(kept.get("rounding", {}), kinds)
        files.write_json(
            file,
            {
                "between": kept["between"] if rounding else [],
                "rounding": rounding,
                "seeds": others(kept.get("seeds", {}), kinds)
                | of_seeds({"cells": found}, by_set=True),
            },
        )


def others(table: dict, kinds: set[str]) -> dict:
    """The rows of other kinds than these, and of all these together."""
    rows = {kind: one for kind, one in table.items() if kind not in {*kinds, ALL}}
    whole: dict = {}
    for one in rows.values() if ALL in table else ():
        whole = pooled(whole, {ALL: {ALL: one[ALL]}})
    return whole | rows


def again(parameters, told, profile: str, cell, seed: int) -> dict:
    """The metrics of a cell that is trained with a further seed."""
    functions = functions_of(parameters, cell.dataset)
    budget = told.training[cell.model]
    budget = shell.varied(cell, budget) if cell.training else budget
    prepared = Path("data", profile, "prepared", cell.dataset)
    fresh = Fresh.open(prepared, functions, budget, seed, torch.device("cpu"))
    named = cells.Cell(cell.model, cell.arm, cell.size, seed)
    seeds.everything(seed)
    model = build(cell.model, cells.arguments(named, parameters), None, functions.axes, 1, 1)
    settings = loop.Settings(
        budget.steps, budget.validate_every, budget.patience, budget.learning_rate,
        parameters.training.clip, seed, slices=budget.tasks, schedule=budget.schedule,
    )  # fmt: skip
    scratch = Checkpoints(files.WORK / "spreads" / f"{cell.dataset}-{named.name}")
    scratch.clear()
    loop.train(model, fresh, settings, scratch)
    scratch.clear()
    data = measure.Data.open(prepared, functions, told, parameters.training.seed)
    return timeless(measure.answered(model.eval(), data)[0])


def timeless(metrics: dict) -> dict:
    """Without what no training moves: counts of bytes."""
    return {name: one for name, one in metrics.items() if not name.startswith("memory")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("race", "spreads", "memory"), nargs="?", default="race")
    parser.add_argument("profile", nargs="?", default="mini")
    parser.add_argument("--quick", action="store_true", help="without 3,000 context points")
    parser.add_argument("--large", action="store_true", help="with 5,000 + 1,000 points: minutes")
    parser.add_argument("--only", nargs="+", default=[], help="of spreads: these cells")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.what == "race":
        main_race(asked.quick, asked.large)
    elif asked.what == "memory":
        main_memory()
    else:
        main_spreads(asked.profile, asked.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
