"""What is measured of free runs: NRMSE, valid times in both units, spectra, divergence."""

import json

import numpy as np
import pytest

from stages import seeds
from stages.dynamics import forecasts
from stages.dynamics.forecasts import Truth


def drawn(*shape: int) -> np.ndarray:
    return seeds.stream(0, "forecasts", *shape).standard_normal(shape)


def truth_of(values: np.ndarray, exponent: float = 2.2, step: float = 0.02) -> Truth:
    return Truth(values, np.arange(len(values)) // 2, step, exponent, 0.5, values.shape[1] // 2)


def measured(forecast: np.ndarray, truth: Truth) -> dict:
    return forecasts.forecast_metrics(forecast, truth)


def test_the_error_is_the_root_of_the_mean_square_over_components():
    truth = drawn(2, 3, 4)
    error = forecasts.nrmse(truth + np.array([1.0, -1.0, 3.0, 1.0]), truth)
    np.testing.assert_allclose(error, np.sqrt(12 / 4))


@pytest.mark.parametrize(
    ("errors", "steps"),
    [([0.1, 0.4, 0.6, 0.1], 2), ([0.5, 0.0], 0), ([0.1, 0.2], 2), ([0.1, np.inf, 0.1], 1)],
)
def test_a_forecast_is_valid_up_to_the_first_error_that_is_not_below(errors, steps):
    assert forecasts.valid(np.array([errors]), 0.5).tolist() == [steps]


def test_valid_times_are_told_in_lyapunov_times_and_in_the_documents_unit():
    values = drawn(4, 50, 3)
    wrong = values.copy()
    wrong[:, 20:] += 1.0
    told = measured(wrong, truth_of(values))["metrics"]
    time = 20 * 0.02
    assert told["valid_time"]["value"] == pytest.approx(time)
    assert told["vpt"]["value"] == pytest.approx(time * 2.2)
    assert told["vpt_document"]["value"] == pytest.approx(time / 2.2)
    assert told["vpt"]["value"] / told["vpt_document"]["value"] == pytest.approx(2.2**2)


def test_the_printed_units_agree_with_the_errata():
    """0.73 is 3.5 Lyapunov times, 313.8 is 2.45."""
    from stages.dynamics.printed import companions

    printed = companions("chaos")
    best = printed["l96_f10/rhn-attention_dependent"]
    assert (best.document, round(best.lyapunov, 1)) == (0.73, 3.5)
    field = printed["ks_l22/rhn-attention_dependent"]
    assert (field.document, round(field.lyapunov, 2)) == (313.8, 2.45)


def test_every_printed_number_stands_beside_an_arm_that_can_be_run():
    from stages.dynamics.printed import companions
    from stages.params import load

    parameters = load()
    for name in companions("chaos"):
        dataset, _, arm = name.partition("/")
        model, variant = arm.split("-")
        assert dataset in parameters.datasets and variant in parameters.models[model].arms, name


def test_an_exact_forecast_is_valid_to_the_horizon_and_says_so():
    values = drawn(6, 40, 2)
    told = measured(values, truth_of(values))["metrics"]
    assert told["capped"]["value"] == 1.0 and told["psd_db"]["value"] == 0.0
    assert told["zero"]["value"] == 0.0


def test_intervals_are_over_members_and_hold_the_mean():
    values = drawn(8, 60, 2)
    wrong = values + np.linspace(0, 1, 60)[:, None] * np.arange(1, 9)[:, None, None]
    one = measured(wrong, truth_of(values))["metrics"]["vpt"]
    assert one["low"] < one["value"] < one["high"] and one["n"] == 8


def test_what_diverges_is_told_with_its_step_and_leaves_no_number_that_is_none():
    values = drawn(4, 30, 2)
    lost = values.copy()
    lost[1, 12:] = np.nan
    lost[3, 0:] = np.nan
    told = measured(lost, truth_of(values))
    assert told["diverged_at"] == [1, 13]
    assert told["metrics"]["diverged"]["value"] == 0.5
    assert told["metrics"]["zero"]["value"] == 0.25
    text = json.dumps(told, allow_nan=False)
    assert "nrmse_1" not in text, "of one start it is not finite"
    band = forecasts.curve(forecasts.nrmse(lost, values))
    assert band["0.95"][0] is None and band["0.5"][5] == 0.0
    json.dumps(band, allow_nan=False)


def test_the_spectrum_of_a_wave_is_its_size_whatever_the_length():
    for count in (64, 256):
        time = np.arange(count)
        wave = 0.5 * np.cos(2 * np.pi * 8 * time / 64)[None, :, None]
        found = forecasts.spectrum(wave)
        assert found.max() == pytest.approx(20 * np.log10(0.5)) and found.argmax() == count // 8


def test_twice_the_size_is_six_decibels_off():
    values = drawn(4, 64, 2)
    told = measured(2 * values, truth_of(values))["metrics"]["psd_db"]
    assert told["value"] == pytest.approx(20 * np.log10(2), abs=1e-9)
