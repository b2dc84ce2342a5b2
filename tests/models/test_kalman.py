"""The Kalman filter against Gaussian-process regression written out densely in numpy, float64."""

import numpy as np
import pytest
import torch

from stages import seeds
from stages.batches import Batch, collate, single
from stages.errors import InputError
from stages.fields.models.kalman import Kalman
from stages.layers import kalman_filter
from stages.layers.kalman_filter import State, features, relax, update

ARGUMENTS = {
    "horizontal_km": 130.0,
    "vertical_km": 2.0,
    "time_min": 90.0,
    "noise": 0.3,
    "sd": 0.8,
    "mean_sd": 1.5,
    "nodes_east": 4,
    "nodes_north": 3,
    "nodes_up": 2,
    "half_extent_km": 200.0,
    "down_km": 3.0,
    "up_km": 1.0,
    "step_s": 300.0,
}
LENGTHS = np.array([1.3, 1.3, 2.0])  # local units
NODES = np.array(
    [(e, n, u) for e in np.linspace(-2, 2, 4) for n in np.linspace(-2, 2, 3) for u in (-3, 1)]
)


def made(**arguments):
    return Kalman(4, 2, 2, **{**ARGUMENTS, **arguments})


def space(a, b):
    """sd^2 exp(-0.5 |a - b|^2) of places (N, 3) and (M, 3), in units of the lengths."""
    return 0.8**2 * np.exp(-0.5 * (((a[:, None] - b[None]) / LENGTHS) ** 2).sum(2))


def projection(places):
    """h: weights of the values at the nodes, (N, nodes), and the covariance of these values."""
    own = space(NODES, NODES) + 1e-9 * 0.8**2 * np.eye(len(NODES))
    return space(places, NODES) @ np.linalg.inv(own), own


def dense(x, y, targets):
    """Mean (T, 2) and variance (T,) of a Gaussian process with the filter's kernel. Reports of
    one place and time share what h cannot."""
    places, c, t = np.concatenate((x, targets)), slice(len(x)), slice(len(x), None)
    h, own = projection(places[:, :3])
    kernel = 1.5**2 + h @ own @ h.T * np.exp(-np.abs(places[:, None, 3] - places[None, :, 3]) / 1.5)
    rest = 0.8**2 - np.einsum("ij,jk,ik->i", h, own, h)
    same = (x[:, None] == x[None]).all(2)
    gain = np.linalg.solve(kernel[c, c] + rest[c] * same + 0.3**2 * np.eye(len(x)), kernel[c, t]).T
    return gain @ y, kernel[t, t].diagonal() + rest[t] - (gain * kernel[c, t].T).sum(1) + 0.3**2


def drawn(steps, each, targets=9, seed=0):
    """Places (C, 4) of reports in the middles of steps of 5 min, `each` in every one, each in a
    cell of its own; winds; targets (T, 4)."""
    rng = seeds.stream(seed, "kalman", each, len(steps))

    def uniform(count):
        return rng.uniform((-2.5, -2.5, -4), (2.5, 2.5, 2), (count, 3))

    parts = []
    for step in steps:
        places = uniform(3 * each)
        first = np.unique(np.floor(places * 4 / LENGTHS), axis=0, return_index=True)[1][:each]
        parts.append(np.column_stack((places[first], np.full(each, (step + 0.5) / 12))))
    x = np.concatenate(parts)
    return (
        x,
        rng.normal(size=(len(x), 2)),
        np.column_stack((uniform(targets), rng.uniform(0.1, 1, targets))),
    )


def predicted(model, *arrays):
    """Mean and scale (T, 2); float64 in, float64 out."""
    prediction = model(single(*(torch.tensor(a) for a in arrays)))
    return prediction.mean[0].numpy(), prediction.scale[0].numpy()


@pytest.mark.parametrize(
    "steps", [(-1,), (-30, -29, -3, -1), (-36, -20, -19, -18, -2)], ids=str
)  # steps without reports are missing
@pytest.mark.parametrize("each", [1, 5, 40])
@pytest.mark.parametrize("copies", [1, 3])
def test_it_is_gaussian_process_regression(steps, each, copies, monkeypatch):
    monkeypatch.setattr(kalman_filter, "BLOCK", 16)  # several blocks
    x, _, targets = drawn(steps, each)
    x = x.repeat(
        seeds.stream(0, "copies").integers(1, copies + 1, len(x)), 0
    )  # reports of one cell, here of one place
    y = seeds.stream(1, "winds").normal(size=(len(x), 2))
    mean, variance = dense(x, y, targets)
    found = predicted(made(), x, y, targets)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1], np.sqrt(variance)[:, None].repeat(2, 1), atol=1e-6)
    assert np.ptp(mean) > 0.1 and np.ptp(variance) > 0.01


