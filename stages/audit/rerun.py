"""The number made again: from the checkpoint (--verify eval), and the checkpoint from the data
(--verify train).

On the machine and libraries that made it a number comes out to the last bit; that alone passes
without a tolerance. Elsewhere float32 sums are rounded in another order, and how far that moves a
number is measured, each time, by a repeat: the evaluation once more with one thread more, on the
device of the record (where a GPU adds in no fixed order, any second run is such a repeat). REPEATS
times what the repeat moved it by, and never less than ROUNDING of the number, is the tolerance of
value, interval and spread; unit and count must be the same. Rounding grows in training, so that
retrained weights are held to our repeats by seed: within NEAR of the distance to the nearest other
seed of the arm, and the number within NEAR of the distance to the nearest other seed's. One seed
measures nothing: then the bits must be the same. The factors are chosen, what they multiply is
measured; both are printed with the verdict.

A record of another arithmetic than this process' (arithmetics.py) cannot come out again to the bit.
Evaluating a checkpoint does not amplify rounding: OTHERS of the number is then tolerated. Training
does: then retrained weights must lie nearer to the recorded ones than the nearest other seed's do,
and nearer to them than to any other seed's; the number may move by the whole distance to the
nearest other seed's. Of one seed nothing is known then, and a difference is inconclusive.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from stages import params
from stages.arithmetic import probe
from stages.audit import arithmetics
from stages.audit.chain import SEED, members, pick
from stages.audit.checks import Case
from stages.audit.finding import Finding, Problem, worst
from stages.errors import TradewindError
from stages.files import read_json
from stages.winds import tabulate

WEIGHTS = "weights.safetensors"
NUMBERS = ("value", "mean", "low", "high", "std")  # all else is compared exactly
ROUNDING = 1e-6  # relative; float32 resolves 6e-8, and a metric averages thousands of such errors
REPEATS = 10  # times the difference of two repeats: one pair tells the order of magnitude only
NEAR = 0.1  # of the distance between two seeds' weights, or numbers
OTHERS = 1e-3  # relative: the same checkpoint evaluated on another arithmetic


def evaluation(case: Case, found: Finding) -> Iterator[Problem]:
    """The metric recomputed from the recorded checkpoints."""
    runs = {
        cell: case.root / case.metric.folder / "runs" / case.metric.dataset / cell
        for cell in case.chain.cells
    }
    yield from compared(case, found, runs, "evaluating the checkpoint")


def compared(
    case: Case,
    found: Finding,
    runs: dict[str, Path],
    what: str,
    seeds: dict[str, float] | None = None,
    stages: tuple[str, ...] = ("evaluate",),
) -> Iterator[Problem]:
    """The published number against the same number from these run folders.

    `seeds` is what its parts may differ by beyond rounding, `stages` those whose arithmetic counts.
    """
    if device_of(case) != "cpu" and not Path("/dev/nvidiactl").exists():
        yield Problem(
            "INCONCLUSIVE",
            case.metric.table,
            f"it was evaluated on {device_of(case)}, which is not here",
        )
        return
    try:
        again = recomputed(case, runs)
        if again == case.value:
            found.notes.append(f"{what} gives the published number to the last bit")
            return
        other = recomputed(case, runs, more_threads=1)
    except TradewindError as error:
        yield Problem(
            blame(found), case.metric.table, f"{what} failed: {' '.join(str(error).split())}"
        )
        return
    others = elsewhere(case, *stages)
    same, text = differences(again, other, case.value, seeds or {}, OTHERS if others else ROUNDING)
    if same:
        found.notes.append(f"{what} gives {text}{others}")
    else:
        verdict = "INCONCLUSIVE" if others and seeds == {} else blame(found)
        yield Problem(
            verdict,
            case.metric.table,
            f"{what} gives {text}{others}",
            case.producer(case.metric.table),
        )


def elsewhere(case: Case, *stages: str) -> str:
    """Both arithmetics in words where one of these stages ran on another than this process'; ""
    where none did.

    torch is loaded by now, so that its part counts.
    """
    own = arithmetics.line_of({"arithmetic": probe.line()})
    nodes = [node for node in case.chain.nodes if node.stage in stages and not node.error]
    lines = {arithmetics.line_of(node.record["environment"] | {"device": "cpu"}) for node in nodes}
    others = {line for line in lines if not arithmetics.alike(line, own)}
    theirs = arithmetics.quoted(others)
    return f" (the record's arithmetic is {theirs}, this process' `{own}`)" if others else ""


def differences(
    again: dict, other: dict, told: dict, seeds: dict[str, float], rounding: float = ROUNDING
) -> tuple[bool, str]:
    """Whether the published entry is the recomputed one as nearly as its repeat is, and what
    differs, in words.

    `rounding` is what any number may differ by, relative.
    """
    main = "value" if "value" in again else "mean"
    floor = max(rounding * abs(again[main]), REPEATS * abs(again[main] - other[main]))
    same, texts = True, []
    for key in sorted(again.keys() | told.keys(), key=lambda name: (name != main, name)):
        first, published = again.get(key), told.get(key)
        if first == published:
            continue
        text = ("" if key == main else f"{key} ") + f"{first!r}, published is {published!r}"
        if key in NUMBERS and all(
            isinstance(x, (int, float)) for x in (first, other.get(key), published)
        ):
            tolerance, off = (
                max(floor, REPEATS * abs(first - other[key]), seeds.get(key, 0.0)),
                abs(first - published),
            )
            same &= off <= tolerance
            text += f"; difference {off:.3g}, tolerance {tolerance:.3g}"
        else:
            same = False
        texts.append(text)
    return same, "; ".join(texts)


def recomputed(case: Case, runs: dict[str, Path], more_threads: int = 0) -> dict:
    """The metric's entry from checkpoints; an arm's is made from its cells as the table makes
    it. A search is searched again."""
    from stages.winds import evaluate  # brings torch, which no other depth needs

    everything = params.load(case.root / "params.yaml")
    if case.metric.dataset in everything.profiles[case.metric.profile].learning:
        return answered(case, runs, everything, more_threads)
    if case.metric.dataset in everything.profiles[case.metric.profile].learning_orders:
        return continued(case, runs, everything, more_threads)
    if untrained(case):
        return searched(case, everything, more_threads)
    wanted, protocol = everything.profiles[case.metric.profile].evaluation, everything.training
    settings = evaluate.Settings(
        wanted.leads_min,
        wanted.bootstrap,
        protocol.seed,
        everything.contexts,
        protocol.threads + more_threads,
        device_of(case),
    )
    prepared = case.root / "data" / case.metric.profile / "prepared" / case.metric.dataset
    cells = {
        f"{case.metric.dataset}/{name}": evaluate.cell(run, prepared, settings)
        for name, run in runs.items()
    }
    return pick(
        cells.get(case.metric.key) or tabulate.over_seeds(cells)[case.metric.key], case.metric
    )


def answered(
    case: Case, runs: dict[str, Path], everything: params.Params, more_threads: int
) -> dict:
    """The metric's entry on sets of points: from checkpoints, or from a companion that needs
    none."""
    from stages.fields import evaluate as sets

    metric = case.metric
    settings = sets.Settings.of(
        everything, metric.experiment, metric.profile, metric.dataset, device_of(case)
    )
    settings = replace(settings, threads=settings.threads + more_threads)
    prepared = case.root / "data" / metric.profile / "prepared" / metric.dataset
    if untrained(case):
        cells = {
            f"{metric.dataset}/{name}": entry
            for name, entry, _ in sets.companions(sets.Held.open(prepared, settings))
        }
    else:
        cells = {
            f"{metric.dataset}/{name}": sets.cell(run, prepared, settings)
            for name, run in runs.items()
        }
    return pick(cells.get(metric.key) or tabulate.over_seeds(cells)[metric.key], metric)


def continued(
    case: Case, runs: dict[str, Path], everything: params.Params, more_threads: int
) -> dict:
    """The metric's entry on sequences: from checkpoints, or from a companion that needs none."""
    from stages.sequences import evaluate as orders

    metric, profile = case.metric, everything.profiles[case.metric.profile]
    settings = orders.Settings(
        profile.orders,
        everything.training.seed,
        everything.training.threads + more_threads,
        device_of(case),
    )
    prepared = case.root / "data" / metric.profile / "prepared" / metric.dataset
    if untrained(case):
        cells = {
            f"{metric.dataset}/{name}": entry
            for name, entry, _ in orders.companions(orders.Held.open(prepared, settings))
        }
    else:
        cells = {
            f"{metric.dataset}/{name}": orders.cell(run, prepared, settings)
            for name, run in runs.items()
        }
    return pick(cells.get(metric.key) or tabulate.over_seeds(cells)[metric.key], metric)


