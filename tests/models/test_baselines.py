"""Averages, k nearest neighbours and the Gaussian kernel against plain float64 arithmetic."""

import numpy as np
import pytest
import torch

from stages import seeds
from stages.batches import collate, single
from stages.errors import InputError
from stages.models.fields import build
from stages.neighbours import linear


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
    monkeypatch.setattr(linear, "PAIRS", 130)  # several chunks
    (x, y, t), batch = some(50, 23)
    model = build("knn", {"neighbours": (count,)})
    order = np.argsort(((t[:, None] - x[None]) ** 2).sum(-1), axis=1)[:, :count]
    np.testing.assert_allclose(model(batch).mean[0], y[order].mean(1), atol=1e-5)


def test_fewer_neighbours_than_asked_for_in_one_set_of_a_batch():
    (_, y, _), few = some(3, 2)
    _, many = some(20, 2)
    model = build("knn", {"neighbours": (8,)})
    np.testing.assert_allclose(model(collate([few, many])).mean[0], np.tile(y.mean(0), (2, 1)), atol=1e-5)


def test_points_tied_at_the_last_place_share_it():
    x = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [5, 0, 0]])
    y = torch.tensor([[10.0, 0], [1, 0], [2, 0], [6, 0], [99, 0]])
    model = build("knn", {"neighbours": (3,)})  # one place for the first, two for the three at distance 1
    torch.testing.assert_close(model(single(x, y, torch.zeros(1, 3))).mean[0, 0, 0], torch.tensor((10 + 2 * 3.0) / 3))


def kernel(*log_scale):
    model = build("kernel")
    with torch.no_grad():
        model.log_scale.copy_(torch.tensor(log_scale))
    return model


@pytest.mark.parametrize("log_scale", [(0.0, 0.0), (2.0, -1.0), (5.0, 3.0), (-20.0, -20.0)])
def test_the_kernel_is_equation_1_1_with_a_minus(log_scale):
    (x, y, t), batch = some(60, 30)
    square = (t[:, None] - x[None]) ** 2
    exponent = -(np.exp(log_scale[0]) * square[..., :2].sum(-1) + np.exp(log_scale[1]) * square[..., 2])
    weight = np.exp(exponent - exponent.max(1, keepdims=True))
    # a float32 exponent s d^2 carries an error of about s times 1e-6, and the weights with it
    np.testing.assert_allclose(kernel(*log_scale)(batch).mean[0].detach(), weight @ y / weight.sum(1, keepdims=True),
                               atol=1e-5 + 1e-6 * np.exp(max(log_scale)))


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
    loss = lambda model: (model(batch).mean - target).square().mean()  # noqa: E731
    model = kernel(0.3, -0.4)
    loss(model).backward()
    for axis, step in enumerate(torch.eye(2) * 0.01):
        high, low = (loss(kernel(*(torch.tensor([0.3, -0.4]) + sign * step).tolist())) for sign in (1, -1))
        torch.testing.assert_close(model.log_scale.grad[axis], (high - low) / 0.02, atol=1e-4, rtol=1e-2)


def test_an_average_cannot_predict_other_components_than_it_reads():
    with pytest.raises(InputError, match="cannot predict"):
        build("hour_average", i_dim=2, o_dim=1)
