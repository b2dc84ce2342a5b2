"""Whether kept tasks whose exact law is known say one thing, as processes and grids have them
(stages/audit/agreeing.py).

Prepared tasks are the raw ones, number for number, and none stands in two splits. Their targets lie
about the exact law as it says, and its mean log-density is the bound. A cell's log-density and its
gap add up to the exact law's, which none beats; what the companions score follows from the tasks;
what is kept of single tasks averages to what is told, with the interval that is told: other values
of single tasks, or the same of others, draw another one.
No stage runs this. Shapes: S tasks, T targets, X axes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages.audit import agreeing, apiece
from stages.audit.agreeing import Found, near
from stages.fields.agree import twins
from stages.files import read_json
from stages.scores import items
from stages.scores.scores import covered, log_likelihood

TASKS, ABOUT = "tasks.safetensors", "about.json"
SPLITS = ("val", "test")
SIGMAS = 5.0
LEVELS = (0.5, 0.9)
WHOLE = ("log_likelihood", "gap", "crps", "rmse", "coverage_50", "coverage_90")  # of all tasks
Arrays = dict[str, np.ndarray]
Law = tuple[np.ndarray, np.ndarray]
Scores = Callable[[Law, np.ndarray], Arrays]


@dataclass(frozen=True)
class Kept:
    """A split: its arrays by name, and what about.json says of the data set."""

    arrays: Arrays
    about: dict[str, Any]
    split: str

    @classmethod
    def open(cls, home: Path, split: str) -> "Kept":
        """That of a prepared folder."""
        found = load_file(home / TASKS)
        mine = {
            name.partition(".")[2]: one
            for name, one in found.items()
            if name.startswith(f"{split}.")
        }
        return cls(mine, read_json(home / ABOUT), split)

    @property
    def y(self) -> np.ndarray:
        """What was measured at the targets (S, T)."""
        found: np.ndarray = self.arrays["target_y"][..., 0].astype(np.float64)
        return found

    @property
    def bounds(self) -> dict[str, dict[str, Any]]:
        """The bound of each exact law, by its name."""
        found = self.about["bound"].get(self.split, {})  # none of tasks of real hours
        return {"exact": found} if "value" in found else found

    def law(self, name: str) -> Law:
        """Mean and standard deviation (S, T) of an exact law."""
        return self.arrays[f"{name}_mean"], self.arrays[f"{name}_sd"]


def prepared(home: Path) -> Found:
    """What in prepared tasks contradicts the raw ones, their law, or each other."""
    where, parts = (home / TASKS).as_posix(), [Kept.open(home, split) for split in SPLITS]
    for part in parts:
        raw = home.parents[1] / "raw" / home.name / f"{part.split}.npz"
        drawn = unlike(raw, part) if raw.is_file() else ()  # tasks of real hours are drawn here
        for text in (*drawn, *uncalibrated(part)):
            yield where, f"of {part.split}, {text}"
    x, y = (
        np.concatenate([part.arrays[f"target_{name}"] for part in parts]).astype(np.float32)
        for name in "xy"
    )
    split = np.repeat([0, 2], [len(part.arrays["target_x"]) for part in parts])
    if pairs := twins(x, y, split):
        count = len({one for one, _ in pairs})
        text = f"{count:,} tasks of test have the targets of tasks of val, which selects"
        yield where, f"{text}: {pairs[0][0] - len(parts[0].y)} those of {pairs[0][1]}"


def unlike(raw: Path, part: Kept) -> Iterator[str]:
    """How a prepared split is not the raw one."""
    with np.load(raw, allow_pickle=False) as found:
        for name in sorted(part.arrays.keys() ^ {*found}):
            yield f"{name} stands in one of it and {raw.as_posix()} alone"
        for name in sorted(part.arrays.keys() & {*found}):
            mine = part.arrays[name]
            if not np.array_equal(found[name].astype(mine.dtype), mine):
                yield f"{name} is not that of {raw.as_posix()}"


def uncalibrated(part: Kept) -> Iterator[str]:
    """How targets do not lie about an exact law as it says, or its log-density is not the bound."""
    for name, bound in part.bounds.items():
        mean, sd = part.law(name)
        square = np.square((part.y - mean) / sd).mean(1)
        error = float(square.std(ddof=1)) / len(square) ** 0.5
        if abs(square.mean() - 1) > SIGMAS * error:
            text = f"the targets lie {square.mean():.4g} +- {error:.2g} squared deviations from"
            yield f"{text} the exact law of {name}, which are 1"
        reached = float(log_likelihood(mean, sd, part.y).mean())
        if not near(reached, bound["value"], agreeing.FINE) or bound["n"] != len(square):
            yield f"the bound of {name} is {bound['value']}, by its tasks {reached}"


def evaluated(
    home: Path,
    laws: Mapping[str, str],
    prior: str,
    scores: Scores,
    mean: apiece.Mean,
    group: np.ndarray | None = None,
) -> Found:
    """What in the folder of an evaluation contradicts. laws: companion -> the exact law that it
    is, the first of them the one that none beats where there is a bound; scores: what a family
    measures beside density and coverage, of a law and measured values, a value a task; mean: how
    it takes their mean (apiece.resampled); group: which tasks go together (S,), else each for
    itself, or those of one block."""
    told = read_json(home / "metrics.json")
    where, cells = (home / "metrics.json").as_posix(), told["cells"]
    kept = Kept.open(Path("data", home.parts[2], "prepared", home.name), "test")
    best = None
    if kept.bounds:
        best = float(log_likelihood(*kept.law(next(iter(laws.values()))), kept.y).mean())
    for text in (*task_mismatches(told["about"], kept), *sums(cells, best, len(kept.y))):
        yield where, text
    known = {cell: kept.law(name) for cell, name in laws.items()}
    one = np.ones_like(kept.y)
    known[prior] = kept.about["prior"]["mean"] * one, kept.about["prior"]["sd"] * one
    for cell, law in known.items():
        for text in companion(cells.get(cell, {}).get("metrics", {}), law, kept.y, scores):
            yield where, f"{cell}: {text}"
    if group is None:
        group = kept.arrays.get("block", np.arange(len(kept.y)))
    for text in apiece.itemised(home, cells, group, mean):
        yield (home / items.FILE).as_posix(), text
    yield from agreeing.common(home)
    if kept.bounds:
        yield from agreeing.impossible(home, "gap", "the exact law of the tasks has a gap of", 0.0)


def task_mismatches(about: dict[str, Any], kept: Kept) -> Iterator[str]:
    """How an evaluation tells of other tasks than the prepared ones."""
    bound = kept.about["bound"].get("test", {})
    mine = {"made": kept.about["made"], "bound": bound, "tasks": len(kept.y)}
    for name, value in mine.items():
        if about[name] != value:
            yield f"it tells another {name} than what was prepared"


def sums(cells: dict[str, Any], best: float | None, tasks: int) -> Iterator[str]:
    """How a log-density does not follow from its gap to the exact law's, `best` where that is
    known, or from what was lost elsewhere; how a number is of other tasks than there are."""
    for cell, entry in cells.items():
        found = {name: one["value"] for name, one in entry["metrics"].items()}
        reached = found["log_likelihood"]
        if best is not None and not near(reached + found["gap"], best):
            text = f"its log-density {reached} and its gap {found['gap']} do not add up to"
            yield f"{cell}: {text} the exact law's, {best}"
        for name in (name.removeprefix("lost_") for name in found if name.startswith("lost_")):
            moved = found.get(f"log_likelihood_{name}")  # of the same targets as `reached`
            if moved is not None and not near(moved + found[f"lost_{name}"], reached):
                yield f"{cell}: what it lost {name} is not the difference of its log-densities"
        for name, one in entry["metrics"].items():
            if name in WHOLE and one["n"] != tasks:
                yield f"{cell}: its {name} is of {one['n']:,} tasks, prepared are {tasks:,}"


def companion(told: dict[str, Any], law: Law, y: np.ndarray, scores: Scores) -> Iterator[str]:
    """How a companion scores otherwise than its law does."""
    mine = {"log_likelihood": log_likelihood(*law, y).mean(1)} | scores(law, y)
    mine |= {f"coverage_{100 * level:.0f}": covered(*law, y, level).mean(1) for level in LEVELS}
    for name, values in mine.items():
        value = float(values.mean())
        if name not in told:
            yield f"it tells no {name}"
        elif not near(value, told[name]["value"], agreeing.FINE):
            yield f"the prepared tasks give its law {name} {value}, not {told[name]['value']}"


def task_of(kept: Kept, shown: Mapping[str, np.ndarray], within: float) -> bool:
    """Whether some kept task has these arrays (of one task, by name), but for rounding."""
    alike = np.ones(len(kept.y), bool)
    for name, values in shown.items():
        mine = kept.arrays[name].reshape(len(alike), -1)
        if mine.shape[1] != values.size:
            return False
        alike &= np.isclose(mine, values.ravel(), within, within).all(1)
    return bool(alike.any())
