"""The cell that a nowcast asks when none is named: the best on the validation minutes, never one
that is deaf to its context; and the spread that it tells."""

import shutil

import numpy as np
import pytest
from nowcasts import ASKED, ask

from stages import files
from stages.errors import InputError
from stages.winds.nowcast import choice, spread
from stages.winds.nowcast.answers import render


def numbers(error, shuffled, **more):
    """The metrics of a cell with these errors on the validation minutes."""
    return {
        choice.ERROR: {"value": error},
        choice.SHUFFLED: {"value": shuffled},
        **{f"rmse_{axis}_m_s": {"value": 4.0} for axis in ("east", "north")},
        **{name: {"value": value} for name, value in more.items()},
    }


@pytest.fixture
def here(runs, tmp_path, monkeypatch, settings):
    """A function that lays out a cell with its numbers, in a project of two data sets."""
    monkeypatch.chdir(tmp_path)

    def lay(place, metrics, cell="kernel", **entry):
        experiment, dataset, name = place.split("/")
        home = tmp_path / "reports" / experiment / settings.run.profile
        shutil.copytree(runs / cell, home / "runs" / dataset / name)
        path = home / "evaluated" / dataset / "metrics.json"
        known = files.read_json(path)["cells"] if path.exists() else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, {"cells": known | {name: {"metrics": metrics, **entry}}})
        return home / "runs" / dataset / name

    return lay


@pytest.fixture
def two(settings):
    run = settings.run.model_copy(update={"wind": ("toy", "other")})
    return settings.model_copy(update={"run": run})


def test_the_best_on_validation_of_any_experiment_is_asked_and_it_is_said_why(airspace, two, here):
    here("wind_nowcast/toy/good", numbers(8.0, 20.0, rmse_component_kn=1.0))
    here("wind_baselines/toy/better", numbers(7.0, 20.0, rmse_component_kn=9.0))
    here("wind_baselines/toy/deaf", numbers(6.0, 6.1))
    here("wind_baselines/other/best", numbers(1.0, 20.0))
    (wind,) = ask(airspace, two, ASKED, model=None)
    assert wind.model == "better"
    assert "7.0 kn, of 2 cells" in wind.why and wind.why.endswith(
        "; 1 cell was passed over: it does not use where winds were measured"
    )
    assert f"chosen: {wind.why}\n" in render([wind])


def test_another_data_set_answers_where_the_first_has_no_cell(here):
    here("wind_nowcast/toy/deaf", numbers(6.0, 5.0))
    folder = here("wind_nowcast/other/fit", numbers(9.0, 12.0))
    assert choice.best("mini", ("toy", "other"))[0].resolve() == folder


@pytest.mark.parametrize("state", ["nothing", "deaf", "of earlier code", "no weights"])
def test_where_no_cell_may_answer_it_is_said_what_is_wanted(here, state):
    if state == "deaf":
        here("wind_nowcast/toy/a", numbers(6.0, 6.0))
    if state == "of earlier code":
        here("wind_nowcast/toy/a", {"rmse_component_kn": {"value": 3.0}})
    if state == "no weights":
        (here("wind_nowcast/toy/a", numbers(6.0, 9.0)) / "weights.safetensors").unlink()
    with pytest.raises(InputError, match="no cell may answer") as told:
        choice.best("mini", ("toy", "other"))
    assert "--model" in told.value.remedy and "toy or other" in told.value.expected


def test_a_recalibrated_spread_goes_by_distance_and_says_what_it_held(airspace, settings, here):
    held = {"coverage_90": 0.99, "coverage_90_recalibrated": 0.894}
    factors = {"all": {"value": 0.5, "unit": "1", "n": 900}}
    plain = here("wind_nowcast/toy/plain", numbers(1.0, 2.0, **held), "msa-gaussian-5k-s0")
    mended = here(
        "wind_nowcast/toy/mended",
        numbers(1.0, 2.0, **held),
        "msa-gaussian-5k-s0",
        recalibration=factors,
    )
    (before,), (after,) = (ask(airspace, settings, ASKED, model=one) for one in (plain, mended))
    assert after.spread_m_s == pytest.approx([0.5 * one for one in before.spread_m_s])
    assert "held 89 % of the test winds (99 % before)" in after.spread_from
    assert "held 99 % of the test winds" in before.spread_from


def test_a_model_without_spread_has_that_of_its_distance(airspace, settings, here):
    far = {"value": 3.0, "unit": "m/s", "n": 900}
    told = numbers(1.0, 2.0, coverage_90_recalibrated=0.91)
    bins = ("000-005 km", "005-010 km", "010-020 km", "020-040 km", "040-080 km", "080-160 km")
    cell = here(
        "wind_nowcast/toy/kernel",
        told,
        recalibration={"all": far, **{name: {**far, "value": 2.0} for name in bins[:3]}},
    )
    near, away = ask(airspace, settings, ASKED, "45.6,8.3,36000,2026-01-15T07:08:00Z", model=cell)
    for wind in (near, away):
        expected = 2.0 if wind.nearest_km < 20 else 3.0
        assert wind.spread_m_s == (expected, expected)
        assert wind.spread_from.startswith("its error, as it was on the validation minutes")


def test_a_model_that_gives_a_spread_is_never_told_to_give_none(airspace, settings, runs):
    """Kriging has a spread of its own without being trained for one."""
    (wind,) = ask(airspace, settings, ASKED, model=runs / "kriging")
    assert wind.spread_from.startswith("the model's own") and wind.spread_m_s[0] > 0


def test_of_a_model_without_spread_that_was_not_evaluated_none_is_known(here, runs, tmp_path):
    shutil.copytree(runs / "knn", tmp_path / "reports/x/mini/runs/toy/knn")
    told = spread.of_cell(tmp_path / "reports/x/mini/runs/toy/knn", own=False)
    assert told.words.startswith("not known") and told.of(None, np.zeros(2)) == (
        [None, None],
        [False, False],
    )
