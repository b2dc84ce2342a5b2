"""Problems prepared: raw bytes, made by us or real, to sets of points (problem.py)."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stages import files, params, records, runner
from stages.errors import DataError
from stages.fields import problem
from stages.fields.problems import hour, pdebench, sines
from stages.fields.problems.darcy import read as darcy
from stages.fields.problems.navier_stokes import read as navier_stokes
from stages.fields.problems.poisson import read as poisson
from stages.fields.problems.weather import read as weather

READERS = {
    "darcy": darcy.read,
    "hour": hour.read,
    "navier_stokes": navier_stokes.read,
    "pdebench": pdebench.read,
    "poisson": poisson.read,
    "sines": sines.read,
    "weather": weather.read,
}


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    where = f"profiles.{profile}.problems"
    runner.known("problem", dataset, asked.profile.problems, where)
    settings, raw, final = asked.profile.sets[dataset], asked.data("raw"), asked.data("prepared")
    without = {"overlap"} if settings.overlap is None else set()  # as sets without it always were
    told = settings.model_dump(mode="json", exclude={"training", *without})

    def do() -> dict[str, Path]:
        prepare(raw, final, settings, told)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=["stages.fields.prepare"],
        params=json.loads(json.dumps(told)),
        seed=settings.seed,
    )


def prepare(raw: Path, final: Path, settings: params.Sets, told: dict[str, object]) -> None:
    """Read, check and write. `told`: what sets.json says of the settings. DataError for raw data
    that are missing, damaged, or would leak."""
    if not (raw / "manifest.json").is_file():
        raise DataError("the raw data set is missing", where=str(raw), remedy="run `dvc repro`")
    counts = problem.Counts(settings.context, settings.targets, settings.sets, settings.overlap)
    sets = READERS[settings.reader](raw, settings.seed, counts)
    problem.check(sets, str(raw))
    with files.atomic_folder(final) as folder:
        problem.write(sets, folder, told)


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a problem: sets of points that models read."
    return runner.command("stages.fields.prepare", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
