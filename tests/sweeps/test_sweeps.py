"""Sweeps: the draws repeat, the best is the best on the thinned validation slices, and what was found is what is trained."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import params
from stages.errors import InputError
from stages.models.fields import build
from stages.sweeps import search
from stages.sweeps.__main__ import write
from stages.training import cells

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import toy_sky  # noqa: E402

SPACE = {"places": {"low": 1.0, "high": 30.0, "log": True, "whole": True}, "horizontal_km": {"low": 10.0, "high": 1000.0, "log": True}}
WANTED = params.Sweep(trials=8, val_every=2, space=SPACE)


@pytest.fixture(scope="module")
def contexts():
    return toy_sky.contexts(toy_sky.sky(36, 20))


@pytest.fixture(scope="module")
def trials(contexts):
    return search.sweep("knn_tnn", {"vertical_km": 5.0}, WANTED, contexts, seed=0)


def test_the_same_seed_draws_the_same_trials_and_another_does_not(contexts, trials):
    assert search.sweep("knn_tnn", {"vertical_km": 5.0}, WANTED, contexts, seed=0) == trials
    assert search.sweep("knn_tnn", {"vertical_km": 5.0}, WANTED, contexts, seed=1) != trials
    assert [trial["number"] for trial in trials] == list(range(8)) and len({str(t["arguments"]) for t in trials}) > 4


def test_every_draw_lies_in_its_range_and_is_what_was_scored(contexts, trials):
    for trial in trials:
        k, length = trial["arguments"]["places"], trial["arguments"]["horizontal_km"]
        assert type(k) is int and 1 <= k <= 30 and 10 <= length <= 1000 and float(f"{length:.3g}") == length
    chosen = search.best(trials)
    model = build("knn_tnn", {"vertical_km": 5.0, **chosen["arguments"]})
    squares = []
    pairs = contexts.pairs
    for j in pairs.targets("val")[::2]:  # by hand: every second validation slice, all its points
        given = contexts.given(j, model)
        error = (model(given.batch).mean - given.batch.target_y)[:, 0].detach().numpy() * pairs.meta["scaler"]["y_std"] * 3600 / 1852
        squares.append(error ** 2)
    assert chosen["rmse_component_kn"] == pytest.approx(np.sqrt(np.concatenate(squares).mean()), rel=1e-5)
    assert chosen["rmse_component_kn"] == min(trial["rmse_component_kn"] for trial in trials)


def test_the_first_of_equals_wins_and_what_is_not_finite_never_does():
    made = lambda number, value: {"number": number, "arguments": {}, "rmse_component_kn": value}  # noqa: E731
    assert search.best([made(0, float("inf")), made(1, 2.0), made(2, 2.0)])["number"] == 1


def test_training_takes_what_was_found(trials, tmp_path):
    write(tmp_path, trials)
    parameters = params.load(Path(__file__).parents[2] / "params.yaml")
    cell = cells.Cell("knn_tnn", "swept")
    assert cells.arguments(cell, parameters, tmp_path / "best.yaml") == search.best(trials)["arguments"]
    assert cells.arguments(cell, parameters) == {}
    with pytest.raises(InputError, match="has not run"):
        cells.arguments(cell, parameters, tmp_path / "nothing.yaml")
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    assert len(lines) == 9 and lines[0] == "number,places,horizontal_km,rmse_component_kn"


@pytest.mark.parametrize(("change", "says"), [({"low": 5.0, "high": 5.0}, "not below"), ({"low": -1.0, "high": 5.0, "log": True}, "no logarithm")])
def test_a_range_that_is_none_is_refused(change, says):
    with pytest.raises(ValueError, match=says):
        params.Range(**change)


def test_the_optimum_knows_the_law_that_gp_wind_was_drawn_from():
    parameters = params.load(Path(__file__).parents[2] / "params.yaml")
    law, told = parameters.datasets["gp_wind"].gaussian, parameters.models["optimum"].arms["plain"]
    east, north = law.mean_m_s
    assert told == {"mean_m_s_east": east, "mean_m_s_north": north, "sd_m_s": law.sd_m_s, "noise_m_s": law.noise_m_s,
                    "horizontal_km": law.horizontal_km, "vertical_km": law.vertical_km, "time_min": law.time_min}


def test_a_model_is_told_what_a_standardised_wind_is(contexts):
    model = build("optimum")
    search.scale_to(model, contexts)
    scaler = contexts.pairs.meta["scaler"]
    torch.testing.assert_close(model.y_std, torch.tensor(scaler["y_std"], dtype=model.y_std.dtype))
