"""Training and searches as other tools show them: every cell's losses as a table and as
TensorBoard's events, every sweep as an Optuna study.

    FOLDER/history.csv        a row a value: experiment, profile, data set, cell, split, step, loss
    FOLDER/tensorboard/...    a run a cell, as `tensorboard --logdir FOLDER/tensorboard` shows them
    FOLDER/sweeps.db          a study a sweep, as `optuna-dashboard sqlite:///FOLDER/sweeps.db` does

Losses are those of a cell's history.json, in the unit of its own loss; a sweep's draws are those of
trials.csv, which git keeps.
"""

import csv
import io
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.errors import InputError
from stages.exports import events
from stages.files import atomic_file, atomic_folder, read_json

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

COLUMNS = ("experiment", "profile", "dataset", "cell", "split", "step", "loss")
TABLE, EVENTS, STUDIES = "history.csv", "tensorboard", "sweeps.db"
Row = tuple[str, str, str, str, str, int, float]
Cells = list[tuple[tuple[str, str, str, str], list[Row]]]  # each with the rows of its losses


def histories(root: Path) -> Iterator[tuple[tuple[str, str, str, str], dict[str, Any]]]:
    """(experiment, profile, data set, cell) and what its training wrote, of every cell here."""
    for file in sorted((root / "reports").glob("[!.]*/*/runs/*/*/history.json")):
        experiment, profile, _, dataset, cell = file.parent.relative_to(root / "reports").parts
        yield (experiment, profile, dataset, cell), read_json(file)


def rows(cell: tuple[str, str, str, str], history: dict[str, Any]) -> Iterator[Row]:
    """The losses of a cell, by split and step; what has no finite loss is left out."""
    for split in ("train", "val"):
        for one in history.get(split, []):
            loss = one.get("loss")
            if isinstance(loss, int | float) and math.isfinite(loss):
                yield (*cell, split, int(one["step"]), float(loss))


def write(folder: Path, root: Path) -> list[Path]:
    """Write all three of the project at `root` and return them, each whole, in place of an earlier
    one. InputError where nothing was trained or searched here."""
    found = [(cell, list(rows(cell, history))) for cell, history in histories(root)]
    sweeps = sorted((root / "reports").glob("[!.]*/*/sweeps/*/*/trials.csv"))
    if not any(values for _, values in found) and not sweeps:
        raise InputError(
            "nothing was trained here",
            where=str(root / "reports"),
            expected="reports/EXPERIMENT/PROFILE/runs/DATASET/CELL/history.json",
            found="none",
            remedy="run `dvc repro`, or `dvc checkout` where it has run",
        )
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        table(scratch / TABLE, found)
        if sweeps:
            studies(scratch / STUDIES, root, sweeps)
        if found:
            with atomic_folder(folder / EVENTS) as made:
                recorded(made, found)
        for file in (TABLE, STUDIES):
            if (scratch / file).exists():
                with atomic_file(folder / file, "wb") as stream:
                    stream.write((scratch / file).read_bytes())
    told = {TABLE: True, EVENTS: bool(found), STUDIES: bool(sweeps)}
    return [folder / name for name, there in told.items() if there]


def table(file: Path, found: Cells) -> None:
    """The losses of every cell."""
    with atomic_file(file, "w") as stream:
        text = io.StringIO(newline="")
        out = csv.writer(text, lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows(row for _, values in found for row in values)
        stream.write(text.getvalue())


def recorded(folder: Path, found: Cells) -> None:
    """The same as TensorBoard's events."""
    for cell, values in found:
        if values:
            data = events.scalars((step, f"loss/{split}", loss) for *_, split, step, loss in values)
            place = folder / Path(*cell) / "events.out.tfevents.0.tradewind"
            with atomic_file(place, "wb") as stream:
                stream.write(data)


def studies(file: Path, root: Path, sweeps: list[Path]) -> None:
    """Every sweep as a study of one database, named EXPERIMENT/PROFILE/DATASET/MODEL."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it tells of every study
    with tempfile.TemporaryDirectory() as scratch:
        storage = optuna.storages.RDBStorage(f"sqlite:///{scratch}/{STUDIES}")
        for trials in sweeps:
            experiment, profile, _, dataset, model = trials.parent.relative_to(
                root / "reports"
            ).parts
            study = optuna.create_study(
                storage=storage, study_name=f"{experiment}/{profile}/{dataset}/{model}"
            )
            study.add_trials(draws(trials))
        storage.engine.dispose()
        with atomic_file(file, "wb") as stream:
            stream.write(Path(scratch, STUDIES).read_bytes())


def draws(file: Path) -> list[Any]:
    """The draws of a trials.csv as finished trials: arguments, value, and what else was told of
    them as attributes; one without a value was pruned or failed."""
    import optuna

    with file.open(encoding="utf-8", newline="") as stream:
        told = list(csv.DictReader(stream))
    scales = scales_of(file, list(told[0]))
    names = [name for name in told[0] if name in scales]
    axes = {name: axis([row[name] for row in told], scales[name]) for name in names}
    goal = list(told[0])[-2]  # the value stands before the state
    found = []
    for row in told:
        done = row["state"] == "finished" and row[goal]
        state = "COMPLETE" if done else "PRUNED" if row["state"] == "pruned" else "FAIL"
        found.append(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState[state],
                value=float(row[goal]) if done else None,
                params={name: number(row[name]) for name in names},
                distributions=axes,
                user_attrs={
                    key: number(text)
                    for key, text in row.items()
                    if key not in names and key != goal and text
                },
            )
        )
    return found


def scales_of(file: Path, columns: list[str]) -> dict[str, str]:
    """The arguments that were searched, each with the scale that it was drawn on, as
    importance.csv beside the draws tells; without it they stand between the draw's number and its
    value, and are shown on a linear scale."""
    beside = file.with_name("importance.csv")
    if not beside.is_file():
        return dict.fromkeys(columns[1:-2], "linear")
    with beside.open(encoding="utf-8", newline="") as stream:
        return {row["argument"]: row["scale"] for row in csv.DictReader(stream)}


def number(text: str) -> int | float | str:
    """A cell of a table as what it is: whole, real, or words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def axis(texts: list[str], scale: str) -> "BaseDistribution":
    """The axis that an argument was drawn from, as far as its draws tell."""
    from optuna import distributions as kinds

    values = [number(text) for text in texts]
    if scale == "words" or any(isinstance(value, str) for value in values):
        return kinds.CategoricalDistribution(sorted(set(values), key=str))
    numbers = [value for value in values if not isinstance(value, str)]
    low, high, log = min(numbers), max(numbers), scale == "log" and min(numbers) > 0
    if all(isinstance(value, int) for value in numbers):
        return kinds.IntDistribution(int(low), int(high), log=log)
    return kinds.FloatDistribution(float(low), float(high), log=log)
