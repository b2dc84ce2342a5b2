"""The verbs that give results away."""

import argparse
from pathlib import Path

from stages.verbs import Verbs, added, only_in_clone


def release(arguments: argparse.Namespace) -> int:
    """Write a citable bundle of the commit and print its path and SHA-256."""
    only_in_clone("there is nothing to release here")
    from stages import exports, files

    path = exports.release(arguments.folder, Path.cwd(), with_data=arguments.with_data)
    print(f"{path}\nsha256 {files.sha256(path)}")
    return 0


def card(arguments: argparse.Namespace) -> int:
    """Print a trained cell's model card."""
    from stages import exports

    print(exports.card(arguments.cell, Path.cwd()))
    return 0


def croissant(arguments: argparse.Namespace) -> int:
    """Write Croissant metadata of the raw data sets and print the files."""
    from stages import exports

    for path in exports.write_croissant(arguments.folder, Path.cwd(), tuple(arguments.names)):
        print(path)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write losses and sweeps for other tools and print the files."""
    only_in_clone("there is nothing to export here")
    from stages.exports import tracked

    for path in tracked.write(arguments.folder, Path.cwd()):
        print(path)
    return 0


def add_export(verbs: Verbs) -> None:
    """`tradewind export`."""
    verb = added(
        verbs,
        "export",
        "losses and sweeps, for TensorBoard and optuna-dashboard",
        "history.csv and tensorboard/ hold the losses of every cell that was trained here,\n"
        "sweeps.db the draws of every sweep. Then, with either tool installed:\n"
        "  tensorboard --logdir FOLDER/tensorboard\n"
        "  optuna-dashboard sqlite:///FOLDER/sweeps.db",
        "tradewind export ../tracked",
    )
    verb.add_argument("folder", metavar="FOLDER", type=Path)
    verb.set_defaults(run=export)


def add_release(verbs: Verbs) -> None:
    """`tradewind release`."""
    verb = added(
        verbs,
        "release",
        "a citable bundle of this commit",
        "One zip of the commit's files, results, records and metadata; its bytes depend on the "
        "commit alone.\n"
        "Refused while anything is dirty or stale.",
        "tradewind release ../releases",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument(
        "--with-data",
        action="store_true",
        help="add the raw files of profiles that are simulated as a whole (mini)",
    )
    verb.set_defaults(run=release)


def add_card(verbs: Verbs) -> None:
    """`tradewind card`."""
    verb = added(
        verbs,
        "card",
        "the model card of a trained cell",
        "The model card of a trained cell, as Markdown.",
        "tradewind card wind_nowcast/mini/simulated/msa-shared-20k-s0",
    )
    verb.add_argument("cell", metavar="EXPERIMENT/PROFILE/DATASET/CELL")
    verb.set_defaults(run=card)


def add_croissant(verbs: Verbs) -> None:
    """`tradewind croissant`."""
    verb = added(
        verbs,
        "croissant",
        "metadata of the raw data sets",
        "Croissant (JSON-LD) of every acquired data set, or of those named.",
        "tradewind croissant ../metadata mini/simulated",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument("names", nargs="*", metavar="PROFILE/DATASET")
    verb.set_defaults(run=croissant)


def register(verbs: Verbs) -> None:
    """Add these verbs."""
    for add in (add_release, add_card, add_croissant, add_export):
        add(verbs)
