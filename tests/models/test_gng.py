"""GNG against a plain loop with neighbours found by sorting, its counts of parameters, and ties
that the order of points must not break."""

import math

import pytest
import torch

from stages.batches import Batch, collate, single
from stages.fields.models.gng import GNG
from stages.layers.graphs import canonical, nearest_edges, nearest_others


def gng(**arguments):
    torch.manual_seed(0)
    model = GNG(2, 1, 1, **arguments)
    with torch.no_grad():
        model.strength.fill_(0.7)
    return model


def some(context=12, targets=6):
    draw = torch.Generator().manual_seed(context)
    return single(
        torch.randn(context, 2, generator=draw),
        torch.randn(context, 1, generator=draw),
        torch.randn(targets, 2, generator=draw),
    )


@pytest.mark.parametrize("width,count", [(32, 9136), (64, 34640)])
def test_parameters(width, count):
    assert sum(parameter.numel() for parameter in gng(width=width).parameters()) == count


def by_hand(model, x, y, targets):
    """Every point's `nearest` nearest others by a sort, and a loop for every sum."""
    places = [torch.cat((a, b)) for a, b in zip(x, y, strict=True)]
    latents = [
        model.position(a) + model.value(b) if model.shared else model.value(token)
        for a, b, token in zip(x, y, places, strict=True)
    ]
    edges = []
    for i in range(len(x)):
        others = sorted((j for j in range(len(x)) if j != i), key=lambda j: math.dist(x[i], x[j]))
        edges += [pair for j in others[: model.nearest] for pair in ((i, j), (j, i))]
    for _ in range(model.passing.steps):
        block = model.passing.blocks[0]
        tokens = [torch.cat(pair) for pair in zip(x, latents, strict=True)]
        inbox = [torch.zeros_like(token) for token in tokens]
        for sender, receiver in edges:
            inbox[receiver] = inbox[receiver] + block.message_norm(
                block.message(torch.cat((tokens[receiver], tokens[sender])))
            )
        latents = [
            block.node_norm(block.node(torch.cat(pair))) for pair in zip(tokens, inbox, strict=True)
        ]
    rows = []
    for target in targets:
        raw = [
            math.exp(-math.exp(float(model.strength)) * math.dist(target, place) ** 2)
            for place in x
        ]
        nothing = torch.zeros(model.passing.blocks[0].node.out_features)
        seen = sum(
            (weight / sum(raw) * latent for weight, latent in zip(raw, latents, strict=True)),
            nothing,
        )
        rows.append(
            model.readout(torch.cat((seen, model.position(target) if model.shared else target)))
        )
    return torch.stack(rows)


@pytest.mark.parametrize("encoder", ["traditional", "shared"])
@pytest.mark.parametrize("context", [0, 1, 2, 4, 12])
def test_the_model_is_a_loop_over_points_and_their_neighbours(context, encoder):
    model, batch = gng(width=8, steps=3, encoder=encoder), some(context)
    with torch.no_grad():
        expected = by_hand(model, batch.context_x[0], batch.context_y[0], batch.target_x[0])
        torch.testing.assert_close(model(batch).mean[0], expected, atol=1e-5, rtol=1e-5)


def test_the_order_of_points_on_a_lattice_and_of_points_in_one_place_does_not_matter():
    axis, draw = torch.arange(5.0), torch.Generator().manual_seed(0)
    x = torch.cat((torch.cartesian_prod(axis, axis), torch.zeros(4, 2), torch.full((2, 2), 4.0)))
    y = torch.cat(
        (torch.randn(29, 1, generator=draw), torch.ones(2, 1))
    )  # four more winds at one corner; at another two equal reports
    targets, model = torch.rand(9, 2, generator=draw) * 4, gng(steps=5)
    expected = model(single(x, y, targets)).mean
    for _ in range(5):
        order = torch.randperm(len(x), generator=draw)
        torch.testing.assert_close(
            model(single(x[order], y[order], targets)).mean, expected, atol=1e-5, rtol=1e-5
        )


def test_padding_sends_nothing_and_receives_nothing():
    sets = [some(count) for count in (1, 2, 3, 7)]
    together = collate(sets)
    order = canonical(together.context_x, together.context_y, together.context_mask)
    assert order[0].tolist()[0] == 0 and sorted(order[0].tolist()) == list(range(7))
    edges = nearest_edges(together.context_x, 3, together.context_mask)
    for row, count in enumerate((1, 2, 3, 7)):
        used = edges[row, :, edges[row, 0] != edges[row, 1]]
        assert used.numel() == 0 if count == 1 else int(used.max()) == count - 1
        assert used.shape[1] == 2 * count * min(3, count - 1)


def test_canonical_order_sorts_by_position_then_value_with_padding_behind():
    x = torch.tensor([[[1.0, 0], [0, 2], [0, 1], [0, 1], [-9, -9]]])
    y = torch.tensor([[[0.0], [0], [5], [-5], [0]]])
    assert canonical(x, y, torch.tensor([[True] * 4 + [False]])).tolist() == [[3, 2, 1, 0, 4]]


def test_a_point_among_many_in_its_place_is_never_its_own_neighbour():
    others = nearest_others(torch.zeros(1, 9, 2), 3)[0]
    assert (
        (others != torch.arange(9)[:, None]).all()
        and others.tolist()[8] == [0, 1, 2]
        and others.tolist()[0] == [1, 2, 3]
    )


def test_each_context_point_keeps_a_latent_of_its_own():
    """No bottleneck: as many latents as points, and one set's points hear nothing of another's."""
    batch = collate([some(12), some(12)])
    batch = Batch(**{**vars(batch), "context_y": batch.context_y.requires_grad_()})
    model = gng()
    assert model.encode(batch.context_x, batch.context_y, batch.context_mask).shape == (2, 12, 32)
    (gradient,) = torch.autograd.grad(model(batch).mean[0].sum(), batch.context_y)
    assert (gradient[0] != 0).all() and (gradient[1] == 0).all()
