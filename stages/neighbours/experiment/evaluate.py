"""`python -m stages.neighbours.experiment.evaluate PROFILE SET`: one point set searched with every
method, and what each looked at.

SET is a prepared data set of the profile or a synthetic one (params.yaml, search.sets); writes
reports/neighbours/PROFILE/evaluated/SET and its record. metrics.json holds the cells (measure.py),
queries.parquet what each cell did for each query, bound.json how often the document's lower bound
is none on this set (bound.py). The processor alone is used: all three are the same to the bit on
every run and device; times are measured elsewhere (tests/benchmarks).
With `--cell CELL [--out FILE]` the set is searched again and one cell's entry of
metrics.json written as strict JSON to FILE or printed; results and record stay as they are.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import files, records
from stages.errors import InputError
from stages.runner import Asked, Work, known
from stages.scores import shell

if TYPE_CHECKING:
    import polars

    from stages.neighbours.experiment.measure import Settings
    from stages.neighbours.experiment.sets import PointSet

MODULE, EXPERIMENT = "stages.neighbours.experiment.evaluate", "neighbours"


def plan(asked: Asked) -> Work:
    """What is searched with these names. InputError for a profile that searches nothing, or no such
    set of it."""
    profile, name = asked.profile, asked["dataset"]
    search, where = profile.search, f"profiles.{profile.profile}"
    if search is None:
        raise InputError(
            "the profile searches no neighbours", where=where, remedy="give it a section `search`"
        )
    sets = (*search.sets.original, *search.sets.synthetic)
    known("point set", name, sets, f"{where}.search.sets")
    from stages.neighbours.experiment.measure import Settings

    threads = asked.parameters.training.threads
    settings = Settings(search, profile.evaluation.bootstrap, threads)
    prepared = asked.data("prepared") if name in search.sets.original else None
    home = Path("reports", EXPERIMENT, profile.profile)
    place = f"{profile.profile}/{name}"
    if asked.names.get("cell") is not None:
        return shell.one_cell(asked, place, partial(cell, name, prepared, settings))

    def do() -> dict[str, Path]:
        evaluate(name, prepared, home / "evaluated" / name, settings)
        return shell.outputs(home / "evaluated" / name)

    return Work(
        stage="evaluate",
        cell=place,
        record=records.location("evaluate", profile.profile, name, experiment=EXPERIMENT),
        do=do,
        inputs=[prepared] if prepared else [],
        code=[MODULE],
        params={
            "search": search.model_dump(mode="json"),
            "bootstrap": settings.resamples,
            "threads": threads,
        },
        seed=search.seed,
        threads=threads,
    )


def searched(
    name: str, prepared: Path | None, settings: "Settings"
) -> tuple["PointSet", dict[Any, Any], "polars.DataFrame"]:
    """The set `name`, searched in every way of the plan: its points, the content of metrics.json,
    what each query took.

    `prepared` is the folder of a prepared data set, None for a synthetic set. DataError for a set
    that cannot be searched.
    """
    import torch

    from stages.neighbours.experiment import sets
    from stages.neighbours.experiment.measure import measure

    torch.set_num_threads(settings.threads)
    points = sets.build(name, prepared, settings.search)
    return points, *measure(points, settings)


def cell(name: str, prepared: Path | None, settings: "Settings", cell_name: str) -> dict[Any, Any]:
    """One cell's entry of metrics.json: the whole set searched again. InputError for no such
    cell."""
    entries = searched(name, prepared, settings)[1]["cells"]
    return entries[known("cell", cell_name, entries, name)]


def evaluate(name: str, prepared: Path | None, final: Path, settings: "Settings") -> None:
    """Search a set (`searched`); the three files appear in `final` together."""
    from stages.neighbours.experiment import bound

    points, metrics, table = searched(name, prepared, settings)
    explained = bound.explained(points, max(settings.search.neighbours))
    with files.atomic_folder(final) as folder:
        table.write_parquet(folder / "queries.parquet", compression="zstd", statistics=False)
        files.write_json(folder / "bound.json", explained)
        files.write_json(folder / "metrics.json", metrics)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    names = ("profile", "dataset")
    return shell.main(MODULE, "Search a point set with every method.", plan, argv, names)


if __name__ == "__main__":
    sys.exit(main())
