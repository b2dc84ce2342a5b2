"""`python -m stages.preparation decode|prepare|sets|sequences PROFILE DATASET`: raw data to
winds, and winds or raw data to what models read."""

import argparse
import sys
from importlib import import_module

from stages import params
from stages.errors import DataError, InputError, TradewindError

SETS = ("stages/fields/problems", "stages/arrays.py", "stages/fields/prepare.py", "stages/seeds.py")
SEQUENCES = ("stages/sequences/reading", "stages/arrays.py", "stages/seeds.py")


def main(arguments: list[str] | None = None) -> int:
    """Parse, check the names, run the step; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stages.preparation", description=__doc__)
    parser.add_argument(
        "step",
        choices=("decode", "prepare", "sets", "sequences"),
        help="raw data to winds, winds to what models read, or raw data to sets of points or "
        "sequences of tokens",
    )
    for name in ("profile", "dataset"):
        parser.add_argument(name, help=f"a {name} of params.yaml")
    asked = parser.parse_args(arguments)
    try:
        settings = params.load()
        if asked.profile not in settings.profiles:
            raise InputError(
                f"{asked.profile!r} is no "
                f"profile{params.nearest(asked.profile, settings.profiles)}",
                where="params.yaml",
            )
        profile = settings.profiles[asked.profile]
        known = {
            "decode": profile.datasets,
            "prepare": profile.wind,
            "sets": profile.problems,
            "sequences": profile.sequences,
        }[asked.step]
        if asked.dataset not in known:
            raise InputError(
                f"data set {asked.dataset!r} has no step `{asked.step}` in profile "
                f"{asked.profile!r}{params.nearest(asked.dataset, known)}",
                where="params.yaml",
            )
        if asked.step == "decode":
            from stages.winds import decode

            decode.run(
                asked.profile, asked.dataset, settings.datasets[asked.dataset], settings.decode
            )
        elif asked.step == "sets":
            from stages.fields import prepare as sets

            wanted = profile.sets[asked.dataset]
            reader = import_module(f"stages.fields.problems.{wanted.reader}")
            sets.run(asked.profile, asked.dataset, reader.read, wanted, SETS)
        elif asked.step == "sequences":
            from stages.sequences import reading as sequences

            wanted = profile.readings[asked.dataset]
            reader = import_module(f"stages.sequences.reading.{wanted.reader}")
            sequences.run(asked.profile, asked.dataset, reader.read, wanted, SEQUENCES)
        else:
            from stages.winds import prepare

            prepare.run(profile, asked.dataset, settings.decode)
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error))}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
