"""SetConv against its equation, summed point by point and cell by cell."""

import pytest
import torch

from stages import seeds
from stages.layers.set_conv import LEAST, SetConv, regular_axes

DIMENSIONS = pytest.mark.parametrize("x_dim", [1, 2, 3])


def drawn(x_dim: int):
    """Two sets of seven points, some not real, two values each; a grid that covers them."""
    generator = seeds.torch_stream(0, "set_conv", x_dim)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, y = normal(2, 7, x_dim), normal(2, 7, 2)
    real = torch.rand(2, 7, generator=generator) > 0.2
    axes, own = regular_axes(x, real, 3.0, 2, 20)
    cells = torch.stack(
        [torch.stack(torch.meshgrid(*(a[b] for a in axes), indexing="ij"), -1) for b in range(2)]
    )
    return SetConv(x_dim, 0.3).double(), x, y, real, axes, own, cells.flatten(1, -2)


def kernel(places, points, layer):
    """k of every pair, from the definition: B G N."""
    length = torch.nn.functional.softplus(layer.raw_length) + LEAST
    gap = (places[:, :, None] - points[:, None]) / length
    return torch.exp(-0.5 * gap.square().sum(-1))


@DIMENSIONS
def test_the_grid_holds_the_density_and_the_mean_of_near_values(x_dim):
    layer, x, y, real, axes, _, cells = drawn(x_dim)
    weight = kernel(cells, x, layer) * real[:, None]
    density = weight.sum(2)
    mean = torch.einsum("bgn,bni->big", weight, y) / (density[:, None] + LEAST)
    found = layer.onto_grid(x, y, real, axes).flatten(2)
    torch.testing.assert_close(found, torch.cat((density[:, None], mean), 1))


@DIMENSIONS
def test_a_place_reads_the_sum_of_all_cells_by_their_distance(x_dim):
    layer, x, y, real, axes, _, cells = drawn(x_dim)
    grid = layer.onto_grid(x, y, real, axes)
    expected = torch.einsum("bng,bfg->bnf", kernel(x, cells, layer), grid.flatten(2))
    torch.testing.assert_close(layer.from_grid(grid, axes, x), expected)


@DIMENSIONS
def test_the_grid_covers_real_points_with_its_margin_and_moves_with_them(x_dim):
    _, x, _, real, axes, own, _ = drawn(x_dim)
    moved, _ = regular_axes(x + 7.5, real, 3.0, 2, 20)
    for axis, (places, mine, other) in enumerate(zip(axes, own, moved, strict=True)):
        step = places[:, 1] - places[:, 0]
        for row in range(2):
            inside, cells = x[row, real[row], axis], places[row, mine[row]]
            torch.testing.assert_close(cells[0], inside.min() - 2 * step[row])
            assert inside.max() + 1.999 * step[row] <= cells[-1] <= inside.max() + 4 * step[row]
        torch.testing.assert_close(other, places + 7.5)


def test_a_set_that_is_too_long_has_wider_cells_and_an_empty_one_stays_finite():
    x = torch.tensor([[[0.0], [1e4]], [[3.0], [5.0]]])
    real = torch.tensor([[True, True], [False, False]])
    (places,), (own,) = regular_axes(x, real, 16.0, 3, 64)
    assert int(own[0].sum()) == 64 + 6 and int(own[1].sum()) == 1 + 6
    assert torch.isfinite(places).all()
