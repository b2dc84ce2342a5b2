"""A run killed anywhere and started again ends with the same bits; a checkpoint that is not ours is
refused.

Every kill is a SIGKILL at a named point, in a forked child; n goes up until a run ends without
meeting it (SQLite's method).
"""

import hashlib
import itertools
import json
import os
import pickle
import shutil
import signal
from pathlib import Path

import pytest
import torch
import toy_sky
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from stages import files, seeds
from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.errors import IntegrityError
from stages.files import read_json, write_json
from stages.training.checkpoint import Checkpoints, key
from stages.training.loop import Loop, Settings
from stages.winds.fitting import fit

CPU = torch.device("cpu")


class Noisy(FieldModel):
    """As small as a model can be whose steps draw from torch's generator, so that a resumed run
    needs its state."""

    context, learns = "slice", "gradient"

    def __init__(self):
        super().__init__()
        self.place, self.trust = nn.Linear(3, 2), nn.Parameter(torch.ones(2))

    def forward(self, batch: Batch) -> Prediction:
        around = functional.dropout(batch.context_y, 0.2, self.training).mean(1, keepdim=True)
        return Prediction(self.place(batch.target_x) + self.trust * around)


def settings(steps):
    return Settings(
        steps=steps,
        validate_every=max(7, steps // 4 - 2),
        patience=100,
        learning_rate=0.02,
        clip=4.0,
        seed=0,
    )


def model():
    seeds.everything(0)
    return Noisy()


def run(folder: Path, steps: int) -> None:
    """One training run that leaves `done`: its weights and its history, hashed."""
    torch.set_num_threads(1)
    trained = model()
    history = fit(
        trained, toy_sky.contexts(toy_sky.sky(12, 6)), settings(steps), Checkpoints(folder), CPU
    )
    bits = b"".join(value.numpy().tobytes() for value in trained.state_dict().values())
    (folder / "done").write_text(
        hashlib.sha256(bits + json.dumps(history, sort_keys=True).encode()).hexdigest()
    )


def child(folder: Path, steps: int, fault: str = "") -> bool:
    """Run in a child with FAULT set; whether it was killed there. Any other bad end fails the
    test."""
    folder.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if not pid:
        os.environ["FAULT"] = fault
        code = 1
        try:
            run(folder, steps)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0
    assert killed != (folder / "done").exists()
    return killed


def undisturbed(tmp_path, steps):
    """What a run without a kill leaves; in this process, so that the children find everything
    imported."""
    (tmp_path / "undisturbed").mkdir()
    run(tmp_path / "undisturbed", steps)
    return (tmp_path / "undisturbed" / "done").read_text()


ANYWHERE = (
    ("step", 60, 60),
    ("before_rename", 16, 9),
    ("after_rename", 16, 9),
    ("before_latest", 16, 3),
    ("after_latest", 16, 3),
)


@pytest.mark.parametrize(
    "point,steps,passages,kills",
    [
        pytest.param("after_rename", 16, 9, [5], id="once"),
        *(
            pytest.param(*each, range(1, each[2] + 1), id=each[0], marks=pytest.mark.slow_fault)
            for each in ANYWHERE
        ),
    ],
)
@pytest.mark.fault("F4")
def test_killed_anywhere_the_final_bits_are_the_same(tmp_path, point, steps, passages, kills):
    """In `make test` at one passage of one point, else at each of all."""
    expected = undisturbed(tmp_path, steps)
    for n in kills:
        folder = tmp_path / f"{point}-{n}"
        assert child(folder, steps, f"{point}:{n}")
        assert not child(folder, steps)
        assert (folder / "done").read_text() == expected, f"{point}:{n}"
        shutil.rmtree(folder)
    # there are no more passages
    assert not child(tmp_path / "beyond", steps, f"{point}:{passages + 1}")


@pytest.mark.fault("F4")
def test_killed_again_and_again_the_final_bits_are_the_same(tmp_path):
    expected, folder = undisturbed(tmp_path, 40), tmp_path / "again"
    kills = sum(itertools.takewhile(bool, (child(folder, 40, "step:9") for _ in range(40))))
    assert kills >= 4 and (folder / "done").read_text() == expected


def test_a_run_stopped_by_patience_and_resumed_after_its_end_does_not_go_on(tmp_path):
    first = Loop(model(), data(), Settings(200, 5, 2, 0.5, 4.0, 0), Checkpoints(tmp_path)).run()
    assert first["status"] == "stopped early"
    assert (
        Loop(model(), data(), Settings(200, 5, 2, 0.5, 4.0, 0), Checkpoints(tmp_path)).run()
        == first
    )


def data():
    return toy_sky.data(toy_sky.sky(12, 6))


def begun(folder) -> Loop:
    Loop(model(), data(), settings(7), Checkpoints(folder)).run()
    return Loop(model(), data(), settings(14), Checkpoints(folder))


def resealed(folder, change):
    """Alter the tensors and make the recorded hash fit, as one would who means harm."""
    place = folder / "step-000000007"
    tensors = load_file(place / "state.safetensors")
    save_file(change(tensors), place / "state.safetensors")
    write_json(
        place / "state.json",
        read_json(place / "state.json") | {"sha256": files.sha256(place / "state.safetensors")},
    )


@pytest.mark.fault("F13")
def test_a_pickle_in_place_of_the_state_is_never_run(tmp_path):
    loop, canary = begun(tmp_path), tmp_path / "canary"
    state = tmp_path / "step-000000007" / "state.safetensors"
    state.write_bytes(pickle.dumps(Touch(str(canary))))
    write_json(
        state.with_name("state.json"),
        read_json(state.with_name("state.json")) | {"sha256": files.sha256(state)},
    )
    with pytest.raises(IntegrityError, match="not what was saved"):
        loop.run()
    assert not canary.exists()


class Touch:
    """Unpickling it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


@pytest.mark.parametrize(
    "change,word",
    [
        (lambda t: t | {"model.place.bias": torch.zeros(3)}, "shapes"),
        (lambda t: {k: v for k, v in t.items() if k != "random.cpu"}, "names"),
        (
            lambda t: t | {"adam.0.exp_avg": torch.full_like(t["adam.0.exp_avg"], torch.nan)},
            "not finite",
        ),
    ],
    ids=["shape", "missing", "nan"],
)
@pytest.mark.fault("F13")
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path, change, word):
    loop = begun(tmp_path)
    resealed(tmp_path, change)
    with pytest.raises(IntegrityError, match=word):
        loop.run()


@pytest.mark.fault("F10")
def test_a_flipped_byte_is_seen(tmp_path):
    loop = begun(tmp_path)
    state = tmp_path / "step-000000007" / "state.safetensors"
    data = bytearray(state.read_bytes())
    data[-1] ^= 1
    state.write_bytes(data)
    with pytest.raises(IntegrityError, match="SHA-256"):
        loop.run()


def test_the_key_follows_everything_it_is_made_of():
    assert key({"a": 1}, 0) == key({"a": 1}, 0) != key({"a": 2}, 0) != key({"a": 1}, 1)
