"""Averages, nearest neighbours, the quadratic trend and the Gaussian kernel against plain
float64 arithmetic."""

import numpy as np
import pytest
import torch

from stages import seeds
from stages.batches import collate, single
from stages.errors import InputError
from stages.fields.models import build
from stages.layers import distances


def some(context, targets):
    generator = seeds.stream(0, "baselines", context, targets)
    arrays = [generator.normal(size=shape) for shape in ((context, 3), (context, 2), (targets, 3))]
    return arrays, single(*(torch.tensor(a, dtype=torch.float32) for a in arrays))


@pytest.mark.parametrize("name", ["day_average", "hour_average"])
def test_an_average_is_the_mean_of_its_context(name):
    (_, y, _), batch = some(50, 7)
    np.testing.assert_allclose(build(name)(batch).mean[0], np.tile(y.mean(0), (7, 1)), atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 7, 50, 80])
def test_nearest_neighbours_against_a_full_sort(count, monkeypatch):
    monkeypatch.setattr(distances, "PAIRS", 130)  # several chunks
    (x, y, t), batch = some(50, 23)
    model = build("knn", {"neighbours": (count,)})
    order = np.argsort(((t[:, None] - x[None]) ** 2).sum(-1), axis=1)[:, :count]
    np.testing.assert_allclose(model(batch).mean[0], y[order].mean(1), atol=1e-5)


def test_fewer_neighbours_than_asked_for_in_one_set_of_a_batch():
    (_, y, _), few = some(3, 2)
    _, many = some(20, 2)
    model = build("knn", {"neighbours": (8,)})
    np.testing.assert_allclose(
        model(collate([few, many])).mean[0], np.tile(y.mean(0), (2, 1)), atol=1e-5
    )


def test_points_tied_at_the_last_place_share_it():
    x = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [5, 0, 0]])
    y = torch.tensor([[10.0, 0], [1, 0], [2, 0], [6, 0], [99, 0]])
    model = build(
        "knn", {"neighbours": (3,)}
    )  # one place for the first, two for the three at distance 1
    torch.testing.assert_close(
        model(single(x, y, torch.zeros(1, 3))).mean[0, 0, 0], torch.tensor((10 + 2 * 3.0) / 3)
    )


def test_persistence_is_the_nearest_report_and_knn_of_one():
    (x, y, t), batch = some(50, 23)
    nearest = ((t[:, None] - x[None]) ** 2).sum(-1).argmin(1)
    np.testing.assert_allclose(build("persistence")(batch).mean[0], y[nearest], atol=1e-6)
    assert torch.equal(
        build("persistence")(batch).mean, build("knn", {"neighbours": (1,)})(batch).mean
    )


def trend(x, y, t):
    return (
        build("trend")(single(*(torch.tensor(a, dtype=torch.float32) for a in (x, y, t))))
        .mean[0]
        .numpy()
    )


def surface(x, seed=0):
    """A quadratic wind, written out term by term: (N, 3) -> (N, 2)."""
    a, b, c = x.T
    terms = np.stack((np.ones_like(a), a, b, c, a * a, b * b, c * c, a * b, a * c, b * c), 1)
    return terms @ seeds.stream(seed, "surface").normal(size=(10, 2))


@pytest.mark.parametrize("count", [30, 300])
def test_the_trend_gives_a_quadratic_wind_back(count):
    (x, _, t), _ = some(count, 200)
    t = 2 * t  # some lie outside the data
    y, wanted = surface(x), surface(t)
    inside = ((y.min(0) <= wanted) & (wanted <= y.max(0))).all(1)
    assert 50 < inside.sum() < 195  # the others are for the clamp
    found = trend(x, y, t)
    np.testing.assert_allclose(found[inside], wanted[inside], atol=1e-4)
    np.testing.assert_allclose(found, wanted.clip(y.min(0), y.max(0)), atol=1e-4)


def test_the_trend_is_the_least_squares_fit_of_noisy_winds():
    (x, y, t), _ = some(400, 50)  # winds that no surface explains

    def columns(p):
        return np.stack(
            [
                p[:, 0] ** i * p[:, 1] ** j * p[:, 2] ** k
                for i in range(3)
                for j in range(3)
                for k in range(3)
                if i + j + k <= 2
            ],
            1,
        )

    fitted = columns(t) @ np.linalg.lstsq(columns(x), y, rcond=None)[0]
    np.testing.assert_allclose(trend(x, y, t), fitted.clip(y.min(0), y.max(0)), atol=1e-4)


