"""Graphs of places: lattices, nearest neighbours, Delaunay triangulations and k-means centres
(thesis section 3.3.4 on GEN; 3.5.1 on GNG).

Edges are two rows, sender and receiver, and every edge stands there in both directions. An edge
from a node to itself fills a place that no real edge needs, so that the edges of one model have one
shape; `joined` leaves such edges out.
Shapes: B sets, N points or nodes, P places (nodes), E edges, X position axes, I values. Positions
in the units of the model's input.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from stages.errors import DataError, InputError
from stages.layers.distances import nearest

EXTENTS = {
    "unit": (0.0, 1.0),
    "symmetric": (-1.0, 1.0),
    "standard": (-3.0, 3.0),
}  # where positions lie; "standard": standardised ones
ROUNDS = 50  # Lloyd's iterations at most
SAMPLE = 1 << 16  # positions that k-means looks at, at most


def lattice(
    places: int, x_dim: int, extent: str
) -> tuple[Float[Tensor, "P X"], Int[Tensor, "2 E"]]:
    """`places` nodes on a square lattice over the first two axes, in the middle of the others, and
    its 4-neighbour edges both ways.

    One axis: a chain. InputError where `places` is not a square number.
    """
    low, high = EXTENTS[extent]
    side = places if x_dim == 1 else math.isqrt(places)
    if side ** min(x_dim, 2) != places:
        raise InputError(
            "nodes on a square lattice must be a square number",
            found=f"places: {places}",
            expected=f"{side**2} or {(side + 1) ** 2}",
            remedy="mend places, or take nodes: kmeans",
        )
    axis = torch.linspace(low, high, side) if side > 1 else torch.full((1,), (low + high) / 2)
    number = torch.arange(places).reshape((side,) * min(x_dim, 2))
    pairs = [
        torch.stack(
            (number.narrow(dim, 0, side - 1).flatten(), number.narrow(dim, 1, side - 1).flatten())
        )
        for dim in range(number.dim())
    ]
    one_way = torch.cat(pairs, 1)
    nodes = torch.full((places, x_dim), (low + high) / 2)
    for dim in range(number.dim()):
        nodes[:, dim] = (
            axis.reshape([-1 if dim == other else 1 for other in range(number.dim())])
            .expand(number.shape)
            .flatten()
        )
    return nodes, torch.cat((one_way, one_way.flip(0)), 1)


def nearest_others(
    points: Float[Tensor, "B N X"], count: int, mask: Bool[Tensor, "B N"] | None = None
) -> Int[Tensor, "B N K"]:
    """The `count` nearest other points of every point, ties by lowest index; -1 where there are
    fewer. Distances in chunks."""
    index = nearest(points, points, count + 1, mask).index
    itself = index == torch.arange(points.shape[1], device=points.device)[:, None]
    return index.gather(2, itself.byte().argsort(dim=2, stable=True)[..., :count])


def nearest_edges(
    points: Float[Tensor, "B N X"], count: int, mask: Bool[Tensor, "B N"] | None = None
) -> Int[Tensor, "B 2 E"]:
    """Edges of every point with its `count` nearest others, both ways, E = 2 N count; two that
    are each other's have two pairs of edges."""
    others = nearest_others(points.detach(), count, mask)
    if mask is not None:
        others = others.masked_fill(~mask[..., None], -1)  # padding has no neighbours
    others = others.flatten(1)
    own = (
        torch.arange(points.shape[1], device=points.device)
        .repeat_interleave(count)
        .expand_as(others)
    )
    others = torch.where(others < 0, own, others)
    return torch.stack((torch.cat((own, others), 1), torch.cat((others, own), 1)), 1)


def canonical(
    x: Float[Tensor, "B N X"], y: Float[Tensor, "B N I"], mask: Bool[Tensor, "B N"]
) -> Int[Tensor, "B N"]:
    """An order of each set's points that does not depend on how they came: real ones first, then by
    position and values.

    Neighbours tied in distance are chosen by this order; points that it cannot tell apart are
    equal, so that the choice changes nothing.
    """
    keys = torch.cat((torch.zeros_like(mask[..., None], dtype=x.dtype), x.detach(), y.detach()), -1)
    keys = torch.where(
        mask[..., None], keys, torch.ones((), dtype=x.dtype, device=x.device)
    )  # padding: all alike, behind
    order = torch.arange(x.shape[1], device=x.device).expand(x.shape[:2])
    for key in reversed(range(keys.shape[2])):
        order = order.gather(1, keys[..., key].gather(1, order).argsort(dim=1, stable=True))
    return order


