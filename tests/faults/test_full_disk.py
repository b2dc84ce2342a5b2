"""A disk that fills while an output, a checkpoint, the report or DVC's cache is written (F6).

The limit is RLIMIT_FSIZE of the process: a write past it fails as on a full disk, with an error of
the system. What must hold: an error of ours (no traceback), exit code 1, what was there before as
it was, no temporary file, and a run with room ends as ever.
"""

import contextlib
import resource
import subprocess
import sys
from pathlib import Path

import lab
import polars as pl
import pytest

from stages import files
from stages.winds import train

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import toy_sky
from small_project import settle

CELL = (
    "wind_nowcast",
    "mini",
    "simulated",
    "msa",
    "--arm",
    "shared",
    "--size",
    "5k",
    "--seed",
    "0",
)
RUN = "reports/wind_nowcast/mini/runs/simulated/msa-shared-5k-s0"
# The disk is full from the first checkpoint on.
FILLING = """
import resource, sys
from stages.winds import train as command
from stages.training.checkpoint import Checkpoints
save = Checkpoints.save
def full(self, *arguments):
    save(self, *arguments)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
Checkpoints.save = full
sys.exit(command.main(sys.argv[1:]))
"""


def limited(folder: Path, limit: int, *command: str) -> subprocess.CompletedProcess:
    """A command none of whose files may grow past `limit` bytes."""
    return subprocess.run(
        command,
        cwd=folder,
        env=lab.environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def fit(folder: Path) -> None:
    """The cell, fitted by this process on a disk with room."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TRADEWIND_DEVICE", "cpu")
        # this process is not to die with its parent
        patch.setattr(files, "guard", lambda name: contextlib.nullcontext())
        assert train.main(list(CELL)) == 0


def temporary(folder: Path) -> list[Path]:
    """What a writer that failed would have left."""
    return [file for top in ("data", "reports", ".work") for file in (folder / top).rglob(".*.tmp")]


def told(done: subprocess.CompletedProcess) -> None:
    """The command failed with an error of ours that names the system's."""
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout and "error: " in done.stdout, done.stdout


@pytest.mark.slow_fault
@pytest.mark.fault("F6")
@pytest.mark.parametrize("limit", [300, 2000])
@pytest.mark.parametrize(
    "stage",
    [
        "acquire",
        "decode",
        "validate",
        "prepare",
        "train-persistence",
        "evaluate",
        "tabulate",
        "report",
    ],
)
def test_a_stage_on_a_full_disk_ends_with_an_error_of_ours_and_leaves_what_was_there(
    copy, stage, limit
):
    before, command = lab.made(copy), [sys.executable, *lab.declared()[stage]["cmd"].split()[2:]]
    done = limited(copy, limit, *command)
    if done.returncode == 0 and limit > 300:
        return  # all that it writes is smaller
    told(done)
    assert "File too large" in done.stdout or "could not be" in done.stdout, done.stdout
    assert lab.made(copy) == before and not temporary(copy)
    lab.sound(lab.call(copy, *command))
    assert lab.made(copy) == before


@pytest.mark.fault("F6")
def test_a_checkpoint_on_a_full_disk_leaves_the_one_before_and_the_run_goes_on_when_there_is_room(
    tmp_path,
):
    prepared = tmp_path / "data/mini/prepared/simulated"
    settle(tmp_path, "{steps: 6, validate_every: 3, patience: 9}")
    prepared.mkdir(parents=True)
    table = toy_sky.columns(14, 10)
    files.write_json(
        prepared / "prepared.json", toy_sky.meta(table, 14) | {"area": {"lat_deg": [44, 49]}}
    )
    pl.DataFrame(table).write_parquet(prepared / "rows.parquet")
    fit(tmp_path)
    undisturbed = (tmp_path / RUN / "weights.safetensors").read_bytes()
    subprocess.run(["rm", "-rf", RUN, ".work"], cwd=tmp_path, check=True)
    done = lab.call(tmp_path, sys.executable, "-c", FILLING, *CELL, TRADEWIND_DEVICE="cpu")
    assert not (tmp_path / RUN).exists() and not temporary(tmp_path)
    kept = list((tmp_path / ".work/training").iterdir())
    assert len(kept) == 1 and (kept[0] / "latest").read_text() == "step-000000003"
    assert (kept[0] / "step-000000003/state.safetensors").is_file()
    fit(tmp_path)
    assert (tmp_path / RUN / "weights.safetensors").read_bytes() == undisturbed
    told(done)


@pytest.mark.slow_fault
@pytest.mark.fault("F6")
def test_a_full_disk_under_dvcs_cache_fails_and_the_next_repro_heals(copy):
    wanted = lab.made(copy)
    subprocess.run(["rm", "-rf", ".dvc/cache", "data/mini/decoded"], cwd=copy, check=True)
    lock = (copy / "dvc.lock").read_bytes()
    done = limited(copy, 5000, sys.executable, "-m", "dvc", "repro", "-f", "-s", "decode")
    assert done.returncode not in (0, -25), done.stdout
    assert (copy / "dvc.lock").read_bytes() == lock
    lab.sound(lab.dvc(copy, "repro"))
    assert lab.made(copy) == wanted
