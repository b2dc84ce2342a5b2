"""`python -m stages.acquisition PROFILE DATASET`: acquire one data set of a profile into
data/PROFILE/raw/DATASET/.

TRADEWIND_MIRROR may name a folder that is looked into, by digest, before the network is asked.
"""

import argparse
import os
import sys

from stages import params
from stages.acquisition.acquire import acquire
from stages.acquisition.mirror import Mirror
from stages.errors import DataError, InputError, TradewindError


def main(arguments: list[str] | None = None) -> int:
    """Parse, check the names, acquire; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.acquisition", description=__doc__.splitlines()[0]
    )
    for name in ("profile", "dataset"):
        parser.add_argument(name, help=f"a {name} of params.yaml")
    asked = parser.parse_args(arguments)
    try:
        settings = params.load()
        for word, known, kind in (
            (asked.profile, settings.profiles, "profile"),
            (asked.dataset, settings.datasets, "data set"),
        ):
            if word not in known:
                raise InputError(
                    f"{word!r} is no {kind}{params.nearest(word, known)}", where="params.yaml"
                )
        profile = settings.profiles[asked.profile]
        known = (*profile.datasets, *profile.problems, *profile.sequences)
        if asked.dataset not in known:
            raise InputError(
                f"data set {asked.dataset!r} is not in profile "
                f"{asked.profile!r}{params.nearest(asked.dataset, known)}",
                where="params.yaml",
            )
        folder = os.environ.get("TRADEWIND_MIRROR")
        acquire(
            asked.profile,
            asked.dataset,
            settings.datasets[asked.dataset],
            mirror=Mirror(folder) if folder else None,
        )
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