def test_its_spread_is_right_on_winds_of_its_own_law():
    x, _, targets = drawn((-30, -12, -3, -1), 12, targets=30)
    places, rng = np.concatenate((x, targets)), seeds.stream(0, "law")
    h, own = projection(places[:, :3])
    rest = 0.8**2 - np.einsum("ij,jk,ik->i", h, own, h)
    kernel = (
        1.5**2
        + h @ own @ h.T * np.exp(-np.abs(places[:, None, 3] - places[None, :, 3]) / 1.5)
        + np.diag(rest + 0.3**2)
    )
    winds = np.linalg.cholesky(kernel) @ rng.normal(
        size=(len(places), 2000)
    )  # targets are measurements too
    model = Kalman(4, 2000, 2000, **ARGUMENTS)  # 2000 worlds as components of one wind
    mean, scale = predicted(model, x, winds[: len(x)], targets)
    z = (winds[len(x) :] - mean) / scale
    assert (np.abs(z.mean(1)) < 4.5 / np.sqrt(2000)).all()
    assert (np.abs(z.var(1) - 1) < 4.5 * np.sqrt(2 / 2000)).all()
    assert scale.min() < 0.8 * scale.max()


def test_steps_cells_and_counts():
    model, rng = made(), seeds.stream(0, "cells")
    x = np.column_stack(
        (rng.uniform((-1, -1, -2), (1, 1, 1), (3000, 3)), rng.uniform(-0.5, 0, 3000))
    )
    y = rng.normal(size=(3000, 2))
    step, place, value, count = (
        part.numpy() for part in model._cells(torch.tensor(x), torch.tensor(y))
    )
    keys = np.column_stack((np.floor(x[:, 3] * 12), np.floor(x[:, :3] * 4 / LENGTHS)))
    cells, which, wanted = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    assert len(cells) < 2000 and (np.diff(step) >= 0).all()
    np.testing.assert_array_equal(step, cells[:, 0])
    np.testing.assert_array_equal(count, wanted)
    for cell in range(0, len(cells), 97):
        inside = which.reshape(-1) == cell
        np.testing.assert_allclose(place[cell], x[inside, :3].mean(0), atol=1e-12)
        np.testing.assert_allclose(value[cell], y[inside].mean(0), atol=1e-12)


def test_cells_hardly_change_a_smooth_wind():
    rng, targets = seeds.stream(0, "smooth"), drawn((-1,), 1, targets=40)[2]
    x = np.column_stack((rng.uniform((-2, -2, -3), (2, 2, 1), (4000, 3)), np.full(4000, -0.5 / 12)))
    y = np.column_stack((np.sin(x[:, 0] / 1.3), x[:, 1] / 2))
    apart = np.unique(np.floor(x[:, :3] * 4 / LENGTHS), axis=0, return_index=True)[
        1
    ]  # one report of each cell
    coarse, fine = (
        predicted(made(), x[part], y[part], targets)[0] for part in (slice(None), apart)
    )
    assert np.abs(coarse - fine).max() < 0.1


def test_the_prior_stays_as_it_is_and_time_adds_up():
    rng = seeds.stream(0, "relax")
    prior = torch.tensor([1.0, 2.0, 0.5]).double()
    decay = torch.tensor([0.7, 0.7, 1.0]).double()
    stationary = State(torch.zeros(3, 2).double(), torch.diag(prior))
    torch.testing.assert_close(
        relax(stationary, decay, prior).covariance, torch.diag(prior), atol=1e-15, rtol=0
    )
    root = torch.tensor(rng.normal(size=(3, 3)))
    state = State(torch.tensor(rng.normal(size=(3, 2))), root @ root.T)
    twice = relax(relax(state, decay, prior), decay, prior)
    once = relax(state, decay.square(), prior)
    for one, other in zip(twice, once, strict=True):
        torch.testing.assert_close(one, other, atol=1e-14, rtol=0)
    late = relax(state, torch.zeros(3).double(), prior)
    assert not late.mean.any() and torch.equal(late.covariance, torch.diag(prior))


@pytest.mark.parametrize("count", [1, 16, 40])
def test_an_update_is_bayes_rule_in_information_form(count, monkeypatch):
    monkeypatch.setattr(kalman_filter, "BLOCK", 16)
    rng = seeds.stream(0, "update", count)
    root, design = rng.normal(size=(6, 6)), rng.normal(size=(count, 6))
    mean = rng.normal(size=(6, 2))
    values = rng.normal(size=(count, 2))
    variance = rng.uniform(0.1, 2, count)
    before = root @ root.T + np.eye(6)
    after = np.linalg.inv(np.linalg.inv(before) + design.T @ (design / variance[:, None]))
    state = update(
        State(torch.tensor(mean), torch.tensor(before)),
        *(torch.tensor(a) for a in (design, values, variance)),
    )
    np.testing.assert_allclose(state.covariance, after, atol=1e-10)
    np.testing.assert_allclose(
        state.mean,
        after @ (np.linalg.inv(before) @ mean + design.T @ (values / variance[:, None])),
        atol=1e-10,
    )


