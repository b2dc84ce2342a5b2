"""GEN, graph element network (Alet et al. 2019; thesis section 3.3.4, equations 3.10-3.13, and
appendices C.8 and C.12).

A latent graph shared by all sets: each context point's encoding is dealt out to the nodes with
weights softmax over NODES of -exp(s) |x - e|^2 and summed (not averaged), `steps` steps of message
passing run over the graph, and a target reads the nodes with the same weights. Shapes: B sets, C
context, T targets, X position axes, I and O values, P nodes, H width.

Nodes: "grid", fixed on a square lattice; "learnable", the lattice to start with, moved by gradient,
edges as they were; "kmeans", centres of context positions with 3 nearest neighbours each;
"delaunay", such centres, triangulated. The last two are learned, too, and stand at random until the
trainer has called `place_nodes`. With X > 2 lattices and triangulations lie in the first two axes.
`conditioning` "attention": targets read the nodes by cross-attention. Further `decoder_layers` read
the nodes again, one MLP (or attention) each: table C.6 counts layers without saying what one is, so
this is our reading.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from stages.batches import Batch, Prediction
from stages.contracts import FieldModel
from stages.layers.cross import CONDITIONINGS
from stages.layers.encoders import ENCODERS
from stages.layers.graphs import EXTENTS, centres, delaunay_edges, joined, lattice, nearest_edges
from stages.layers.messages import MESSAGES, Passing, proximity
from stages.layers.mlp import mlp

NODES = ("grid", "learnable", "kmeans", "delaunay")
NEAREST = 3  # neighbours of a k-means node


class GEN(FieldModel):
    """Parameters at X=3, I=O=2, shared encoder: see params.yaml; a learned node has X of them."""

    if TYPE_CHECKING:
        edges: Tensor
        nodes: Tensor
        position: Any
        readout: Any

    context, learns, outputs = "slice", "gradient", "any"
    has_nodes = True
    limits = {"steps": 256, "places": 4096, "decoder_layers": 64}
    words = {
        "encoder": tuple(ENCODERS),
        "nodes": NODES,
        "message": MESSAGES,
        "tied": (0, 1),
        "conditioning": CONDITIONINGS,
        "extent": tuple(EXTENTS),
    }

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        encoder: str = "shared",
        width: int = 32,
        steps: int = 13,
        nodes: str = "grid",
        places: int = 49,
        message: str = "linear",
        tied: int = 1,
        conditioning: str = "distance",
        decoder_layers: int = 1,
        heads: int = 2,
        extent: str = "unit",
    ):
        super().__init__()
        self.kind, self.conditioning, shared = nodes, conditioning, encoder == "shared"
        self.rates = (
            {} if nodes == "grid" else {"nodes": 3e-6}
        )  # learning rate of the parameters whose name begins so
        self._graph(nodes, places, x_dim, extent)
        self.strength = nn.Parameter(torch.zeros(1))  # s
        self.value = mlp(
            i_dim if shared else x_dim + i_dim, width, width, width
        )  # nu, or varphi of position and value
        reads = shared or conditioning == "attention"
        self.position = (
            mlp(x_dim, width, width, width) if reads else None
        )  # phi of context and targets, or psi of targets
        self.shared = shared
        self.passing = Passing(x_dim, width, steps, message, bool(tied))
        hidden = (width,) if shared else (width, width)
        outputs = [*[width] * (decoder_layers - 1), o_dim]
        if conditioning == "attention":
            self.cross = nn.ModuleList(
                nn.MultiheadAttention(width, heads, batch_first=True) for _ in outputs
            )
            self.readout = mlp(width, *hidden, o_dim)
        else:
            queries = [width if shared else x_dim, *[width] * (decoder_layers - 1)]
            self.readout = nn.ModuleList(
                mlp(width + query, *hidden, out)
                for query, out in zip(queries, outputs, strict=True)
            )

    def _graph(self, nodes: str, places: int, x_dim: int, extent: str) -> None:
        if nodes in ("grid", "learnable"):
            start, edges = lattice(places, x_dim, extent)
        else:
            start = torch.randn(places, x_dim)
            edges = nearest_edges(start[None], min(NEAREST, places - 1))[0]
        self.register_buffer("edges", edges)
        if nodes == "grid":
            self.register_buffer("nodes", start)
        else:
            self.nodes = nn.Parameter(start)

    @torch.no_grad()
    def place_nodes(self, positions: Tensor, generator: torch.Generator) -> None:
        """Put "kmeans" and "delaunay" nodes at the centres of positions (n, X) and join them;
        called once, before training.

        Lattices stay. `generator` lives on the CPU. DataError for fewer distinct positions than
        nodes, or nodes on a line.
        """
        if self.kind in ("grid", "learnable"):
            return
        self.nodes.copy_(centres(positions, len(self.nodes), generator))
        if self.kind == "delaunay" and len(self.nodes) > 2:
            self.edges.copy_(delaunay_edges(self.nodes, self.edges.shape[1]))
        else:
            self.edges.copy_(nearest_edges(self.nodes[None], min(NEAREST, len(self.nodes) - 1))[0])

    def encode(self, batch: Batch) -> Tensor:
        """The latent of every node after message passing, B P H: the last layer of the encoder."""
        sets = len(batch.context_x)
        nodes = self.nodes.expand(sets, -1, -1)
        if self.shared:
            tokens = self.position(batch.context_x) + self.value(batch.context_y)
        else:
            tokens = self.value(torch.cat((batch.context_x, batch.context_y), -1))
        weight = proximity(batch.context_x, nodes, self.strength).softmax(-1)
        latents = weight.transpose(1, 2) @ (tokens * batch.context_mask[..., None])
        return self.passing(nodes, latents, joined(self.edges.expand(sets, -1, -1), nodes.shape[1]))

    def decode(self, latents: Tensor, target_x: Tensor) -> Tensor:
        """What the targets read from the nodes' latents (B, P, H), B T O."""
        query = target_x if self.position is None else self.position(target_x)
        if self.conditioning == "attention":
            for cross in self.cross:
                query = query + cross(query, latents, latents, need_weights=False)[0]
            return self.readout(query)
        nodes = self.nodes.expand(len(latents), -1, -1)
        seen = proximity(target_x, nodes, self.strength).softmax(-1) @ latents
        for layer in self.readout:
            query = layer(torch.cat((seen, query), -1))
        return query

    def forward(self, batch: Batch) -> Prediction:
        """Mean at every target, B T O; an empty context leaves the nodes' own positions to read."""
        return Prediction(self.decode(self.encode(batch), batch.target_x).float())
