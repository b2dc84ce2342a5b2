"""Frames of a small simulated sky, as a receiver would write them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stages import params
from stages.winds.sky import capture

SETTINGS = params.load("params.yaml")


def sky(folder: Path, hours: int, aircraft: float) -> list[Path]:
    """Captures of `hours` hours, a file an hour."""
    plan = SETTINGS.datasets["simulated"].simulate
    small = plan.model_copy(update={"hours": float(hours), "aircraft": aircraft})
    return capture.capture(small, folder, 0, hours)


@cache
def flown(aircraft: float = 3.0) -> tuple[tuple[float, str, int], ...]:
    """(Unix seconds, frame, number) of the sky's first hour."""
    with TemporaryDirectory() as folder:
        (file,) = sky(Path(folder), 1, aircraft)
        text = file.read_text().splitlines()
    pairs = (line.split(",") for line in text)
    return tuple((float(ts_s), digits, i) for i, (ts_s, digits) in enumerate(pairs))
