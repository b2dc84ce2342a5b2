"""Taking captures in, killed anywhere or twice at once: the raw folder is old or new, and the next
run finishes the work."""

import fcntl
import os
import shutil
import signal
from pathlib import Path

import pytest
from captures import DROP, RAW, drop, intake, names, project, toy, tree  # noqa: F401 (a fixture)

from stages.errors import BusyError
from stages.winds.retraining import intake as work

# --- kills, and two at once


def child(fault: str) -> bool:
    """One intake in a child with FAULT set; whether it was killed there. Any other bad end fails
    the test."""
    pid = os.fork()
    if not pid:
        os.environ["FAULT"], code = fault, 1
        try:
            intake()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0
    return killed


def begin() -> None:
    """One capture taken in, then a drop folder with good, bad, known and equal ones."""
    for top in ("data", ".work"):
        shutil.rmtree(top, ignore_errors=True)
    DROP.mkdir(parents=True)
    drop(first_csv=toy(0))
    intake()
    drop(a_csv=toy(2), b_csv=toy(1, b"bad"), c_csv=toy(1), d_csv=toy(2), e_csv=toy(0))


POINTS = ("intake_claimed", "intake_noted", "before_rename", "after_rename", "intake_removed")


@pytest.mark.fault("F1")
@pytest.mark.parametrize(
    "points, most",
    [
        pytest.param(["before_rename"], 1, id="once"),
        pytest.param(POINTS, 100, id="anywhere", marks=pytest.mark.slow_fault),
    ],
)
def test_killed_anywhere_the_raw_folder_is_old_or_new_and_the_next_run_finishes_the_work(
    points, most
):
    """In `make test` at the first passage of one point, else at each of all."""
    begin()
    old = tree(RAW)
    intake()
    wanted, new = tree("data"), tree(RAW)
    assert len(new) == len(old) + 2
    for point in points:
        kills = 0
        for n in range(1, most + 1):
            begin()
            if not child(f"{point}:{n}"):
                break
            kills += 1
            assert tree(RAW) in (old, new), f"{point}:{n}"
            intake()
            assert tree("data") == wanted, f"{point}:{n}"
            assert sorted(os.listdir(RAW.parent)) == ["captures"] and os.listdir(
                work.INCOMING
            ) == [] == os.listdir(DROP)
        assert kills >= 1, point


@pytest.mark.fault("F7")
def test_of_two_at_once_one_works_and_one_is_told():
    Path(".work/locks").mkdir(parents=True)
    drop(one_csv=toy(0))
    with Path(".work/locks/intake-live-captures").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BusyError) as caught:
            intake()
        assert caught.value.exit_code == 75 and os.listdir(DROP) == ["one.csv"]
    assert names(intake()["accepted"]) == ["one.csv"]
