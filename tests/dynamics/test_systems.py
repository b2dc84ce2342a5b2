"""The simulated systems: the order of their schemes, what their equations keep, and how fast
neighbours part."""

import numpy as np
import pytest

from stages import seeds
from stages.dynamics.settings import Simulated
from stages.dynamics.systems import simulate
from stages.dynamics.systems.kuramoto import Kuramoto
from stages.dynamics.systems.lorenz96 import Lorenz96
from stages.dynamics.validate import CHECKED, levels
from stages.errors import ParamsError
from stages.params import checked

FULL = Lorenz96(10.0)
SMALL = Lorenz96(10.0, slow=5, middle=4, fast=4)
FIELD = Kuramoto(22.0, 64)


def settled(system, dt: float, time: float, members: int = 2) -> np.ndarray:
    """States (D, members) after `time`."""
    state = system.begin(members, seeds.stream(3, "settled"))
    for _ in range(round(time / dt)):
        state = system.step(state, dt)
    return state


def after(system, state: np.ndarray, dt: float, time: float) -> np.ndarray:
    for _ in range(round(time / dt)):
        state = system.step(state, dt)
    return state


@pytest.fixture(scope="module")
def weather() -> np.ndarray:
    return settled(FULL, 0.005, 5.0, 4)


@pytest.fixture(scope="module")
def field() -> np.ndarray:
    return settled(FIELD, 0.25, 200.0, 4)


def by_hand(system: Lorenz96, state: np.ndarray) -> np.ndarray:
    """Equations 40 to 42 number by number, of one state (D,)."""
    count_y, count_z = system.slow * system.middle, system.slow * system.middle * system.fast
    x, y, z = np.split(state, [system.slow, system.slow + count_y])
    dx, dy, dz = np.empty_like(x), np.empty_like(y), np.empty_like(z)
    for k in range(system.slow):
        dx[k] = x[k - 1] * (x[(k + 1) % len(x)] - x[k - 2]) - x[k] + system.forcing
        for j in range(system.middle):
            dx[k] -= system.h * system.c / system.b * y[k * system.middle + j]
    for j in range(count_y):
        ahead, further = y[(j + 1) % count_y], y[(j + 2) % count_y]
        dy[j] = -system.c * system.b * ahead * (further - y[j - 1]) - system.c * y[j]
        dy[j] += system.h * system.c / system.b * x[j // system.middle]
        for i in range(system.fast):
            dy[j] -= system.h * system.e / system.d * z[j * system.fast + i]
    for i in range(count_z):
        dz[i] = system.e * system.d * z[i - 1] * (z[(i + 1) % count_z] - z[i - 2])
        dz[i] += -system.g * system.e * z[i] + system.h * system.e / system.d * y[i // system.fast]
    return np.concatenate((dx, dy, dz))


@pytest.mark.parametrize("system", [SMALL, FULL], ids=["small", "584"])
def test_lorenz_96_moves_as_its_equations_say(system):
    state = seeds.stream(0, "hand").standard_normal((system.size, 3))
    expected = np.stack([by_hand(system, one) for one in state.T], 1)
    np.testing.assert_allclose(system.tendency(state), expected, rtol=1e-12, atol=1e-12)


def test_the_document_has_584_numbers_of_which_8_are_observed():
    assert (FULL.size, FULL.observed) == (584, 8)
    assert FULL.observe(np.zeros((584, 5))).shape == (5, 8)


def order(system, state: np.ndarray, dt: float, time: float) -> float:
    """log2 of how much the error shrinks with half the step."""
    exact = after(system, state, dt / 16, time)
    coarse, fine = (abs(after(system, state, step, time) - exact).max() for step in (dt, dt / 2))
    return float(np.log2(coarse / fine))


def test_both_schemes_are_of_fourth_order(weather, field):
    assert order(FULL, weather, 0.005, 0.05) == pytest.approx(4.0, abs=0.3)
    coarse, places = Kuramoto(22.0, 16), np.arange(16) * 2 * np.pi / 16
    waves = (np.cos(places) * (1 + np.sin(places)))[:, None]
    assert order(coarse, waves, 0.03125, 4.0) == pytest.approx(4.0, abs=0.3)


def test_the_step_that_is_used_leaves_an_error_far_below_what_is_forecast(field):
    """Of stiff waves ETDRK4 is of lower order at large steps (Hochbruck and Ostermann 2010)."""
    exact = after(FIELD, field, 1 / 64, 4.0)
    assert abs(after(FIELD, field, 0.25, 4.0) - exact).max() < 1e-3


def test_the_linear_waves_of_kuramoto_sivashinsky_grow_and_decay_exactly():
    places = np.arange(64) * 22.0 / 64
    for number in (1, 2, 5):
        wave = 2 * np.pi * number / 22.0
        start = 1e-9 * np.cos(wave * places)[:, None]
        grown = after(FIELD, start, 0.25, 2.0)
        np.testing.assert_allclose(grown, start * np.exp(2.0 * (wave**2 - wave**4)), atol=1e-16)


def test_the_energy_of_kuramoto_sivashinsky_balances(field):
    dt = 1e-3

    def energy(state):
        return 0.5 * (state**2).mean(0)

    middle = FIELD.step(field, dt)
    rate = (energy(FIELD.step(middle, dt)) - energy(field)) / (2 * dt)
    bring, take = FIELD.power(middle)
    np.testing.assert_allclose(rate, bring - take, rtol=1e-4, atol=1e-6)
    assert abs(field.mean(0)).max() < 1e-12, "the mean is kept"


def test_what_goes_into_the_field_comes_out_of_it_on_the_mean():
    told = Simulated.model_validate(
        {"seed": 0, "system": "kuramoto", "length": 22.0, "points": 64, "members": 8, "dt": 0.25,
         "every": 4, "keep": 100, "transient": 800, "samples": 400, "spans": 1, "turn": 1}
    )  # fmt: skip
    seen, _ = simulate.observe(told.made(), told.run(), seeds.stream(0, "balance"))
    found = levels(seen, told)
    assert found["balance_off"] < 0.03 and found["mean_off"] < 1e-10


def test_the_mean_and_the_deviation_of_x_are_those_of_the_errata():
    run = simulate.Run(members=8, dt=0.005, every=10, keep=100, transient=1500, samples=300)
    seen, kept = simulate.observe(FULL, run, seeds.stream(0, "level"))
    mean, sd = CHECKED[10.0]
    assert seen.mean() == pytest.approx(mean, abs=0.15) and seen.std() == pytest.approx(sd, abs=0.2)
    fast = kept[:, :, 72:].std()
    assert 0.01 < fast < 0.03, "errata: Z scale 0.012 to 0.02"


@pytest.mark.parametrize("name", ["weather", "field"])
def test_a_direction_is_carried_by_the_derivative_of_the_step(name, request):
    state, system, dt = request.getfixturevalue(name), *{
        "weather": (FULL, 0.005), "field": (FIELD, 0.25)}[name]  # fmt: skip
    along = seeds.stream(1, "along").standard_normal(state.shape)
    step, size = system.step_tangent(state, along, dt), 1e-6
    np.testing.assert_allclose(step[0], system.step(state, dt), rtol=1e-13, atol=1e-13)
    ends = [system.step(state + sign * size * along, dt) for sign in (1, -1)]
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * size), step[1], rtol=1e-5, atol=1e-5)


