"""The verb that scores a file with a trained cell."""

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from stages import params
from stages.errors import InputError
from stages.verbs import Verbs, added

# What preparation writes of a data set, and the family whose cells are trained on it.
FAMILIES = {"prepared.json": "winds", "sets.json": "fields", "sequences.json": "sequences"}


def family_of(prepared: Path) -> Any:
    """How the family of a prepared data set scores a file: its module `score`."""
    for name, family in FAMILIES.items():
        if (prepared / name).is_file():
            return importlib.import_module(f"stages.{family}.score")
    if prepared.is_dir():
        raise InputError(
            "no file is scored with a cell of this family",
            where=str(prepared),
            expected=f"a cell of {', '.join(FAMILIES.values())}",
        )
    raise InputError(
        "that is no prepared data set",
        where=str(prepared),
        expected="one of " + ", ".join(FAMILIES),
        remedy="run `dvc repro` or `dvc pull`",
    )


def score(arguments: argparse.Namespace) -> int:
    """Print what a trained cell's errors are on a file."""
    settings = params.load()
    from stages import files
    from stages.scores import lone
    from stages.winds.nowcast import anywhere, named

    cell, elsewhere = arguments.cell, {}
    if cell == anywhere.EXAMPLE:
        run = anywhere.example_cell()
        cell = f"{anywhere.EXAMPLE}/{anywhere.PROFILE}/{run.parent.name}/{run.name}"
        elsewhere = {cell: run}
    elif cell.strip("/") not in (known := lone.trained()):
        cell = named.meant(cell, known) or cell
    asked = lone.opened(
        cell, arguments.file, settings, arguments.even_if_trained_on, elsewhere=elsewhere
    )
    scored = family_of(asked.prepared).score(asked)
    if arguments.json:
        sys.stdout.write(files.json_text(lone.json_content(asked, scored)))
    else:
        print(lone.render(asked, scored))
    return 0


def register(verbs: Verbs) -> None:
    """Add `tradewind score`."""
    verb = added(
        verbs,
        "score",
        "a file of your own, scored with a trained cell",
        "The errors of a trained cell on a file that no split holds, measured as its evaluation "
        "measures its test set:\na capture of winds, states or frames (the cell's lead), a Darcy "
        "archive of any resolution, a text.\nWhat was dropped is told; what the cell was trained "
        "on is refused.",
        "tradewind score wind_nowcast/mini/simulated/msa-shared-20k-s0 capture.csv",
    )
    verb.add_argument(
        "cell",
        metavar="EXPERIMENT/PROFILE/DATASET/CELL",
        help="a trained cell: this, a shorter name that fits no other, or example",
    )
    verb.add_argument("file", metavar="FILE")
    verb.add_argument("--json", action="store_true", help="print everything as strict JSON")
    verb.add_argument(
        "--even-if-trained-on",
        action="store_true",
        help="score a file of which the cell has seen a part in training, and say how much",
    )
    verb.set_defaults(run=score)
