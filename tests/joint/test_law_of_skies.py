"""The joint law of winds and cells: the grid's operator against a sum written out, the exact law
against one of the whole covariance, draws against the law, and what may be known when."""

import numpy as np
import pytest
from skies import told

from stages.errors import InputError
from stages.seeds import stream
from stages.winds.joint.operator import NODES, Axis
from stages.winds.joint.tasks import kept, training

LAW = told().law


def nodes_of(law):
    """Every node (Q, 3), and the weights of each cell (M, Q), written out."""
    places = np.array([(a, b, c) for a in law.axes[0].nodes for b in law.axes[1].nodes
                       for c in law.axes[2].nodes])  # fmt: skip
    weights = [
        np.einsum("a,b,c->abc", one, two, three).ravel()
        for one in law.axes[0].weights
        for two in law.axes[1].weights
        for three in law.axes[2].weights
    ]
    return places, np.array(weights)


def kernel(law, a, b):
    """The wind's covariance of two places and times, number by number."""
    total = 0.0
    for part in law.parts:
        square = sum(
            ((a[k] - b[k]) / length) ** 2
            for k, length in enumerate((part.horizontal, part.horizontal, part.vertical))
        )
        total += part.sd**2 * np.exp(-square / 2 - abs(a[3] - b[3]) / part.time)
    return total


def among(law, x, y):
    return np.array([[kernel(law, a, b) for b in y] for a in x])


def test_a_cell_is_the_mean_of_its_box_and_smoothing_keeps_constants_and_slopes():
    plain, smooth = Axis.of(-200, 200, 4), Axis.of(-200, 200, 4, 60.0)
    assert plain.nodes.shape == (4 * NODES,)
    np.testing.assert_allclose(plain.weights @ plain.nodes, plain.middles)
    inside = np.abs(plain.nodes - plain.middles[1]) < 50
    np.testing.assert_allclose(plain.weights[1], inside / NODES)
    np.testing.assert_allclose(smooth.weights.sum(1), 1)
    np.testing.assert_allclose(smooth.weights @ smooth.nodes, smooth.middles, atol=1e-9)
    # a box and a Gaussian: their variances add up, but for what is cut off at three deviations
    spread = smooth.weights @ np.square(smooth.nodes) - np.square(smooth.middles)
    np.testing.assert_allclose(spread, 100**2 / 12 + 60**2, rtol=0.05)


@pytest.mark.parametrize("axis", [(0, 0, 4), (0, 100, 1), (0, 100, 4, -1.0)])
def test_what_is_no_axis_is_refused(axis):
    with pytest.raises(InputError, match="no axis of a grid"):
        Axis.of(*axis)


def test_covariances_of_cells_are_those_of_sums_over_their_nodes():
    places, weights = nodes_of(LAW)
    assert len(weights) == len(LAW.cell_places) == 12
    some = np.array([0, 3, 7, 11])
    kept_nodes = [np.flatnonzero(weights[cell]) for cell in some]
    at = [np.c_[places[mine], np.full(len(mine), -90.0)] for mine in kept_nodes]
    x = np.array([[[-120.0, 30.0, 7.0, -4.0], [10.0, -150.0, 11.0, 100.0]]])
    across = LAW.across(x, np.array([-90.0]))[0]
    for cell, mine, where in zip(some, kept_nodes, at, strict=True):
        by_hand = among(LAW, x[0], where) @ weights[cell, mine]
        np.testing.assert_allclose(across[:, cell], by_hand, rtol=1e-10)
    first, second = some[0], some[2]
    by_hand = (weights[first, kept_nodes[0]] @ among(LAW, at[0], at[2])
               @ weights[second, kept_nodes[2]])  # fmt: skip
    assert LAW.cells()[first, second] == pytest.approx(by_hand + LAW.bias**2, rel=1e-10)


def test_a_place_inside_a_small_cell_has_nearly_the_covariance_of_the_cell():
    made = told(extent_km=(20.0, 20.0), altitude_km=(9.0, 9.2),
                weather={"cells": (2, 2, 2), "smooth_km": 0.0, "bias_m_s": 0.0, "noise_m_s": 0.5,
                         "age_h": (1.0, 6.0)})  # fmt: skip
    law = made.law
    x = np.c_[law.cell_places, np.full(8, -60.0)][None]
    np.testing.assert_allclose(law.across(x, np.array([-60.0]))[0], law.points(x, x)[0], rtol=1e-3)


