"""The plain step and the twelve operators: against dense matrices, forward and backward, a joint
graph against its sets alone."""

import subprocess
import sys

import pytest
import torch

from stages.errors import InputError
from stages.layers import messages
from stages.layers.graphs import joined, lattice
from stages.layers.messages import MESSAGES, OPERATORS, Operator, Passing, Step, proximity

NODES, EDGES = lattice(9, 2, "unit")


def needs(message):
    if message != "linear":
        pytest.importorskip(
            "torch_geometric",
            reason="torch_geometric is not installed: pip install 'tradewind[graph]'",
        )
    torch.manual_seed(0)


def graph(sets: int):
    return joined(EDGES.expand(sets, -1, -1), 9)


def test_there_are_the_twelve_operators_of_table_c_10_and_the_plain_step():
    assert len(OPERATORS) == 12 and ("linear", *OPERATORS) == MESSAGES


@pytest.mark.parametrize("message", MESSAGES)
def test_a_joint_graph_gives_what_each_set_gives_alone_and_gradients_reach_all(message):
    needs(message)
    passing, latents = Passing(2, 8, 3, message), torch.randn(4, 9, 8, requires_grad=True)
    together = passing(NODES.expand(4, -1, -1), latents, graph(4))
    assert together.shape == (4, 9, 8) and torch.isfinite(together).all()
    for row in range(4):
        torch.testing.assert_close(
            passing(NODES[None], latents[row : row + 1], graph(1))[0],
            together[row],
            atol=1e-5,
            rtol=1e-5,
        )
    (together - 0.3).square().sum().backward()
    assert latents.grad.abs().amax((1, 2)).gt(0).all()
    assert not [
        name
        for name, value in passing.named_parameters()
        if value.grad is None or not value.grad.abs().max() > 0
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_numbering_of_nodes_and_the_order_of_edges_do_not_matter(message):
    needs(message)
    passing, latents = Passing(2, 8, 2, message), torch.randn(1, 9, 8)
    order = torch.randperm(9)
    place = order.argsort()
    edges = place[EDGES][:, torch.randperm(EDGES.shape[1])]
    torch.testing.assert_close(
        passing(NODES[order][None], latents[:, order], edges),
        passing(NODES[None], latents, EDGES)[:, order],
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_training_mode_computes_what_evaluation_does_and_draws_nothing(message):
    """No dropout, no batch statistics, and SuperGAT samples no edges for its auxiliary loss."""
    needs(message)
    passing = Passing(2, 8, 2, message)
    latents = torch.randn(2, 9, 8)
    before = torch.get_rng_state()
    training = passing.train()(NODES.expand(2, -1, -1), latents, graph(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(training, passing.eval()(NODES.expand(2, -1, -1), latents, graph(2)))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_lone_node_without_edges_stays_finite(message):
    needs(message)
    assert torch.isfinite(
        Passing(2, 8, 4, message)(
            torch.zeros(2, 1, 2), torch.randn(2, 1, 8), torch.zeros(2, 0, dtype=torch.long)
        )
    ).all()


def adjacency():
    matrix = torch.zeros(9, 9)
    matrix[EDGES[1], EDGES[0]] = 1
    return matrix


def test_gcn_and_sage_are_their_papers_matrices():
    needs("gcn")
    tokens = torch.randn(9, 10)
    gcn, sage = Operator("gcn", 10, 8), Operator("sage", 10, 8)
    looped = adjacency() + torch.eye(9)
    half = looped.sum(1).rsqrt().diag()
    torch.testing.assert_close(
        gcn(tokens, EDGES),
        half @ looped @ half @ tokens @ gcn.operator.lin.weight.T + gcn.operator.bias,
    )
    mean = adjacency() / adjacency().sum(1, keepdim=True)
    torch.testing.assert_close(
        sage(tokens, EDGES), sage.operator.lin_l(mean @ tokens) + sage.operator.lin_r(tokens)
    )


def test_the_plain_step_maps_pairs_of_receiver_and_sender():
    torch.manual_seed(0)
    block, tokens = Step(10, 8), torch.randn(9, 10)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    inbox = torch.zeros(9, 10)
    for receiver in range(9):
        for sender in adjacency()[receiver].nonzero()[:, 0]:
            inbox[receiver] += block.message_norm(
                block.message(torch.cat((tokens[receiver], tokens[sender])))
            )
    torch.testing.assert_close(
        block(tokens, EDGES), block.node_norm(block.node(torch.cat((tokens, inbox), 1)))
    )


def test_tied_steps_share_one_blocks_weights():
    def size(tied):
        return sum(value.numel() for value in Passing(2, 8, 13, tied=tied).parameters())

    assert size(False) == 13 * size(True)


def test_without_torch_geometric_an_operator_says_what_to_install_and_the_plain_step_needs_nothing(
    monkeypatch,
):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(InputError, match=r"tradewind\[graph\]"):
        Operator("gat", 10, 8)
    assert Passing(2, 8, 1)(NODES[None], torch.randn(1, 9, 8), EDGES).shape == (1, 9, 8)


def test_importing_the_layer_does_not_import_torch_geometric():
    code = f"import sys, {messages.__name__}; sys.exit('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_proximity_is_the_squared_distance_up_to_the_points_own_square():
    x, places, strength = torch.randn(2, 5, 3), torch.randn(2, 4, 3), torch.tensor([0.4])
    expected = (-strength.exp() * torch.cdist(x, places).square()).softmax(-1)
    torch.testing.assert_close(proximity(x, places, strength).softmax(-1), expected)
    near, far = (
        torch.tensor([[[0.0, 0], [1, 0]]]),
        torch.tensor([[[3e4, 0.0]]]),
    )  # where |x - e|^2 rounds to the same float32
    assert proximity(far, near, torch.zeros(1)).softmax(-1).tolist() == [[[0, 1]]]
