"""Cells side by side: one process a core that is the stage's own."""

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
