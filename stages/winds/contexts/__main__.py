"""`python -m stages.winds.contexts PROFILE DATASET`: find the neighbours of every training target
once.

Reads data/PROFILE/prepared/DATASET; writes data/PROFILE/contexts/DATASET/{neighbours.npy,
contexts.json} and the record.
"""

import argparse
import sys
from pathlib import Path

from stages import files, params, records
from stages.errors import DataError, InputError, TradewindError

CODE = (
    "stages/batches.py",
    "stages/winds/contexts",
    "stages/layers/local.py",
    "stages/neighbours",
    "stages/winds/pairs.py",
    "stages/winds/slices.py",
)


def run(profile: str, dataset: str, parameters: params.Params) -> None:
    """Check the names, compute, write the record."""
    if profile not in parameters.profiles:
        raise InputError(
            "unknown profile",
            found=repr(profile),
            expected=params.nearest(profile, parameters.profiles).lstrip("; "),
        )
    known = parameters.profiles[profile].wind
    if dataset not in known:
        raise InputError(
            "the profile has no such prepared data set",
            found=repr(dataset),
            where=f"profiles.{profile}.wind",
            expected=params.nearest(dataset, known).lstrip("; "),
        )
    import torch  # takes a second: help and mistakes are told before

    from stages.winds.contexts import cache
    from stages.winds.pairs import Pairs

    prepared, final = (
        Path("data", profile, "prepared", dataset),
        Path("data", profile, "contexts", dataset),
    )
    settings, threads = parameters.contexts, parameters.training.threads
    torch.set_num_threads(threads)
    with (
        files.guard(f"contexts/{profile}/{dataset}"),
        records.timed("contexts", f"{profile}/{dataset}"),
    ):
        inputs = {path.as_posix(): records.describe(path) for path in records.files_in([prepared])}
        work = (
            files.WORK
            / "contexts"
            / records.key(settings.model_dump(mode="json"), records.code_digest(CODE), inputs)
        )
        cache.compute(Pairs.open(prepared), settings, work, final)
        record = records.make(
            "contexts",
            f"{profile}/{dataset}",
            inputs=[prepared],
            outputs=records.outputs_of(final, final),
            params=settings.model_dump(mode="json"),
            code=CODE,
            threads=threads,
        )
        files.write_json(records.location("contexts", profile, dataset), record)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.winds.contexts",
        description="Find the neighbours of every training target once.",
    )
    for name in ("profile", "dataset"):
        parser.add_argument(name, help=f"a {name} of params.yaml")
    options = parser.parse_args(argv)
    try:
        run(options.profile, options.dataset, params.load())
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
