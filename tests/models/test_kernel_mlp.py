"""Kernel averaging of a slice with a network's scale: against plain float64 arithmetic, inside
the convex hull, and able to learn."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from stages import seeds
from stages.batches import single
from stages.fields.models import build


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeds.torch_stream(seed, "kernel_mlp", *shape))


def kernel_mlp(sharp=1.0, x_dim=3):
    """With all weights of the last map multiplied: larger and more varied scales."""
    seeds.everything(0)
    model = build("kernel_mlp", {}, {"width": 64, "layers": 2}, x_dim)
    with torch.no_grad():
        model.network[-1].weight.mul_(sharp)
    return model


@pytest.mark.parametrize("sharp", [1.0, 20.0])
@pytest.mark.parametrize("x_dim", [1, 2, 3, 9])
def test_the_forecast_is_equation_1_1_with_a_minus_and_a_scale_of_the_targets_place(sharp, x_dim):
    model, x, y, t = kernel_mlp(sharp, x_dim), draw(30, x_dim), draw(30, 2), draw(12, x_dim)
    answer = model.network(t).detach().double().numpy()
    scale = np.exp(8 * np.tanh(answer / 8))
    square = (t.double().numpy()[:, None] - x.double().numpy()) ** 2
    exponent = -np.einsum("ta,tca->tc", scale, square)
    weight = np.exp(exponent - exponent.max(1, keepdims=True))
    expected = weight @ y.double().numpy() / weight.sum(1, keepdims=True)
    np.testing.assert_allclose(model(single(x, y, t)).mean[0].detach().numpy(), expected, atol=2e-5)
    np.testing.assert_allclose(model.scale(t).detach().numpy(), scale, rtol=1e-5)


@pytest.mark.parametrize("sharp", [1.0, 100.0])
def test_no_forecast_leaves_the_convex_hull_of_the_contexts_values(sharp):
    """Each forecast is a convex combination: weights >= 0 that sum to 1 exist (a linear
    programme), to 1e-5."""
    model = kernel_mlp(sharp)
    x = draw(15, 3)
    y = draw(15, 2)
    t = torch.cat((draw(6, 3), 1e4 * draw(2, 3)))
    values = y.double().numpy()
    for forecast in model(single(x, y, t)).mean[0].detach().double().numpy():
        # least c with |y^T w - forecast| <= c, w in the simplex
        above = np.column_stack((np.concatenate((values.T, -values.T)), -np.ones(4)))
        found = linprog(
            [0] * 15 + [1], above, np.concatenate((forecast, -forecast)), [[1] * 15 + [0]], [1]
        )
        assert found.success and found.fun < 1e-5


def test_one_place_far_away_changes_nothing():
    model, x, y, t = kernel_mlp(), draw(10, 3), draw(10, 2), draw(5, 3)
    near = model(single(x, y, t)).mean
    far = model(
        single(torch.cat((x, torch.full((1, 3), 60.0))), torch.cat((y, torch.full((1, 2), 1e3))), t)
    ).mean
    torch.testing.assert_close(far, near, atol=1e-3, rtol=0)


def test_it_learns_which_axis_matters_where():
    """Values follow the first axis where the second is above 0 and the third elsewhere: no one
    scale can say that."""
    model = kernel_mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def truth(x):
        return torch.where(x[:, 1:2] > 0, x[:, :1], x[:, 2:]).repeat(1, 2)

    losses = []
    for step in range(150):
        x, t = draw(120, 3, seed=2 * step), draw(60, 3, seed=2 * step + 1)
        loss = (model(single(x, truth(x), t)).mean[0] - truth(t)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:5])
    first, _, third = model.scale(torch.tensor([[0.0, 1.5, 0.0], [0.0, -1.5, 0.0]])).log().unbind(1)
    assert first[0] > third[0] + 1 and third[1] > first[1] + 1
