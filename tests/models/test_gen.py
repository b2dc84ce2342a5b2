"""GEN against plain loops over points, nodes and edges; its graphs against brute force and
scipy; its nodes' placing."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial import Delaunay, cKDTree
from torch.nn import functional

from stages import seeds
from stages.batches import single
from stages.errors import DataError, InputError
from stages.fields.models.gen import GEN
from stages.layers.graphs import SAMPLE, centres, delaunay_edges, joined, lattice, nearest_edges

COUNTS = {
    ("traditional", 3, 2, 2): (9470, 20334, 112872),
    ("shared", 3, 2, 2): (11486, 24894, 116358),
    ("traditional", 2, 3, 1): (9200, 19936, 109342),
    ("traditional", 2, 1, 1): (9136, 19840, 109258),
}
SIZES = ((32, 1), (48, 1), (42, 0))


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def gen(x_dim=2, i_dim=3, o_dim=1, **arguments):
    torch.manual_seed(0)
    model = GEN(x_dim, i_dim, o_dim, **arguments)
    with torch.no_grad():
        model.strength.fill_(0.7)
    return model


def some(context=11, targets=5, x_dim=2, i_dim=3):
    draw = torch.Generator().manual_seed(1)
    return single(
        torch.rand(context, x_dim, generator=draw),
        torch.randn(context, i_dim, generator=draw),
        torch.rand(targets, x_dim, generator=draw),
    )


@pytest.mark.parametrize("case", COUNTS, ids=str)
def test_parameters(case):
    encoder, *dims = case
    assert (
        tuple(count(GEN(*dims, encoder=encoder, width=width, tied=tied)) for width, tied in SIZES)
        == COUNTS[case]
    )
    assert count(GEN(*dims, encoder=encoder, nodes="learnable")) == COUNTS[case][0] + 49 * dims[0]


def weights_of(point, nodes, strength):
    """Softmax over nodes of -exp(s) |x - e|^2, by hand."""
    raw = [
        math.exp(
            -math.exp(strength)
            * sum((float(a) - float(b)) ** 2 for a, b in zip(point, node, strict=True))
        )
        for node in nodes
    ]
    return [value / sum(raw) for value in raw]


def by_hand(model, batch):
    """Equations 3.10-3.13 with a loop for every sum."""
    nodes, strength = model.nodes.detach(), float(model.strength)
    xs, ys, targets = batch.context_x[0], batch.context_y[0], batch.target_x[0]
    latents = [
        torch.zeros(model.passing.blocks[0].node.out_features, dtype=xs.dtype) for _ in nodes
    ]
    for x, y in zip(xs, ys, strict=True):
        token = (
            model.position(x) + model.value(y) if model.shared else model.value(torch.cat((x, y)))
        )
        latents = [
            latent + weight * token
            for latent, weight in zip(latents, weights_of(x, nodes, strength), strict=True)
        ]
    for number in range(model.passing.steps):
        block = model.passing.blocks[number % len(model.passing.blocks)]
        tokens = [torch.cat((node, latent)) for node, latent in zip(nodes, latents, strict=True)]
        inbox = [torch.zeros_like(token) for token in tokens]
        for sender, receiver in model.edges.T.tolist():
            if sender != receiver:
                inbox[receiver] = inbox[receiver] + block.message_norm(
                    block.message(torch.cat((tokens[receiver], tokens[sender])))
                )
        latents = [
            block.node_norm(block.node(torch.cat(pair))) for pair in zip(tokens, inbox, strict=True)
        ]
    rows = []
    for x in targets:
        seen = sum(
            weight * latent
            for weight, latent in zip(weights_of(x, nodes, strength), latents, strict=True)
        )
        value = model.position(x) if model.shared else x
        for layer in model.readout:
            value = layer(torch.cat((seen, value)))
        rows.append(value)
    return torch.stack(rows)


@pytest.mark.parametrize(
    "arguments",
    [
        {"encoder": "shared"},
        {"encoder": "traditional", "nodes": "learnable"},
        {"tied": 0, "extent": "symmetric"},
        {"nodes": "kmeans", "places": 7},
        {"decoder_layers": 4, "places": 4},
        {"places": 1},
    ],
    ids=str,
)
def test_the_model_is_equations_3_10_to_3_13(arguments):
    model, batch = gen(**{"width": 8, "steps": 3, "places": 9, **arguments}).double(), some()
    batch = single(
        *(value[0].double() for value in (batch.context_x, batch.context_y, batch.target_x))
    )
    with torch.no_grad():
        found = model(batch).mean[0].double()
        torch.testing.assert_close(found, by_hand(model, batch), atol=2e-6, rtol=2e-6)


def test_targets_read_by_attention_what_an_explicit_softmax_reads():
    model = gen(width=8, heads=2, steps=2, places=9, conditioning="attention", decoder_layers=2)
    batch = some()
    latents, query = model.encode(batch), model.position(batch.target_x)
    for cross in model.cross:
        q, k, v = (
            functional.linear(value, weight, bias).unflatten(2, (2, 4))
            for value, weight, bias in zip(
                (query, latents, latents),
                cross.in_proj_weight.chunk(3),
                cross.in_proj_bias.chunk(3),
                strict=True,
            )
        )
        share = (torch.einsum("bthd,bphd->bhtp", q, k) / 2).softmax(-1)
        query = query + cross.out_proj(torch.einsum("bhtp,bphd->bthd", share, v).flatten(2))
    torch.testing.assert_close(model(batch).mean, model.readout(query))


@pytest.mark.parametrize("x_dim", [2, 3])
@pytest.mark.parametrize("side", range(1, 9))
def test_a_lattice_joins_exactly_the_nodes_one_spacing_apart(side, x_dim):
    nodes, edges = lattice(side * side, x_dim, "symmetric")
    assert nodes.shape == (side * side, x_dim) and len(nodes.unique(dim=0)) == side * side
    assert (nodes[:, 2:] == 0).all() and nodes.abs().max() == (1 if side > 1 else 0)
    near = torch.cdist(nodes, nodes) - (2 / (side - 1) if side > 1 else 1)
    assert sorted(edges.T.tolist()) == (near.abs() < 1e-5).nonzero().tolist()


def test_a_lattice_on_one_axis_is_a_chain_and_one_that_is_not_square_is_refused():
    nodes, edges = lattice(5, 1, "unit")
    assert (
        nodes[:, 0].tolist() == [0, 0.25, 0.5, 0.75, 1]
        and edges.shape == (2, 8)
        and (edges[0] - edges[1]).abs().eq(1).all()
    )
    with pytest.raises(InputError, match="36 or 49"):
        GEN(2, 3, 1, places=48)


def test_nearest_edges_are_those_of_a_tree_search():
    points = torch.rand(200, 3, generator=torch.Generator().manual_seed(2))
    found = cKDTree(points.numpy()).query(points.numpy(), 4)[1][:, 1:]
    one_way = [(i, int(j)) for i, row in enumerate(found) for j in row]
    assert sorted(map(tuple, nearest_edges(points[None], 3)[0].T.tolist())) == sorted(
        one_way + [(j, i) for i, j in one_way]
    )


def test_triangles_edges_are_the_delaunay_ones_and_the_rest_is_filler():
    points = torch.rand(30, 2, generator=torch.Generator().manual_seed(3))
    edges = delaunay_edges(points, 180)
    real = edges[:, edges[0] != edges[1]].T.tolist()
    start, order = Delaunay(points.double().numpy()).vertex_neighbor_vertices
    assert sorted(map(tuple, real)) == sorted(
        (i, int(j)) for i in range(30) for j in order[start[i] : start[i + 1]]
    )
    assert edges.shape == (2, 180) and joined(edges[None], 30).shape[1] == len(real)
    with pytest.raises(DataError, match="triangulation"):
        delaunay_edges(torch.linspace(0, 1, 9)[:, None].expand(9, 2), 54)


def test_several_sets_graphs_are_one_graph_without_filler():
    edges = torch.tensor([[[0, 1, 2], [1, 2, 2]], [[2, 0, 0], [0, 0, 1]]])
    assert joined(edges, 3).T.tolist() == [[0, 1], [1, 2], [5, 3], [3, 4]]


def test_k_means_finds_the_means_of_parted_clusters_whatever_the_seed():
    draw = np.random.default_rng(4)
    middles = 100 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1.0]])
    points = middles.repeat(40, 0) + draw.uniform(-1, 1, (200, 3))
    for seed in range(5):
        found = centres(
            torch.from_numpy(draw.permutation(points)), 5, seeds.torch_stream(seed, "test")
        )
        expected = sorted(points.reshape(5, 40, 3).mean(1).tolist())
        np.testing.assert_allclose(sorted(found.tolist()), expected, atol=1e-12)


def test_k_means_centres_are_the_means_of_the_points_nearest_to_them_and_repeat():
    points = torch.rand(3000, 2, generator=torch.Generator().manual_seed(5))
    found = centres(points, 4, seeds.torch_stream(0, "test"))
    nearest = torch.cdist(points.double(), found).argmin(1)
    torch.testing.assert_close(
        found,
        torch.stack([points.double()[nearest == k].mean(0) for k in range(4)]),
        atol=2e-3,
        rtol=0,
    )
    assert torch.equal(found, centres(points, 4, seeds.torch_stream(0, "test")))
    assert not torch.equal(found, centres(points, 4, seeds.torch_stream(1, "test")))


def test_k_means_looks_at_no_more_than_a_sample_and_refuses_too_few_positions():
    points = torch.rand(SAMPLE + 100, 1, generator=torch.Generator().manual_seed(6))
    assert centres(points, 2, seeds.torch_stream(0, "test"))[
        :, 0
    ].sort().values.tolist() == pytest.approx([0.25, 0.75], abs=0.01)
    with pytest.raises(DataError, match="3 positions"):
        centres(torch.tensor([[0.0], [1], [2], [2], [1]]), 4, seeds.torch_stream(0, "test"))


@pytest.mark.parametrize("nodes", ["kmeans", "delaunay"])
def test_placed_nodes_stand_among_the_positions_and_a_saved_model_keeps_them(nodes):
    model, batch = gen(3, 2, 2, nodes=nodes, places=20), some(x_dim=3, i_dim=2)
    positions = 5 + torch.rand(500, 3, generator=torch.Generator().manual_seed(7))
    edges = model.edges.clone()
    model.place_nodes(positions, seeds.torch_stream(0, "nodes"))
    assert (
        model.nodes.min() > 5
        and model.nodes.max() < 6
        and model.edges.shape == edges.shape
        and not torch.equal(model.edges, edges)
    )
    expected = (
        nearest_edges(model.nodes[None], 3)[0]
        if nodes == "kmeans"
        else delaunay_edges(model.nodes, 120)
    )
    assert torch.equal(model.edges, expected)
    with torch.device("meta"):
        fresh = GEN(3, 2, 2, nodes=nodes, places=20)
    fresh.load_state_dict(model.state_dict(), assign=True)
    assert torch.equal(fresh(batch).mean, model(batch).mean)


@pytest.mark.parametrize("nodes", ["grid", "learnable"])
def test_placing_leaves_a_lattice_alone(nodes):
    model = gen(nodes=nodes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.place_nodes(torch.rand(100, 2), seeds.torch_stream(0, "nodes"))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_learned_nodes_have_a_rate_of_their_own_and_fixed_ones_are_no_parameter():
    assert gen(nodes="learnable").rates == gen(nodes="kmeans").rates == {"nodes": 3e-6}
    assert [
        name for name, _ in gen(nodes="learnable").named_parameters() if name.startswith("nodes")
    ] == ["nodes"]
    assert gen(nodes="grid").rates == {} and "nodes" not in dict(
        gen(nodes="grid").named_parameters()
    )


def test_context_is_summed_not_averaged():
    model, batch = gen(), some()
    twice = single(
        batch.context_x[0].repeat(2, 1), batch.context_y[0].repeat(2, 1), batch.target_x[0]
    )
    seen = []
    model.passing.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    model(batch), model(twice)
    torch.testing.assert_close(seen[1], 2 * seen[0])
