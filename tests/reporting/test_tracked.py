"""What training and searches leave for other tools: read again by an independent reader, or by
Optuna itself."""

import csv
import json
import math
import struct
from pathlib import Path

import optuna
import pytest

from stages.errors import InputError
from stages.exports import events, tracked

ROOT = Path(__file__).parents[2]
HISTORY = {
    "train": [{"step": 100, "loss": 2.5}, {"step": 300, "loss": 1.25}],
    "val": [{"step": 300, "loss": 1.5}, {"step": 600, "loss": math.inf}, {"step": 900}],
}
CELL = ("winds", "mini", "sky", "msa-s0")
TRIALS = """draw,width,rate,gate,error,state
0,8,0.001,a,3.5,finished
1,16,0.01,b,2.5,finished
2,12,0.1,a,,pruned
3,9,0.02,b,,not finite
"""
IMPORTANCE = "argument,scale,importance,by\nwidth,linear,.5,x\nrate,log,.3,x\ngate,words,.2,x\n"


def records(data: bytes) -> list[bytes]:
    """The records of a TFRecord file, by the format's own words."""
    found = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(data[12 : 12 + length])
        for part, said in ((data[:8], data[8:12]), (found[-1], data[12 + length : 16 + length])):
            turned = (struct.unpack("<I", said)[0] - 0xA282EAD8) & 0xFFFFFFFF
            assert (turned << 15 | turned >> 17) & 0xFFFFFFFF == events.checksum(part)
        data = data[16 + length :]
    return found


def fields(data: bytes) -> dict[int, object]:
    """The fields of a message in the wire format of protocol buffers."""
    found, place = {}, 0

    def whole() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = data[place]
            place += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    while place < len(data):
        key = whole()
        if key & 7 == 0:
            found[key >> 3] = whole()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or whole()
            found[key >> 3] = data[place : place + size]
            place += size
    return found


def test_the_checksum_is_castagnolis():
    assert events.checksum(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert events.checksum(b"\x00" * 32) == 0x8A9136AA  # RFC 3720, B.4


def test_events_hold_every_scalar_with_its_step_and_tag():
    data = events.scalars([(1, "loss/train", 2.5), (40_000, "loss/val", 0.125)])
    head, *said = [fields(one) for one in records(data)]
    assert head[3] == b"brain.Event:2"
    values = [fields(fields(one[5])[1]) for one in said]
    told = [
        (one[2], value[1].decode(), struct.unpack("<f", value[2])[0])
        for one, value in zip(said, values, strict=True)
    ]
    assert told == [(1, "loss/train", 2.5), (40_000, "loss/val", 0.125)]


@pytest.fixture
def project(tmp_path):
    home = tmp_path / "reports/winds/mini"
    run = home / "runs/sky/msa-s0"
    run.mkdir(parents=True)
    finite = HISTORY | {"val": HISTORY["val"][:1]}
    (run / "history.json").write_text(json.dumps(finite))
    sweep = home / "sweeps/sky/gka"
    sweep.mkdir(parents=True)
    (sweep / "trials.csv").write_text(TRIALS)
    (sweep / "importance.csv").write_text(IMPORTANCE)
    return tmp_path


def test_a_loss_that_is_not_finite_is_left_out():
    told = list(tracked.rows(CELL, HISTORY))
    assert told == [
        (*CELL, "train", 100, 2.5),
        (*CELL, "train", 300, 1.25),
        (*CELL, "val", 300, 1.5),
    ]


def test_everything_is_written_where_it_is_said(project, tmp_path):
    out = tmp_path / "out"
    assert tracked.write(out, project) == [
        out / "history.csv",
        out / "tensorboard",
        out / "sweeps.db",
    ]
    rows = list(csv.reader((out / "history.csv").open()))
    assert rows[0] == list(tracked.COLUMNS) and rows[3] == [*CELL, "val", "300", "1.5"]
    (written,) = (out / "tensorboard").rglob("events.out.tfevents.*")
    assert written.parent == out.joinpath("tensorboard", *CELL)
    assert len(records(written.read_bytes())) == 4
    before = written.read_bytes()
    tracked.write(out, project)
    assert written.read_bytes() == before


def test_a_sweep_opens_as_a_study_with_its_best_draw(project, tmp_path):
    tracked.write(tmp_path, project)
    study = optuna.load_study(
        study_name="winds/mini/sky/gka", storage=f"sqlite:///{tmp_path}/sweeps.db"
    )
    assert study.best_value == 2.5
    assert study.best_params == {"width": 16, "rate": 0.01, "gate": "b"}
    assert [one.state.name for one in study.trials] == ["COMPLETE", "COMPLETE", "PRUNED", "FAIL"]
    axes = study.best_trial.distributions
    assert axes["rate"].log and not axes["width"].log and axes["gate"].choices == ("a", "b")
    assert study.trials[3].user_attrs["state"] == "not finite"


def test_a_sweep_without_importance_is_exported_with_what_it_has(project, tmp_path):
    (project / "reports/winds/mini/sweeps/sky/gka/importance.csv").unlink()
    tracked.write(tmp_path, project)
    study = optuna.load_study(
        study_name="winds/mini/sky/gka", storage=f"sqlite:///{tmp_path}/sweeps.db"
    )
    assert study.best_params == {"width": 16, "rate": 0.01, "gate": "b"}


def test_an_export_that_fails_leaves_nothing(project, tmp_path):
    (project / "reports/winds/mini/sweeps/sky/gka/trials.csv").write_text("draw,error\n0,1\n")
    with pytest.raises(KeyError):
        tracked.write(tmp_path / "outer/out", project)
    assert not (tmp_path / "outer").exists()


def test_an_export_takes_the_place_of_an_earlier_one(project, tmp_path):
    old = tmp_path / "out/tensorboard/gone/events"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    tracked.write(tmp_path / "out", project)
    assert not old.parent.exists() and any((tmp_path / "out/tensorboard").rglob("events*"))


@pytest.mark.slow_fault
def test_every_sweep_that_git_keeps_is_exported(tmp_path):
    written = tracked.write(tmp_path, ROOT)
    assert tmp_path / "sweeps.db" in written
    kept = list((ROOT / "reports").glob("[!.]*/*/sweeps/*/*/trials.csv"))
    names = optuna.get_all_study_names(storage=f"sqlite:///{tmp_path}/sweeps.db")
    assert len(names) == len(kept) > 0


def test_a_project_where_nothing_was_trained_says_so(tmp_path):
    with pytest.raises(InputError, match="nothing was trained here"):
        tracked.write(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
