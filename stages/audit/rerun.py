"""The number made again: from the checkpoint (--verify eval), the checkpoint from the data
(--verify train), and the data from what pins them or makes them (--verify raw, in remade.py).

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

import importlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stages.arithmetic import probe
from stages.audit import arithmetics, commands
from stages.audit.case import PULL, Case
from stages.audit.chain import SEED, members, pick
from stages.audit.finding import Finding, Problem, worst
from stages.audit.laid import Laid
from stages.audit.served import TRAINED, Server
from stages.errors import TradewindError
from stages.files import read_json, sha256
from stages.tables.gather import over_seeds

WEIGHTS = "weights.safetensors"
NUMBERS = ("value", "mean", "low", "high", "std")  # all else is compared exactly
ROUNDING = 1e-6  # relative; float32 resolves 6e-8, and a metric averages thousands of such errors
REPEATS = 10  # times the difference of two repeats: one pair tells the order of magnitude only
NEAR = 0.1  # of the distance between two seeds' weights, or numbers
OTHERS = 1e-3  # relative: the same checkpoint evaluated on another arithmetic


def evaluation(case: Case, found: Finding) -> Iterator[Problem]:
    """The metric recomputed from the recorded checkpoints."""
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        yield from compared(case, found, Laid(case.root, Path(folder)), "evaluating the checkpoint")


def compared(
    case: Case,
    found: Finding,
    laid: Laid,
    what: str,
    seeds: dict[str, float] | None = None,
    stages: tuple[str, ...] = ("evaluate",),
) -> Iterator[Problem]:
    """The published number against the same number made again where the project is laid out.

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
        again = recomputed(case, laid)
        if again == case.value:
            found.notes.append(f"{what} gives the published number to the last bit")
            return
        laid.add_threads(1)
        other = recomputed(case, laid)
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

    torch is loaded for it, so that its part counts as it does where numbers are made.
    """
    importlib.import_module("torch")
    own = arithmetics.line_of({"arithmetic": probe.line()})
    nodes = [node for node in case.chain.nodes if node.stage in stages and not node.error]
    lines = {arithmetics.line_of(node.record["environment"] | {"device": "cpu"}) for node in nodes}
    others = {line for line in lines if not arithmetics.alike(line, own)}
    theirs = arithmetics.quoted(others)
    return f" (the record's arithmetic is {theirs}, this process' `{own}`)" if others else ""


def differences(
    again: dict[Any, Any],
    other: dict[Any, Any],
    told: dict[Any, Any],
    seeds: dict[str, float],
    rounding: float = ROUNDING,
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
            tolerance = max(floor, REPEATS * abs(first - other[key]), seeds.get(key, 0.0))
            off = abs(first - published)
            same &= off <= tolerance
            text += f"; difference {off:.3g}, tolerance {tolerance:.3g}"
        else:
            same = False
        texts.append(text)
    return same, "; ".join(texts)


def recomputed(case: Case, laid: Laid) -> dict[Any, Any]:
    """The metric's entry, made again by the command that evaluates its data set, cell by cell; an
    arm's is made from its cells as the table makes it."""
    home = f"{case.metric.folder}/evaluated/{case.metric.dataset}"
    command = commands.command(case.locks, home)
    for path in case.locks.producer(home).deps:
        laid.link(path)
    cells = {f"{case.metric.dataset}/{name}": laid.cell(command, name) for name in case.chain.cells}
    return pick(cells.get(case.metric.key) or over_seeds(cells)[case.metric.key], case.metric)


def untrained(case: Case) -> bool:
    """Whether the number rests on no trained cell: a count, say, or a companion that needs
    no training."""
    return not any(node.stage == "train" for node in case.chain.nodes)


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
        laid = Laid(case.root, Path(name))
        with Server(laid.folder, TRAINED) as laid.server:
            yield from retrained(case, found, laid)


