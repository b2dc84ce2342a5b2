"""One way to fetch from the scripted server of these tests."""

import random
from pathlib import Path

from stages.acquisition.download import Limits, fetch

BODY = random.Random(5).randbytes(40_000)
NEW = random.Random(6).randbytes(40_000)
QUICK = Limits(
    total_s=2.0,
    silence_s=0.3,
    attempts=4,
    backoff_s=0.02,
    backoff_max_s=0.05,
    speed_window_s=0.2,
    speed_min_bytes_s=1000,
)
ROOT = Path(__file__).parents[2]


def get(source, place, **changes):
    fetch(source, place, limits=changes.pop("limits", QUICK), loopback=True, **changes)


def names(place):
    return sorted(path.name for path in place.parent.iterdir())
