"""Targets together: the chain of an exact law is that of all at once, a latent process has one of
its own, and functions that are drawn by a chain belong together."""

import math

import numpy as np
import torch
from scipy.stats import multivariate_normal

from stages import seeds
from stages.batches import Batch
from stages.fields.models import build
from stages.fields.models.neural_process import Coherent
from stages.fields.problems.functions.gaussian_process import covariance, prediction
from stages.fields.processes import chain
from stages.layers.heads import Gaussian

LENGTH, NOISE = np.array([0.7]), 0.1


def task(contexts: int, targets: int) -> Batch:
    """One task of places and values."""
    generator = seeds.torch_stream(0, "chain", contexts, targets)

    def uniform(count: int):
        return 4 * torch.rand(1, count, 1, generator=generator, dtype=torch.float64) - 2

    def mask(count: int):
        return torch.ones(1, count, dtype=torch.bool)

    return Batch(uniform(contexts), uniform(contexts) / 2, mask(contexts), uniform(targets),
                 mask(targets), uniform(targets) / 2)  # fmt: skip


def exact(batch: Batch) -> Gaussian:
    """The law of a Gaussian process whose length is known."""
    length = LENGTH.repeat(len(batch.context_x))
    parts = (batch.context_x, batch.context_y[..., 0], batch.context_mask, batch.target_x)
    law = prediction("eq", length, NOISE, *(part.numpy() for part in parts))
    return Gaussian(*(torch.from_numpy(part)[..., None] for part in law))


def test_the_chain_of_the_exact_law_is_the_density_of_all_targets_at_once():
    batch = task(5, 4)
    x = torch.cat((batch.context_x, batch.target_x), 1).numpy()
    whole = covariance("eq", x, x, LENGTH)[0] + NOISE**2 * np.eye(9)
    y = torch.cat((batch.context_y, batch.target_y), 1)[0, :, 0].numpy()
    both = multivariate_normal(np.zeros(9), whole).logpdf(y)
    context = multivariate_normal(np.zeros(5), whole[:5, :5]).logpdf(y[:5])
    assert math.isclose(float(chain.joint(exact, batch)[0]), both - context, rel_tol=1e-9)
    apart = float(exact(batch).log_prob(batch.target_y).sum())
    assert abs(both - context - apart) > 0.1, "else the test would not see a chain"


def test_functions_that_are_drawn_by_a_chain_are_those_of_the_process():
    """Two targets beside each other, far from the context: apart by the noise alone, each spread
    by the prior."""
    batch = task(3, 2)
    batch.target_x[:] = torch.tensor([[[50.0], [50.01]]])
    found = chain.drawn(exact, batch, 2000, seeds.torch_stream(0, "drawn")).numpy()
    assert found.shape == (2000, 2)
    assert abs((found[:, 0] - found[:, 1]).std() - math.sqrt(2) * NOISE) < 0.01
    assert np.abs(found.std(0) - math.sqrt(1 + NOISE**2)).max() < 0.05


def test_the_latent_process_tells_all_targets_together_by_one_vector():
    seeds.everything(0)
    batch = task(4, 3)
    model = build("neural_process", {"latent": "weighted", "width": 8}, None, 1, 1, 1).double()
    law = model(batch)
    assert isinstance(law, Coherent)
    members = [
        Gaussian(law.means[..., k], law.scales[..., k]).log_prob(batch.target_y).sum()
        for k in range(law.means.shape[-1])
    ]
    expected = torch.stack(members).exp().mean().log()
    torch.testing.assert_close(law.joint(batch.target_y)[0], expected, atol=1e-9, rtol=0)
    one = Batch(*(getattr(batch, name)[:, :1] if name.startswith("target") else
                  getattr(batch, name) for name in vars(batch)))  # fmt: skip
    torch.testing.assert_close(
        model(one).joint(one.target_y), model(one).log_prob(one.target_y)[:, 0, 0]
    )
