"""`python -m stages.preparation decode|prepare PROFILE DATASET`: raw data to winds, or winds to what models read."""

import argparse
import sys

from stages import params
from stages.errors import DataError, InputError, TradewindError


def main(arguments: list[str] | None = None) -> int:
    """Parse, check the names, run the step; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stages.preparation", description=__doc__)
    parser.add_argument("step", choices=("decode", "prepare"), help="raw data to winds, or winds to what models read")
    for name in ("profile", "dataset"):
        parser.add_argument(name, help=f"a {name} of params.yaml")
    asked = parser.parse_args(arguments)
    try:
        settings = params.load()
        if asked.profile not in settings.profiles:
            raise InputError(f"{asked.profile!r} is no profile{params.nearest(asked.profile, settings.profiles)}", where="params.yaml")
        profile = settings.profiles[asked.profile]
        known = profile.datasets if asked.step == "decode" else profile.wind
        if asked.dataset not in known:
            raise InputError(f"data set {asked.dataset!r} is not {asked.step}d in profile {asked.profile!r}"
                             f"{params.nearest(asked.dataset, known)}", where="params.yaml")
        if asked.step == "decode":
            from stages.preparation import decode
            decode.run(asked.profile, asked.dataset, settings.datasets[asked.dataset], settings.decode)
        else:
            from stages.preparation import prepare
            prepare.run(profile, asked.dataset, settings.decode)
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {DataError('a file could not be read or written', found=str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
