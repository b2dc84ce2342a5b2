"""Scores of a Gaussian forecast against scoringrules, scipy and numerical integration of their
definitions."""

import numpy as np
import pytest
import scoringrules
from scipy import stats

from stages.errors import DataError
from stages.scores import scores


@pytest.fixture
def forecast():
    rng = np.random.default_rng(3)
    return rng.normal(0, 20, (400, 2)), rng.lognormal(1, 1, (400, 2)), rng.normal(0, 25, (400, 2))


def test_crps_is_that_of_scoringrules(forecast):
    mean, scale, measured = forecast
    assert np.allclose(
        scores.crps(mean, scale, measured),
        scoringrules.crps_normal(measured, mean, scale),
        rtol=1e-10,
        atol=1e-10,
    )


@pytest.mark.parametrize(
    ("mean", "scale", "measured"), [(0.0, 1.0, 0.0), (3.0, 0.5, 4.2), (-10.0, 7.0, 30.0)]
)
def test_crps_is_the_integral_of_its_definition(mean, scale, measured):
    x = np.linspace(
        min(mean - 12 * scale, measured) - 1, max(mean + 12 * scale, measured) + 1, 2_000_001
    )
    integrand = (stats.norm.cdf(x, mean, scale) - (x >= measured)) ** 2
    assert scores.crps(mean, scale, measured) == pytest.approx(np.trapezoid(integrand, x), rel=1e-4)


def test_crps_goes_to_the_absolute_error_when_the_spread_goes_to_zero(forecast):
    mean, _, measured = forecast
    assert np.allclose(
        scores.crps(mean, np.full_like(mean, 1e-9), measured), np.abs(mean - measured), atol=1e-8
    )


def test_log_likelihood_is_scipys(forecast):
    mean, scale, measured = forecast
    assert np.allclose(
        scores.log_likelihood(mean, scale, measured),
        stats.norm.logpdf(measured, mean, scale),
        rtol=1e-12,
    )


def test_coverage_of_draws_from_the_forecast_itself():
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(0, 20, 40_000), rng.lognormal(1, 1, 40_000)
    share = scores.covered(mean, scale, rng.normal(mean, scale)).mean()
    assert share == pytest.approx(0.9, abs=0.006)  # four standard errors
    assert scores.covered(mean, scale, rng.normal(mean, scale), 0.5).mean() == pytest.approx(
        0.5, abs=0.01
    )


def test_edges_of_the_interval():
    half = stats.norm.ppf(0.95) * 2.0
    assert scores.covered(
        1.0, 2.0, np.array([1 + half - 1e-9, 1 + half + 1e-9, 1 - half + 1e-9, 1 - half - 1e-9])
    ).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_spread_that_is_no_spread_is_refused(bad):
    with pytest.raises(DataError, match="1 of 3"):
        scores.crps(np.zeros(3), np.array([1.0, bad, 2.0]), np.zeros(3))
