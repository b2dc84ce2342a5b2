"""The check of the mirror: which pinned files of the profile `sample` it holds, looked up as
acquisition does it (by size, then digest)."""

import contextlib

from stages import params
from stages.acquisition.acquire import pinned_files
from stages.acquisition.mirror import Mirror
from stages.acquisition.sources import matches
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place

PROFILE = "sample"
SHOWN = 10  # files named


def mirror(place: Place) -> Finding:
    """TRADEWIND_MIRROR: a folder, and what it holds. Not set is well: files are then downloaded."""
    folder = place.environ.get("TRADEWIND_MIRROR")
    if not folder:
        return Finding("mirror", OK, "TRADEWIND_MIRROR is not set: pinned files are downloaded")
    if not (place.root / folder).is_dir():
        return Finding(
            "mirror",
            FAIL,
            f"TRADEWIND_MIRROR is no folder: {folder}",
            "name an existing folder, or unset it to download",
        )
    settings, shelf = params.load(place.root / "params.yaml"), Mirror(place.root / folder)
    profile = settings.profiles[PROFILE]
    others = [name for family in profile.families.values() for name in family.datasets]
    wanted = {
        f"{dataset}/{name}": source
        for dataset in (*profile.acquired, *profile.problems, *profile.sequences, *others)
        for name, source in pinned_files(below(place, settings.datasets[dataset])).items()
    }
    missing = [name for name, source in wanted.items() if not holds(shelf, source)]
    told = (
        f"{folder} holds {len(wanted) - len(missing)} of the {len(wanted)} pinned files of "
        f"`{PROFILE}`"
    )
    return Finding(
        "mirror",
        WARN if missing else OK,
        told
        + (f"; not {', '.join(missing[:SHOWN])}" if missing else "")
        + (f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""),
        "put the missing files there under any name, or let them be downloaded",
    )


def below(place: Place, dataset: params.Dataset) -> params.Dataset:
    """The data set with its listing looked for in the place."""
    listed = dataset.listed and dataset.listed.model_copy(
        update={"listing": str(place.root / dataset.listed.listing)}
    )
    return dataset.model_copy(update={"listed": listed})


def holds(shelf: Mirror, source: params.Source) -> bool:
    """Whether a file of the folder is the pinned one; only files of its size are read."""
    for candidate in shelf.candidates(source):
        with contextlib.suppress(OSError):  # somebody else's file in a shared folder
            if matches(candidate, source):
                return True
    return False
