"""Reading reports/FINDINGS.md and the numbers that it tells of: what its tests share."""

import json
import re
from functools import cache, reduce
from operator import getitem
from pathlib import Path

from stages.audit.history import git

ROOT = Path(__file__).resolve().parents[2]
SHARES = ("coverage_90", "accuracy", "partner", "satisfied", "satisfied_other", "correct")


@cache
def measured(file: str) -> dict:
    """The commit's numbers: another arithmetic's may differ (`tradewind compare` judges those).
    Without git, the working copy's."""
    return json.loads(git(ROOT, "show", f"HEAD:{file}") or (ROOT / file).read_text("utf-8"))


@cache
def findings() -> str:
    """The findings in one line."""
    return re.sub(r"\s+", " ", (ROOT / "reports/FINDINGS.md").read_text(encoding="utf-8"))


def values(address: str) -> list[float]:
    """The number of a cell, or of each seed of an arm; shares in percent."""
    experiment, profile, dataset, cell, *path = address.split("/")
    cells = measured(f"reports/{experiment}/{profile}/metrics.json")["cells"]
    name = re.compile(rf"{dataset}/{re.escape(cell)}(-s\d+)?")
    scale = 100 if path[-1] in SHARES else 1
    return [
        scale * reduce(getitem, path, cells[key])["value"]
        for key in sorted(cells)
        if name.fullmatch(key)
    ]
