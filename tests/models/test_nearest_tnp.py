"""K-nearest attention on winds: its neighbours are brute force's to the bit, its answer that of all
points but for those that no target reads; a shift of all moves it by the target's place alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stages import seeds
from stages.batches import Batch, single
from stages.fields.models import build
from stages.neighbours import methods, walks

PLACES = 8


def made():
    seeds.everything(0)
    return build("nearest_tnp", {"places": PLACES}, {"width": 16, "heads": 2, "layers": 2}).eval()


def winds(count=400, asked=30):
    """Points of trajectories in order of time, winds, and queries with what each may see."""
    points, of = walks.smoothed_random_walk(count // 50, 50, seeds.stream(0, "test", "walks"))
    values = torch.randn(count, 2, generator=seeds.torch_stream(0, "test", "winds"))
    return torch.from_numpy(points), torch.from_numpy(of), values, torch.from_numpy(points[-asked:])


def given(points, values, queries, index, mask):
    """A set a query, as local contexts come."""
    rows = index.clamp_min(0)
    context_x, context_y = points[rows], values[rows]
    return Batch(context_x * mask[..., None], context_y * mask[..., None], mask, queries[:, None],
                 torch.ones(len(queries), 1, dtype=torch.bool))  # fmt: skip


@pytest.mark.parametrize("method", ["compiled", "boxes", "trajectory"])
def test_neighbours_are_brute_forces_and_so_is_the_answer(method):
    points, of, values, queries = winds()
    found = methods.build(method, points, of).query(queries, PLACES, 0.3)
    brute = methods.build("linear", points, of).query(queries, PLACES, 0.3)
    assert torch.equal(found.index, brute.index) and found.mask.any()
    model = made()
    with torch.no_grad():
        ours = model(given(points, values, queries, found.index, found.mask))
        square = (queries[:, None] - points).square().sum(2)
        seen = points[:, 3] <= queries[:, None, 3] - 0.3
        order = square.masked_fill(~seen, np.inf).argsort(1)[:, :PLACES]
        dense = torch.zeros_like(seen).scatter(1, order, True) & seen
        for row, query in enumerate(queries):
            whole = single(points, values, query[None])
            alone = model(replace(whole, context_mask=dense[row][None]))
            torch.testing.assert_close(ours.mean[row], alone.mean[0], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(ours.scale[row], alone.scale[0], atol=1e-5, rtol=1e-5)


def test_neighbours_count_by_how_far_they_lie_and_how_they_blow():
    points, _, values, queries = winds(100, 6)
    model, batch = made(), single(points, values, queries)
    shift = torch.tensor([0.3, -0.2, 0.1, 0.5])
    moved = replace(batch, context_x=batch.context_x + shift, target_x=batch.target_x + shift)
    with torch.no_grad():
        model.own[0].weight.zero_()  # the target's own place tells nothing
        plain, there = model(batch).mean, model(moved).mean
        torch.testing.assert_close(plain, there, atol=1e-4, rtol=1e-4)
        far = model(replace(batch, context_x=batch.context_x + shift)).mean
        other = model(replace(batch, context_y=-batch.context_y)).mean
    assert (plain - far).abs().max() > 1e-3 and (plain - other).abs().max() > 1e-3


def test_its_parameters_are_as_many_as_are_told():
    seeds.everything(0)
    model = build("nearest_tnp", {"places": 4}, {"width": 32, "heads": 4, "layers": 2})
    width, layers = 32, 2
    told = 4 * width**2 + 20 * width + 4 + (6 * width**2 + 10 * width) * layers
    assert sum(one.numel() for one in model.parameters()) == told
