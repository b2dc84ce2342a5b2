"""Bit rot under an old time stamp, in the raw files, a checkpoint and DVC's cache: the audit names
it, a clean rebuild heals it (F10).

DVC does not see such a flip (time stamp and size are the old ones; a cache object is trusted).
`audit --verify hash` reads every byte. All of it needs a whole laboratory, and so is of `make
test-faults`; in `make test` the small project's bytes are flipped (test_audit_bytes).
"""

import sys

import lab
import pytest

from stages import files

RAW, WEIGHTS = (
    "data/mini/raw/gp_wind/winds.csv",
    f"{lab.MADE}/runs/gp_wind/persistence/weights.safetensors",
)
ROWS = "data/mini/prepared/gp_wind/rows.parquet"


def audit(folder):
    """The audit of one number by the bytes on disk: its exit code and what it says."""
    done = lab.call(
        folder, sys.executable, "-m", "stages.cli", "audit", lab.NUMBER, "--verify", "hash"
    )
    return done.returncode, done.stdout


def cached(folder, path):
    """The cache object with a file's bytes."""
    wanted = files.sha256(folder / path)
    return next(
        file
        for file in (folder / ".dvc/cache/files/md5").glob("??/*")
        if file.is_file() and files.sha256(file) == wanted
    )


@pytest.mark.slow_fault
@pytest.mark.fault("F10")
@pytest.mark.parametrize(
    "path, producer, resting",
    [
        (RAW, "stages.winds.acquire mini gp_wind", ("persistence", "day_average")),
        (WEIGHTS, "stages.winds.train wind_baselines mini gp_wind persistence", ("persistence",)),
    ],
)
def test_a_flipped_byte_in_the_workspace_and_in_the_cache_is_named_and_a_clean_rebuild_heals(
    copy, path, producer, resting
):
    wanted = lab.made(copy)
    assert audit(copy)[0] == 0
    lab.sound(lab.dvc(copy, "status"))  # DVC has read every file of this copy once
    rotten = cached(copy, path)
    for file in {copy / path, rotten}:
        lab.flip(file)
    assert "up to date" in lab.sound(lab.dvc(copy, "status")), "DVC itself does not see it"
    code, said = audit(copy)
    assert code == 1 and path in said and producer in said
    assert all(f"wind_baselines/mini/gp_wind/{name}" in said for name in resting), (
        "every number that rests on it is named"
    )
    # from clean: neither workspace nor cache is believed
    for place in (rotten, copy / path):
        place.unlink()
    lab.sound(lab.dvc(copy, "repro", "--no-run-cache"))
    assert lab.made(copy) == wanted and audit(copy)[0] == 0


@pytest.mark.slow_fault
@pytest.mark.fault("F10")
def test_a_rotten_cache_object_reaches_a_fresh_workspace_and_is_caught_there(copy):
    """What a colleague checks out from a rotten cache is wrong in the workspace too; the audit
    fails before anything is built on it."""
    lab.flip(cached(copy, ROWS))
    (copy / ROWS).unlink()
    lab.sound(lab.dvc(copy, "checkout", "-q"))
    code, said = audit(copy)
    assert code == 1 and ROWS in said and "stages.winds.prepare" in said


@pytest.mark.slow_fault
@pytest.mark.fault("F10")
def test_a_stage_does_not_build_on_a_rotten_gate_input(copy):
    """The winds that the gate judged are hashed before they are prepared: rot in between stops
    the stage by name."""
    winds = "data/mini/decoded/gp_wind/winds.parquet"
    before = lab.made(copy)
    lab.flip(copy / winds)
    done = lab.call(copy, sys.executable, *lab.declared()["prepare"]["cmd"].split()[2:])
    assert done.returncode == 1 and "judged other bytes" in done.stdout and winds in done.stdout
    assert {path for path, digest in lab.made(copy).items() if digest != before[path]} == {winds}
