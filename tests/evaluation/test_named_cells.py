"""A cell by its folder, its name, or a shorter one that fits no other."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from stages import api, cli
from stages.errors import InputError
from stages.winds.nowcast import anywhere, named


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Four cells of the winds and one of another family, by their names."""

    def lay(name, prepared):
        experiment, dataset, cell = name.split("/")
        folder = tmp_path / "reports" / experiment / "mini" / "runs" / dataset / cell
        folder.mkdir(parents=True)
        text = json.dumps({"prepared": prepared})
        save_file({"w": np.zeros(1)}, folder / named.WEIGHTS, {"tradewind": text})

    winds = ("msa-a-s0", "msa-b-s0", "kalman-swept-none")
    for name in ("plain/sky/knn", *(f"winds/sky/{cell}" for cell in winds)):
        lay(name, {"lead_s": 1.0})
    lay("fields/poisson/msa-a-s0", {"scaler": {}})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name, cell",
    [
        ("winds/mini/sky/msa-a-s0", "winds/mini/runs/sky/msa-a-s0"),
        ("mini/sky/msa-b-s0", "winds/mini/runs/sky/msa-b-s0"),
        ("msa-a-s0", "winds/mini/runs/sky/msa-a-s0"),
        ("winds/msa-a", "winds/mini/runs/sky/msa-a-s0"),
        ("kn", "plain/mini/runs/sky/knn"),
        ("reports/plain/mini/runs/sky/knn", "plain/mini/runs/sky/knn"),
    ],
)
def test_a_name_is_as_long_as_it_must_be(project, name, cell):
    assert (project / named.folder(name)).samefile(project / "reports" / cell)


@pytest.mark.parametrize(
    "name, told",
    [
        ("msa", "winds/mini/sky/msa-a-s0 or winds/mini/sky/msa-b-s0"),
        ("sky/winds/msa-a-s0", "not a trained cell"),
        ("fields/msa-a-s0", "that trained cell is not of the winds"),
        ("fields/mini/poisson/msa-a-s0", "found: fields/mini/poisson/msa-a-s0"),
        ("knnn", "did you mean 'knn'"),
        ("kalmann", "did you mean 'kalman-swept-none'"),
        ("msb", "did you mean 'msa-a-s0'"),
        ("nope", "found: no cell 'nope' (known: "),
        ("winds/mini/sky", "not a trained cell"),
    ],
)
def test_a_name_that_fits_none_or_several_is_refused(project, name, told):
    with pytest.raises(InputError) as refused:
        named.folder(name)
    assert told in str(refused.value)


def test_python_and_the_shell_take_the_same_names(project, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["tradewind", "nowcast", "--context", "c", "--at", "1,2,3,4", "--model", "x"]
    )
    assert cli.main() == 2 and "not a trained cell" in capsys.readouterr().err
    with pytest.raises(InputError, match="not a trained cell"):
        api.load("x")
    assert api.load("example").folder == api.load().folder == anywhere.example_cell()
