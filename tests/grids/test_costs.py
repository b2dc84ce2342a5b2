"""The count of multiplications against those of the model itself, as torch counts them."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from stages import seeds
from stages.fields.grids import costs
from stages.fields.models import build
from stages.layers.grid import Grid, GriddedBatch

POINTS, TARGETS, WIDTH = 30, 40, 64


def batch(rows, columns):
    def drawn(*shape):
        return torch.randn(*shape, generator=seeds.torch_stream(0, *map(str, shape)))

    axes = (torch.arange(rows) * 180.0 / rows - 80, torch.arange(columns) * 360.0 / columns - 180)
    grid = Grid(axes, drawn(1, rows, columns, 1), torch.ones(1, rows, columns) > 0, sphere=True)
    real = [torch.ones(1, count, dtype=torch.bool) for count in (POINTS, TARGETS)]
    return GriddedBatch(60 * drawn(1, POINTS, 2), drawn(1, POINTS, 1), real[0],
                        60 * drawn(1, TARGETS, 2), real[1], None, grid)  # fmt: skip


@pytest.mark.parametrize(("patch", "window"), [(1, 1), (2, 3), (1, 4)])
def test_counts_are_those_of_the_model(patch, window):
    arm = {"encoder": "mhca"} | ({"coarsen": "encoder", "patch": patch} if patch > 1 else {})
    size = {"surface": "sphere", "nearest": 3, "width": WIDTH, "heads": 4, "layers": 2,
            "window": window}  # fmt: skip
    seeds.everything(0)
    model, given = build("grid_tnp", arm, size, 2, 1, 1), batch(12, 24)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(given)
    counted = counter.get_flop_counts()["Global"]
    products = sum(counted.get(one, 0) for one in (torch.ops.aten.mm, torch.ops.aten.addmm))
    told = costs.Size((12, 24), patch, window, POINTS, TARGETS, WIDTH, 2)
    assert costs.maps(told) == products // 2
    if window > 1:
        grid = given.grid.coarse(patch) if patch > 1 else given.grid
        pairs = sum(one.numel() * one.shape[1] for one in model.layers[0].among.order(grid))
    else:
        pairs = told.coarse**2
    heard = POINTS + (12 * 24 if patch > 1 else 0)
    expected = heard + told.coarse + 2 * (pairs + TARGETS * 9)
    assert costs.attention(told) == 2 * WIDTH * expected


def test_the_full_grid_costs_more_than_the_document_tells():
    whole = costs.forward(costs.Size())
    # nearly all of it is attention of 28,800 cells to each other, in five layers
    assert 5 * 2 * 128 * 28800**2 / whole > 0.9
    assert costs.full_over_coarse() > 80