def untrained(case: Case) -> bool:
    """Whether the number rests on no trained cell: a count of the experiment `neighbours`, or a
    companion on sets of points."""
    return not any(node.stage == "train" for node in case.chain.nodes)


def searched(case: Case, everything: params.Params, more_threads: int) -> dict:
    """The metric's entry from the whole point set searched again."""
    from stages.neighbours.experiment.evaluate import again
    from stages.neighbours.experiment.measure import Settings

    profile, name = everything.profiles[case.metric.profile], case.metric.dataset
    settings = Settings(
        profile.search, profile.evaluation.bootstrap, everything.training.threads + more_threads
    )
    prepared = (
        case.root / "data" / case.metric.profile / "prepared" / name
        if name in profile.search.sets.original
        else None
    )
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        cells = {
            f"{name}/{cell}": entry
            for cell, entry in again(name, prepared, Path(folder), settings).items()
        }
    return pick(cells[case.metric.key], case.metric)


def device_of(case: Case) -> str:
    """The device the evaluation ran on, by its record."""
    devices = [
        node.record["environment"].get("device")
        for node in case.chain.nodes
        if node.stage == "evaluate" and not node.error
    ]
    return devices[0] if devices and devices[0] else "cpu"


def blame(found: Finding) -> str:
    """A difference under other libraries proves nothing; under the recorded ones it fails the
    number."""
    return "INCONCLUSIVE" if worst(found.problems) != "PASS" else "FAIL"


