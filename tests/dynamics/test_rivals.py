"""The rivals: what each can represent it finds, and what leaves the finite numbers is told."""

import numpy as np
import pytest

from stages import seeds
from stages.dynamics.forecasts import nrmse, valid
from stages.dynamics.rivals.contract import LIMIT, free_run
from stages.dynamics.rivals.local import Local
from stages.dynamics.rivals.reservoir import Reservoirs
from stages.dynamics.rivals.ridge import solve
from stages.dynamics.rivals.trivial import Mean, Persistence

RESERVOIR = {"units": 120, "group": 0, "overlap": 0, "radius": 0.5, "reach": 0.3, "shift": 0.5,
             "leak": 1.0, "penalty": 1e-9, "noise": 0.0, "washout": 10, "thin": 1}  # fmt: skip
LOCAL = {"gap": 1, "rows": 10**6, "penalty": 1e-12, "noise": 0.0}


def rng() -> np.random.Generator:
    return seeds.stream(0, "rivals")


def rotating(times: int, members: int = 3, sites: int = 6) -> np.ndarray:
    """Waves that travel around a ring, each member's its own: linear in two delays."""
    draw = seeds.stream(0, "waves")
    phase, size = draw.uniform(0, 2 * np.pi, members), draw.uniform(0.5, 1.5, members)
    place = 2 * np.pi * np.arange(sites) / sites
    angle = 0.3 * np.arange(times)[:, None] + place + phase[:, None, None]
    return size[:, None, None] * np.sin(angle)


def coupled(times: int, members: int = 4, sites: int = 5) -> np.ndarray:
    """A lattice of logistic maps, each coupled with its left neighbour: quadratic, chaotic."""
    state = seeds.stream(1, "lattice").uniform(0.2, 0.8, (members, sites))
    found = []
    for _ in range(times + 50):
        own = 3.9 * state * (1 - state)
        state = 0.9 * own + 0.1 * np.roll(own, 1, 1)
        found.append(state)
    return np.stack(found[50:], 1)


def ahead(rival, series: np.ndarray, given: int, steps: int) -> np.ndarray:
    """NRMSE (B, H) of a trained rival from time `given` of other members."""
    found = rival.forecast(series[:, :given], steps)
    return nrmse(found, series[:, given : given + steps])


def test_persistence_keeps_the_last_value_and_the_mean_is_the_members():
    series = rotating(30)
    np.testing.assert_array_equal(
        Persistence().forecast(series[:, :5], 4), np.repeat(series[:, 4:5], 4, 1)
    )
    mean = Mean()
    mean.train(series)
    np.testing.assert_allclose(mean.forecast(series[:, :5], 4)[2, 3], series.mean((0, 1)))


def test_a_linear_law_is_found_by_autoregression():
    series = rotating(80)
    rival = Local(rng(), products=False, delays=2, reach=1, **LOCAL)
    rival.train(series[:, :40])
    assert ahead(rival, series, 45, 30).max() < 1e-5


def test_a_quadratic_law_is_found_with_products_and_not_without():
    series = coupled(400)
    found = {}
    for products in (False, True):
        rival = Local(rng(), products=products, delays=1, reach=1, **LOCAL)
        rival.train(series[:2, :300])
        found[products] = ahead(rival, series[2:], 50, 20) / series.std()
    # the lattice parts neighbours by about 1.6 a step
    assert found[True][:, :10].max() < 1e-6 < 0.1 < found[False][:, 0].min()


@pytest.mark.parametrize("gap", [1, 2, 3])
def test_a_context_is_read_as_the_training_rows_are(gap):
    """The first forecast is what the fit says of the delays that lie there."""
    series = coupled(60)
    rival = Local(rng(), products=True, delays=2, gap=gap, reach=1, rows=999, penalty=1e-6,
                  noise=0.0)  # fmt: skip
    rival.train(series)
    window = np.stack((series[:, 40], series[:, 40 - gap]), 1)
    said = series[:, 40] + (rival._features(window) @ rival.weights)[..., 0]
    np.testing.assert_allclose(rival.forecast(series[:, :41], 3)[:, 0], said, rtol=1e-12)


@pytest.mark.parametrize("group", [0, 1, 2])
def test_reservoirs_forecast_a_chaotic_lattice_better_than_the_mean(group):
    series = (coupled(500, sites=6) - 0.6) / 0.25
    rival = Reservoirs(rng(), **RESERVOIR | {"group": group, "overlap": 2, "reach": 0.6})
    rival.train(series[:2, :400])
    error = ahead(rival, series[2:], 30, 5)
    assert error[:, 0].max() < 0.1 and valid(error, 0.5).min() >= 2


def test_parallel_reservoirs_know_no_place():
    """Turned around the ring by a whole group, forecasts turn with it."""
    series = coupled(200, sites=6)
    rival = Reservoirs(rng(), **RESERVOIR | {"group": 2, "overlap": 1})
    rival.train(series)
    given = series[:, :40]
    turned = rival.forecast(np.roll(given, 2, 2), 5)
    np.testing.assert_allclose(
        turned, np.roll(rival.forecast(given, 5), 2, 2), rtol=1e-9, atol=1e-9
    )


def test_a_reservoirs_matrix_has_the_radius_that_was_asked_for():
    rival = Reservoirs(rng(), **RESERVOIR | {"radius": 0.7})
    rival._draw(4)
    largest = abs(np.linalg.eigvals(rival.inner.toarray())).max()
    assert largest == pytest.approx(0.7, rel=0.1)


def test_ridge_in_parts_is_ridge_in_one():
    draw = seeds.stream(0, "ridge")
    features, outputs = draw.standard_normal((50, 7)), draw.standard_normal((50, 2))
    whole = solve([(features, outputs)], 0.3)
    parts = [(features[k : k + 9], outputs[k : k + 9]) for k in range(0, 50, 9)]
    np.testing.assert_allclose(solve(parts, 0.3), whole, rtol=1e-10)
    size = np.sqrt((features**2).mean(0))
    scaled = features / size
    expected = np.linalg.solve(scaled.T @ scaled / 50 + 0.3 * np.eye(7), scaled.T @ outputs / 50)
    np.testing.assert_allclose(whole, expected / size[:, None], rtol=1e-10)


def test_the_same_seed_gives_the_same_forecast_and_another_another():
    series = coupled(120)
    said = []
    for seed in (0, 0, 1):
        rival = Reservoirs(seeds.stream(seed, "again"), **RESERVOIR | {"noise": 1e-3})
        rival.train(series)
        said.append(rival.forecast(series[:, :30], 3))
    np.testing.assert_array_equal(said[0], said[1])
    assert abs(said[0] - said[2]).max() > 0


def test_what_leaves_the_limit_is_no_number_from_there_on_and_disturbs_no_other():
    start = np.array([[1.0], [0.0]])
    found = free_run(start, lambda value: 10 * value, 6)
    grown = 10.0 ** np.arange(1, 7)
    assert np.isnan(found[0, grown >= LIMIT]).all()
    np.testing.assert_array_equal(found[0, grown < LIMIT, 0], grown[grown < LIMIT])
    np.testing.assert_array_equal(found[1], 0.0)
