"""A project folder for tests: the project's own code and parameters, with a budget that takes
seconds."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def code(root: Path) -> None:
    """The project's code linked into `root`, but the parameters' part of it copied, so that it
    can be changed."""
    (root / "stages").mkdir(parents=True)
    for place in (ROOT / "stages").iterdir():
        if place.name != "params":
            (root / "stages" / place.name).symlink_to(place)
    shutil.copytree(ROOT / "stages/params", root / "stages/params")


def settle(root: Path, training: str) -> None:
    """Code, parameters and the experiment wind_nowcast in `root`; profile mini trains by this
    budget."""
    code(root)
    (root / "reports/wind_nowcast").mkdir(parents=True)
    for name in ("dvc.yaml", "cells.yaml"):
        (root / "reports/wind_nowcast" / name).symlink_to(ROOT / "reports/wind_nowcast" / name)
    shutil.copy(ROOT / "params.yaml", root / "params.yaml")
    budget = root / "stages/params/budgets/mini/winds.yaml"
    text, count = re.subn(
        r"(?m)^training: .*$", f"training: {training}", budget.read_text(encoding="utf-8")
    )
    assert count == 1
    budget.write_text(text, encoding="utf-8")
