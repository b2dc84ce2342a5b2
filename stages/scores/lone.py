"""A file that no split holds, scored with a trained cell: what the families share.

The cell is named as the audit names cells; here its files are found, the answer has its form, and
is printed. What a file is, how a model is asked and what is measured is the family's
(stages/FAMILY/score.py), by the functions of its evaluation. What a cell was trained or selected on
is refused: such a score says nothing of new data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages import files
from stages.errors import InputError
from stages.params import Params, Profile, nearest
from stages.scores.shell import WEIGHTS, Machine

FORM = "EXPERIMENT/PROFILE/DATASET/CELL"
TRAINED_ON = (
    "trained or selected on"  # the key of `counts` where such items are scored all the same
)


@dataclass(frozen=True)
class Asked:
    """A trained cell and a file: `run` holds the weights, `prepared` what they were fitted to."""

    cell: str  # EXPERIMENT/PROFILE/DATASET/CELL
    file: Path
    run: Path
    prepared: Path
    parameters: Params
    even_if_trained_on: bool = False

    @property
    def profile(self) -> Profile:
        """The profile that the cell is of."""
        return self.parameters.profiles[self.cell.split("/")[1]]

    @property
    def dataset(self) -> str:
        """The data set that the cell was trained on."""
        return self.cell.split("/")[2]

    @property
    def machine(self) -> Machine:
        """What is computed with, as of every evaluation."""
        from stages.batches import device  # with torch, which takes a second

        training = self.parameters.training
        return Machine(training.seed, training.threads, str(device()))

    def refuse(self, what: str, expected: str, found: str, remedy: str = "") -> InputError:
        """The error for a file that cannot be scored with this cell."""
        return InputError(
            what,
            where=str(self.file),
            expected=expected,
            found=found,
            remedy=remedy or f"give a file of the kind that {self.cell} was trained on",
        )

    def refuse_seen(self, seen: int, told: str) -> None:
        """InputError where some of the file is what the cell was trained or selected on (`told`:
        how much of what), unless asked for in spite of it."""
        if seen and not self.even_if_trained_on:
            raise self.refuse(
                "the cell was trained or selected on this file",
                f"nothing that stands, value by value, in the training and validation data of "
                f"{self.dataset}",
                told,
                "give a file that the cell has not seen, or --even-if-trained-on",
            )


@dataclass(frozen=True)
class Scored:
    """What was measured: metrics as in metrics.json, name -> {value, unit, n, low, high}, and why
    one is undefined; `shown`: the names of those in the table, in order.

    counts: what the file held and what was scored; dropped: what was not, by reason; notes: what a
    reader must know of it.
    """

    metrics: Mapping[str, Mapping[str, Any]]
    shown: tuple[str, ...]
    counts: Mapping[str, int]
    dropped: Mapping[str, int] = field(default_factory=dict)
    undefined: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def trained(root: Path = Path()) -> dict[str, Path]:
    """Every trained cell, EXPERIMENT/PROFILE/DATASET/CELL -> the folder of its weights."""
    runs = [path.parent for path in root.glob(f"reports/*/*/runs/*/[!.]*/{WEIGHTS}")]
    return {"/".join((*run.parts[-5:-3], *run.parts[-2:])): run for run in runs}


def opened(
    cell: str,
    file: str | Path,
    parameters: Params,
    even_if_trained_on: bool,
    root: Path = Path(),
    elsewhere: Mapping[str, Path] | None = None,
) -> Asked:
    """The cell's folders and the file. `elsewhere`: further cells, name -> folder of the weights.
    InputError for a cell that is not trained here, or whose prepared data are not here, and for
    what is no file."""
    parts = cell.strip("/").split("/")
    known = trained(root) | dict(elsewhere or {})
    name = "/".join(parts)
    if name not in known:
        close = nearest(name, known) if known else " (no cell is trained here)"
        raise InputError(
            "there is no such trained cell",
            found=cell + close,
            expected=FORM,
            remedy="run `dvc repro`, which trains it, or `dvc pull`",
        )
    if parts[1] not in parameters.profiles:
        raise InputError(
            "the cell is of a profile that the parameters do not have",
            where=cell,
            found=parts[1],
            expected=", ".join(parameters.profiles),
        )
    prepared = root / "data" / parts[1] / "prepared" / parts[2]
    if not prepared.is_dir():
        raise InputError(
            "the data that the cell was trained on are not here",
            where=str(prepared),
            expected="the prepared data set: what a file is read by, and compared with",
            remedy="run `dvc repro` or `dvc pull`",
        )
    if not Path(file).is_file():
        raise InputError("there is no such file", where=str(file), remedy="name an existing file")
    return Asked(name, Path(file), known[name], prepared, parameters, even_if_trained_on)


def json_content(asked: Asked, scored: Scored) -> dict[str, Any]:
    """What --json prints: cell, weights and file by their SHA-256, and all that was measured."""
    return {
        "cell": asked.cell,
        "weights": files.sha256(asked.run / WEIGHTS),
        "file": str(asked.file),
        "sha256": files.sha256(asked.file),
        "metrics": {name: dict(one) for name, one in scored.metrics.items()},
        "undefined": dict(scored.undefined),
        "counts": dict(scored.counts),
        "dropped": dict(scored.dropped),
        "notes": list(scored.notes),
    }


def render(asked: Asked, scored: Scored) -> str:
    """The table for a person."""
    width = max(map(len, ("metric", *scored.shown)))
    lines = [
        f"{asked.file} scored with {asked.cell}",
        *(f"{name}: {count:,}" for name, count in scored.counts.items()),
        f"dropped: {listed(scored.dropped)}",
        *scored.notes,
        "",
        f"{'metric':{width}}  {'value':>10}  {'90 % interval':>24}  {'unit':14}  n",
    ]
    for name in scored.shown:
        one = scored.metrics.get(name)
        if one is None:
            lines.append(f"{name:{width}}  {'–':>10}  {scored.undefined.get(name, 'not measured')}")
            continue
        interval = f"[{one['low']:.6g}, {one['high']:.6g}]" if "low" in one else "–"
        lines.append(
            f"{name:{width}}  {one['value']:10.6g}  {interval:>24}  {one['unit']:14}  {one['n']:,}"
        )
    return "\n".join(lines)


def listed(dropped: Mapping[str, int]) -> str:
    """'3 duplicate, 5 null', the reasons of which there are any; 'nothing'."""
    return ", ".join(f"{n:,} {why}" for why, n in sorted(dropped.items()) if n) or "nothing"
