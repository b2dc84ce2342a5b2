"""Models trained in memory (`tradewind.fit`): what is asked and handed over wrongly is told in the
project's words, and a fitted model tells what it is."""

import numpy as np
import polars as pl
import pytest

from stages import api
from stages.errors import InputError

RNG = np.random.default_rng(5)
SETS = {
    "context_x": RNG.random((20, 6, 2)),
    "context_y": RNG.random((20, 6, 1)),
    "target_x": RNG.random((20, 5, 2)),
    "target_y": RNG.random((20, 5, 1)),
}
SEQUENCES = RNG.integers(0, 3, (40, 6))
SMALL = {"width": 8, "keys": 4, "hidden": 8, "heads": 2, "blocks": 1}


@pytest.fixture(scope="module")
def fitted():
    return api.fit("msa", SETS, steps=2)


@pytest.mark.parametrize(("model", "data"), [("msa", SETS), ("sigma_gpt", SEQUENCES)])
@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": -5},
        {"steps": 0},
        {"steps": "20"},
        {"learning_rate": 0.0},
        {"batch": True},
        {"seed": -1},
        {"arguments": 3},
    ],
)
def test_a_setting_out_of_range_is_named(model, data, wrong):
    with pytest.raises(InputError, match="settings of the training") as refused:
        api.fit(model, data, **wrong)
    assert f"{next(iter(wrong))}: " in refused.value.found and refused.value.exit_code == 2


def test_an_unknown_setting_is_told_with_those_that_there_are():
    with pytest.raises(InputError, match="no such setting") as refused:
        api.fit("msa", SETS, step=20)
    assert "did you mean 'steps'" in refused.value.found
    assert "learning_rate" in refused.value.expected


def test_numbers_of_numpy_are_settings_as_well(fitted):
    steps, rate = np.int64(2), np.float64(1e-3)
    assert api.fit("msa", SETS, steps=steps, learning_rate=rate).error == fitted.error


@pytest.mark.parametrize(("name", "hint"), [("mso", "did you mean 'msa'"), (None, "None")])
def test_an_unknown_model_is_told_with_those_that_can_be_fitted(name, hint):
    with pytest.raises(InputError, match="no such model") as refused:
        api.fit(name, SETS)
    listed = refused.value.expected.removeprefix("of ").split(", ")
    assert hint in refused.value.found and {"msa", "sigma_gpt"} <= {*listed}
    assert not {"kalman", "kriging", "knn", "diffusion"} & {*listed}


@pytest.mark.parametrize("name", ["kalman", "knn"])
def test_a_model_of_winds_is_refused(name):
    with pytest.raises(InputError, match="made for winds"):
        api.fit(name, SETS)


@pytest.mark.parametrize(
    ("model", "data", "says"),
    [
        ("msa", pl.DataFrame({"a": [1]}), "the data are no sets"),
        ("msa", SEQUENCES, "the data are no sets"),
        ("sigma_gpt", SETS, "no table of sequences"),
        ("sigma_gpt", SEQUENCES * 1.0, "whole numbers"),
        ("sigma_gpt", SEQUENCES - 1, "out of the vocabulary"),
        ("msa", SETS | {"context_y": SETS["context_y"] * 1e200}, "too large"),
        ("msa", SETS | {"target_x": SETS["target_x"] * np.nan}, "not finite"),
        ("msa", SETS | {"context_y": SETS["context_y"][:, :3]}, "disagree"),
    ],
)
def test_data_that_do_not_fit_are_refused_without_words_of_the_projects_files(model, data, says):
    with pytest.raises(InputError, match=says) as refused:
        api.fit(model, data)
    text = str(refused.value)
    assert not [word for word in ("raw files", "params.yaml", "/fitted-") if word in text]


def test_arguments_that_do_not_fit_have_a_remedy_for_the_caller():
    with pytest.raises(InputError, match="arguments do not fit") as refused:
        api.fit("msa", SETS, arguments={"widht": 4})
    assert "params.yaml" not in str(refused.value) and "`arguments`" in refused.value.remedy


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"context_x": SETS["context_x"][..., :1]}, "does not fit the model"),
        ({"target_x": SETS["target_x"][..., :1]}, "does not fit the model"),
        ({"context_y": SETS["context_y"][:3]}, "does not fit the model"),
        ({"context_y": SETS["context_y"][:, :3]}, "does not fit the model"),
        ({name: SETS[name][0] for name in SETS}, "not three axes"),
        ({"context_y": SETS["context_y"] * np.nan}, "not finite"),
    ],
)
def test_what_a_fitted_model_cannot_be_asked_is_refused(fitted, changed, says):
    given = {name: (SETS | changed)[name] for name in ("context_x", "context_y", "target_x")}
    with pytest.raises(InputError, match=says):
        fitted.predict(**given)


def test_a_fitted_model_tells_what_it_is(fitted):
    sequences = api.fit("sigma_gpt", SEQUENCES, steps=2, arguments=SMALL)
    assert repr(fitted).startswith(f"Fitted('msa', error {fitted.error:.4g}")
    assert repr(sequences).startswith(f"Fitted('sigma_gpt', error {sequences.nats:.4g} nats")
    assert "parameters" in repr(fitted) and "parameters" in repr(api.load())
    assert "lead 30 min" in repr(api.load())
