"""What does not change when a grid and its points are moved together, and what breaks that; few
latent tokens instead of all."""

from dataclasses import replace

import pytest
import torch

from stages import seeds
from stages.errors import InputError
from stages.fields.models import build
from stages.layers import grid as on
from stages.layers import gridding
from stages.layers.grid import Grid, GriddedBatch

SIZE = {"width": 16, "heads": 2, "layers": 2, "nearest": 3}


def drawn(*shape):
    return torch.randn(*shape, generator=seeds.torch_stream(0, "symmetry", *map(str, shape)))


def plane():
    axes = (torch.arange(8) * 0.5 - 2, torch.arange(12) * 0.5 - 3)
    grid = Grid(axes, drawn(2, 8, 12, 1), torch.ones(2, 8, 12, dtype=torch.bool))
    real = torch.arange(9) < torch.tensor([[9], [4]])
    every = torch.ones(2, 7, dtype=torch.bool)
    return GriddedBatch(2 * drawn(2, 9, 2), drawn(2, 9, 1), real, 2 * drawn(2, 7, 2), every,
                        drawn(2, 7, 1), grid)  # fmt: skip


def moved(batch, by):
    grid = replace(batch.grid, axes=tuple(a + b for a, b in zip(batch.grid.axes, by, strict=True)))
    by = torch.tensor(by)
    return replace(batch, context_x=batch.context_x + by, target_x=batch.target_x + by, grid=grid)


def model(**arm):
    seeds.everything(0)
    return build("grid_tnp", arm, SIZE, 2, 1, 1).eval()


def gap(one, other):
    return float((one.mean - other.mean).detach().abs().max())


@pytest.mark.parametrize("encoder", ["mhca", "setconv"])
@pytest.mark.parametrize("window", [1, 4])
def test_an_equivariant_model_does_not_ask_where_grid_and_points_lie(encoder, window):
    batch = plane()
    there = moved(batch, (4.0, -8.0))  # whole numbers of cells: rounding alone differs
    arm = {"encoder": encoder, "window": window}
    exact = model(**arm, equivariance="exact")
    assert gap(exact(there), exact(batch)) < 1e-5
    assert gap(model(**arm)(there), model(**arm)(batch)) > 1e-3
    broken = model(**arm, equivariance="approximate")
    assert gap(broken(there), broken(batch)) < 1e-5  # at first: what breaks it begins at 0
    with torch.no_grad():
        broken.breaking.weight.fill_(0.1)
    assert gap(broken(there), broken(batch)) > 1e-3


@pytest.mark.parametrize("window", [1, 4])
def test_what_tells_cells_apart_learns_where_a_grid_is_given(window):
    found = model(equivariance="exact", window=window)
    found(plane()).mean.square().sum().backward()
    slots = {name: one for name, one in found.named_parameters() if name.endswith("slots")}
    assert len(slots) == 2 * (1 + (window > 1))
    assert all(one.grad is not None and one.grad.abs().max() > 0 for one in slots.values())


@pytest.mark.parametrize("coarsen", ["before", "after", "encoder"])
def test_coarsened_grids_stay_equivariant(coarsen):
    batch, found = plane(), model(coarsen=coarsen, patch=2, equivariance="exact")
    assert gap(found(moved(batch, (-2.0, 6.0))), found(batch)) < 1e-5


def test_an_equivariant_model_still_tells_places_within_a_grid_apart():
    batch, found = plane(), model(equivariance="exact")
    other = replace(batch, target_x=batch.target_x + 0.2)
    assert gap(found(other), found(batch)) > 1e-3
    closer = replace(batch, context_x=batch.context_x + 0.2)
    assert gap(found(closer), found(batch)) > 1e-4