def test_nodes_know_themselves_and_nothing_far_away():
    nodes = torch.tensor(NODES / LENGTHS)
    seen = features(nodes, nodes, 0.8)
    np.testing.assert_allclose(seen @ seen.T, space(NODES, NODES), atol=1e-8)
    assert not features(nodes + 100, nodes, 0.8).any()
    near = features(torch.tensor(drawn((-1,), 200)[0][:, :3] / LENGTHS), nodes, 0.8).square().sum(1)
    assert (near < 0.8**2 + 1e-9).all() and near.min() < 0.5 < near.max()
    crowded = features(
        torch.tensor(NODES / 50), torch.tensor(NODES / 50), 1.0
    )  # lengths far beyond the spacing
    assert crowded.isfinite().all() and (crowded.square().sum(1) - 1).abs().max() < 1e-5


def test_an_empty_context_gives_the_prior_and_a_far_or_late_target_the_mean_state():
    x, y, targets = drawn((-3, -1), 30)
    mean, scale = predicted(made(), x[:0], y[:0], targets)
    assert not mean.any()
    np.testing.assert_allclose(scale, np.sqrt(0.8**2 + 1.5**2 + 0.3**2), rtol=1e-9)
    far, late = targets.copy(), targets.copy()
    far[:, 0], late[:, 3] = 1e4, 1e4
    for odd in (far, late):
        mean, scale = predicted(made(), x, y + 5, odd)
        assert np.ptp(mean, 0).max() < 1e-9 and (mean > 3).all() and (np.abs(mean - 5) < 1.5).all()
        assert (scale**2 > 0.8**2 + 0.3**2).all() and (scale**2 < 0.8**2 + 1.5**2).all()


def test_padding_company_and_order_change_nothing():
    model, sets = made(), []
    for seed, (context, targets) in enumerate([(0, 1), (1, 1), (3, 0), (2, 5), (17, 4), (40, 33)]):
        generator = seeds.torch_stream(seed, "test", context, targets)

        def draw(count, width, generator=generator):
            return torch.randn(count, width, generator=generator)

        sets.append(single(draw(context, 4), draw(context, 2), draw(targets, 4), draw(targets, 2)))
    joint = collate(sets)
    joint = Batch(
        **{
            key: value
            if value.dtype == torch.bool
            else value
            + 1e6 * ~(joint.target_mask if "target" in key else joint.context_mask)[..., None]
            for key, value in vars(joint).items()
        }
    )
    together = model(joint)
    for row, alone in enumerate(sets):
        lone, targets = model(alone), alone.target_x.shape[1]
        assert (
            lone.mean.shape == lone.scale.shape == (1, targets, 2)
            and lone.mean.dtype == torch.float32
        )
        for one, other in ((together.mean, lone.mean), (together.scale, lone.scale)):
            assert one.isfinite().all()
            torch.testing.assert_close(one[row, :targets], other[0], atol=1e-5, rtol=1e-5)
    last = sets[-1]
    last.context_x[0, 5:10] = last.context_x[0, 5]  # five reports from one place
    context, target = (
        torch.randperm(n, generator=seeds.torch_stream(1, "permutation", n)) for n in (40, 33)
    )
    shuffled = Batch(
        last.context_x[:, context],
        last.context_y[:, context],
        last.context_mask,
        last.target_x[:, target],
        last.target_mask,
    )
    for one, other in zip(vars(model(last)).values(), vars(model(shuffled)).values(), strict=True):
        torch.testing.assert_close(one[:, target], other, atol=1e-5, rtol=1e-5)


def test_it_is_built_without_memory_and_has_nothing_to_learn():
    with torch.device("meta"):
        model = made()
    x, y, targets = drawn((-3, -1), 30)
    np.testing.assert_array_equal(
        predicted(model, x, y, targets)[0], predicted(made(), x, y, targets)[0]
    )
    assert (
        model.context == "recent"
        and model.learns == "nothing"
        and model.window_s == 10800
        and not model.state_dict()
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"noise": 0.0},
        {"horizontal_km": -1.0},
        {"time_min": float("nan")},
        {"nodes_up": 1},
        {"step_s": 0.0},
    ],
)
def test_what_makes_no_filter_is_refused(arguments):
    with pytest.raises(InputError, match="no Kalman filter can be made of this"):
        made(**arguments)
    with pytest.raises(InputError):
        Kalman(3, 2, 2)
