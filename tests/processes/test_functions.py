"""Tasks against another way to the same: kernels by Bessel functions and the prediction off the
joint precision matrix, the sawtooth by hand; and no stream of training is one of what is kept."""

import math

import numpy as np
import pytest
from scipy.special import gamma, kv

from stages import seeds
from stages.errors import DataError
from stages.fields.problems.functions.gaussian_process import (
    NAMES,
    PERIOD,
    GaussianProcess,
    covariance,
    factor,
)
from stages.fields.problems.functions.plans import Kept, Layout, Training
from stages.fields.problems.functions.sawtooth import Sawtooth

LINE = Layout(1, 64, 128, 2.0, 4.0)
KNOWN = {  # exact predictive log-likelihood of reference code H's tasks, computed by other code
    "eq": -0.365,
    "matern12": -0.930,
    "matern32": -0.571,
    "matern52": -0.483,
    "periodic": 0.467,
}


def gaussian(kernel: str, layout: Layout = LINE) -> GaussianProcess:
    return GaussianProcess(kernel, -0.602, 0.0, 0.1, layout)


def bessel(kernel: str, gap: float, length: float) -> float:
    """The kernel at a distance; Matern by Bessel functions (Rasmussen and Williams 2006, 4.14)."""
    if kernel == "periodic":
        return math.exp(-2 * math.sin(math.pi * gap / PERIOD) ** 2 / length)
    if kernel == "eq":
        return math.exp(-(gap**2) / (2 * length**2))
    order, r = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[kernel], gap / length
    scaled = math.sqrt(2 * order) * r
    return (
        1.0
        if r == 0
        else float(2 ** (1 - order) / gamma(order) * scaled**order * kv(order, scaled))
    )


@pytest.mark.parametrize("kernel", NAMES)
def test_the_exact_prediction_is_that_of_the_joint_precision_matrix(kernel):
    tasks = gaussian(kernel).drawn(3, Kept(1, "test"))
    for row in range(3):
        real, length = tasks.real[row], tasks.function["length"][row]
        y = tasks.context_y[row, real, 0]
        for target in range(0, 128, 16):
            x = np.append(tasks.context_x[row, real, 0], tasks.target_x[row, target, 0])
            joint = [[bessel(kernel, abs(a - b), length) for b in x] for a in x]
            precision = np.linalg.inv(np.array(joint) + 0.01 * np.eye(len(x)))
            variance = 1 / precision[-1, -1]
            mean = -variance * precision[-1, :-1] @ y
            assert tasks.exact_mean[row, target] == pytest.approx(mean, abs=1e-8)
            assert tasks.exact_sd[row, target] == pytest.approx(math.sqrt(variance), abs=1e-8)


@pytest.mark.parametrize("axes", [1, 2])
def test_the_exact_prediction_is_that_of_scikit_learn(axes):
    oracle = pytest.importorskip("sklearn.gaussian_process")
    tasks = gaussian("eq", Layout(axes, 40, 25, 2.0, 2.5)).drawn(4, Kept(2, "test"))
    for row, real in enumerate(tasks.real):
        kernel = oracle.kernels.RBF(tasks.function["length"][row], "fixed")
        theirs = oracle.GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None)
        theirs.fit(tasks.context_x[row, real], tasks.context_y[row, real, 0])
        mean, sd = theirs.predict(tasks.target_x[row], return_std=True)
        np.testing.assert_allclose(tasks.exact_mean[row], mean, atol=1e-7)
        np.testing.assert_allclose(tasks.exact_sd[row], np.sqrt(sd**2 + 0.01), atol=1e-7)


@pytest.mark.parametrize("kernel", NAMES)
def test_the_bound_is_the_known_one(kernel):
    tasks = gaussian(kernel).drawn(200, Kept(3, "test"))
    z = (tasks.target_y[..., 0] - tasks.exact_mean) / tasks.exact_sd
    reached = (-0.5 * z * z - np.log(tasks.exact_sd) - 0.5 * math.log(2 * math.pi)).mean(1)
    error = math.hypot(reached.std() / math.sqrt(200), 0.015)
    assert abs(reached.mean() - KNOWN[kernel]) < 4 * error


