"""A Kalman filter whose state is a smooth field at the nodes of a grid, seen through a Gaussian
process.

Prior covariance of the field: k(a, b) = sd^2 exp(-0.5 |a - b|^2), coordinates in units of the
lengths. K of the nodes = L L', and the state is z = L^-1 (values at the nodes), prior N(0, I). A
point sees f(x)' z, f(x) = L^-1 k(nodes, x): the best guess from the nodes. What they cannot say has
variance sd^2 - f'f. Every state decays towards its prior on its own (Ornstein-Uhlenbeck); a decay
of 1 is a constant. All components of the wind share one covariance. Shapes: N nodes, M observations
of one step, S states, O components. float64.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

JITTER = 1e-9  # of the prior variance: lengths far greater than the spacing make nodes nearly equal
BLOCK = 128  # observations taken in at once


class State(NamedTuple):
    """A Gaussian over the states: one mean for each component of the wind, one covariance for
    all."""

    mean: Float[Tensor, "S O"]
    covariance: Float[Tensor, "S S"]


def features(
    points: Float[Tensor, "M X"], nodes: Float[Tensor, "N X"], sd: float
) -> Float[Tensor, "M N"]:
    """f(x) of each point; points and nodes in units of the lengths."""

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        apart = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
        return sd**2 * torch.exp(-0.5 * apart.square())

    own = kernel(nodes, nodes)
    own.diagonal().add_(JITTER * sd**2)
    return torch.linalg.solve_triangular(
        torch.linalg.cholesky(own), kernel(nodes, points), upper=False
    ).T


def relax(state: State, decay: Float[Tensor, " S"], prior: Float[Tensor, " S"]) -> State:
    """Later by a time in which deviations fall by `decay`: x' = decay x + N(0, (1 - decay^2)
    prior). The prior itself stays as it is."""
    covariance = decay[:, None] * state.covariance * decay
    covariance.diagonal().add_((1 - decay.square()) * prior)
    return State(decay[:, None] * state.mean, covariance)


def update(
    state: State,
    design: Float[Tensor, "M S"],
    values: Float[Tensor, "M O"],
    variance: Float[Tensor, " M"],
) -> State:
    """After observing values = design x + N(0, variance), BLOCK observations after another: exact,
    at a cost of O(M S^2).

    With C C' = design P design' + variance and V = C^-1 design P: P' = P - V'V, and the mean moves
    by V' C^-1 (values - design mean).
    """
    mean, covariance = state
    for rows in (slice(start, start + BLOCK) for start in range(0, len(design), BLOCK)):
        block = design[rows]
        across = block @ covariance
        own = across @ block.T
        own.diagonal().add_(variance[rows])
        both = torch.cat((across, values[rows] - block @ mean), 1)
        white = torch.linalg.solve_triangular(torch.linalg.cholesky(own), both, upper=False)
        gain, residual = white.split((block.shape[1], values.shape[1]), 1)
        mean, covariance = mean + gain.T @ residual, torch.addmm(covariance, gain.T, gain, alpha=-1)
    return State(mean, covariance)