def training(case: Case, found: Finding) -> Iterator[Problem]:
    """Every cell of the metric trained again in a folder of its own, its weights and its metric
    compared."""
    if untrained(case):
        found.notes.append("nothing was trained for it: it is measured again instead")
        yield from evaluation(case, found)
        return
    with tempfile.TemporaryDirectory(prefix="audit-") as name:
        project, runs = Path(name), {}
        furnish(project, case)
        for cell in case.chain.cells:
            home = f"{case.metric.folder}/runs/{case.metric.dataset}/{cell}"
            failure = trained(case, project, home)
            if failure:
                yield failure
                return
            runs[cell] = project / home
            yield from nearness(case, found, cell, project / home)
        moved = any(
            (
                case.root / case.metric.folder / "runs" / case.metric.dataset / cell / WEIGHTS
            ).read_bytes()
            != (run / WEIGHTS).read_bytes()
            for cell, run in runs.items()
        )
        near = 1.0 if elsewhere(case, "train", "evaluate") else NEAR
        spread = between_seeds(case, near) if moved else None
        yield from compared(
            case, found, runs, "training again and evaluating", spread, ("train", "evaluate")
        )


def between_seeds(case: Case, near: float) -> dict[str, float]:
    """What weights of other bits may move a cell's number by: `near` of the distance to the
    nearest other seed's, for each part; {} for one seed."""
    cells = read_json(case.root / case.metric.table)["cells"]
    names = [
        cell
        for cell in members(cells, replace(case.metric, cell=SEED.sub("", case.metric.cell)))
        if cell != case.metric.cell
    ]
    others = (
        [pick(cells[f"{case.metric.dataset}/{cell}"], case.metric) for cell in names]
        if case.metric.key in cells
        else []
    )
    return {
        key: near * min(abs(one[key] - case.value[key]) for one in others)
        for key in NUMBERS
        if key in case.value and others and all(key in one for one in others)
    }


