"""A cell that follows frames becomes one small moving picture, the same bytes each time; its stage
refuses what it cannot draw."""

from pathlib import Path

import numpy as np
import pytest
from followers import MODELS, PREPARED
from PIL import Image
from sky_frames import SETTINGS, sky

from stages.errors import DataError, InputError
from stages.fields.models import build
from stages.runner import Asked
from stages.training import store
from stages.winds.nowcast import picture
from stages.winds.streaming import filmed


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an hour of frames, and a cell that remembers the newest winds."""
    folder = tmp_path_factory.mktemp("filmed")
    (frames,) = sky(folder / "raw", 1, 6.0)
    cell = folder / "runs" / "simulated" / "persistence"
    cell.mkdir(parents=True)
    told = {"prepared": PREPARED, "module": "stages.fields.models.persistence", "arguments": {}}
    told |= {"model": "persistence", "arm": "plain", "size": "none", "seed": 0}
    told |= {"x_dim": 3, "i_dim": 2, "o_dim": 2}
    model = build("persistence", MODELS["persistence"])
    (cell / "weights.safetensors").write_bytes(store.dump(model, told))
    return folder, frames, cell


def test_every_answer_of_the_hour_is_a_frame_and_the_bytes_are_the_same(place, monkeypatch):
    folder, frames, cell = place
    shown = []
    draw = picture.draw

    def noted(rows, path, **given):
        shown.append((rows[0].point.ts_s, given["known"]["ts_s"].max(), len(given["known"])))
        draw(rows, path, **given)

    monkeypatch.setattr(picture, "draw", noted)
    finals = [folder / name / "simulated.gif" for name in ("one", "two")]
    for final in finals:
        filmed.make(frames, cell, SETTINGS, final)
    assert finals[0].read_bytes() == finals[1].read_bytes()
    assert len(finals[0].read_bytes()) <= filmed.MOST_BYTES
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    asked = np.array(shown[: len(shown) // 2])
    assert np.allclose(np.diff(asked[:, 0]), filmed.EVERY_S, atol=10)
    # one lead after what was known, and nothing newer was
    assert (asked[:, 1] < asked[:, 0] - PREPARED["lead_s"]).all() and (asked[:, 2] > 0).all()
    with Image.open(finals[0]) as moving:
        assert moving.n_frames == len(asked) >= 7 and moving.width == filmed.WIDTH


def test_a_stream_without_an_answer_and_a_picture_too_large_are_refused(place, monkeypatch):
    folder, frames, cell = place
    empty = folder / "empty.csv"
    empty.write_text("")
    with pytest.raises(DataError, match="no answer to draw"):
        filmed.make(empty, cell, SETTINGS, folder / "none" / "a.gif")
    assert not (folder / "none").exists()
    monkeypatch.setattr(filmed, "MOST_BYTES", 10)
    monkeypatch.setattr(filmed, "EVERY_S", 1800.0)
    with pytest.raises(DataError, match="larger than a page should load"):
        filmed.make(frames, cell, SETTINGS, folder / "large" / "a.gif")
    assert not (folder / "large").exists()


def test_the_stage_names_a_cell_that_is_not_declared():
    names = {"experiment": "wind_processes", "profile": "mini", "dataset": "simulated"}
    told = filmed.plan(Asked(names | {"cell": "nearest_tnp-near_32-w32-s0"}, SETTINGS))
    assert told.record == Path("reports/wind_processes/mini/records/simulated.film.json")
    assert "stages.fields.models.nearest_tnp" in told.code
    with pytest.raises(InputError, match="unknown cell"):
        filmed.plan(Asked(names | {"cell": "nearest_tnp-near_33-w32-s0"}, SETTINGS))
