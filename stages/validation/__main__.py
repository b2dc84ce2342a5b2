"""`python -m stages.validation PROFILE DATASET`: judge data/P/raw/D and what was made of it, write
data/P/validated/D.json.

Exit 0: the gate is open. 1: a critical rule failed, or the data are damaged. 2: a mistake in the
call. 70: GX itself failed.
"""

import argparse
import sys

from stages import params
from stages.errors import DataError, ParamsError, TradewindError


def main(arguments: list[str] | None = None) -> int:
    """Parse, load the parameters, validate."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.validation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for word in ("profile", "dataset"):
        parser.add_argument(word, help=f"a {word} of params.yaml")
    asked = parser.parse_args(arguments)
    try:
        settings = params.load()
        name, dataset = asked.profile, asked.dataset
        if name not in settings.profiles:
            raise ParamsError(f"unknown profile {name!r}{params.nearest(name, settings.profiles)}")
        profile = settings.profiles[name]
        if dataset not in (known := (*profile.datasets, *profile.problems, *profile.sequences)):
            raise ParamsError(
                f"unknown data set {dataset!r} in profile {name!r}{params.nearest(dataset, known)}"
            )
        from stages.validation import (
            validate,  # Great Expectations takes seconds to import: mistakes are told before
        )

        validate.run(profile, dataset)
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error), remedy='run `dvc repro`')}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