def test_in_the_plane_the_kernel_is_of_the_distance():
    x = seeds.stream(0, "plane").standard_normal((1, 6, 2))
    found = covariance("matern52", x, x, np.array([0.7]))[0]
    expected = [[bessel("matern52", math.dist(a, b), 0.7) for b in x[0]] for a in x[0]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_covariance_without_a_factor_is_named():
    matrix = np.array([np.eye(3), [[1, 2, 0], [2, 1, 0], [0, 0, 1]]])
    with pytest.raises(DataError, match=r"not positive definite[\s\S]*kernel eq, length 0.5"):
        factor(matrix, "eq", np.array([0.1, 0.5]))


# --- sawtooth


def test_a_sawtooth_rises_from_0_to_1_along_its_direction():
    tasks = Sawtooth(0.25, 0.75, 1e-9, "restricted", Layout(2, 8, 50, 2.0, 2.0)).drawn(
        20, Kept(0, "test")
    )
    told = tasks.function
    direction = np.stack((told["direction_0"], told["direction_1"]), 1)
    np.testing.assert_allclose(np.abs(direction), math.sqrt(0.5))
    for row in range(20):
        phase = told["frequency"][row] * (
            tasks.target_x[row] @ direction[row] - told["offset"][row]
        )
        expected = phase - np.floor(phase)
        gap = np.abs(tasks.target_y[row, :, 0] - expected)
        assert np.minimum(gap, 1 - gap).max() < 1e-6
        assert 0 <= told["offset"][row] * told["frequency"][row] <= 1


def test_directions_of_the_full_sawtooth_are_of_unit_length_and_any():
    found = Sawtooth(0.25, 0.75, 0.1, "full", Layout(2, 4, 4, 1.0, 1.0)).directed(
        400, seeds.stream(0, "directions")
    )
    np.testing.assert_allclose((found**2).sum(1), 1.0)
    angles = np.degrees(np.arctan2(found[:, 1], found[:, 0]))
    assert np.histogram(angles, 8, (-180, 180))[0].min() > 25


def test_the_sawtooths_bound_is_the_entropy_of_its_noise():
    tasks = Sawtooth(0.25, 0.75, 0.025, "restricted", LINE).drawn(200, Kept(0, "test"))
    z = (tasks.target_y[..., 0] - tasks.exact_mean) / tasks.exact_sd
    reached = (-0.5 * z * z - np.log(tasks.exact_sd)).mean() - 0.5 * math.log(2 * math.pi)
    assert reached == pytest.approx(-math.log(0.025) - 1.419, abs=0.02)


# --- streams


def test_no_stream_of_training_is_one_of_what_is_kept():
    kept = {seeds.derive(seed, "functions", "kept", split)
            for seed in range(50) for split in ("val", "test")}  # fmt: skip
    training = {seeds.derive(seed, "functions", "training", step)
                for seed in range(5) for step in range(2000)}  # fmt: skip
    assert len(kept) == 100 and len(training) == 10_000 and not kept & training
    one, other = Training(0, 3).rng().random(4), Kept(0, "test").rng().random(4)
    assert not np.intersect1d(one, other).size


@pytest.mark.parametrize("process", [gaussian("eq"), Sawtooth(0.3, 0.7, 0.1, "full", LINE)])
def test_training_tasks_are_new_at_every_step_and_the_same_when_a_step_is_drawn_again(process):
    one, again, next_ = (process.drawn(4, Training(0, step)) for step in (5, 5, 6))
    np.testing.assert_array_equal(one.target_y, again.target_y)
    assert not np.intersect1d(one.target_x, next_.target_x).size
    kept = process.drawn(4, Kept(0, "test"))
    assert not np.intersect1d(one.target_x, kept.target_x).size
    assert one.exact_mean is None and kept.exact_mean is not None
    assert one.real.all() and not kept.real.all()
