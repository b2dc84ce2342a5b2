"""Kriging and the optimum against dense Gaussian processes in numpy and against winds drawn from
a known law."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from stages import seeds
from stages.batches import Batch
from stages.fields.models.kriging import Kriging
from stages.fields.models.optimum import Optimum
from stages.layers import distances

UNITS = np.array([100.0, 100.0, 1.0, 60.0])  # km, km, km, min of a local unit
KINDS = ("squared_exponential", "matern")
LAW = {"lengths": (80.0, 1.5, 50.0), "sd": 0.8, "noise": 0.15, "level": 0.4}  # km, km, min


def rho(a, b, lengths, kind="squared_exponential"):
    """Correlation of points a (.., N, 4) and b (.., M, 4) in km and min."""
    gap = np.abs(a[..., :, None, :] - b[..., None, :, :])
    r = np.sqrt(
        (gap[..., 0] ** 2 + gap[..., 1] ** 2) / lengths[0] ** 2 + gap[..., 2] ** 2 / lengths[1] ** 2
    )
    space = (
        np.exp(-(r**2) / 2)
        if kind == "squared_exponential"
        else (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)
    )
    return space * np.exp(-gap[..., 3] / lengths[2])


def places(sets, count, seed=0, near=1.0):
    """(sets, count, 4) in km and min, within about the law's lengths of each other."""
    rng = seeds.stream(seed, "kriging", sets, count)
    return rng.normal(size=(sets, count, 4)) * near * np.array([60.0, 60.0, 1.0, 30.0]) - np.array(
        [0, 0, 0, 40.0]
    )


def measured(x, law, seed=0, kind="squared_exponential"):
    """Two independent components (sets, count, 2) of the law's noisy values at x, one local mean
    a set and component."""
    rng = seeds.stream(seed, "measured", *x.shape)
    factor = np.linalg.cholesky(rho(x, x, law["lengths"], kind) + 1e-9 * np.eye(x.shape[1]))
    f = law["sd"] * factor @ rng.normal(size=(*x.shape[:2], 2))
    return (
        f + law["level"] * rng.normal(size=(len(x), 1, 2)) + law["noise"] * rng.normal(size=f.shape)
    )


def batch_of(x, y, split):
    """The first `split` points of each set are context, the others targets."""
    x, y = (torch.tensor(values, dtype=torch.float32) for values in (x / UNITS, y))
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    return Batch(
        x[:, :split], y[:, :split], real[:, :split], x[:, split:], real[:, split:], y[:, split:]
    )


def kriging(law, kind="squared_exponential"):
    model = Kriging(4, 2, 2, 32, kind)
    logs = np.log(
        [*np.array(law["lengths"]) / UNITS[[0, 2, 3]], law["sd"], law["noise"], law["level"]]
    )
    with torch.no_grad():
        model.shift.copy_(8 * torch.atanh((torch.tensor(logs) - model.start) / 8))
    return model


