"""Exact k nearest points by looking at all of them, in chunks (thesis section 1.4.2, linear
search).

`Linear` answers the contract's causal query; `smallest` and `ordered` choose among candidates.
Memory is bounded by HELD distances whatever the numbers of points.
Shapes: M queries, N points, C candidates, k neighbours. Any unit; the caller scales the axes.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages.layers.distances import PAIRS
from stages.neighbours import contract

# distances held at once: what a core's cache holds, what fills a GPU; PAIRS elsewhere
HELD = {"cpu": 1 << 18, "cuda": 1 << 26}


class Linear(contract.Index):
    """Every query against every point that it sees: its points in order of time are a prefix,
    and only that is computed."""

    def __init__(self, points: Tensor, trajectory: Tensor | None = None):
        super().__init__(points, trajectory)
        self.columns = points.detach()[self.order].T.contiguous()

    @torch.no_grad()
    def _search(
        self,
        queries: Float[Tensor, "M 4"],
        k: int,
        scale: Float[Tensor, "M 4"],
        allowed: Int[Tensor, " M"],
    ) -> contract.Neighbours:
        found = contract.empty(len(queries), k, self.points)
        held = HELD.get(queries.device.type, PAIRS)
        stretch = max(1, min(int(allowed.max()), held // 4))
        for rows in allowed.argsort().split(max(1, held // stretch)):  # alike prefixes together
            distance, index = self._prefix(queries[rows], k, scale[rows], allowed[rows], stretch)
            found.square_distance[rows], found.index[rows] = ordered(distance, index)
        return found._replace(mask=found.index >= 0, comparisons=allowed.clone())

    def _prefix(
        self, queries: Tensor, k: int, scale: Tensor, allowed: Tensor, stretch: int
    ) -> tuple[Tensor, Tensor]:
        """The k nearest of each query, unordered, `stretch` points at a time."""
        blank = contract.empty(len(queries), k, self.points)
        distance, index = blank.square_distance, blank.index
        least, most = int(allowed.min()), int(allowed.max())
        for start in range(0, most, stretch):
            stop = min(start + stretch, most)
            square = _columns_distance(queries, self.columns[:, start:stop], scale)
            if stop > least:
                square.masked_fill_(
                    torch.arange(start, stop, device=square.device) >= allowed[:, None], torch.inf
                )
            some = smallest(square, self.order[start:stop].expand_as(square), k)
            distance, index = smallest(
                torch.cat([distance, some[0]], 1), torch.cat([index, some[1]], 1), k
            )
        return distance, index


def smallest(
    distance: Float[Tensor, "M C"], index: Int[Tensor, "M C"], k: int
) -> tuple[Float[Tensor, "M k"], Int[Tensor, "M k"]]:
    """Of C candidates a row the k lowest by (distance, index), in any order; infinity and -1
    where there are fewer finite ones."""
    if distance.shape[1] <= k:
        missing = (0, k - distance.shape[1])
        distance = torch.nn.functional.pad(distance, missing, value=torch.inf)
        index = torch.nn.functional.pad(index, missing, value=-1)
    else:
        distance, index = _narrowed(distance, index, k)
        values, chosen = distance.topk(k, largest=False, sorted=False)
        edge = values.amax(1, keepdim=True)
        crowded = (((distance <= edge).sum(1) > k) & torch.isfinite(edge[:, 0])).nonzero()[:, 0]
        # more candidates at the last distance than places: all nearer ones (-1), then the lowest
        # indices
        if len(crowded):
            tied, last = distance[crowded], edge[crowded]
            key = torch.where(tied < last, -1, index[crowded]).masked_fill_(
                tied > last, torch.iinfo(torch.int64).max
            )
            chosen[crowded] = key.topk(k, largest=False, sorted=False).indices
        distance, index = distance.gather(1, chosen), index.gather(1, chosen)
    return distance, index.masked_fill(torch.isinf(distance), -1)


def ordered(
    distance: Float[Tensor, "M k"], index: Int[Tensor, "M k"]
) -> tuple[Float[Tensor, "M k"], Int[Tensor, "M k"]]:
    """Each row sorted by (distance, index)."""
    index, by_index = index.sort(1)
    distance, by_distance = distance.gather(1, by_index).sort(dim=1, stable=True)
    return distance, index.gather(1, by_distance)


def _narrowed(distance: Tensor, index: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Fewer columns that still hold each row's k lowest: those of the k groups with the lowest
    minima, where no further group ties."""
    rows, width = distance.shape
    group = int((width / k) ** 0.5)
    count = width // max(group, 1)
    if group < 4:
        return distance, index
    minima = distance[:, : group * count].reshape(rows, group, count).amin(1)
    values, chosen = minima.topk(k, largest=False, sorted=False)
    if int((minima <= values.amax(1, keepdim=True)).sum(1).max()) > k:
        return distance, index
    columns = (
        chosen[:, None, :] + count * torch.arange(group, device=chosen.device)[:, None]
    ).flatten(1)
    tail = torch.arange(group * count, width, device=chosen.device).expand(rows, -1)
    columns = torch.cat([columns, tail], 1)
    return distance.gather(1, columns), index.gather(1, columns)


def _columns_distance(queries: Tensor, columns: Tensor, scale: Tensor) -> Tensor:
    """The contract's distance of all pairs (M, N) from points by column (4, N), with one buffer
    an axis."""
    total: Any = None
    for axis in range(contract.AXES):
        term = queries[:, axis, None] - columns[axis]
        term.mul_(term).mul_(scale[:, axis, None])
        total = term if total is None else total.add_(term)
    return total
