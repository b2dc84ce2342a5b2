"""Gaussian kernel averaging with a given, a learned and a varying scale against plain float64
arithmetic and named levels of error."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from stages import seeds
from stages.batches import Batch
from stages.fields.models.gka import GKA
from stages.fields.models.gka_mlp_tnn import GKAMLPTNN
from stages.fields.models.gka_tnn import GKATNN

UNITS = np.array([100.0, 100.0, 1.0, 60.0])  # km, km, km, min of a local unit
LENGTHS = {"horizontal_km": 30.0, "vertical_km": 0.7, "time_min": 45.0}
EACH = np.array([30.0, 30.0, 0.7, 45.0])


def drawn(sets, context, targets=1, seed=0):
    """Places in km and min around each target, and winds: context_x, context_y, target_x,
    target_y."""
    rng = seeds.stream(seed, "gka", sets, context)
    target = np.stack(
        (*rng.uniform(-200, 200, (2, sets)), rng.uniform(-3, 3, sets), np.full(sets, 30.0)), 1
    )
    spread = rng.normal(size=(sets, context, 4)) * np.array([40.0, 40.0, 0.8, 30.0]) - np.array(
        [0, 0, 0, 60.0]
    )
    return (
        target[:, None] + spread,
        rng.normal(size=(sets, context, 2)),
        np.repeat(target[:, None], targets, 1) + rng.normal(size=(sets, targets, 4)),
        rng.normal(size=(sets, targets, 2)),
    )


def batch_of(x, y, target, wanted=None):
    def tensor(values):
        return None if values is None else torch.tensor(values, dtype=torch.float32)

    def real(values):
        return torch.ones(values.shape[:2], dtype=torch.bool)

    return Batch(
        tensor(x / UNITS), tensor(y), real(x), tensor(target / UNITS), real(target), tensor(wanted)
    )


def averaged(x, y, target, each):
    """Equation 1.1 with a minus, lengths in km and min: (4,), or one of each target."""
    gap = (target[:, :, None] - x[:, None]) / each
    exponent = -(gap**2).sum(3)
    weight = np.exp(exponent - exponent.max(2, keepdims=True))
    return weight @ y / weight.sum(2, keepdims=True)


def rmse(model, batch):
    return (model(batch).mean - batch.target_y).square().mean().sqrt()


def trained(model, batches, steps):
    """Adam as in stages/training/loop.py, at the model's own rate."""
    optimizer = torch.optim.Adam(model.parameters(), lr=model.learning_rate)
    for step in range(steps):
        optimizer.zero_grad()
        loss = rmse(model, batches[step % len(batches)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 4.0)
        optimizer.step()
    return model


@pytest.mark.parametrize("model", [GKA, GKATNN], ids=["given", "learned"])
@pytest.mark.parametrize("times", [0.3, 1.0, 20.0])
def test_the_forecast_is_equation_1_1_with_a_minus(model, times):
    x, y, target, _ = drawn(20, 50, targets=3)
    found = model(4, 2, 2, 64, **{name: value * times for name, value in LENGTHS.items()})(
        batch_of(x, y, target)
    ).mean
    np.testing.assert_allclose(found.detach(), averaged(x, y, target, times * EACH), atol=1e-4)


def test_short_lengths_make_persistence_and_long_ones_the_mean():
    x, y, target, _ = drawn(20, 30)
    batch = batch_of(x, y, target)
    near = (((target - x) / UNITS) ** 2).sum(2).argmin(1)
    np.testing.assert_allclose(
        GKA(4, 2, 2, 64, 0.1, 0.001, 0.06)(batch).mean[:, 0], y[np.arange(20), near], atol=1e-4
    )
    np.testing.assert_allclose(
        GKA(4, 2, 2, 64, 1e6, 1e4, 6e5)(batch).mean[:, 0], y.mean(1), atol=1e-4
    )


def test_each_target_has_the_scale_of_its_own_place():
    torch.manual_seed(0)
    x, y, target, _ = drawn(20, 50, targets=3)
    target[:, 1:, :3] += np.random.default_rng(0).uniform(-100, 100, (20, 2, 3)) * [1, 1, 0.01]
    model = GKAMLPTNN(4, 2, 2, **LENGTHS)
    assert sum(parameter.numel() for parameter in model.parameters()) == 1283
    with torch.no_grad():
        model.network[-1].weight.mul_(100)  # a scale that varies strongly
    batch = batch_of(x, y, target)
    network = [parameter.detach().double().numpy() for parameter in model.network.parameters()]
    hidden = (target / UNITS)[..., :3]
    for weight, bias in zip(network[::2], network[1::2], strict=True):
        hidden = hidden @ weight.T + bias
        hidden = hidden if weight is network[-2] else hidden.clip(0)
    factor = np.exp(8 * np.tanh(hidden / 8))[..., [0, 0, 1, 2]]  # s = s0 exp(MLP), bounded
    assert factor.max() / factor.min() > 2
    wanted = averaged(x, y, target, (EACH / np.sqrt(factor))[:, :, None])
    np.testing.assert_allclose(model(batch).mean.detach(), wanted, atol=1e-4)
    own = model.scale(batch.target_x).detach().numpy()
    np.testing.assert_allclose(own, factor * (UNITS / EACH) ** 2, rtol=1e-3)
    np.testing.assert_allclose(
        GKAMLPTNN(4, 2, 2, requery=1, **LENGTHS).metric(batch.target_x[:, 0]) * EACH**2 / UNITS**2,
        1,
        rtol=0.1,
    )


@pytest.mark.parametrize("model", [GKA, GKATNN, GKAMLPTNN], ids=lambda model: model.__name__)
def test_the_forecast_never_leaves_the_range_of_its_context(model):
    for count in (1, 2, 5, 40):
        x, y, target, _ = drawn(50, count, targets=4)
        found = model(4, 2, 2)(batch_of(x, y, 10 * target)).mean.detach().numpy()
        assert (found >= y.min(1, keepdims=True) - 1e-6).all() and (
            found <= y.max(1, keepdims=True) + 1e-6
        ).all()


@pytest.mark.parametrize("shift", [-1e30, -300.0, -3.0, 3.0, 300.0, 1e30])
def test_the_scale_is_positive_and_finite_whatever_is_learned(shift):
    one, many = GKATNN(4, 2, 2, requery=1), GKAMLPTNN(4, 2, 2, requery=1)
    with torch.no_grad():
        one.shift.fill_(shift)
        many.network[-1].bias.fill_(shift)
    for model in (one, many):
        scale = model.metric(torch.zeros(3, 4))
        assert torch.isfinite(scale).all() and (scale > 1e-4).all() and (scale < 1e5).all()
        assert (scale > 1).all() if shift > 0 else (scale < 4).all()
        loss = rmse(model, batch_of(*drawn(20, 30)))
        loss.backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_learning_begins_where_the_given_scale_stands():
    batch = batch_of(*drawn(200, 50))
    given = GKA(4, 2, 2, **LENGTHS)(batch).mean
    torch.testing.assert_close(GKATNN(4, 2, 2, **LENGTHS)(batch).mean, given, atol=1e-5, rtol=0)
    torch.testing.assert_close(GKAMLPTNN(4, 2, 2, **LENGTHS)(batch).mean, given, atol=0.05, rtol=0)


def test_the_gradient_of_the_scale_is_the_slope_of_the_error():
    batch = batch_of(*drawn(50, 30))

    def at(shift):
        model = GKATNN(4, 2, 2, **LENGTHS)
        with torch.no_grad():
            model.shift.copy_(torch.tensor(shift))
        return model

    here = np.array([0.3, -0.5, 0.2])
    model = at(here)
    rmse(model, batch).backward()
    for axis, step in enumerate(np.eye(3) * 0.02):
        high, low = (rmse(at(here + sign * step), batch).item() for sign in (1, -1))
        assert model.shift.grad[axis].item() == pytest.approx((high - low) / 0.04, abs=2e-4)


def waves(x, east_km, north_km, up_km, time_min):
    """A smooth wind (.., 2) with a length along each axis."""
    phase = x / np.array([east_km, north_km, up_km, time_min])
    return np.stack((np.sin(phase.sum(-1)), np.cos(phase @ np.array([1.0, -1.0, 1.0, -1.0]))), -1)


def test_the_learned_scale_is_the_best_one():
    """Adam through the neighbours finds what a direct search over the three lengths finds."""
    x, noise, target, _ = drawn(200, 24)
    y, wanted = waves(x, 60, 60, 2.0, 300) + 0.3 * noise, waves(target, 60, 60, 2.0, 300)
    batch = batch_of(x, y, target, wanted)

    def error(logs):
        return np.sqrt(((averaged(x, y, target, np.exp(logs)[[0, 0, 1, 2]]) - wanted) ** 2).mean())

    best = minimize(
        error,
        np.log([50.0, 0.5, 60.0]),
        method="Nelder-Mead",
        options={"xatol": 0.01, "fatol": 1e-5},
    )
    model = GKATNN(4, 2, 2, requery=1)
    first, last = rmse(model, batch).item(), rmse(trained(model, [batch], 150), batch).item()
    assert best.fun < 0.9 * first and last < best.fun + 0.002
    lengths = UNITS / np.sqrt(model.metric(batch.target_x[:, 0]))
    np.testing.assert_allclose(lengths[[0, 2, 3]], np.exp(best.x), rtol=0.1)


def test_a_scale_that_varies_beats_one_scale_where_the_wind_does():
    """West of 0 the wind turns within 25 km and is measured well; east it is steady and measured
    badly: one length must fail somewhere."""

    def sets(seed):
        x, noise, target, _ = drawn(200, 24, seed=seed)
        y, wanted = (np.where(p[..., :1] < 0, waves(p, 25, 25, 5.0, 1e4), 0.5) for p in (x, target))
        return batch_of(x, y + np.where(x[..., :1] < 0, 0.05, 1.0) * noise, target, wanted)

    batches, unseen = [sets(seed) for seed in range(10)], sets(99)
    torch.manual_seed(0)
    one, many = (
        rmse(trained(model(4, 2, 2), batches, 150), unseen).item() for model in (GKATNN, GKAMLPTNN)
    )
    assert one > 0.36 and many < 0.29