def joined(edges: Int[Tensor, "B 2 E"], count: int) -> Int[Tensor, "2 F"]:
    """The sets' graphs as one graph over B*count nodes, edges that only fill places left out."""
    senders, receivers = edges.unbind(1)
    start = count * torch.arange(len(edges), device=edges.device)[:, None]
    real = senders != receivers
    return torch.stack(((senders + start)[real], (receivers + start)[real]))


def delaunay_edges(nodes: Float[Tensor, "P X"], slots: int) -> Int[Tensor, "2 E"]:
    """Edges of the Delaunay triangulation over the first two axes, both ways, filled up to `slots`;
    on the CPU (scipy).

    DataError where the nodes lie on a line. A planar triangulation has at most 3P - 6 edges, so
    that 6P slots are enough.
    """
    from scipy.spatial import Delaunay, QhullError

    try:
        triangles = torch.from_numpy(
            Delaunay(nodes.detach().double().cpu().numpy()[:, :2]).simplices
        ).long()
    except (QhullError, ValueError) as error:
        raise DataError(
            "the nodes have no triangulation",
            found=f"{len(nodes)} nodes",
            expected="at least 3, in a plane, not on a line",
            remedy=str(error).splitlines()[0],
        ) from None
    sides = (
        torch.cat((triangles[:, :2], triangles[:, 1:], triangles[:, ::2]))
        .sort(1)
        .values.unique(dim=0)
        .T
    )
    edges = torch.cat((sides, sides.flip(0)), 1)
    return torch.cat((edges, edges.new_zeros(2, slots - edges.shape[1])), 1).to(nodes.device)


def centres(
    positions: Float[Tensor, "N X"], places: int, generator: torch.Generator
) -> Float[Tensor, "P X"]:
    """k-means centres of the positions in float64: k-means++ starts drawn from `generator`, then
    Lloyd's rounds until nothing moves.

    At most SAMPLE positions are looked at, drawn from `generator`. DataError for fewer distinct
    positions than places.
    """
    points = positions.detach().double().cpu()
    if len(points) > SAMPLE:
        points = points[torch.randperm(len(points), generator=generator)[:SAMPLE]]
    distinct = len(points.unique(dim=0))
    if distinct < places:
        raise DataError(
            "fewer distinct positions than nodes to place",
            found=f"{distinct} positions",
            expected=f"at least {places}",
            remedy="lower the model's places, or give it more of the data set",
        )
    chosen = _starts(points, places, generator)
    for _ in range(ROUNDS):
        nearby = torch.cat(
            [
                (chosen.square().sum(1) - 2 * part @ chosen.T).argmin(1)
                for part in points.split(8192)
            ]
        )
        total = torch.zeros_like(chosen).index_add_(0, nearby, points)
        held = torch.bincount(nearby, minlength=places)[:, None]
        moved = torch.where(
            held > 0, total / held.clamp_min(1), chosen
        )  # a centre that holds nothing stays
        if torch.equal(moved, chosen):
            break
        chosen = moved
    return chosen


def _starts(points: Tensor, places: int, generator: torch.Generator) -> Tensor:
    """k-means++: each further start is drawn with a probability that grows with the squared
    distance from those before."""
    index = int(torch.randint(len(points), (1,), generator=generator))
    starts, square = [points[index]], torch.full((len(points),), torch.inf, dtype=points.dtype)
    while len(starts) < places:
        square = torch.minimum(square, (points - starts[-1]).square().sum(1))
        sums = square.cumsum(0)
        draw = torch.rand(1, generator=generator, dtype=points.dtype) * sums[-1]
        starts.append(
            points[min(int(torch.searchsorted(sums, draw, right=True)), int(square.nonzero()[-1]))]
        )
    return torch.stack(starts)