def furnish(project: Path, case: Case) -> None:
    """A temporary project: links to code, settings, prepared data and declared experiments;
    whatever training writes stays in it."""
    declared = [
        file.relative_to(case.root).as_posix()  # params.experiments reads them
        for file in sorted(case.root.glob("reports/*/dvc.yaml"))
    ]
    for name in (
        "stages",
        "params.yaml",
        "constraints.txt",
        *(f"data/{case.metric.profile}/{part}" for part in ("prepared", "contexts")),
        f"{case.metric.folder}/sweeps",
        *declared,
    ):
        if (case.root / name).exists():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).symlink_to((case.root / name).resolve())


def trained(case: Case, project: Path, home: str) -> Problem | None:
    """Run the stage's own command (from dvc.lock) in the temporary project; what went wrong, if
    anything did."""
    entry = case.locks.producer(home)
    words = shlex.split(entry.cmd) if entry else []
    if words[:3] != ["exec", "python", "-m"] or words[3] not in (
        "stages.training",
        "stages.sequences.train",
    ):
        return Problem(
            "INCONCLUSIVE",
            home,
            "dvc.lock names no training command for it",
            entry.cmd if entry else "",
        )
    environment = {key: value for key, value in os.environ.items() if key != "FAULT"}
    done = subprocess.run(
        [sys.executable, *words[2:]],
        cwd=project,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode or not (project / home / WEIGHTS).exists():
        return Problem(
            "INCONCLUSIVE",
            home,
            f"training it again failed with exit code {done.returncode}",
            entry.cmd,
        )
    return None


def nearness(case: Case, found: Finding, cell: str, run: Path) -> Iterator[Problem]:
    """Retrained weights against the recorded ones: the same bits, or within a tenth of the distance
    between two seeds; of another arithmetic nearer than every other seed."""
    recorded = case.root / case.metric.folder / "runs" / case.metric.dataset
    old, new = (folder / WEIGHTS for folder in (recorded / cell, run))
    if old.read_bytes() == new.read_bytes():
        found.notes.append(f"training {cell} again gives the recorded weights to the last bit")
        return
    arm = [
        folder
        for folder in sorted(recorded.iterdir())
        if SEED.sub("", folder.name) == SEED.sub("", cell) and folder.name != cell
    ]
    scale = min((distance(old, folder / WEIGHTS) for folder in arm), default=0.0)
    moved = distance(old, new)
    text = (
        f"training {cell} again gives other weights: distance {moved:.3g}, to the nearest other "
        f"seed {scale:.3g}"
    )
    others = elsewhere(case, "train")
    apart = [scale, *(distance(new, folder / WEIGHTS) for folder in arm)] if others else []
    if moved < min(apart) if others else moved <= NEAR * scale:
        found.notes.append(text + others)
    else:
        verdict = "INCONCLUSIVE" if others and not arm else blame(found)
        path = old.relative_to(case.root).as_posix()
        yield Problem(verdict, path, text + others, case.producer(path))


def distance(left: Path, right: Path) -> float:
    """Euclidean distance of two checkpoints' weights; infinite where their tensors do not
    correspond."""
    from safetensors.numpy import load_file

    a, b = load_file(left), load_file(right)
    if {name: x.shape for name, x in a.items()} != {name: x.shape for name, x in b.items()}:
        return float("inf")
    return float(np.sqrt(sum(np.sum((a[name].astype(np.float64) - b[name]) ** 2) for name in a)))
