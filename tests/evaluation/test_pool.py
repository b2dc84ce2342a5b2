"""Cells side by side: one process a core that is the stage's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.errors import InputError
from stages.scores import pool


@pytest.mark.parametrize(
    "cells, cores, jobs, device, expected",
    [
        (6, 2, None, "cpu", 2),
        (1, 8, None, "cpu", 1),
        (6, 2, "2", "cpu", 1),
        (6, 8, "2", "cpu", 4),
        (6, 2, "5", "cpu", 1),
        (6, 8, None, "cuda:0", 1),
    ],
)
def test_stages_that_run_at_once_share_the_cores(monkeypatch, cells, cores, jobs, device, expected):
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.delenv(pool.JOBS, raising=False)
    if jobs:
        monkeypatch.setenv(pool.JOBS, jobs)
    assert pool.processes(cells, device) == expected


@pytest.mark.parametrize("jobs", ["0", "two", "-1"])
def test_what_is_no_number_of_stages_is_refused(monkeypatch, jobs):
    monkeypatch.setenv(pool.JOBS, jobs)
    with pytest.raises(InputError, match=r"TRADEWIND_JOBS"):
        pool.processes(3, "cpu")


MADE = """
def nothing():
    return None

def measured(data, cell):
    import numba
    return len(cell.name)
"""
ASKED = """
import sys
from pathlib import Path
from made import measured, nothing
from stages.arithmetic import probe
from stages.scores import pool
if __name__ == "__main__":
    how = pool.Measuring(nothing, measured)
    pool.processes = lambda cells, device: int(sys.argv[1])
    print([result for _, result in pool.results_by_cell([Path("a"), Path("bb")], None, how)])
    print(probe.line())
"""


def test_a_record_tells_of_the_same_libraries_however_many_processes_measured(tmp_path):
    (tmp_path / "made.py").write_text(MADE)
    (tmp_path / "asked.py").write_text(ASKED)
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(tmp_path)])
    told = [
        subprocess.run(
            [sys.executable, "asked.py", count],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in "12"
    ]
    assert told[0] == told[1] and told[0].startswith("[1, 2]\n") and " numba:" in told[0]
