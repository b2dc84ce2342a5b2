"""The notebooks run in an empty folder, in order, on the processor; what they show is better than
what they compare with; they are kept without outputs. README's Python block runs, too, and what it
types to use a nowcast."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import stages
from stages import api, cli
from stages.winds.nowcast import anywhere
from stages.winds.sky import capture

ROOT = Path(__file__).parents[1]
HOME = ROOT / "reports" / "notebooks"
FIT = api.fit
ASKED = "2026-01-15T07:15:00Z"  # the route ends 30 minutes after the 57th minute of the capture
BETTER = {  # what must hold of the names that a notebook leaves
    "winds": lambda n: n["error"] < 0.7 * n["plain"] and 0.7 < n["inside"] <= 1,
    "fields": lambda n: n["noise"] < n["error"] < 0.8 * n["lines"] < n["mean"],
    "sequences": lambda n: (
        n["least"] < n["model"].nats < 1.2 * n["least"] < n["blind"] / 2
        and n["right"] > n["carried"] + 0.05
    ),
}


def read(name):
    return json.loads((HOME / f"{name}.ipynb").read_text(encoding="utf-8"))


def test_every_notebook_is_held_to_what_it_shows():
    assert {file.stem for file in HOME.glob("*.ipynb")} == set(BETTER)


@pytest.mark.parametrize("name", BETTER)
def test_a_notebook_is_kept_as_nobody_ran_it(name):
    told = read(name)
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in told["cells"]}) == len(told["cells"])
    for cell in told["cells"]:
        assert cell["metadata"] == {} and cell["cell_type"] in ("markdown", "code")
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("name", BETTER)
def test_a_notebook_runs_and_beats_what_it_compares_with(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(read(name)["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {number}", "exec"), names)
    assert BETTER[name](names), {key: v for key, v in names.items() if isinstance(v, float)}


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    (block,) = re.findall(r"(?ms)^```python\n(.*?)^```", (ROOT / "README.md").read_text())
    (file,) = capture.capture(anywhere.sky(), tmp_path, 0, 1)
    file.rename(tmp_path / "capture.csv")
    rng = np.random.default_rng(1)
    x, y = rng.random((20, 12, 1)), rng.random((20, 12, 1))
    sets = dict(context_x=x[:, :8], context_y=y[:, :8], target_x=x[:, 8:], target_y=y[:, 8:])
    winds = stages.decode(tmp_path / "capture.csv")
    place = dict(lat_deg=[46.5], lon_deg=[7.2], alt_ft=[34000.0], ts_s=winds["ts_s"][-1] + 1800)
    names = dict(points=pl.DataFrame(place), sets=sets, sequences=rng.integers(0, 3, (30, 4)))
    names |= dict(places=rng.random((50, 4)), queries=rng.random((3, 4)) + [0, 0, 0, 2])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "fit", lambda *a, **k: FIT(*a, **k, steps=2))
    exec(compile(block, "README.md", "exec"), names)
    assert np.isfinite(names["answer"]["u_m_s"].to_numpy()).all()
    assert names["near"].index.shape == (3, 8) and names["field"].error > 0


def test_the_commands_of_use_in_the_readme_run_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    text = (ROOT / "README.md").read_text().partition("## Use")[2]
    block = re.search(r"(?ms)^```sh\n(.*?)^```", text)[1]
    lines = [line.replace("2026-01-17T05:00:00Z", ASKED).split()[1:] for line in block.splitlines()]
    used = [words for words in lines if words[0] in ("try", "nowcast", "capture")]
    used = [words for words in used if "--follow" not in words]  # tests/streaming has a receiver
    assert [words[0] for words in used] == ["try", "nowcast", "nowcast", "capture"]
    (file,) = capture.capture(anywhere.sky(), tmp_path, 0, 1)
    (tmp_path / "here").mkdir()
    file.rename(tmp_path / "here" / "capture.csv")
    monkeypatch.chdir(tmp_path / "here")
    for words in used[:3]:
        with (tmp_path / "here/capture.csv").open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            stream.buffer.seek(0)
            monkeypatch.setattr("sys.argv", ["tradewind", *words])
            assert cli.main() == 0, capsys.readouterr().err
    assert {file.name for file in (tmp_path / "here").iterdir()} == {
        "capture.csv",
        "nowcast.png",
        "level.png",
        "level.nc",
    }
    assert "with this wind" in capsys.readouterr().out
