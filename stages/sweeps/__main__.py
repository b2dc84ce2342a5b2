"""`python -m stages.sweeps EXPERIMENT PROFILE DATASET MODEL`: choose a model's arguments on the validation slices.

Reads data/PROFILE/prepared/DATASET; writes reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL/{best.yaml, trials.csv} (in git: read them
in a diff) and the record. Training reads best.yaml.
"""

import argparse
import csv
import sys
from pathlib import Path

import torch
from ruamel.yaml import YAML

from stages import files, params, records
from stages.contexts.given import Contexts
from stages.errors import DataError, InputError, TradewindError
from stages.sweeps.search import best, sweep
from stages.training.__main__ import EXPERIMENTS, code_of
from stages.training.cells import SWEPT, Cell, arguments


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, search, write. Every mistake of the user's is told before any work."""
    for what, name, known in (("experiment", options.experiment, EXPERIMENTS), ("profile", options.profile, parameters.profiles),
                              ("sweep", options.model, parameters.sweeps)):
        if name not in known:
            raise InputError(f"unknown {what}", found=repr(name), expected=params.nearest(name, known).lstrip("; "))
    profile = parameters.profiles[options.profile]
    if options.dataset not in profile.wind:
        raise InputError("the profile has no such prepared data set", found=repr(options.dataset),
                         where=f"profiles.{profile.profile}.wind", expected=params.nearest(options.dataset, profile.wind).lstrip("; "))
    wanted, training, cell = parameters.sweeps[options.model], parameters.training, Cell(options.model, SWEPT)
    arm, code = arguments(cell, parameters), ("stages/sweeps", *code_of(options.model))
    torch.set_num_threads(training.threads)
    prepared = Path("data", options.profile, "prepared", options.dataset)
    folder = Path("reports", options.experiment, options.profile, "sweeps", options.dataset, options.model)
    with files.guard(folder.as_posix()), records.timed("sweep", f"{options.profile}/{options.dataset}/{options.model}"):
        trials = sweep(options.model, arm, wanted, Contexts.open(prepared, parameters.contexts), training.seed)
        with files.atomic_folder(folder) as temporary:
            write(temporary, trials)
        used = {"model": options.model, "arm": arm, "sweep": wanted.model_dump(mode="json"), "seed": training.seed,
                "contexts": parameters.contexts.model_dump(mode="json")}
        record = records.make("sweep", f"{options.profile}/{options.dataset}/{options.model}", inputs=[prepared],
                              outputs=records.outputs_of(folder, folder), params=used, code=code, seed=training.seed,
                              threads=training.threads)
        place = records.location("sweep", options.profile, options.dataset, experiment=options.experiment, cell=options.model)
        files.write_json(place, record)


def write(folder: Path, trials: list[dict]) -> None:
    """best.yaml and trials.csv."""
    chosen = best(trials)
    with (folder / "best.yaml").open("w", encoding="utf-8") as stream:
        stream.write(f"# Found by the sweep stage: trial {chosen['number']} of {len(trials)}, by its RMSE on validation slices.\n")
        YAML().dump({"arguments": chosen["arguments"], "rmse_component_kn": chosen["rmse_component_kn"], "trials": len(trials)}, stream)
    with (folder / "trials.csv").open("w", encoding="utf-8", newline="") as stream:
        names = list(trials[0]["arguments"])
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(["number", *names, "rmse_component_kn"])
        table.writerows([trial["number"], *(trial["arguments"][name] for name in names), trial["rmse_component_kn"]] for trial in trials)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m stages.sweeps", description="Choose a model's arguments on the validation slices.")
    for name in ("experiment", "profile", "dataset", "model"):
        parser.add_argument(name)
    try:
        run(parser.parse_args(argv), params.load())
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {DataError('a file could not be read or written', found=str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
