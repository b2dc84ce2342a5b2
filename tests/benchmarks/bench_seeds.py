"""`python -m tests.benchmarks.bench_seeds EXPERIMENT PROFILE`: how far seeds differ, from cells
that were trained with several.

Declare further seeds in the experiment's cells.yaml (in a clone, where the profile shall not keep
them) and run `dvc repro`. This reads reports/EXPERIMENT/PROFILE/evaluated/*/metrics.json and writes
`seeds` into data/spreads/PROFILE/EXPERIMENT.json, by kind of model; what is known of rounding
stays. `--by-set` tells every arm's on every data set, too. `--of OTHER` takes the seeds that were
measured in another profile, for one that trains too long to train twice, and says so there
(`seeds_of`); but none of ONSET, which move most where a training ends before they have settled.
"""

import argparse
from pathlib import Path

from stages import files
from stages.spreads import of_seeds, place

ONSET = ("copied",)  # shares that leap from 0 to 1 when a model begins to learn


def read(experiment: str, profile: str) -> dict:
    """What is known of an experiment's spreads; nothing where it has no file."""
    kept = place(experiment, profile)
    return files.read_json(kept) if kept.exists() else {"between": [], "rounding": {}, "seeds": {}}


def keep(experiment: str, profile: str, seeds: dict, of: str = "") -> None:
    """Write the spreads over seeds, and of which other profile they are."""
    known = read(experiment, profile)
    known.pop("seeds_of", None)
    files.write_json(
        place(experiment, profile), known | {"seeds": seeds} | ({"seeds_of": of} if of else {})
    )
    print(f"{place(experiment, profile)}: {', '.join(seeds)}")


def main() -> None:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment")
    parser.add_argument("profile")
    parser.add_argument("--by-set", action="store_true", help="every arm on every data set, too")
    parser.add_argument("--of", metavar="OTHER", help="the profile whose seeds stand in")
    asked = parser.parse_args()
    if asked.of:
        theirs = read(asked.experiment, asked.of)["seeds"]
        seeds = {
            kind: {metric: row for metric, row in rows.items() if metric not in ONSET}
            for kind, rows in theirs.items()
        }
        keep(asked.experiment, asked.profile, seeds, asked.of)
        return
    found = {
        f"{file.parent.name}/{name}": cell
        for file in sorted(
            Path("reports", asked.experiment, asked.profile).glob("evaluated/*/metrics.json")
        )
        for name, cell in files.read_json(file)["cells"].items()
    }
    seeds = of_seeds({"cells": found}, asked.by_set)
    if not seeds:
        parser.error("no arm was trained with several seeds here")
    keep(asked.experiment, asked.profile, seeds)


if __name__ == "__main__":
    main()