def test_the_exponent_of_a_known_system_is_found():
    class Doubling:
        """Two rates, of which the faster is found."""

        size = observed = 2

        def step_tangent(self, state, along, dt):
            return state, along * np.exp(dt * np.array([[0.7], [-1.0]]))

    grown = simulate.growth(Doubling(), np.ones((5, 2)), 0.1, 6, 10, seeds.stream(0, "rates"))
    value, error = simulate.exponent(grown, 1.0)
    assert value == pytest.approx(0.7, abs=0.02) and error < 0.02


def test_kuramoto_sivashinsky_of_length_22_has_the_exponent_of_the_literature(field):
    """0.043 (Edson et al. 2019) to 0.05 (Pathak et al. 2018)."""
    states = settled(FIELD, 0.25, 200.0, 12).T
    grown = simulate.growth(FIELD, states, 0.25, 60, 40, seeds.stream(0, "chaos"))
    value, error = simulate.exponent(grown, 10.0)
    assert 0.0 < error < 0.006 and 0.043 - 2 * error < value < 0.05 + 2 * error


def test_the_whole_of_lorenz_96_parts_faster_than_its_slow_tier(weather):
    """The document takes 2.2 as the exponent of all 584 numbers."""
    grown = simulate.growth(FULL, weather.T, 0.005, 16, 100, seeds.stream(0, "tiers"))
    value, error = simulate.exponent(grown, 0.5)
    assert value > 2 * 2.2 and value - 2 * error > 2.2


def test_a_run_is_the_same_whoever_stands_beside_it(weather):
    alone = after(FULL, weather[:, 1:2], 0.005, 0.5)
    together = after(FULL, weather, 0.005, 0.5)
    np.testing.assert_array_equal(alone[:, 0], together[:, 1])


def test_going_on_from_a_kept_state_gives_what_was_observed():
    run = simulate.Run(members=3, dt=0.005, every=4, keep=5, transient=100, samples=12)
    seen, kept = simulate.observe(FULL, run, seeds.stream(0, "kept"))
    again = simulate.carry_on(FULL, kept[:, 1], 0.005, 4, 6)
    np.testing.assert_array_equal(again.transpose(1, 0, 2), seen[:, 6:])


def test_a_system_that_lacks_what_it_needs_is_refused_by_name():
    told = {"seed": 0, "system": "kuramoto", "forcing": 8.0, "members": 2, "dt": 0.1, "every": 1,
            "keep": 1, "transient": 0, "samples": 10, "spans": 1, "turn": 1}  # fmt: skip
    with pytest.raises(ParamsError, match="kuramoto needs length and points; given: forcing"):
        checked(Simulated, told, "datasets.x.made")
