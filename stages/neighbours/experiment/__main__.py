"""`python -m stages.neighbours.experiment PROFILE SET`: search one point set with every method and
count what each looks at.

SET is a prepared data set of the profile, smoothed_random_walk or random_points; writes
reports/neighbours/PROFILE/evaluated/SET and its record. The processor alone is used: the numbers
are the same on every device.
"""

import argparse
import sys
from pathlib import Path

from stages import files, params, records
from stages.errors import DataError, InputError, TradewindError

EXPERIMENT = "neighbours"
CODE = (
    "stages/neighbours",
    "stages/seeds.py",
    "stages/scores/bootstrap.py",
    *(
        f"stages/neighbours/experiment/{name}.py"
        for name in ("__main__", "bound", "evaluate", "measure", "sets")
    ),
)


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.neighbours.experiment",
        description="Search a point set with every method.",
    )
    for name, what in (
        ("profile", "a profile of params.yaml"),
        ("set", "a set of its search.sets"),
    ):
        parser.add_argument(name, help=what)
    return parser.parse_args(argv)


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, search, write the record. Every mistake of the user's is told before any
    work."""
    if options.profile not in parameters.profiles:
        raise InputError(
            "unknown profile",
            found=repr(options.profile),
            expected=params.nearest(options.profile, parameters.profiles).lstrip("; "),
        )
    profile, name = parameters.profiles[options.profile], options.set
    if profile.search is None:
        raise InputError(
            "the profile searches no neighbours",
            where=f"profiles.{profile.profile}",
            remedy="give it a section `search`",
        )
    known = profile.search.sets
    if name not in (*known.original, *known.synthetic):
        raise InputError(
            "the profile has no such point set",
            found=repr(name),
            where=f"profiles.{profile.profile}.search.sets",
            expected=params.nearest(name, (*known.original, *known.synthetic)).lstrip("; "),
        )
    from stages.neighbours.experiment.evaluate import (
        evaluate,  # with torch and numba, which take seconds
    )
    from stages.neighbours.experiment.measure import Settings

    prepared = Path("data", options.profile, "prepared", name) if name in known.original else None
    final = Path("reports", EXPERIMENT, options.profile, "evaluated", name)
    settings = Settings(profile.search, profile.evaluation.bootstrap, parameters.training.threads)
    cell = f"{options.profile}/{name}"
    with files.guard(f"evaluate/{EXPERIMENT}/{cell}"), records.timed("search", cell):
        evaluate(name, prepared, final, settings)
        record = records.make(
            "evaluate",
            cell,
            inputs=[prepared] if prepared else [],
            outputs={p.as_posix(): p for p in records.files_in([final])},
            code=CODE,
            seed=profile.search.seed,
            params={
                "search": profile.search.model_dump(mode="json"),
                "bootstrap": settings.resamples,
                "threads": settings.threads,
            },
            threads=settings.threads,
        )
        files.write_json(
            records.location("evaluate", options.profile, name, experiment=EXPERIMENT), record
        )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    try:
        run(parsed(argv), params.load())
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
