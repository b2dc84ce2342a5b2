"""Message passing: the plain step of GEN and the twelve operators of table C.10 (thesis sections
3.3.4 and C.12).

The plain step: message = LayerNorm(Linear[receiver, sender]), summed into each receiver's inbox;
node = LayerNorm(Linear[node, inbox]); no residual. The operators are torch_geometric's with its
default settings (but see SETTINGS): neither norm nor residual around them.
Shapes: M nodes of all sets together, E edges (row 0 sends, row 1 receives), D token width (position
and latent), H width.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from stages.errors import InputError

# params' word -> torch_geometric's class
OPERATORS = {
    "transformer": "TransformerConv",
    "gatv2": "GATv2Conv",
    "general": "GeneralConv",
    "gat": "GATConv",
    "sage": "SAGEConv",
    "arma": "ARMAConv",
    "tag": "TAGConv",
    "sg": "SGConv",
    "supergat": "SuperGATConv",
    "gcn": "GCNConv",
    "le": "LEConv",
    "gen": "GENConv",
}
MESSAGES = ("linear", *OPERATORS)
SETTINGS = {
    "gen": {"norm": "layer"}
}  # its default, batch normalisation, would make a set's forecast depend on the sets beside it


class Step(nn.Module):
    """The plain step, D -> H."""

    def __init__(self, tokens: int, width: int):
        super().__init__()
        self.message = nn.Linear(2 * tokens, tokens)
        self.node = nn.Linear(2 * tokens, width)
        self.message_norm = nn.LayerNorm(tokens)
        self.node_norm = nn.LayerNorm(width)

    def forward(
        self, tokens: Float[Tensor, "M D"], edges: Int[Tensor, "2 E"]
    ) -> Float[Tensor, "M H"]:
        """New latents. The map of a pair is the sum of a map of each end, computed once a node
        instead of once an edge."""
        senders, receivers = edges
        receive, send = self.message.weight.chunk(2, 1)
        mine = functional.linear(tokens, receive, self.message.bias)
        theirs = functional.linear(tokens, send)
        messages = self.message_norm(
            mine.index_select(0, receivers) + theirs.index_select(0, senders)
        )
        inbox = torch.zeros(tokens.shape, dtype=messages.dtype, device=messages.device).index_add(
            0, receivers, messages
        )
        return self.node_norm(self.node(torch.cat((tokens, inbox), -1)))


class Operator(nn.Module):
    """One of torch_geometric's operators, D -> H; InputError where the package is not installed."""

    def __init__(self, name: str, tokens: int, width: int):
        super().__init__()
        try:
            from torch_geometric import nn as operators
        except ImportError:
            raise InputError(
                "this message-passing operator needs torch_geometric",
                found=f"message: {name}",
                expected="message: linear, or the extra",
                remedy="pip install 'tradewind[graph]'",
            ) from None
        self.operator = getattr(operators, OPERATORS[name])(tokens, width, **SETTINGS.get(name, {}))
        if name == "arma":
            self.operator.register_parameter(
                "weight", None
            )  # that of further layers, of which there are none
        self.train()

    def train(self, mode: bool = True) -> "Operator":
        """Stays as in evaluation: the defaults drop nothing out, and SuperGAT would draw edges
        for a loss that nobody asks for."""
        return super().train(False)

    def forward(
        self, tokens: Float[Tensor, "M D"], edges: Int[Tensor, "2 E"]
    ) -> Float[Tensor, "M H"]:
        """New latents."""
        return self.operator(tokens, edges)


def step(message: str, tokens: int, width: int) -> nn.Module:
    """One step of message passing by its word of MESSAGES."""
    return Step(tokens, width) if message == "linear" else Operator(message, tokens, width)


class Passing(nn.Module):
    """`steps` steps over one graph; tied: all with the same weights. The node's position stands
    before its latent at every step."""

    def __init__(
        self, x_dim: int, width: int, steps: int, message: str = "linear", tied: bool = True
    ):
        super().__init__()
        self.steps = steps
        self.blocks = nn.ModuleList(
            step(message, x_dim + width, width) for _ in range(1 if tied else steps)
        )

    def forward(
        self,
        positions: Float[Tensor, "B N X"],
        latents: Float[Tensor, "B N H"],
        edges: Int[Tensor, "2 E"],
    ) -> Float[Tensor, "B N H"]:
        """Latents after all steps; `edges` over the B*N nodes of all sets (graphs.joined)."""
        flat, places = latents.flatten(0, 1), positions.flatten(0, 1)
        for number in range(self.steps):
            flat = self.blocks[number % len(self.blocks)](torch.cat((places, flat), -1), edges)
        return flat.unflatten(0, latents.shape[:2])


def proximity(
    x: Float[Tensor, "B N X"], places: Float[Tensor, "B P X"], log_strength: Float[Tensor, "1"]
) -> Float[Tensor, "B N P"]:
    """-exp(s) |x - e|^2 up to |x|^2, which a softmax over the places cannot see; without it far
    points keep their precision.

    The thesis prints the distance itself (equations 3.10 and 3.12); both public implementations
    square it.
    """
    square = places.square().sum(-1)[:, None, :] - 2 * x @ places.transpose(1, 2)
    return -log_strength.exp() * square
