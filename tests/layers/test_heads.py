"""Heads by their laws: densities that integrate to one and are those of torch.distributions,
losses that are least at the truth, samples with the moments of their law."""

import pytest
import torch
from torch import distributions

from stages import seeds
from stages.layers.heads import FLOOR, HEADS, LEVELS, MIXED, Gaussian, Mixture, Quantiles
from stages.layers.mlp import mlp

heads = pytest.mark.parametrize("name", HEADS)
DRAWS = 200_000


def predicted(name, shape=(2, 3, 2), dtype=torch.float64):
    """A prediction of random numbers, (B, T, O)."""
    seeds.everything(0)
    head = HEADS[name]
    return head.predict(torch.randn(*shape[:2], shape[2] * head.numbers, dtype=dtype))


def integral(values, x):
    return torch.trapezoid(values, x, dim=0)


@heads
def test_a_density_integrates_to_one_and_has_the_mean_and_scale_it_says(name):
    law = predicted(name)
    x = torch.linspace(-60, 60, 240_001, dtype=torch.float64)[:, None, None, None]
    density = law.log_prob(x.expand(-1, 2, 3, 2)).exp()
    ones = torch.ones(2, 3, 2, dtype=torch.float64)
    torch.testing.assert_close(integral(density, x[:, 0, 0, 0]), ones, rtol=0, atol=1e-3)
    mean = integral(density * x, x[:, 0, 0, 0])
    torch.testing.assert_close(mean, law.mean, rtol=0, atol=2e-3)
    spread = integral(density * (x - law.mean).square(), x[:, 0, 0, 0]).sqrt()
    torch.testing.assert_close(spread, law.scale, rtol=2e-3, atol=0)


@heads
def test_samples_have_the_moments_of_the_law_and_come_of_the_generator_alone(name):
    law = predicted(name)
    draws = law.sample(DRAWS, seeds.torch_stream(0, "heads", name))
    assert draws.shape == (DRAWS, 2, 3, 2)
    assert ((draws.mean(0) - law.mean).abs() < 5 * law.scale / DRAWS**0.5).all()
    torch.testing.assert_close(draws.std(0), law.scale, rtol=0.03, atol=0)
    again = law.sample(5, seeds.torch_stream(1, "heads", name))
    assert torch.equal(again, law.sample(5, seeds.torch_stream(1, "heads", name)))
    assert not torch.equal(again, law.sample(5, seeds.torch_stream(2, "heads", name)))


def test_a_gaussians_log_prob_is_torchs():
    law, y = predicted("gaussian"), torch.randn(2, 3, 2, dtype=torch.float64)
    expected = distributions.Normal(law.mean, law.scale).log_prob(y)
    torch.testing.assert_close(law.log_prob(y), expected)
    torch.testing.assert_close(law.loss(y), -expected)


def test_a_mixtures_log_prob_mean_and_scale_are_torchs():
    law, y = predicted("mixture"), 4 * torch.randn(2, 3, 2, dtype=torch.float64)
    same = distributions.MixtureSameFamily(
        distributions.Categorical(logits=law.logits), distributions.Normal(law.means, law.scales)
    )
    torch.testing.assert_close(law.log_prob(y), same.log_prob(y))
    torch.testing.assert_close(law.mean, same.mean)
    torch.testing.assert_close(law.scale, same.stddev)


def test_quantiles_never_cross_and_share_the_mass_as_their_levels_say():
    law = predicted("quantile")
    assert (law.values.diff(dim=-1) >= FLOOR).all()
    draws = law.sample(DRAWS, seeds.torch_stream(0, "heads", "levels"))
    below = (draws[..., None] <= law.values).double().mean(0)
    expected = torch.tensor(LEVELS, dtype=torch.float64).expand_as(below)
    torch.testing.assert_close(below, expected, rtol=0, atol=0.005)


