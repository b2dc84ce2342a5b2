"""SIGKILL of dvc alone, and two runs at once: one writer at a time, no late overwrite, no third
state (F2, F7).

A killed dvc leaves its stage running and the next one would start a second writer beside it; the
stage's guard (stages/files.py) dies with dvc and holds a lock. Real dvc, a stage that takes some
seconds and then writes who it was.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lab
import made_once
import pytest
from living import alive

STAGE = f"""import os, pathlib, sys, time
sys.path.insert(0, {str(lab.HOME)!r})
from stages import errors, files
def work():
    held = files.guard("slow")
    seconds = float(pathlib.Path("seconds").read_text())
    with pathlib.Path("begun").open("a") as stream:
        stream.write(f"{{os.getpid()}}\\n")
    time.sleep(seconds)
    with files.atomic_file("out", "w") as stream:
        stream.write(str(os.getpid()))
sys.exit(errors.reported(work))
"""
SECONDS = 3.0


@pytest.fixture
def project(tmp_path):
    """One stage that takes SECONDS."""
    (tmp_path / "slow.py").write_text(STAGE)
    (tmp_path / "seconds").write_text(str(SECONDS))
    (tmp_path / "dvc.yaml").write_text(
        json.dumps(
            {
                "stages": {
                    "slow": {"cmd": "exec python slow.py", "deps": ["slow.py"], "outs": ["out"]}
                }
            }
        )
    )
    made_once.dvc_init(tmp_path, scm=False)
    return tmp_path


def begin(folder: Path, *command: str) -> subprocess.Popen:
    """A command in a session of its own; what it says goes to a file beside."""
    with (folder / f"said-{time.monotonic_ns()}").open("w") as said:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=lab.environment(),
            stdout=said,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    child.said = Path(said.name)
    return child


def begun(folder: Path) -> list[int]:
    """The stages that began, by process."""
    return (
        [int(line) for line in (folder / "begun").read_text().split()]
        if (folder / "begun").exists()
        else []
    )


DVC = (sys.executable, "-m", "dvc", "--wait-for-lock", "repro")


@pytest.mark.fault("F2")
def test_a_stage_stops_with_its_killed_dvc_and_writes_nothing_late(project):
    first = begin(project, *DVC)
    lab.until(lambda: begun(project), 60, "the stage begins")
    orphan, started = begun(project)[0], time.monotonic()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    lab.until(lambda: not alive(orphan), 2, "the stage dies with dvc")
    assert not (project / "out").exists()
    (project / "seconds").write_text("0.1")
    second = begin(project, *DVC)
    assert second.wait(60) == 0, second.said.read_text()
    ours = str(begun(project)[1])
    assert (project / "out").read_text() == ours
    time.sleep(max(0.0, started + SECONDS + 0.5 - time.monotonic()))  # the orphan's nominal end
    assert (project / "out").read_text() == ours and len(begun(project)) == 2
    assert lab.sound(lab.dvc(project, "status")).strip() == "Data and pipelines are up to date."


@pytest.mark.fault("F2")
def test_a_run_beside_a_stage_that_outlived_its_dvc_ends_by_name(project):
    """Where the parent's death goes unnoticed (here: another process stays its parent), the lock
    still keeps the second writer out."""
    alone = begin(project, sys.executable, "slow.py")
    lab.until(lambda: begun(project), 60, "the stage begins")
    second = begin(project, *DVC)
    assert (
        second.wait(60) != 0
        and "another run is still writing this output" in second.said.read_text()
    )
    assert (
        alone.wait(60) == 0
        and (project / "out").read_text() == str(alone.pid)
        and len(begun(project)) == 1
    )
    direct = begin(project, sys.executable, "slow.py"), begin(project, sys.executable, "slow.py")
    assert sorted(child.wait(60) for child in direct) == [0, 75]


@pytest.mark.fault("F7")
def test_of_two_repros_at_once_one_works_and_the_other_waits_or_ends_by_name(project):
    (project / "seconds").write_text("1")
    both = [begin(project, *DVC), begin(project, *DVC)]
    codes = [child.wait(120) for child in both]
    assert 0 in codes and len(begun(project)) == 1, "the stage ran once"
    for child, code in zip(both, codes, strict=True):
        said = child.said.read_text()
        assert (
            code == 0 or "is busy" in said or "another run is still writing this output" in said
        ), said
    assert (project / "out").read_text() == str(begun(project)[0])
    assert lab.sound(lab.dvc(project, "status")).strip() == "Data and pipelines are up to date."
