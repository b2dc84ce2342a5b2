"""Every dvc.lock that git keeps is read by all who ask what made a file: the audit, the history
that it compares, and the doctor."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from stages.audit.chain import Metric
from stages.audit.hashes import Locks
from stages.audit.snapshot import Snapshot
from stages.doctor import project
from stages.doctor.finding import OK, Place

ROOT = Path(__file__).parents[2]
LOCKS = subprocess.run(
    ["git", "ls-files", "--", "dvc.lock", "*/dvc.lock"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
EXPERIMENTS = sorted(file.parent.name for file in ROOT.glob("reports/*/dvc.yaml"))


def test_there_are_locks_of_the_spine_of_data_and_of_experiments():
    assert {path.split("/")[0] for path in LOCKS} == {"dvc.lock", "data", "reports"}


@pytest.fixture(scope="module")
def locks():
    """All locks of the project, read once."""
    return Locks(ROOT, *EXPERIMENTS)


def test_the_audit_knows_the_stage_that_made_each_recorded_file(locks):
    assert set(LOCKS) <= set(locks.declared) and not locks.errors
    for home in (
        "data/mini/raw/poisson",
        "data/mini/prepared/climbs",
        "data/sample/raw/darcy_16",
        "data/mini/raw/simulated",
    ):
        assert locks.producer(home) is not None, home


def test_no_two_stages_are_told_to_have_made_one_file(locks):
    """DVC keeps the entry of a stage that is gone, with the bytes of then; the audit would hold
    today's file to them."""
    made = Counter(out for entry in locks.entries for out in entry.outs)
    assert made and {path for path, stages in made.items() if stages > 1} == set()


def test_a_commit_of_the_past_knows_the_bytes_of_every_locked_file(locks, tmp_path):
    metric = Metric("sparse_fields", "mini", "poisson", "msa-shared-20k-s0", ("mse",))
    known = Snapshot(ROOT, "HEAD", metric, tmp_path)._locked
    wanted = {out for entry in locks.entries for out in entry.outs}
    assert wanted - set(known) == set()


def test_the_doctor_looks_at_each():
    found = project.lockfiles(Place(ROOT, dict(os.environ)))
    assert found.state == OK and found.found.startswith(f"{len(LOCKS)} lock files")