def test_places_among_the_nearest_are_counted_from_the_first_of_them():
    grid, x = plane().grid, 1.5 * drawn(2, 40, 2)
    for count in (1, 2, 3, 4):
        first = on.neighbours(grid, x, count)[:, :, 0]
        corner = torch.stack((grid.axes[0][first // 12], grid.axes[1][first % 12]), 2)
        torch.testing.assert_close(on.beside(grid, x, count), (x - corner) / 0.5)


def test_every_parameter_of_an_equivariant_and_of_a_latent_model_learns():
    for arm in (
        {"equivariance": "approximate", "window": 4}, {"equivariance": "exact"},
        {"encoder": "none", "latents": 5},
    ):  # fmt: skip
        found, batch = model(**arm), plane()
        found(batch).loss(batch.target_y).mean().backward()
        assert not [name for name, one in found.named_parameters() if one.grad is None]


def test_cells_alone_leave_the_query_nothing_to_weigh_and_all_else_learns():
    """Each cell then holds one value, its own; no cell of this grid is unknown."""
    found, batch = model(encoder="mhca", reads="on"), plane()
    before = found(batch)
    before.mean.square().sum().backward()
    idle = {
        name
        for name, one in found.named_parameters()
        if one.grad is None or not one.grad.abs().max() > 0
    }
    assert idle == {"query", "gather.query.weight", "unknown"}
    with torch.no_grad():
        found.query.add_(1.0)
    assert gap(found(batch), before) < 1e-6


def test_targets_of_a_latent_model_hear_of_everything_through_latents_alone():
    found, batch = model(encoder="none", latents=3), plane()
    law = found(batch)
    values = batch.context_y.clone()
    values[0, 2] += 10.0
    assert gap(found(replace(batch, context_y=values)), law) > 1e-4
    values = batch.context_y.clone()
    values[1, 6] += 10.0  # padding
    torch.testing.assert_close(found(replace(batch, context_y=values)).mean, law.mean)
    order = torch.randperm(9, generator=seeds.torch_stream(0, "order"))
    shuffled = replace(batch, context_x=batch.context_x[:, order],
                       context_y=batch.context_y[:, order],
                       context_mask=batch.context_mask[:, order])  # fmt: skip
    torch.testing.assert_close(found(shuffled).mean, law.mean, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("equivariance", ["none", "approximate"])
def test_a_fine_grid_is_read_chunk_by_chunk_and_says_the_same(equivariance, monkeypatch):
    batch = plane()
    mask = batch.grid.mask.clone()
    mask[0, 3, 5] = False
    batch = replace(batch, grid=replace(batch.grid, mask=mask))
    found = model(coarsen="encoder", patch=2, equivariance=equivariance)
    whole = found(batch)
    whole.loss(batch.target_y).mean().backward()
    told = {name: one.grad.clone() for name, one in found.named_parameters()}
    found.zero_grad()
    monkeypatch.setattr(gridding, "CHUNK", 20)
    parts = found(batch)
    torch.testing.assert_close(parts.mean, whole.mean, atol=1e-6, rtol=1e-5)
    parts.loss(batch.target_y).mean().backward()
    for name, one in found.named_parameters():
        torch.testing.assert_close(one.grad, told[name], atol=1e-5, rtol=1e-3)


def test_the_plain_sum_adds_to_each_cell_its_points_by_their_distance():
    batch, found = plane(), model(encoder="setconv", pooling="sum", window=4).double()
    batch = GriddedBatch(**{key: one.double() if torch.is_tensor(one) and one.is_floating_point()
                            else one for key, one in vars(batch).items() if key != "grid"},
                         grid=replace(batch.grid, values=batch.grid.values.double(),
                                      axes=tuple(a.double() for a in batch.grid.axes)))  # fmt: skip
    tokens, _ = found.encoded(batch, batch.grid)
    points = found.token(batch.context_x, batch.context_y, None, 0.0)
    length = torch.nn.functional.softplus(found.conv.raw_length) + 1e-5
    for task in range(2):
        for cell, place in enumerate(batch.grid.places()):
            ratio = (batch.context_x[task] - place) / length
            weight = torch.exp(-0.5 * ratio.square().sum(1)) * batch.context_mask[task]
            told = found.cell_tokens(batch.grid)[task, cell] + weight @ points[task]
            torch.testing.assert_close(tokens[task, cell], told, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    "arm",
    [
        {"latents": 4}, {"places": "harmonics"}, {"equivariance": "exact", "encoder": "none"},
        {"equivariance": "exact", "reading": "all"},
        {"equivariance": "exact", "encoder": "setconv", "order": "after"},
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(arm):
    with pytest.raises(InputError):
        model(**arm)