def test_a_density_of_quantiles_has_no_jump_where_its_tails_begin():
    law = predicted("quantile")
    for edge in (law.values[..., 0], law.values[..., -1]):
        near, far = law.log_prob(edge - 1e-9), law.log_prob(edge + 1e-9)
        torch.testing.assert_close(near, far, rtol=0, atol=1e-6)


def test_the_quantile_loss_is_proper():
    """In the mean over draws of a law it is least at that law's own quantiles."""
    y = distributions.Normal(1.0, 2.0)
    values = y.icdf(torch.tensor(LEVELS, dtype=torch.float64))
    draws = y.icdf((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)[:, None, None]
    least = Quantiles(values[None, None, None]).loss(draws).mean()
    for place in range(len(LEVELS)):
        for step in (-0.2, 0.2):
            moved = values.clone()
            moved[place] += step
            assert Quantiles(moved[None, None, None]).loss(draws).mean() > least + 1e-4


@pytest.mark.parametrize("shift", [-0.3, 0.3])
@pytest.mark.parametrize("kind", [Gaussian, Mixture])
def test_a_likelihood_is_least_at_the_truth(kind, shift):
    def law(shift, stretch):
        mean, scale = torch.full((1, 1, 1), 1.0 + shift), torch.full((1, 1, 1), 2.0 * stretch)
        if kind is Gaussian:
            return Gaussian(mean, scale)
        apart = torch.tensor([-3.0, 3.0])
        return Mixture(
            torch.zeros(1, 1, 1, 2), mean[..., None] + apart, scale[..., None] + 0 * apart
        )

    truth = law(0.0, 1.0)
    y = truth.sample(100_000, seeds.torch_stream(0, "heads", "truth"))
    least = truth.log_prob(y).mean()
    assert law(shift, 1.0).log_prob(y).mean() < least
    assert law(0.0, 1.0 + shift).log_prob(y).mean() < least


@heads
def test_gradients_reach_every_number_and_float32_stays_finite(name):
    head = HEADS[name]
    numbers = torch.randn(2, 3, 2 * head.numbers, requires_grad=True)
    y = torch.tensor([-30.0, 0.3, 30.0]).view(1, 3, 1).expand(2, 3, 2)
    loss = head.predict(numbers).loss(y)
    loss.sum().backward()
    assert loss.shape == (2, 3, 2) and torch.isfinite(loss).all()
    assert torch.isfinite(numbers.grad).all() and (numbers.grad != 0).any(0).any(0).all()


@heads
def test_a_network_learns_a_law_of_two_branches_by_its_head(name):
    """y is -1 or 1 with noise 0.1: two Gaussians see it, one does not."""
    seeds.everything(0)
    draws = seeds.torch_stream(0, "heads", "branches")
    network = mlp(1, 16, 16, HEADS[name].numbers)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(300):
        sign = torch.randint(2, (64, 4, 1), generator=draws) * 2.0 - 1
        y = sign + 0.1 * torch.randn(64, 4, 1, generator=draws)
        law = HEADS[name].predict(network(torch.ones(64, 4, 1)))
        optimizer.zero_grad()
        law.loss(y).mean().backward()
        optimizer.step()
    nats = -law.log_prob(y).mean().item()
    assert law.mean.mean().item() == pytest.approx(0, abs=0.2)
    assert law.scale.mean().item() == pytest.approx(1, abs=0.2)
    # entropies: 1.42 of a Gaussian as wide, -0.19 of the two branches
    low, high = {"gaussian": (1.3, 1.6), "mixture": (-0.3, 0.5), "quantile": (-0.3, 1.42)}[name]
    assert low < nats < high


def test_the_gaussian_heads_numbers_are_means_then_raw_scales():
    seeds.everything(0)
    numbers = torch.randn(2, 3, 4)
    law = HEADS["gaussian"].predict(numbers)
    assert torch.equal(law.mean, numbers[..., :2])
    assert torch.equal(law.scale, torch.nn.functional.softplus(numbers[..., 2:]) + 1e-3)
    assert predicted("mixture").means.shape[-1] == MIXED
