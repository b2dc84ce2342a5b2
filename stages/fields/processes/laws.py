"""What is asked of predicted laws: score, calibration, and the memory that an answer takes.

A law is a mixture of Gaussians, of one where the head is Gaussian: log-density; continuous ranked
probability score, for mixtures by Grimit et al. (2006), E|Y - y| - E|Y - Y'| / 2 with E|N(m, s^2)|
= m (2 Phi(m / s) - 1) + 2 s phi(m / s); whether the measured value lies in a central interval, by
its distribution function. Memory is the most bytes that tensors held at once while a model
answered, the weights and what was asked aside: counted, not timed, so the same everywhere.
Shapes: S tasks, T targets, K members.
"""

import math
import weakref
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stages.errors import InputError
from stages.layers.heads import Gaussian, Mixture, Predictive

Array = np.ndarray


def members(law: Predictive) -> tuple[Array, Array, Array]:
    """Weights, means and standard deviations (S, T, K) of a law of one component, float64.
    InputError for a law that is no mixture of Gaussians."""
    if isinstance(law, Gaussian):
        parts = torch.ones_like(law.mean), law.mean, law.scale
    elif isinstance(law, Mixture):
        parts = law.weights[:, :, 0], law.means[:, :, 0], law.scales[:, :, 0]
    else:
        raise InputError(
            "calibration is measured of Gaussians and their mixtures",
            where="head",
            expected="gaussian or mixture",
            found=type(law).__name__,
        )
    weights, means, sds = (part.detach().double().cpu().numpy() for part in parts)
    return weights, means, sds


def _absolute(mean: Array, sd: Array) -> Array:
    """E|N(mean, sd^2)|."""
    z = mean / sd
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.asarray(mean * (2 * ndtr(z) - 1) + 2 * sd * density)


def crps(law: tuple[Array, Array, Array], y: Array) -> Array:
    """Of y (S, T), in its unit: (S, T)."""
    weights, means, sds = law
    near = (weights * _absolute(y[..., None] - means, sds)).sum(-1)
    apart = _absolute(
        means[..., :, None] - means[..., None, :], np.hypot(sds[..., :, None], sds[..., None, :])
    )
    return near - 0.5 * np.einsum("stk,stl,stkl->st", weights, weights, apart)


def covered(law: tuple[Array, Array, Array], y: Array, level: float) -> Array:
    """1.0 where y (S, T) lies in the central interval of that probability, else 0.0."""
    weights, means, sds = law
    below = (weights * ndtr((y[..., None] - means) / sds)).sum(-1)
    return np.asarray(np.abs(below - 0.5) <= level / 2, dtype=np.float64)


class Peak(TorchDispatchMode):
    """Counts the bytes of the tensors that operations make, as long as they live: `most` at once.
    What operations are given (weights, questions) does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.most = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for storage in _storages((args, kwargs)):
            self._known.add(storage)
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            if storage not in self._known:
                self._known.add(storage)
                self.live += storage.nbytes()
                weakref.finalize(storage, self._freed, storage.nbytes())
        self.most = max(self.most, self.live)
        return out

    def _freed(self, size: int) -> None:
        self.live -= size


def _storages(content: Any) -> list[Any]:
    return [one.untyped_storage() for one in tree_leaves(content) if isinstance(one, Tensor)]
