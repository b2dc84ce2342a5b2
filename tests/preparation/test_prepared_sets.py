"""Sets of points: what is refused, what is standardised and by whom, and that the files say what
was given."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

from stages import files, params, runner
from stages.errors import DataError
from stages.fields import prepare as stage
from stages.fields import problem as sets
from stages.fields.problem import Counts, Sets

ROOT = Path(__file__).parents[2]
SPLIT = np.repeat([0, 1, 2], [12, 4, 4])


def toy(**changes) -> Sets:
    """Twenty sets of 5 context points and 3 targets; two values in, one out; each set a file of
    its own."""
    draw, count = np.random.default_rng(0), len(SPLIT)
    made = Sets(
        draw.random((count, 5, 2)),
        draw.normal((3.0, -200.0), (1.0, 40.0), (count, 5, 2)),
        draw.random((count, 3, 2)),
        draw.normal(7, 2, (count, 3, 1)),
        split=SPLIT,
        source=np.arange(count),
        record=np.zeros(count, int),
        files=tuple(f"{k}.npy" for k in range(count)),
        units={"x": ("1", "1"), "i": ("K", "Pa"), "o": ("m/s",)},
        names={"x": ("x", "y"), "i": ("t", "p"), "o": ("u",)},
        loss="rmse",
        standardise=True,
    )
    return replace(made, **changes)


def poisoned(name: str) -> Sets:
    array = getattr(toy(), name).copy()
    array[3, 1, 0] = np.nan
    return toy(**{name: array})


def test_good_sets_are_let_through():
    assert sets.check(toy(), "toy") is None


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: poisoned("context_y"), "context_y holds numbers that are not finite"),
        (lambda: poisoned("target_x"), r"\[3, 1, 0\]"),
        (lambda: toy(context_y=toy().context_y[:, :4]), "5 points"),
        (lambda: toy(target_y=toy().target_y[:-1]), "target_y is no table of sets"),
        (lambda: toy(target_x=toy().target_x[..., :1]), "different spaces"),
        (lambda: toy(context_x=np.zeros((20, 0, 2)), context_y=np.zeros((20, 0, 2))), "no table"),
        (lambda: toy(split=np.where(SPLIT == 2, 1, SPLIT)), "a split is empty"),
        (lambda: toy(split=np.where(SPLIT == 2, 3, SPLIT)), "a split is empty"),
        (
            lambda: toy(source=np.where(np.arange(20) == 19, 0, np.arange(20))),
            "group 0 in train and test",
        ),
        (lambda: toy(group=np.arange(20) // 8), "group 1 in train and val"),
        (lambda: toy(loss="mae"), "unknown loss"),
        (lambda: toy(names=toy().names | {"i": ("t",)}), "names or units of i"),
        (lambda: toy(units=toy().units | {"o": ("K", "K")}), "names or units of o"),
    ],
)
def test_what_cannot_be_learned_from_or_leaks_is_refused_by_name(made, says):
    with pytest.raises(DataError, match=says) as caught:
        sets.check(made(), "data/mini/raw/toy")
    assert "data/mini/raw/toy" in str(caught.value)


def test_values_are_standardised_by_the_training_sets_alone_and_positions_not_at_all(tmp_path):
    made = toy()
    sets.write(made, tmp_path, {})
    found, told = load_file(tmp_path / "sets.safetensors"), files.read_json(tmp_path / "sets.json")
    train = SPLIT == 0
    np.testing.assert_allclose(found["context_y"][train].reshape(-1, 2).mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(found["target_y"][train].std(), 1, atol=1e-5)
    other = toy(target_y=np.where((SPLIT == 2)[:, None, None], 1e6, made.target_y))
    assert sets.scaler(other) == sets.scaler(made) == told["scaler"]
    np.testing.assert_allclose(
        found["target_y"] * told["scaler"]["o_std"] + told["scaler"]["o_mean"],
        made.target_y,
        rtol=1e-5,
    )
    np.testing.assert_array_equal(found["context_x"], made.context_x.astype(np.float32))
    assert told["counts"] == {"train": 12, "val": 4, "test": 4} and (
        told["context"],
        told["targets"],
    ) == (5, 3)


def test_a_value_that_does_not_vary_keeps_its_unit():
    made = toy(context_y=np.full((20, 5, 2), 4.0))
    assert sets.scaler(made)["i_std"] == [1.0, 1.0] and sets.scaler(made)["i_mean"] == [0.0, 0.0]
    assert set(sets.scaler(toy(standardise=False))["o_std"]) == {1.0}


def test_equal_sets_give_equal_bytes(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        sets.write(toy(), tmp_path / name, {"seed": 0})
    assert all(
        (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
        for file in ("sets.safetensors", "sets.json")
    )


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A raw folder; runs the stage on it, with what the reader makes."""
    monkeypatch.chdir(tmp_path)
    raw = tmp_path / "data/mini/raw/copies"
    raw.mkdir(parents=True)
    files.write_json(raw / "manifest.json", {"files": {}})
    (tmp_path / "stages").symlink_to(ROOT / "stages")  # the record hashes the code

    def run(made) -> None:
        """The stage, with `made` in the place of the reader."""
        monkeypatch.setitem(stage.READERS, "sines", made)
        settings = params.Sets(reader="sines", seed=4, context=5, targets=3)
        profile = SimpleNamespace(problems=("copies",), sets={"copies": settings})
        parameters = SimpleNamespace(profiles={"mini": profile})
        runner.run(stage.plan(runner.Asked({"profile": "mini", "dataset": "copies"}, parameters)))

    return run


def test_the_stage_hands_the_reader_what_the_profile_says_and_records_it(project):
    asked = []
    project(lambda *given: asked.append(given) or toy())
    assert (
        asked[0][1:] == (4, Counts(5, 3, None)) and asked[0][0].as_posix() == "data/mini/raw/copies"
    )
    record = files.read_json("data/mini/records/copies.prepare.json")
    assert set(record["outputs"]) == {
        "data/mini/prepared/copies/sets.json",
        "data/mini/prepared/copies/sets.safetensors",
    }
    assert (
        record["inputs"].keys() == {"data/mini/raw/copies/manifest.json"}
        and record["params"]["context"] == 5
        and record["seed"] == 4
    )


def test_what_is_refused_leaves_the_old_sets_as_they_were(project, tmp_path):
    project(lambda *_: toy())
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    with pytest.raises(DataError, match="not finite"):
        project(lambda *_: poisoned("target_y"))
    assert {
        path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()
    } == before


def test_a_data_set_without_sets_is_told_with_2(capsys, monkeypatch):
    assert stage.main(["mini", "simulated"]) == 2
    told = capsys.readouterr().err
    assert "unknown problem" in told and "poisson" in told


def test_json_holds_no_numpy(tmp_path):
    sets.write(toy(facts={"pairs": 3}), tmp_path, {"seed": 0})
    assert json.loads((tmp_path / "sets.json").read_text())["facts"] == {"pairs": 3}