def learned(model):
    law = model.law()
    return np.array([value.item() for value in (*law.lengths, law.sd, law.noise, law.level)]) * [
        100.0,
        1.0,
        60.0,
        1,
        1,
        1,
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_spread_are_those_of_the_dense_gaussian_process(kind):
    x = places(5, 25)
    y = measured(x, LAW, kind=kind)
    found = kriging(LAW, kind)(batch_of(x, y, 18))
    among = (
        LAW["sd"] ** 2 * rho(x, x, LAW["lengths"], kind)
        + LAW["level"] ** 2
        + LAW["noise"] ** 2 * np.eye(25)
    )
    for row, (k, values) in enumerate(zip(among, y, strict=True)):
        gain = np.linalg.solve(k[:18, :18], k[:18, 18:]).T
        np.testing.assert_allclose(found.mean[row].detach(), gain @ values[:18], atol=2e-5)
        left = k[18:, 18:] - gain @ k[:18, 18:]
        np.testing.assert_allclose(
            found.scale[row].detach() ** 2, np.repeat(np.diag(left)[:, None], 2, 1), rtol=1e-4
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_level_is_ordinary_kriging(kind):
    """The unbiased weights of least variance, from the system with a Lagrange multiplier."""
    x = places(5, 19)
    law = LAW | {"level": 500.0}
    y = measured(x, LAW, kind=kind) + 3.0
    found = kriging(law, kind)(batch_of(x, y, 18))
    for row in range(5):
        k = law["sd"] ** 2 * rho(x[row], x[row], law["lengths"], kind)
        system = np.block(
            [
                [k[:18, :18] + law["noise"] ** 2 * np.eye(18), np.ones((18, 1))],
                [np.ones((1, 18)), np.zeros((1, 1))],
            ]
        )
        weight = np.linalg.solve(system, [*k[:18, 18], 1.0])
        np.testing.assert_allclose(weight[:18].sum(), 1)
        np.testing.assert_allclose(
            found.mean[row, 0].detach(), weight[:18] @ y[row, :18], atol=1e-3
        )
        left = law["sd"] ** 2 + law["noise"] ** 2 - weight @ [*k[:18, 18], 1.0]
        np.testing.assert_allclose(found.scale[row, 0].detach() ** 2, [left, left], rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_likelihood_of_context_and_target_together(kind, monkeypatch):
    x = places(6, 9)
    y = measured(x, LAW, kind=kind)
    batch = batch_of(x, y, 8)
    batch.context_mask[1, 5:] = False
    batch.context_mask[2] = False
    batch.target_mask[3] = False
    real = torch.cat((batch.context_mask, batch.target_mask), 1).numpy()
    among = (
        LAW["sd"] ** 2 * rho(x, x, LAW["lengths"], kind)
        + LAW["level"] ** 2
        + LAW["noise"] ** 2 * np.eye(9)
    )
    density = sum(
        multivariate_normal(cov=k[rows][:, rows]).logpdf(values[rows].T).sum()
        for k, values, rows in zip(among, y, real, strict=True)
    )
    model = kriging(LAW, kind)
    loss = model.loss(batch)
    assert loss.item() == pytest.approx(-density / (2 * real.sum()), rel=1e-5)
    loss.backward()
    whole = model.shift.grad.clone()
    for index in range(6):
        sides = []
        for sign in (1, -1):
            other = kriging(LAW, kind)
            with torch.no_grad():
                other.shift[index] += sign * 0.02
                sides.append(other.loss(batch).item())
        assert whole[index].item() == pytest.approx((sides[0] - sides[1]) / 0.04, abs=3e-4)
    monkeypatch.setattr(distances, "PAIRS", 2 * 81)  # two sets at a time
    model.shift.grad = None
    parts = model.loss(batch)
    parts.backward()
    assert parts.item() == pytest.approx(loss.item(), rel=1e-9)
    torch.testing.assert_close(model.shift.grad, whole)


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_is_learned_from_winds_that_follow_it(kind):
    """From lengths twice as long, Adam at the model's rate finds the six numbers of 1,200
    neighbourhoods, half of them of close reports."""
    x = places(1200, 13)
    x[:, 7:] = x[:, 1:7] + 0.01 * (places(1200, 6) + np.array([0, 0, 0, 40.0]))
    batch = batch_of(x, measured(x, LAW, kind=kind), 12)
    model = Kriging(4, 2, 2, 32, kind, 160.0, 3.0, 100.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=model.learning_rate)
    for step in range(160):
        rows = slice(step % 6 * 200, step % 6 * 200 + 200)
        optimizer.zero_grad()
        model.loss(Batch(**{name: value[rows] for name, value in vars(batch).items()})).backward()
        optimizer.step()
    ratio = learned(model) / np.array([*LAW["lengths"], LAW["sd"], LAW["noise"], LAW["level"]])
    assert (np.abs(np.log(ratio)) < np.log(1.12)).all()


def test_the_spread_of_a_wind_of_the_law_is_true():
    x = places(800, 21, seed=1)
    y = measured(x, LAW, seed=1)
    found = kriging(LAW)(batch_of(x, y, 18))
    z = ((torch.tensor(y[:, 18:]) - found.mean) / found.scale).detach().numpy()
    assert (z**2).mean() == pytest.approx(1, abs=0.08) and (
        np.abs(z) < 1.6449
    ).mean() == pytest.approx(0.9, abs=0.015)


def test_without_context_the_spread_is_the_laws_own():
    found = kriging(LAW)(batch_of(places(2, 3), np.zeros((2, 3, 2)), 0))
    assert not found.mean.any()
    torch.testing.assert_close(
        found.scale, torch.full((2, 3, 2), (0.8**2 + 0.15**2 + 0.4**2) ** 0.5)
    )


UP, DOWN = 1e30, -1e30


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shift",
    [
        (0,) * 6,
        (UP,) * 6,
        (DOWN,) * 6,
        (0, 0, 0, 0, DOWN, 0),
        (UP, UP, UP, UP, DOWN, UP),
        (DOWN, DOWN, DOWN, UP, DOWN, UP),
        (UP, UP, UP, DOWN, UP, DOWN),
    ],
    ids=str,
)
def test_equal_points_and_extreme_laws_stay_finite(shift, kind):
    x = places(12, 65)
    x[:2, 1:] = x[:2, :1]  # every report from one place and time
    x[2, 1:20] = x[2, :1]
    x[3:, :, 3] = 0.0  # all at once: nothing but a length in space tells them apart
    batch = batch_of(x, seeds.stream(0, "equal").normal(size=(12, 65, 2)), 64)
    model = kriging(LAW, kind)
    with torch.no_grad():
        model.shift += torch.tensor(shift)
    found = model(batch)
    assert (
        torch.isfinite(found.mean).all()
        and torch.isfinite(found.scale).all()
        and (found.scale > 0).all()
    )
    loss = model.loss(batch)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(model.shift.grad).all()


def test_many_reports_of_one_place_are_averaged():
    x, y = np.zeros((1, 31, 4)), seeds.stream(0, "one place").normal(size=(1, 31, 2))
    law = LAW | {"level": 500.0}
    found = kriging(law)(batch_of(x, y, 30))
    np.testing.assert_allclose(found.mean[0, 0].detach(), y[0, :30].mean(0), atol=1e-4)
    assert found.scale[0, 0, 0].item() == pytest.approx(0.15 * (1 + 1 / 30) ** 0.5, rel=1e-3)


WIND = {
    "mean_m_s_east": 20.0,
    "mean_m_s_north": -5.0,
    "sd_m_s": 8.0,
    "noise_m_s": 1.2,
    "horizontal_km": 120.0,
    "vertical_km": 1.5,
    "time_min": 70.0,
}
MEAN, OF = (
    np.array([20.0, -5.0]),
    {"lengths": (120.0, 1.5, 70.0), "sd": 8.0, "noise": 1.2, "level": 0.0},
)  # the same
Y_MEAN, Y_STD = np.array([18.0, -3.0]), np.array([9.0, 7.0])


def forecast(x, y, split):
    """The optimum's mean and spread in m/s, from standardised winds."""
    model = Optimum(4, 2, 2, **WIND)
    model.set_scaler(torch.tensor(Y_MEAN), torch.tensor(Y_STD))
    found = model(batch_of(x, (y - Y_MEAN) / Y_STD, split))
    return found.mean.numpy() * Y_STD + Y_MEAN, found.scale.numpy() * Y_STD


def test_the_optimum_is_the_exact_conditional_of_its_law():
    x = places(1, 240, near=2.0)
    y = MEAN + measured(x, OF)
    mean, sd = forecast(x, y, 200)
    among = 64.0 * rho(x[0], x[0], OF["lengths"]) + 1.44 * np.eye(240)
    gain = np.linalg.solve(among[:200, :200], among[:200, 200:]).T
    np.testing.assert_allclose(mean[0], MEAN + gain @ (y[0, :200] - MEAN), atol=1e-3)
    np.testing.assert_allclose(
        sd[0],
        np.sqrt(np.diag(among[200:, 200:] - gain @ among[:200, 200:]))[:, None].repeat(2, 1),
        rtol=1e-4,
    )


def test_the_optimum_without_measurements_is_its_laws_own():
    mean, sd = forecast(places(1, 3), np.zeros((1, 3, 2)), 0)
    np.testing.assert_allclose(mean[0], np.tile(MEAN, (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(sd, (64 + 1.44) ** 0.5, rtol=1e-6)


def test_the_optimum_errs_as_it_says_and_less_than_other_laws_would():
    """1,000 winds of the law: its RMSE is its own spread, 90 % lie where it says, and twice or
    half a length or noise is worse."""
    x = places(1000, 31, seed=2, near=1.5)
    y = MEAN + measured(x, OF, seed=2)
    mean, sd = forecast(x, y, 30)
    error = y[:, 30:] - mean
    assert np.sqrt((error**2).mean()) == pytest.approx(np.sqrt((sd**2).mean()), rel=0.04)
    assert (np.abs(error) < 1.6449 * sd).mean() == pytest.approx(0.9, abs=0.02)
    assert sd.max() < 8.1 and sd.min() > 1.2 and sd.mean() < 7
    for name in ("horizontal_km", "vertical_km", "time_min", "noise_m_s"):
        for times in (0.5, 2.0):
            other = Optimum(4, 2, 2, **WIND | {name: WIND[name] * times})
            other.set_scaler(torch.tensor(Y_MEAN), torch.tensor(Y_STD))
            found = other(batch_of(x, (y - Y_MEAN) / Y_STD, 30)).mean.numpy() * Y_STD + Y_MEAN
            assert ((y[:, 30:] - found) ** 2).mean() > (error**2).mean()