def test_the_trend_of_three_reports_on_a_line_by_hand():
    x, y = (
        np.array([[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]),
        np.array([[1.0, 5], [0, 5], [3, 5]]),
    )  # u = 2 a^2 + a, v = 5
    t = np.array(
        [[0.5, 0, 0], [-0.5, 0, 0], [-0.25, 0, 0], [0.75, 0, 0], [9, 0, 0]]
    )  # 0.28 is the last inside; then the box's edges
    np.testing.assert_allclose(
        trend(x, y, t), [[1, 5], [0, 5], [0, 5], [1.875, 5], [3, 5]], atol=1e-4
    )


def test_the_trend_never_leaves_the_box_of_its_context():
    for count in (1, 2, 3, 5, 9, 10, 11, 40):
        (x, y, t), _ = some(count, 100)
        found, box = trend(x, y, 20 * t), y.astype(np.float32)
        assert (found >= box.min(0)).all() and (found <= box.max(0)).all()


def test_the_trend_of_one_place_is_its_mean_wherever_it_is_asked():
    x = np.full((4, 3), 0.7)
    y = np.array([[1.0, -2], [2, -2], [3, -2], [6, -2]])
    t = np.full((1, 3), 0.7)
    np.testing.assert_allclose(trend(x, y, t), [[3, -2]], atol=1e-6)
    np.testing.assert_allclose(
        trend(x[:1], y[:1], np.array([[0.0, 0, 0], [50, -50, 50]])), [[1, -2], [1, -2]], atol=1e-6
    )


def test_the_trend_of_nothing_is_the_prior_mean():
    assert not trend(np.zeros((0, 3)), np.zeros((0, 2)), np.ones((5, 3))).any()
    batch = collate([some(0, 4)[1], some(30, 4)[1]])
    assert not build("trend")(batch).mean[0].any() and build("trend")(batch).mean[1].all()


def kernel(*log_scale):
    model = build("kernel")
    with torch.no_grad():
        model.log_scale.copy_(torch.tensor(log_scale))
    return model


@pytest.mark.parametrize("log_scale", [(0.0, 0.0), (2.0, -1.0), (5.0, 3.0), (-20.0, -20.0)])
def test_the_kernel_is_equation_1_1_with_a_minus(log_scale):
    (x, y, t), batch = some(60, 30)
    square = (t[:, None] - x[None]) ** 2
    exponent = -(
        np.exp(log_scale[0]) * square[..., :2].sum(-1) + np.exp(log_scale[1]) * square[..., 2]
    )
    weight = np.exp(exponent - exponent.max(1, keepdims=True))
    # a float32 exponent s d^2 carries an error of about s times 1e-6, and the weights with it
    np.testing.assert_allclose(
        kernel(*log_scale)(batch).mean[0].detach(),
        weight @ y / weight.sum(1, keepdims=True),
        atol=1e-5 + 1e-6 * np.exp(max(log_scale)),
    )


def test_a_sharp_kernel_is_persistence_and_the_printed_sign_is_not():
    (x, y, t), batch = some(60, 30)
    found = kernel(9.0, 9.0)(batch).mean[0].detach().numpy()
    square = ((t[:, None] - x[None]) ** 2).sum(-1)
    clear = np.sort(square, 1)[:, 1] - np.sort(square, 1)[:, 0] > 0.01
    assert clear.sum() > 15
    np.testing.assert_allclose(found[clear], y[square.argmin(1)][clear], atol=1e-3)
    assert np.abs(found[clear] - y[square.argmax(1)][clear]).max() > 0.5


def test_the_kernels_gradient_is_the_slope_of_its_loss():
    _, batch = some(60, 30)
    target = torch.randn(1, 30, 2, generator=seeds.torch_stream(0, "slope"))

    def loss(model):
        return (model(batch).mean - target).square().mean()

    model = kernel(0.3, -0.4)
    loss(model).backward()
    for axis, step in enumerate(torch.eye(2) * 0.01):
        high, low = (
            loss(kernel(*(torch.tensor([0.3, -0.4]) + sign * step).tolist())) for sign in (1, -1)
        )
        torch.testing.assert_close(
            model.log_scale.grad[axis], (high - low) / 0.02, atol=1e-4, rtol=1e-2
        )


def test_an_average_cannot_predict_other_components_than_it_reads():
    with pytest.raises(InputError, match="cannot predict"):
        build("hour_average", i_dim=2, o_dim=1)
