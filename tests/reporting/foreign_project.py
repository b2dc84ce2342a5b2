"""The small project of audit_project.py run anew elsewhere: other last digits and arithmetic.

Weights come out a millionth larger, and evaluations, tables, records, locks and the cache follow
them. Code, parameters, seeds and data stay what they are.
"""

import json
from pathlib import Path

import why_project

MOVED = """
import os
import numpy as np
from stages import fake
from stages.arithmetic import probe
true, line = fake.save_file, probe.line()
more = np.float32(1 + 1e-6)
fake.save_file = lambda tensors, file: true({k: x * more for k, x in tensors.items()}, file)
probe.line = lambda: LINE
"""
# The same NumPy, another torch.
ELSEWHERE = '"foreign " + line.partition(" ")[2] + " torch:11111111"'
HERE = "line"


def run_anew(project: Path, line: str = ELSEWHERE, committed: bool = False) -> None:
    """Run every stage with other last digits, under a line of arithmetic (Python that gives it)."""
    if not committed:
        (project / ".git/uncommitted").touch()
    why_project.again(project, MOVED.replace("LINE", line))


def without_lines(project: Path) -> None:
    """Records as they were before they named their arithmetic: all versions in full, no line."""
    for pattern in ("data/*/records/*.json", "reports/*/*/records/*.json"):
        for file in project.glob(pattern):
            record = json.loads(file.read_text())
            environment = record["environment"]
            del environment["arithmetic"]
            environment["python"] += ".7"
            environment["libraries"]["torch"] += "+cpu"
            file.write_text(json.dumps(record))
