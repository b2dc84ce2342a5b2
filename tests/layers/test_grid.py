"""The index arithmetic of grids against brute force: nearest cells, neighbours, windows, patches,
interpolation; poles, date line, grids that are not square, odd and even windows; and the error of
the public code of document G."""

import itertools
import math

import numpy as np
import pytest
import torch

from stages import seeds
from stages.errors import InputError
from stages.layers import grid as on
from stages.layers.grid import Grid, GriddedBatch


def plane(*shape, low=-2.0, step=0.25):
    axes = tuple(low + step * torch.arange(count) for count in shape)
    return Grid(axes, torch.zeros(1, *shape, 1), torch.ones(1, *shape, dtype=torch.bool))


def globe(rows, columns, first=-180.0, poles=False):
    lat = torch.linspace(-90, 90, rows, dtype=torch.float64) if poles else (
        -90 + (torch.arange(rows, dtype=torch.float64) + 0.5) * 180 / rows
    )  # fmt: skip
    lon = first + 360 / columns * torch.arange(columns, dtype=torch.float64)
    mask = torch.ones(1, rows, columns, dtype=torch.bool)
    return Grid((lat, lon), torch.zeros(1, rows, columns, 1), mask, sphere=True)


def drawn(*shape, low=-1.0, high=1.0, name="points"):
    return torch.from_numpy(seeds.stream(0, "grid", name, *shape).uniform(low, high, shape))


def around(count=4000):
    """Places all over the sphere, many of them near the poles and the date line."""
    z, east = drawn(1, count, 2, name="sphere").unbind(2)
    north = torch.rad2deg(torch.asin(z))
    close = torch.arange(count) % 4 == 0
    north = torch.where(close, north.sign() * (90 - 0.2 * (90 - north.abs())), north)
    east = torch.where(torch.arange(count) % 4 == 1, 180 - 2 * east, 180 * east)
    return torch.stack((north, (east + 180).remainder(360) - 180), 2)


@pytest.mark.parametrize("shape", [(17,), (3, 6), (6, 3), (12, 5), (4, 7, 3)])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_neighbours_are_the_nearest_along_each_axis_also_outside(shape, count):
    grid, x = plane(*shape), drawn(2, 300, len(shape), low=-3, high=2)
    found = on.neighbours(grid, x, count)
    for place in np.ndindex(2, 300):
        lines = []
        for axis, cells in zip(range(len(shape)), grid.axes, strict=True):
            gaps = (cells.double() - x[place][axis]).abs()
            lines.append(sorted(gaps.argsort(stable=True)[: min(count, len(cells))].tolist()))
        expected = {int(np.ravel_multi_index(one, shape)) for one in itertools.product(*lines)}
        assert set(found[place].tolist()) == expected
        assert len(expected) == found.shape[2]


@pytest.mark.parametrize("first", [-180.0, 0.0, 7.5])
@pytest.mark.parametrize("shape", [(12, 24), (9, 4), (5, 40)])
@pytest.mark.parametrize("poles", [False, True])
def test_the_nearest_cell_of_a_sphere_is_that_of_the_great_circle(shape, poles, first):
    grid, x = globe(*shape, first, poles), around()
    found = on.nearest(grid, x)[0]
    gaps = on.angle(x[0][:, None], grid.places())
    reached = gaps.gather(1, found[:, None])[:, 0]
    torch.testing.assert_close(reached, gaps.amin(1), atol=1e-9, rtol=0)


def test_rounding_each_axis_as_printed_misses_the_nearest_cell_of_some_places():
    grid, x = globe(9, 4), around()
    rounded = (x[0, :, :1] - grid.axes[0]).abs().argmin(1)
    missed = on.nearest(grid, x)[0] // 4 != rounded
    assert 0 < float(missed.double().mean()) < 0.5


