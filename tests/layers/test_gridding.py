"""Grid encoders, windows and neighbours against the same written straightforwardly."""

import math

import pytest
import torch

from stages import seeds
from stages.layers import grid as on
from stages.layers import gridding
from stages.layers.grid import Grid
from stages.layers.gridding import CellAttention, NearestAttention, SphereConv, Windows

WIDTH, HEADS = 8, 2


def drawn(*shape, name="layers"):
    return torch.randn(*shape, generator=seeds.torch_stream(0, name, *shape))


def globe(rows, columns):
    lat = -90 + (torch.arange(rows) + 0.5) * 180 / rows
    lon = -180 + (torch.arange(columns) + 0.5) * 360 / columns
    mask = torch.ones(2, rows, columns, dtype=torch.bool)
    return Grid((lat, lon), torch.zeros(2, rows, columns, 1), mask, sphere=True)


def attended(layer, query, memory):
    """softmax(q k / sqrt h) v of one query (H,) and its memory (N, H), head by head."""
    q = layer.query(query).unflatten(0, (HEADS, -1))
    k, v = layer.key_value(memory).unflatten(1, (2, HEADS, -1)).unbind(1)
    weight = torch.softmax((q * k).sum(2) / math.sqrt(WIDTH // HEADS), 0)
    return layer.outward((weight[..., None] * v).sum(0).flatten())


def test_every_cell_hears_itself_and_the_points_in_it():
    seeds.everything(0)
    layer, cells, points = CellAttention(WIDTH, HEADS), 6, 11
    asking, own, said = drawn(2, cells, WIDTH), drawn(2, cells, WIDTH, name="own"), drawn(
        2, points, WIDTH
    )  # fmt: skip
    real = torch.arange(points).expand(2, -1) < torch.tensor([[11], [4]])
    where = torch.randint(0, 4, (2, points), generator=seeds.torch_stream(0, "cells"))
    found = layer(asking, own, said, real, where)
    for row in range(2):
        for cell in range(cells):
            inside = said[row][real[row] & (where[row] == cell)]
            memory = torch.cat((own[row, cell : cell + 1], inside))
            expected = attended(layer, asking[row, cell], memory)
            torch.testing.assert_close(found[row, cell], expected, atol=1e-5, rtol=1e-5)


def test_many_points_are_heard_chunk_by_chunk_with_the_same_gradient(monkeypatch):
    seeds.everything(0)
    layer, cells, points = CellAttention(WIDTH, HEADS), 6, 23
    asking, own, raw = drawn(2, cells, WIDTH), drawn(2, cells, WIDTH, name="own"), drawn(
        2, points, 3
    )  # fmt: skip
    embed = torch.nn.Linear(3, WIDTH)
    real = torch.arange(points) < torch.tensor([[23], [9]])
    where = torch.randint(0, 4, (2, points), generator=seeds.torch_stream(0, "cells"))

    def gradients(answer):
        answer.square().sum().backward()
        found = [one.grad for one in (*layer.parameters(), *embed.parameters())]
        layer.zero_grad(), embed.zero_grad()
        return found

    whole = layer(asking, own, 9 * embed(raw), real, where)  # logits far apart
    monkeypatch.setattr(gridding, "CHUNK", 5)
    parts = layer.streamed(asking, own, raw, lambda part: 9 * embed(part), real, where)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-5)
    for one, other in zip(gradients(parts), gradients(whole), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_targets_read_their_cells_again_for_a_gradient_where_they_are_many(monkeypatch):
    seeds.everything(0)
    layer, targets, memory = NearestAttention(WIDTH, HEADS), drawn(2, 5, WIDTH), drawn(2, 9, WIDTH)
    near = torch.randint(0, 9, (2, 5, 3), generator=seeds.torch_stream(0, "near"))
    found = []
    for large in (gridding.LARGE, 1):
        monkeypatch.setattr(gridding, "LARGE", large)
        layer.zero_grad()
        answer = layer(targets, memory, near)
        answer.square().sum().backward()
        found.append([answer, *(one.grad for one in layer.parameters())])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_targets_read_their_cells():
    seeds.everything(0)
    layer, targets, memory = NearestAttention(WIDTH, HEADS), drawn(2, 5, WIDTH), drawn(2, 9, WIDTH)
    near = torch.randint(0, 9, (2, 5, 3), generator=seeds.torch_stream(0, "near"))
    found = layer(targets, memory, near)
    for row in range(2):
        for place in range(5):
            expected = attended(layer, targets[row, place], memory[row, near[row, place]])
            torch.testing.assert_close(found[row, place], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("window", [2, 3, 4])
def test_windows_are_attention_with_everything_else_masked(window):
    seeds.everything(0)
    grid, layer = globe(5, 8), Windows(WIDTH, HEADS, window)
    tokens = drawn(2, 40, WIDTH)
    query, key, value = (
        layer.attention.inward(tokens).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    )
    for order in layer.order(grid):
        owner = torch.empty(40, dtype=torch.long)
        for number, inside in enumerate(order):
            owner[inside[inside >= 0]] = number
        together = owner[:, None] == owner
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, together)
        expected = layer.attention.outward(mixed.transpose(1, 2).flatten(2))
        torch.testing.assert_close(layer(tokens, order), expected, atol=1e-5, rtol=1e-5)


def test_set_conv_on_the_sphere_is_the_sum_by_the_great_circle():
    conv, grid = SphereConv(6.0), globe(18, 36)
    x = torch.tensor([[[10.0, 179.0], [-20.0, 0.0], [11.0, -178.0]]]).expand(2, -1, -1)
    y, real = drawn(2, 3, 4), torch.tensor([[True, True, True], [True, False, True]])
    found = conv.onto_grid(x, y, real, grid)
    gaps = torch.rad2deg(on.angle(x[:, :, None], grid.places()))
    weight = torch.exp(-0.5 * (gaps / 6.0).square()) * real[:, :, None]
    density = weight.sum(1)
    # beyond SUPPORT cells the kernel is small here, and cut off
    torch.testing.assert_close(found[:, 0].flatten(1), density, atol=5e-3, rtol=0)
    near = density > 0.1
    expected = (weight.mT @ y) / density[:, :, None]
    torch.testing.assert_close(found[:, 1:].flatten(2).mT[near], expected[near], atol=0.06, rtol=0)
