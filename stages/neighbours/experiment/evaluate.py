"""One point set searched in every way, and what came of it as files: metrics.json, queries.parquet,
bound.json.

metrics.json holds the cells (measure.py), queries.parquet what each cell did for each query,
bound.json how often the document's lower bound is none on this set (bound.py). All three are the
same to the bit on every run; times are measured elsewhere (bench.py).
"""

from pathlib import Path

import torch

from stages import files
from stages.neighbours.experiment import bound, sets
from stages.neighbours.experiment.measure import Settings, measure


def evaluate(name: str, prepared: Path | None, final: Path, settings: Settings) -> None:
    """Search the set `name` in every way of the plan; the three files appear in `final` together.

    `prepared` is the folder of a prepared data set, None for a synthetic set. DataError for a set
    that cannot be searched.
    """
    torch.set_num_threads(settings.threads)
    points = sets.build(name, prepared, settings.search)
    metrics, table = measure(points, settings)
    with files.atomic_folder(final) as folder:
        table.write_parquet(folder / "queries.parquet", compression="zstd", statistics=False)
        files.write_json(
            folder / "bound.json", bound.explained(points, max(settings.search.neighbours))
        )
        files.write_json(folder / "metrics.json", metrics)


def again(name: str, prepared: Path | None, folder: Path, settings: Settings) -> dict:
    """The cells of a set's metrics.json made again inside `folder` (audit compares them with the
    published ones)."""
    evaluate(name, prepared, folder / name, settings)
    return files.read_json(folder / name / "metrics.json")["cells"]
