"""Spectral layers against explicit Fourier sums, one term at a time; shifts on the torus."""

import cmath

import pytest
import torch

from stages.layers.spectral import Spectral, analyse, analyse_points, synthesise, synthesise_points

SIDE, MODES, SETS, WIDTH = 9, 3, 2, 4
KEPT = [*range(MODES), *range(-MODES, 0)]  # k1 in the order of the rows


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def wave(k1, k2, point):
    return cmath.exp(2j * cmath.pi * (k1 * float(point[0]) + k2 * float(point[1])))


def grid_points(side=SIDE):
    axis = torch.arange(side, dtype=torch.float64) / side
    return torch.cartesian_prod(axis, axis)


def some_coefficients():
    return torch.complex(draw(SETS, WIDTH, 2 * MODES, MODES), draw(SETS, WIDTH, 2 * MODES, MODES))


@pytest.mark.parametrize("side", [6, 8, SIDE])
def test_the_modes_of_a_grid_are_explicit_fourier_sums(side):
    grid = draw(1, 2, side, side)
    found = analyse(grid, MODES)
    assert found.shape == (1, 2, 2 * MODES, MODES)
    for row, k1 in enumerate(KEPT):
        for k2 in range(MODES):
            terms = torch.tensor([wave(k1, k2, point) for point in grid_points(side)]).conj()
            torch.testing.assert_close(found[0, :, row, k2], (grid[0].flatten(1) * terms).mean(1))


def test_the_modes_of_scattered_points_are_means_over_the_real_ones():
    points, values = draw(SETS, 7, 2), draw(SETS, 7, WIDTH)
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    found = analyse_points(values, points, mask, MODES)
    for number, real in enumerate((7, 4)):
        for row, k1 in enumerate(KEPT):
            for k2 in range(MODES):
                terms = [
                    value / wave(k1, k2, point)
                    for value, point in zip(
                        values[number, :real], points[number, :real], strict=True
                    )
                ]
                torch.testing.assert_close(found[number, :, row, k2], sum(terms) / real)
    assert (analyse_points(values, points, torch.zeros_like(mask), MODES) == 0).all()
    assert (analyse_points(values[:, :0], points[:, :0], mask[:, :0], MODES) == 0).all()


def test_a_function_at_points_is_the_sum_of_its_waves_and_their_mirror_images():
    """Modes with k2 = 0 stand in both signs already: the real part of what is there; the others'
    conjugates are added."""
    coefficients, points = some_coefficients(), draw(SETS, 5, 2)
    found = synthesise_points(coefficients, points)
    for number in range(SETS):
        for point, value in zip(points[number], found[number], strict=True):
            total = torch.zeros(WIDTH, dtype=torch.complex128)
            for row, k1 in enumerate(KEPT):
                for k2 in range(MODES):
                    term = coefficients[number, :, row, k2] * wave(k1, k2, point)
                    total = total + term + (term.conj() if k2 else 0)
            torch.testing.assert_close(value, total.real)


def test_grid_and_points_agree_where_points_lie_on_the_grid():
    coefficients, places = some_coefficients(), grid_points().expand(SETS, -1, -1)
    grid = synthesise(coefficients, SIDE)
    values = grid.flatten(2).transpose(1, 2)
    torch.testing.assert_close(synthesise_points(coefficients, places), values)
    every = torch.ones(SETS, SIDE * SIDE, dtype=torch.bool)
    torch.testing.assert_close(analyse_points(values, places, every, MODES), analyse(grid, MODES))


def test_a_function_of_low_modes_only_survives_there_and_back():
    x, y = grid_points().T.unflatten(1, (SIDE, SIDE)) * 2 * torch.pi
    grid = (1.5 + torch.cos(x) - 2 * torch.sin(2 * x + y) + 0.3 * torch.cos(-x + 2 * y))[None, None]
    torch.testing.assert_close(synthesise(analyse(grid, MODES), SIDE), grid)
    high = grid + torch.cos(4 * y)
    torch.testing.assert_close(
        synthesise(analyse(high, MODES), SIDE), grid
    )  # what is not kept is filtered out


def test_the_layer_is_a_matrix_for_every_mode():
    torch.manual_seed(0)
    layer, coefficients = Spectral(WIDTH, MODES).double(), some_coefficients()
    found = layer(coefficients)
    for row in range(2 * MODES):
        for column in range(MODES):
            matrix = torch.complex(*layer.weight[row, column].detach().unbind(-1))
            torch.testing.assert_close(
                found[:, :, row, column].detach(), coefficients[:, :, row, column] @ matrix
            )
    assert (
        layer.weight.shape == (2 * MODES, MODES, WIDTH, WIDTH, 2) and not layer.weight.is_complex()
    )


@pytest.mark.parametrize("shift", [(1, 0), (0, 4), (3, -2)])
def test_on_the_torus_a_shifted_function_comes_out_shifted(shift):
    torch.manual_seed(0)
    layer, grid = Spectral(WIDTH, MODES).double(), synthesise(some_coefficients(), SIDE)

    def operate(function):
        return synthesise(layer(analyse(function, MODES)), SIDE)

    torch.testing.assert_close(operate(grid.roll(shift, (2, 3))), operate(grid).roll(shift, (2, 3)))
    points, targets, values = draw(SETS, 30, 2), draw(SETS, 8, 2), draw(SETS, 30, WIDTH)
    every, moved = torch.ones(SETS, 30, dtype=torch.bool), torch.tensor(shift) / 7

    def through(by):
        return synthesise_points(
            layer(analyse_points(values, points + by, every, MODES)), targets + by
        )

    torch.testing.assert_close(through(moved), through(0.0))
    torch.testing.assert_close(through(torch.tensor([2.0, -1.0])), through(0.0))  # whole turns