def test_the_exact_law_is_that_of_the_whole_covariance():
    tasks = told().sky.drawn(5, 7, kept(3, "test"), exact=True)
    count, (places, weights) = 5, nodes_of(LAW)
    for row in range(count):
        real = tasks.real[row]
        x, stamp = tasks.context_x[row, real], -60 * tasks.age[row]
        nodes = np.c_[places, np.full(len(places), stamp)]
        everywhere = np.concatenate((x, tasks.target_x[row]))
        off, number = LAW.points(everywhere[None], everywhere[None])[0], len(x)
        cells = weights @ LAW.points(nodes[None], nodes[None])[0] @ weights.T + LAW.bias**2
        across = LAW.points(everywhere[None], nodes[None])[0] @ weights.T
        for reads in ("both", "aircraft", "grid"):
            points = number if reads != "grid" else 0
            on = 12 if reads != "aircraft" else 0
            known = np.r_[tasks.context_y[row, real][:points], tasks.grid_y[row][:on]]
            whole = np.block([[off[:points, :points], across[:points, :on]],
                              [across[:points, :on].T, cells[:on, :on]]])  # fmt: skip
            noise = np.r_[np.full(points, LAW.noise), np.full(on, LAW.grid_noise)]
            cross = np.r_[off[:points, number:], across[number:, :on].T]
            solved = np.linalg.inv(whole + np.diag(noise**2))
            mean, sd = tasks.answers[reads]
            np.testing.assert_allclose(mean[row], cross.T @ solved @ known, atol=1e-6)
            left = np.diag(off[number:, number:] - cross.T @ solved @ cross) + LAW.noise**2
            np.testing.assert_allclose(sd[row] ** 2, left, atol=1e-6)


def test_draws_have_the_law_that_they_are_drawn_from():
    rng, sky = stream(0, "test"), told().sky
    x = np.broadcast_to([[-50.0, 0.0, 8.0, -10.0], [60.0, 20.0, 9.0, 30.0]], (4000, 2, 4))
    stamp = np.full(4000, -120.0)
    wind, cells = sky.law.drawn(x, stamp, rng)
    values = np.concatenate((wind, cells), 1)
    found = np.einsum("sno,smo->nm", values, values) / (2 * len(values))
    expected = sky.law.joint(x[:1], stamp[:1])[0]
    expected[2:, 2:] += sky.law.grid_noise**2 * np.eye(12)
    np.testing.assert_allclose(found, expected, atol=0.06)
    # east and north do not know of each other
    assert np.abs(np.einsum("sn,sm->nm", values[..., 0], values[..., 1]) / 4000).max() < 0.08


def test_nothing_is_known_before_it_can_be_and_every_task_has_a_report():
    made = told()
    tasks = made.sky.drawn(300, 5, kept(0, "test"), exact=False)
    times = tasks.context_x[..., 3][tasks.real]
    assert times.max() <= 0 and times.min() >= -20 and tasks.real.any(1).all()
    assert tasks.age.min() >= 1 and tasks.age.max() <= 6
    assert tasks.target_x[..., 3].min() >= 5 and tasks.target_x[..., 3].max() <= 120
    half = np.array(made.extent_km) / 2
    assert (np.abs(tasks.context_x[..., :2][tasks.real]) <= half).all()
    assert (tasks.context_y[~tasks.real] == 0).all() and (tasks.context_x[~tasks.real] == 0).all()
    # an aircraft flies straight and level, as fast as aircraft do
    spoken = 0
    for row, real in zip(tasks.context_x, tasks.real, strict=True):
        one = row[real]
        gone = np.diff(one[one[:, 2] == one[0, 2]], axis=0)
        if len(gone) < 2:
            continue
        speed = np.hypot(gone[:, 0], gone[:, 1]) / gone[:, 3]
        assert ((speed > 11) & (speed < 15.5)).all() and np.ptp(speed) < 1e-9
        assert np.ptp(gone[:, 0] / gone[:, 3]) < 1e-9
        spoken += 1
    assert spoken > 100


def test_an_older_grid_tells_less_and_what_is_old_enough_tells_nothing():
    law, tasks = LAW, told().sky.drawn(40, 8, kept(0, "test"), exact=False)
    spread = []
    for hours in (1.0, 6.0, 1e6):
        answers = law.answers(tasks.context_x, tasks.context_y, tasks.real, tasks.grid_y,
                              np.full(40, -60 * hours), tasks.target_x)  # fmt: skip
        spread.append((answers["grid"][1].mean(), answers["both"][1]))
        aircraft = answers["aircraft"][1]
    assert spread[0][0] < spread[1][0] < spread[2][0]
    assert spread[2][0] == pytest.approx(np.hypot(1.0, law.noise))
    np.testing.assert_allclose(spread[2][1], aircraft, atol=1e-9)
    assert (spread[0][1] <= aircraft + 1e-9).all()


def test_no_kept_stream_trains_and_a_stream_repeats():
    first = [training(0, 5), training(0, 5), training(1, 5), kept(0, "val"), kept(0, "test")]
    numbers = [rng.standard_normal(3).tobytes() for rng in first]
    assert numbers[0] == numbers[1] and len(set(numbers)) == 4
