"""Sequences prepared: raw bytes, made by us or real, to tokens (tokens.py)."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stages import files, records, runner
from stages.errors import DataError
from stages.params.orders import Readings
from stages.sequences import tokens
from stages.sequences.data import grammar, laws, maze, text, walk
from stages.sequences.data.climb import read as climb

READERS = {
    "climb": climb.read,
    "grammar": grammar.read,
    "laws": laws.read,
    "maze": maze.read,
    "text": text.read,
    "walk": walk.read,
}


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    where = f"profiles.{profile}.sequences"
    runner.known("data set of sequences", dataset, asked.profile.sequences, where)
    settings, raw = asked.profile.readings[dataset], asked.data("raw")
    final = asked.data("prepared")

    def do() -> dict[str, Path]:
        prepare(raw, final, settings)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=["stages.sequences.prepare"],
        params=json.loads(json.dumps(settings.model_dump(mode="json"))),
        seed=settings.seed,
    )


def prepare(raw: Path, final: Path, settings: Readings) -> None:
    """Read, check and write; the settings are handed to the reader. DataError for raw data that
    are missing, damaged, or would leak."""
    if not (raw / "manifest.json").is_file():
        raise DataError("the raw data set is missing", where=str(raw), remedy="run `dvc repro`")
    made = READERS[settings.reader](raw, settings.seed, settings)
    tokens.check(made, str(raw))
    with files.atomic_folder(final) as folder:
        tokens.write(made, folder, settings.model_dump(mode="json"))


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a data set of sequences: tokens that models read."
    return runner.command("stages.sequences.prepare", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
