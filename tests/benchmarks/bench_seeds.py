"""`python -m tests.benchmarks.bench_seeds EXPERIMENT PROFILE`: how far seeds differ, from cells that
were trained with several.

Declare further seeds in the experiment's cells.yaml (in a clone, where the profile shall not keep
them) and run `dvc repro`. This reads reports/EXPERIMENT/PROFILE/evaluated/*/metrics.json and writes
`seeds` into data/spreads/PROFILE/EXPERIMENT.json, by kind of model; what is known of rounding
stays.
"""

import argparse
from pathlib import Path

from stages import files
from stages.spreads import of_seeds, place


def main() -> None:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment")
    parser.add_argument("profile")
    asked = parser.parse_args()
    found = {
        f"{file.parent.name}/{name}": cell
        for file in sorted(
            Path("reports", asked.experiment, asked.profile).glob("evaluated/*/metrics.json")
        )
        for name, cell in files.read_json(file)["cells"].items()
    }
    seeds = of_seeds({"cells": found})
    if not seeds:
        parser.error("no arm was trained with several seeds here")
    kept = place(asked.experiment, asked.profile)
    known = files.read_json(kept) if kept.exists() else {"between": [], "rounding": {}}
    files.write_json(kept, known | {"seeds": seeds})
    print(f"{kept}: {', '.join(seeds)}")


if __name__ == "__main__":
    main()