def retrained(case: Case, found: Finding, laid: Laid) -> Iterator[Problem]:
    """Every cell of the metric trained again from the data that lie, or are linked, there."""
    for cell in case.chain.cells:
        home = f"{case.metric.folder}/runs/{case.metric.dataset}/{cell}"
        if failure := trained(case, laid, home):
            yield failure
            yield from evaluation(case, found)
            return
        yield from nearness(case, found, cell, laid)
        yield from beside(case, laid, home)
    others, spread = unlike(case, laid), None
    if others:  # else one evaluation is that of both
        yield from evaluation(case, found)
    if any(path.endswith(f"/{WEIGHTS}") for path in others):
        spread = between_seeds(case, 1.0 if elsewhere(case, "train", "evaluate") else NEAR)
    stages = ("train", "evaluate")
    yield from compared(case, found, laid, "training again and evaluating", spread, stages)


def unlike(case: Case, laid: Laid) -> list[str]:
    """The files that an evaluation of the number reads which, where they were made again, have
    other bytes than those recorded."""
    read = {
        path
        for path, readers in case.chain.inputs.items()
        if any(node.stage == "evaluate" for node, _ in readers)
    }
    return [path for path in sorted(read) if not recorded(case, laid.folder, path)]


def recorded(case: Case, folder: Path, path: str) -> bool:
    """Whether a file there has the recorded bytes, or is the one whose bytes `hash` has judged."""
    here, there = case.root / path, folder / path
    if not there.exists() or (here.exists() and here.samefile(there)):
        return True
    described = case.file_record(path)
    return described is not None and sha256(there) == described["sha256"]


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


def trained(case: Case, laid: Laid, home: str) -> Problem | None:
    """Run the stage's own command where the project is laid out; what went wrong, if anything
    did."""
    entry = case.locks.producer(home)
    try:
        command = commands.command(case.locks, home)
        for path in entry.deps:
            laid.link(path)
        laid.run(command)
    except TradewindError as error:
        text = f"training it again failed: {' '.join(str(error).split())}"
        return Problem("INCONCLUSIVE", home, text, entry.cmd if entry else "")
    if not (laid.folder / home / WEIGHTS).exists():
        return Problem("INCONCLUSIVE", home, "training it again wrote no weights", entry.cmd)
    return None


def nearness(case: Case, found: Finding, cell: str, laid: Laid) -> Iterator[Problem]:
    """Retrained weights against the recorded ones: the same bits, or within a tenth of the distance
    between two seeds; of another arithmetic nearer than every other seed. Weights that are not here
    are held to their record's digest."""
    runs = case.root / case.metric.folder / "runs" / case.metric.dataset
    old = runs / cell / WEIGHTS
    new, path = laid.folder / old.relative_to(case.root), old.relative_to(case.root).as_posix()
    if recorded(case, laid.folder, path):
        found.notes.append(f"training {cell} again gives the recorded weights to the last bit")
        return
    if not old.is_file():
        text = f"training {cell} again gives other weights than the recorded, which are not here"
        yield Problem("INCONCLUSIVE", path, f"{text}; {PULL}", case.producer(path))
        return
    arm = [
        file.parent
        for file in sorted(runs.glob(f"*/{WEIGHTS}"))
        if SEED.sub("", file.parent.name) == SEED.sub("", cell) and file.parent.name != cell
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
        yield Problem(verdict, path, text + others, case.producer(path))


def beside(case: Case, laid: Laid, home: str) -> Iterator[Problem]:
    """What training wrote beside weights of the same bits (its history) is written again, too."""
    if not recorded(case, laid.folder, f"{home}/{WEIGHTS}"):
        return
    for path in (path for path in case.chain.files if path.startswith(f"{home}/")):
        if not (laid.folder / path).is_file() or not recorded(case, laid.folder, path):
            text = "training again gives the same weights, and another file of this name"
            yield case.fails(path, text)


def distance(left: Path, right: Path) -> float:
    """Euclidean distance of two checkpoints' weights; infinite where their tensors do not
    correspond."""
    from safetensors.numpy import load_file

    a, b = load_file(left), load_file(right)
    if {name: x.shape for name, x in a.items()} != {name: x.shape for name, x in b.items()}:
        return float("inf")
    return float(np.sqrt(sum(np.sum((a[name].astype(np.float64) - b[name]) ** 2) for name in a)))
