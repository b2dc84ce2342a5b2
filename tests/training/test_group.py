"""Several processes under torchrun learn what one process learns from the same slices, and a
killed one takes all with it."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch
import toy_sky
from small_project import settle

from stages import files
from stages.errors import InputError
from stages.fields.models import build
from stages.training import group, store
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Loop, Objective, Settings
from stages.winds import train as command

CELL = "reports/wind_nowcast/mini/runs/simulated/msa-shared-5k-s1"
RECORD = "reports/wind_nowcast/mini/records/simulated.msa-shared-5k-s1.train.json"
COMMAND = [
    sys.executable,
    "-m",
    "stages.winds.train",
    "wind_nowcast",
    "mini",
    "simulated",
    "msa",
    "--arm",
    "shared",
    "--size",
    "5k",
    "--seed",
    "1",
]


def project(root: Path, slices: int) -> Path:
    """A project folder whose steps take so many slices of a toy set."""
    settle(root, f"{{steps: 12, validate_every: 4, patience: 9, slices: {slices}}}")
    prepared = root / "data/mini/prepared/simulated"
    prepared.mkdir(parents=True)
    table = toy_sky.columns(17, 10)
    files.write_json(
        prepared / "prepared.json", toy_sky.meta(table, 17) | {"area": {"lat_deg": [44, 49]}}
    )
    pl.DataFrame(table).write_parquet(prepared / "rows.parquet")
    return root


def train(root: Path, processes: int, **more: str) -> subprocess.CompletedProcess:
    """Fit the cell in the project with so many processes."""
    return subprocess.run(
        COMMAND,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "TRADEWIND_DEVICE": "cpu",
            "TRADEWIND_PROCESSES": str(processes),
            "PYTHONPATH": str(root),
            **more,
        },
    )


def here(root: Path, processes: str) -> int:
    """The exit code of the same command in this process, which fits alone or refuses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("TRADEWIND_DEVICE", "cpu")
        patch.setenv("TRADEWIND_PROCESSES", processes)
        # this process is not to die with its parent
        patch.setattr(files, "guard", lambda name: contextlib.nullcontext())
        return command.main(COMMAND[3:])


def learned(root: Path) -> tuple[torch.Tensor, dict]:
    """All weights of the cell in one vector, and its history."""
    model, _ = store.load(str(root / CELL / "weights.safetensors"))
    return torch.cat([value.flatten() for value in model.state_dict().values()]), files.read_json(
        root / CELL / "history.json"
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Slices a step, processes -> project in which the cell was fitted so."""
    base, found = tmp_path_factory.mktemp("group"), {}
    for slices, processes in ((1, 1), (2, 1), (2, 2)):
        found[slices, processes] = project(base / f"{slices}-{processes}", slices)
        if processes == 1:
            assert here(found[slices, processes], "1") == 0
            continue
        done = train(found[slices, processes], processes)
        assert done.returncode == 0, done.stderr
    return found


def test_two_processes_learn_what_one_learns_from_the_doubled_batch(trained):
    alone, together, single = (learned(trained[key]) for key in ((2, 1), (2, 2), (1, 1)))
    assert torch.allclose(alone[0], together[0], rtol=0, atol=1e-5)
    for one, two in zip(
        alone[1]["train"] + alone[1]["val"], together[1]["train"] + together[1]["val"], strict=True
    ):
        assert one.keys() == two.keys()
        assert all(abs(one[name] - two[name]) <= 1e-5 * max(1.0, abs(one[name])) for name in one)
    assert not torch.allclose(alone[0], single[0], rtol=0, atol=1e-4), (
        "or the doubled batch is none and the comparison says nothing"
    )


def test_the_record_says_how_many_fitted_it(trained):
    assert files.read_json(trained[2, 2] / RECORD)["environment"]["processes"] == 2
    assert "processes" not in files.read_json(trained[2, 1] / RECORD)["environment"]


def test_a_step_descends_the_mean_of_its_slices_losses(tmp_path):
    """The gradient of a step on two slices is the mean of the gradients of its slices, by a
    plain backward of each."""
    torch.manual_seed(0)
    model = build(
        "msa", {"width": 12, "heads": 2, "layers": 1, "encoder": "shared", "head": "mean"}
    )
    data = toy_sky.data(toy_sky.sky())
    settings = Settings(
        steps=1, validate_every=1, patience=1, learning_rate=1e-3, clip=1e9, seed=0, slices=2
    )
    loop = Loop(model, data, settings, Checkpoints(tmp_path))
    slices = next(loop._steps())
    separate = []
    for slice in slices:
        model.zero_grad()
        Objective(model, data, loop.precision)(data.batch(slice)).backward()
        separate.append([p.grad.clone() for p in model.parameters()])
    loop._step(slices)
    for parameter, first, second in zip(model.parameters(), *separate, strict=True):
        torch.testing.assert_close(parameter.grad, (first + second) / 2, rtol=1e-5, atol=1e-7)


def test_the_epochs_run_on_through_steps_of_several_slices(tmp_path):
    """Seven training slices, two a step: what two epochs visit is each slice twice, in the
    orders that single steps have."""
    data = toy_sky.data(toy_sky.sky(13))
    visited = []
    for slices in (1, 2):
        torch.manual_seed(0)
        model = build(
            "msa", {"width": 12, "heads": 2, "layers": 1, "encoder": "shared", "head": "mean"}
        )
        settings = Settings(
            steps=14 // slices,
            validate_every=99,
            patience=1,
            learning_rate=1e-3,
            clip=1.0,
            seed=0,
            slices=slices,
        )
        loop, seen = Loop(model, data, settings, Checkpoints(tmp_path)), []
        for step in loop._steps():
            seen += step
            loop.progress.step += 1
        visited.append(seen)
    assert len(data.slices("train")) == 7
    assert visited[0] == visited[1]
    assert sorted(visited[0]) == sorted(2 * data.slices("train"))


def test_what_cannot_be_shared_is_refused_before_any_work(tmp_path, capfd):
    root = project(tmp_path / "odd", 3)
    done = train(root, 2)
    assert done.returncode == 2
    assert (
        "a multiple of 2" in done.stderr
        and "found: 3" in done.stderr
        and "Traceback" not in done.stderr
    )
    for word in ("0", "two", "-1"):
        assert here(root, word) == 2 and "TRADEWIND_PROCESSES" in capfd.readouterr().err
    assert not (root / "reports/wind_nowcast/mini").exists()
    with pytest.raises(InputError):
        group.refuse_unshared(4, 3)


@pytest.mark.slow_fault
@pytest.mark.fault("F4")
def test_a_killed_process_takes_the_others_along_and_the_run_resumes_to_the_same_bits(
    trained, tmp_path
):
    """Every process of the group dies at its eighth step; the next run goes on from the
    checkpoint of the fourth."""
    root = project(tmp_path / "killed", 2)
    done = train(root, 2, FAULT="step:8")
    assert done.returncode not in (0, 2) and not (root / CELL).exists()
    assert "exitcode  : -9" in done.stderr or str(-signal.SIGKILL) in done.stderr
    assert list((root / ".work/training").glob("*/latest"))
    assert train(root, 2).returncode == 0
    assert torch.equal(learned(root)[0], learned(trained[2, 2])[0])
    assert (root / CELL / "history.json").read_bytes() == (
        trained[2, 2] / CELL / "history.json"
    ).read_bytes()
