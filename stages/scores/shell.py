"""The shell that evaluations share: the trained cells of a data set in, one folder and its record
out.

A family's stage says what it measures (Evaluation); here stands what all of them do: find the
cells' folders, refuse strays, hand on device, threads and seed, write a record of the code of all
models that were evaluated. `--cell CELL [--out FILE]` measures one cell anew instead, and leaves
results and record as they are: an audit compares its entry with the published one.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages import files, records
from stages.errors import DataError, InputError
from stages.params.cells import file_of
from stages.runner import Asked, Work, command, known

NAMES = ("experiment", "profile", "dataset")
OPTIONS: dict[str, dict[str, Any]] = {
    "--cell": {"help": "measure this cell only, and leave results and record as they are"},
    "--out": {"type": Path, "help": "where the cell's entry goes, strict JSON; else it is printed"},
}
WEIGHTS = "weights.safetensors"  # of a trained cell, in its folder


@dataclass(frozen=True)
class Evaluation:
    """What a family evaluates of one data set.

    evaluate: measures the cells (their folders) and writes the folder that it is given, whole;
    entry: of one trained cell's folder in metrics.json; companions: the entries of what needs no
    training, by name; models: the package whose modules the cells' models are; params: what the
    record tells.
    """

    evaluate: Callable[[list[Path], Path], None]
    entry: Callable[[Path], Mapping[str, Any]]
    models: str
    params: Mapping[str, Any]
    companions: Callable[[], Mapping[str, Mapping[str, Any]]] = field(default=dict)


@dataclass(frozen=True)
class Machine:
    """What all evaluations compute with: the seed of all draws, torch threads, the device."""

    seed: int
    threads: int
    device: str

    @classmethod
    def of(cls, asked: Asked) -> "Machine":
        """As params.yaml has it; TRADEWIND_DEVICE chooses the device,
        without it CUDA is used where present."""
        from stages.batches import device  # with torch, which takes a second

        return cls(asked.parameters.training.seed, asked.parameters.training.threads, str(device()))


def cells_of(runs: Path) -> list[Path]:
    """The folders of trained cells; what a killed training leaves has a dot and is none."""
    return sorted(path.parent for path in runs.glob(f"[!.]*/{WEIGHTS}"))


def trained(runs: Path) -> list[Path]:
    """The folders of trained cells; InputError where there is none."""
    if cells := cells_of(runs):
        return cells
    raise InputError(
        "there is no trained cell to evaluate",
        where=str(runs),
        remedy="run `dvc repro`, which trains before it evaluates",
    )


def refuse_strays(cells: Sequence[Path], asked: Asked) -> None:
    """DataError naming every cell that the experiment does not declare now.

    Such a folder is left from earlier settings, or was copied here; its numbers would stand in the
    table as if we had run it.
    """
    from stages.scores.strays import stray  # with torch, which takes a second

    declared, where = asked.trained.of(asked["dataset"]), file_of(asked["experiment"])
    if problems := [f"{cell}: {why}" for cell in cells if (why := stray(cell, declared, where))]:
        raise DataError(
            "a trained cell does not belong to the current parameters",
            where=str(cells[0].parent),
            found="; ".join(problems),
            expected=f"the cells that {where} declares",
            remedy="delete the folders named above, or declare their cells again",
        )


def validation_losses(run: Path) -> dict[str, list[Any]]:
    """The validation losses of a cell's training: {"val": [[step, loss], ...]}."""
    history = files.read_json(run / "history.json")
    return {"val": [[entry["step"], entry["loss"]] for entry in history["val"]]}


def outputs(final: Path) -> dict[str, Path]:
    """The files of a written folder, as a record names them."""
    return {path.as_posix(): path for path in records.files_in([final])}


def one_cell(asked: Asked, place: str, find: Callable[[str], Mapping[str, Any]]) -> Work:
    """The work of measuring one cell anew: what `find` gives for its name, to --out or printed."""
    cell, out = asked["cell"], asked.names.get("out")

    def do() -> dict[str, Path]:
        entry = find(cell)
        if out is None:
            sys.stdout.write(files.json_text(entry))
        else:
            files.write_json(out, entry)
        return {}

    return Work(stage="evaluate", cell=f"{place}/{cell}", record=None, do=do, inputs=[], code=[])


def work(module: str, asked: Asked, evaluation: Evaluation, machine: Machine) -> Work:
    """The work of a stage that evaluates a data set's cells, or measures one of them anew."""
    profile, dataset, prepared = asked["profile"], asked["dataset"], asked.data("prepared")
    runs, final = asked.home / "runs" / dataset, asked.home / "evaluated" / dataset
    place = f"{profile}/{dataset}"

    def find(cell: str) -> Mapping[str, Any]:
        if (runs / cell / WEIGHTS).is_file():
            return evaluation.entry(runs / cell)
        beside = evaluation.companions()
        names = (*beside, *(run.name for run in cells_of(runs)))
        return beside[known("cell", cell, names, str(runs))]

    if asked.names.get("cell") is not None:
        return one_cell(asked, place, find)
    cells = trained(runs)

    def do() -> dict[str, Path]:
        refuse_strays(cells, asked)
        evaluation.evaluate(cells, final)
        return outputs(final)

    models = sorted({cell.name.partition("-")[0] for cell in cells})
    return Work(
        stage="evaluate",
        cell=place,
        record=records.location("evaluate", profile, dataset, experiment=asked["experiment"]),
        do=do,
        inputs=[runs, prepared],
        code=[module, *(f"{evaluation.models}.{model}" for model in models)],
        params={**evaluation.params, "seed": machine.seed, "threads": machine.threads},
        seed=machine.seed,
        device=machine.device,
        threads=machine.threads,
    )


def main(
    module: str,
    about: str,
    plan: Callable[[Asked], Work],
    argv: Sequence[str] | None = None,
    names: Sequence[str] = NAMES,
) -> int:
    """The command line of an evaluation; its exit code."""

    def planned(asked: Asked) -> Work:
        if asked.names.get("out") is not None and asked.names.get("cell") is None:
            raise InputError("--out is of --cell only", remedy="name a cell, or leave it out")
        return plan(asked)

    return command(module, about, names, planned, argv, OPTIONS)
