"""Simulated captures: raw frame files as receivers would drop them, one an hour of the sky of the
simulated data set.

`capture` writes hours first <= h < last (counted from the set's start) into any folder, each under
a temporary name (`.NAME...tmp`) and then renamed, so that whoever watches the folder sees whole
files only. A file holds what frames_<h>.csv of the set holds, byte for byte: lines `ts_s,HEX`, Unix
seconds. Hours after the set's last one go on with the same sky (exactly where the set ends on a
multiple of six hours; else its last flights are other ones).
"""

import math
import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from stages.errors import InputError
from stages.files import atomic_file
from stages.params import Simulate
from stages.winds.sky import airspace, encode, simulated

HOURS_MOST = 1000
BLOCK_H = simulated.BLOCK_S // 3600


def asked_hours(text: str) -> tuple[int, int]:
    """First hour and the hour after the last of `A:B`. InputError unless 0 <= A < B <= 1000."""
    found = re.fullmatch(r"(\d{1,4}):(\d{1,4})", text)
    first, last = map(int, found.groups()) if found else (0, 0)
    if not first < last <= HOURS_MOST:
        raise InputError(
            "those are no hours",
            where="--hours",
            expected=f"A:B, whole hours from the start, 0 <= A < B <= {HOURS_MOST}",
            found=text,
            remedy="for example --hours 0:6",
        )
    return first, last


def capture(
    plan: Simulate, folder: Path, first: int, last: int, seed: int | None = None
) -> list[Path]:
    """Write hours `first` to `last` (excluded) of the sky of `plan`, with another seed if one is
    given; the files, in time order.

    A file of the same name is replaced. InputError for a plan that describes no airspace, and where
    `folder` is no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("captures are written into a folder", where=str(folder), found="a file")
    hours = (
        plan.hours if last <= plan.hours else BLOCK_H * math.ceil(last / BLOCK_H)
    )  # whole blocks: the sky does not depend on the end
    world = airspace.sky(
        plan.model_copy(update={"hours": float(hours), "seed": plan.seed if seed is None else seed})
    )
    start, written = datetime.fromtimestamp(world.start_ms // 1000, UTC), []
    heard = tqdm(
        islice(simulated.hours(world), last), total=last, unit="h", desc="capture", disable=None
    )
    for hour, (rows, _) in enumerate(heard):
        if hour >= first:
            path = folder / f"{start + timedelta(hours=hour):%Y%m%dT%H%M%SZ}.csv"
            with atomic_file(path) as stream:
                stream.write(
                    encode.lines(world.start_ms + rows["t_ms"], rows["octets"], rows["short"])
                )
            written.append(path)
    return written