def test_angles_are_those_of_unit_vectors():
    a, b = around(500)[0], around(500)[0].flip(0)

    def vector(x):
        north, east = torch.deg2rad(x).unbind(1)
        return torch.stack((north.cos() * east.cos(), north.cos() * east.sin(), north.sin()), 1)

    expected = (vector(a) * vector(b)).sum(1).clamp(-1, 1).arccos()
    torch.testing.assert_close(on.angle(a, b), expected, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_neighbours_of_a_sphere_cross_the_date_line_and_end_at_the_poles(count):
    grid, x = globe(6, 12), around(400)
    found = on.neighbours(grid, x, count)
    where = on.counted(grid, x)
    for place in range(400):
        row, column = where[0, place].tolist()
        north = sorted(range(6), key=lambda cell: abs(cell - row))[:count]
        east = sorted(range(12), key=lambda cell: min((cell - column) % 12, (column - cell) % 12))
        expected = {12 * i + j for i in north for j in east[:count]}
        assert set(found[0, place].tolist()) == expected


@pytest.mark.parametrize("shape", [(7,), (8,), (5, 8), (8, 5), (3, 4, 5)])
@pytest.mark.parametrize("window", [2, 3, 4, 5])
@pytest.mark.parametrize("wraps", [False, True])
def test_windows_hold_every_cell_once_and_who_is_together_is_near(shape, window, wraps):
    periodic = (False,) * (len(shape) - 1) + (wraps,)
    for shift in (0, window // 2):
        order = on.windows(shape, periodic, window, shift)
        assert sorted(order[order >= 0].tolist()) == list(range(math.prod(shape)))
        owner = torch.empty(math.prod(shape), dtype=torch.long)
        for number, inside in enumerate(order):
            owner[inside[inside >= 0]] = number

        def group(cell, shift=shift):
            numbers = []
            for index, cells, again in zip(np.unravel_index(cell, shape), shape, periodic,
                                           strict=True):  # fmt: skip
                size = min(window, cells)
                moved = index - shift % size
                numbers.append((moved % cells if again else moved) // size)
            return tuple(numbers)

        for a, b in itertools.combinations(range(math.prod(shape)), 2):
            assert (owner[a] == owner[b]) == (group(a) == group(b))


def test_patches_are_the_blocks_of_the_grid():
    shape, tokens = (4, 6), torch.arange(24.0)[None, :, None]
    expected = tokens.view(4, 6).view(2, 2, 3, 2).permute(0, 2, 1, 3).reshape(1, 6, 4)
    assert torch.equal(on.patches(tokens, shape, 2), expected)
    coarse = plane(4, 6).coarse(2)
    assert coarse.shape == (2, 3) and float(coarse.axes[1][1]) == pytest.approx(-2 + 0.25 * 2.5)


def test_the_published_strides_are_right_on_square_grids_alone():
    index = torch.stack(torch.meshgrid(torch.arange(120), torch.arange(240), indexing="ij"), -1)
    right, wrong = (on.flat(index, (120, 240), how) for how in on.INDICES)
    assert torch.equal(right.flatten(), torch.arange(120 * 240))
    assert int(wrong.max()) == 14_519  # of 28,800 cells
    assert len(torch.unique(wrong)) < 15_000
    square = index[:, :120]
    assert torch.equal(on.flat(square, (120, 120), "as_published"), on.flat(square, (120, 120)))
    few = torch.stack(torch.meshgrid(torch.arange(3), torch.arange(6), indexing="ij"), -1)
    agree = on.flat(few, (3, 6), "as_published") == on.flat(few, (3, 6))
    assert float(agree.double().mean()) == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="leave this grid"):
        on.flat(few.transpose(0, 1), (6, 3), "as_published")


def test_a_grid_that_is_none_is_refused():
    mask = torch.ones(1, 3, 4, dtype=torch.bool)
    lat, lon = torch.tensor([-60.0, 0.0, 60.0]), torch.arange(4) * 90.0
    with pytest.raises(InputError, match="do not lie on its axes"):
        Grid((lon, lat), torch.zeros(1, 3, 4, 1), mask)
    with pytest.raises(InputError, match="not regular"):
        Grid((torch.tensor([-60.0, 10.0, 60.0]), lon), torch.zeros(1, 3, 4, 1), mask)
    with pytest.raises(InputError, match="go around"):
        Grid((lat, lon / 2), torch.zeros(1, 3, 4, 1), mask, sphere=True)
    with pytest.raises(InputError, match="divide"):
        plane(6, 9).coarse(2)


def test_batches_of_one_grid_are_stacked_and_of_two_refused():
    def batch(points, grid):
        places, values = torch.zeros(1, points, 1), torch.zeros(1, points, 1)
        real = torch.ones(1, points, dtype=torch.bool)
        return GriddedBatch(places, values, real, places, real, None, grid)

    both = on.collate([batch(2, plane(5)), batch(4, plane(5))])
    assert both.context_mask.sum(1).tolist() == [2, 4] and both.grid.values.shape == (2, 5, 1)
    with pytest.raises(InputError, match="different grids"):
        on.collate([batch(2, plane(5)), batch(4, plane(5, low=0.0))])
    with pytest.raises(InputError, match="some have none"):
        on.collate([batch(2, plane(5)), batch(4, None)])
