"""Uniform diffusion: its marginals and posteriors in closed form against simulation and Bayes' rule
by enumeration, its bound against an entropy, prompts that stay, gradients that reach everything,
and samples of a learned law."""

import itertools
import math
from pathlib import Path

import pytest
import torch

from stages import seeds
from stages.errors import InputError
from stages.params import read_yaml
from stages.sequences.models import build
from stages.sequences.models.diffusion import Diffusion, earlier, keep, more_given, noised

V = 3
NAMES = ("sigma_gpt", "diffusion")
SMALL = {"width": 16, "keys": 8, "hidden": 24, "heads": 2, "blocks": 2}


def transition(kept):
    """The matrix [from, to] of a noise that keeps a token with probability `kept`, in float64."""
    return kept * torch.eye(V, dtype=torch.float64) + (1 - kept) * torch.full(
        (V, V), 1 / V, dtype=torch.float64
    )


def at(*times):
    return keep(torch.tensor(times, dtype=torch.float64))


def exact_clean(prior, noisy, time):
    """p(x_0 | x_t) of one token by Bayes' rule, (V,)."""
    joint = prior * transition(at(time)[0])[:, noisy]
    return joint / joint.sum()


class Known(Diffusion):
    """A network that knows p(x_0 | x_t) of independent tokens of a prior."""

    def __init__(self, prior, length):
        super().__init__(V, length)
        self.prior = prior

    def forward(self, noisy, time, given=None):
        different, which = time.unique(return_inverse=True)
        table = torch.stack(
            [
                torch.stack([exact_clean(self.prior, x, float(t)) for x in range(V)])
                for t in different
            ]
        )
        return table[which[:, None], noisy].log().float()


def test_a_token_is_kept_as_often_as_the_closed_form_says():
    torch.set_num_threads(1)
    tokens = torch.full((4, 100_000), 2)
    time = torch.tensor([0.0, 0.3, 0.7, 1.0])
    seen = noised(tokens, time, V, seeds.torch_stream(0, "noise"))
    for row, t in enumerate(time.tolist()):
        share = torch.bincount(seen[row], minlength=V).double() / seen.shape[1]
        law = transition(math.cos(math.pi * t / 2) ** 2)[2]
        assert torch.allclose(share, law, atol=0.006), t  # 4 standard deviations of 100,000 draws


def test_noising_in_many_small_steps_has_the_marginal_of_one_large_step():
    times = torch.linspace(0, 0.9, 31, dtype=torch.float64)
    product = torch.eye(V, dtype=torch.float64)
    for before, after in itertools.pairwise(times.tolist()):
        product = product @ transition(at(after)[0] / at(before)[0])
    assert torch.allclose(product, transition(at(0.9)[0]), atol=1e-12)


def test_the_law_of_an_earlier_time_is_bayes_rule_summed_over_the_clean_token():
    clean = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    for time, before, noisy in itertools.product((0.4, 0.8, 1.0), (0.0, 0.2), range(V)):
        a_t, a_s = at(time, before)
        by_hand = torch.zeros(V, dtype=torch.float64)
        for x0, xs in itertools.product(range(V), range(V)):
            by_hand[xs] += (
                clean[x0]
                * transition(a_s)[x0, xs]
                * transition(a_t / a_s)[xs, noisy]
                / transition(a_t)[x0, noisy]
            )
        found = earlier(
            torch.tensor([[noisy]]),
            clean.view(1, 1, V),
            torch.tensor([time], dtype=torch.float64),
            torch.tensor([before], dtype=torch.float64),
        )[0, 0]
        assert torch.allclose(found, by_hand, atol=1e-12) and math.isclose(
            float(found.sum()), 1, abs_tol=1e-12
        )


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_who_knows_the_law_is_bounded_by_the_entropy_of_independent_tokens_at_any_steps(steps):
    prior = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    model = Known(prior, 400).eval()
    tokens = torch.multinomial(
        prior.repeat(60, 1), 400, replacement=True, generator=seeds.torch_stream(0, "tokens")
    )
    entropy = -(prior * prior.log()).sum()
    assert (
        abs(
            float(model.bound(tokens, seeds.torch_stream(1, "bound"), steps).mean())
            - float(entropy)
        )
        < 0.03
    )


def test_a_model_that_does_not_know_the_law_has_a_larger_bound_than_the_entropy():
    prior = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    model = Known(torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64), 400).eval()
    tokens = torch.multinomial(
        prior.repeat(60, 1), 400, replacement=True, generator=seeds.torch_stream(0, "tokens")
    )
    assert (
        float(model.bound(tokens, seeds.torch_stream(1, "bound"), 5).mean())
        > float(-(prior * prior.log()).sum()) + 0.3
    )


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_samples_of_a_model_that_knows_the_law_follow_it_in_any_number_of_steps(steps):
    prior = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    model = Known(prior, 20).eval()
    drawn = model.sample(
        torch.zeros(2000, 20, dtype=torch.long),
        torch.zeros(2000, 20, dtype=torch.bool),
        steps,
        seeds.torch_stream(0, "s"),
    )
    assert torch.allclose(
        torch.bincount(drawn.flatten(), minlength=V).double() / drawn.numel(), prior, atol=0.01
    )


def test_given_tokens_are_never_noised_and_stay_in_every_sample():
    model = Diffusion(5, 6).eval()
    tokens = torch.randint(5, (50, 6), generator=seeds.torch_stream(0, "tokens"))
    given = torch.rand(50, 6, generator=seeds.torch_stream(0, "given")) < 0.4
    assert torch.equal(
        noised(tokens, torch.ones(50), 5, seeds.torch_stream(0, "n"), given)[given], tokens[given]
    )
    assert torch.equal(
        model.sample(tokens, given, 4, seeds.torch_stream(0, "s"))[given], tokens[given]
    )


def test_given_tokens_do_not_count_in_the_loss():
    model = Diffusion(5, 6).eval()
    tokens = torch.randint(5, (8, 6), generator=seeds.torch_stream(0, "tokens"))
    given = torch.zeros(8, 6, dtype=torch.bool)
    given[:, :3] = True
    with torch.no_grad():
        model.readout.weight.zero_()
        model.readout.bias.copy_(torch.tensor([0.0, 1, 2, 3, 4]))
    by_hand = -model.readout.bias.log_softmax(0)[tokens[:, 3:]].mean()
    assert torch.allclose(model.loss(tokens, seeds.torch_stream(0, "l"), given), by_hand, atol=1e-6)


def test_more_is_given_to_the_share_asked_for_as_beginnings_and_scattered_and_never_less():
    given = torch.zeros(4000, 20, dtype=torch.bool)
    given[:, :2] = True
    more = more_given(given, 0.5, seeds.torch_stream(0, "more"))
    grown = (more & ~given).any(1)
    beginnings = (more.int().diff(dim=1) <= 0).all(1)
    assert (
        more & given
    ).sum() == given.sum() and 0.4 < grown.float().mean() < 0.5  # a short beginning adds nothing
    assert 0.4 < beginnings[grown].float().mean() < 0.6 and torch.equal(
        more_given(given, 0.0, seeds.torch_stream(0, "more")), given
    )


def test_more_is_given_in_training_only():
    torch.manual_seed(0)
    tokens = torch.randint(5, (64, 6), generator=seeds.torch_stream(0, "t"))
    one, two = (Diffusion(5, 6, dropout=0.0, prompts=share) for share in (0.9, 0.0))
    two.load_state_dict(one.state_dict())

    def drawn(model):
        return model.loss(tokens, seeds.torch_stream(0, "l")).item()

    assert drawn(one) != drawn(two) and drawn(one.eval()) == drawn(two.eval())


def test_the_bound_of_a_sequence_is_its_own():
    model, tokens = Diffusion(5, 6).eval(), torch.zeros(4, 6, dtype=torch.long)
    tokens[2] = torch.arange(6) % 5
    given = torch.zeros(4, 6, dtype=torch.bool)
    given[3] = True
    found = model.bound(tokens, seeds.torch_stream(0, "b"), 3, given)
    assert found.shape == (4,) and found[3] == 0 and (found[:3] > 0).all()


def test_the_same_generator_gives_the_same_loss_and_the_same_samples():
    model = Diffusion(5, 6).eval()
    tokens, given = torch.zeros(4, 6, dtype=torch.long), torch.zeros(4, 6, dtype=torch.bool)
    assert model.loss(tokens, seeds.torch_stream(3, "l")) == model.loss(
        tokens, seeds.torch_stream(3, "l")
    )
    first, again = (model.sample(tokens, given, 3, seeds.torch_stream(3, "s")) for _ in range(2))
    assert torch.equal(first, again) and not torch.equal(
        first, model.sample(tokens, given, 3, seeds.torch_stream(4, "s"))
    )


def test_every_position_sees_every_other_and_the_time():
    model = Diffusion(5, 6).eval()
    tokens = torch.zeros(1, 6, dtype=torch.long)
    plain = model(tokens, torch.tensor([0.5]))
    for place in range(6):
        changed = tokens.clone()
        changed[0, place] = 1
        assert ((model(changed, torch.tensor([0.5])) - plain).abs().amax(-1) > 1e-7).all(), place
    assert ((model(tokens, torch.tensor([0.6])) - plain).abs().amax(-1) > 1e-7).all()


def test_the_gradient_of_the_loss_reaches_every_parameter():
    torch.manual_seed(0)
    model = Diffusion(5, 6, dropout=0.0)
    given = torch.zeros(64, 6, dtype=torch.bool)
    given[:, 0] = True
    model.loss(
        torch.randint(5, (64, 6), generator=seeds.torch_stream(0, "t")),
        seeds.torch_stream(0, "l"),
        given,
    ).backward()
    assert not [
        name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0
    ]
    assert (model.mark.weight.grad.abs().amax(1) > 0).all()


ARMS = {
    "as before": {},
    "grid": {"positions": "grid", "axes": [2, 3], "scale": 8.0, "loudness": 0.1, "fastest": 10.0},
}


@pytest.mark.parametrize("arm", ARMS)
def test_the_network_is_the_backbone_written_out_in_plain_operations(arm):
    seeds.everything(0)
    model = build("diffusion", ARMS[arm] | {"dropout": 0.0}, SMALL, 5, 6).eval()
    with torch.no_grad():
        for one in model.parameters():
            one.add_(0.2 * torch.randn(one.shape))
    tokens, time = torch.randint(5, (3, 6)), torch.rand(3)
    given = torch.rand(3, 6) < 0.4
    weights = {name: value.double() for name, value in model.state_dict().items()}

    def linear(x, name):
        bias = weights.get(f"{name}.bias")
        return x @ weights[f"{name}.weight"].T + (0 if bias is None else bias)

    def norm(x, name):
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    place = torch.arange(6)
    if arm == "grid":  # row 0 stands before the first; 1 and 2 are lines, 3 to 5 columns
        rows = weights["positions.table.weight"]
        half = rows[1 + place // 3] + rows[3 + place % 3]
    else:
        angle = place[:, None] * 1e4 ** (-torch.arange(4).double() / 3)
        half = torch.cat((angle.sin(), angle.cos()), 1)
    scale, loud, fast = (
        ARMS[arm].get(key, value)
        for key, value in (("scale", 1.0), ("loudness", 1.0), ("fastest", 1000.0))
    )
    angle = time.double()[:, None] * fast * 1e4 ** (-torch.arange(8).double() / 7)
    clock = linear(torch.cat((angle.sin(), angle.cos()), 1), "clock")[:, None]
    x = weights["embedding.weight"][tokens] + torch.cat((half, half), 1)
    x = scale * (x + weights["mark.weight"][given.long()]) + loud * clock
    for block in range(2):
        name = f"blocks.{block}"
        parts = linear(norm(x, f"{name}.attention_norm"), f"{name}.inward").view(3, 6, -1)
        q, k, v = (
            part.unflatten(2, (2, -1)).transpose(1, 2) for part in parts.split((16, 16, 16), 2)
        )
        mixed = (q @ k.transpose(2, 3) / 8**0.5).softmax(3) @ v
        x = x + linear(mixed.transpose(1, 2).flatten(2), f"{name}.outward")
        wide = linear(norm(x, f"{name}.feed_norm"), f"{name}.widen").clamp(min=0)
        x = x + linear(wide, f"{name}.narrow")
    expected = linear(x, "readout")
    assert torch.allclose(model(tokens, time, given).double(), expected, atol=2e-5)


def test_every_size_of_sigma_gpt_is_diffusions_too_and_adds_a_clock_and_two_marks():
    both = [read_yaml(Path(f"stages/params/models/{name}.yaml")) for name in NAMES]
    sizes, ours = both[0]["sizes"], both[1]["sizes"]
    for size in ("17k", "58k", "60k", "130k", "134k"):
        assert ours[size] == sizes[size]
        width = sizes[size]["width"]
        one, two = (
            sum(p.numel() for p in build(name, {"dropout": 0.0}, sizes[size], 2, 98).parameters())
            for name in NAMES
        )
        assert two - one == width * width + width + 2 * width
    assert all(ours[size] == sizes[size] for size in ours if size in sizes)


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"loudness": -1.0}, {"fastest": "x"}])
def test_factors_that_are_none_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        build("diffusion", wrong, SMALL, 5, 6)


def test_at_time_0_nothing_is_noised_and_the_loss_is_the_cross_entropy_of_what_is_seen():
    class Still(Diffusion):
        def _times(self, count, generator, device):
            return torch.zeros(count)

    seeds.everything(1)
    model, tokens = Still(5, 6, dropout=0.0).eval(), torch.randint(5, (8, 6))
    logits = model(tokens, torch.zeros(8))
    by_hand = -logits.log_softmax(2).gather(2, tokens[..., None]).mean()
    assert torch.allclose(model.loss(tokens, seeds.torch_stream(0, "l")), by_hand, atol=1e-6)


@pytest.mark.slow_fault
def test_it_learns_the_permutations_of_four_and_few_steps_are_worse_than_many():
    """Independent tokens would be valid in 9 % of cases; 85 % after some seconds of training in
    32 steps, and one step is a product law."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Diffusion(4, 4, width=32, keys=16, hidden=64, heads=2, blocks=2, dropout=0.0)
    rng = seeds.torch_stream(0, "train")
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(700):
        tokens = torch.rand(128, 4, generator=rng).argsort(1)
        optimiser.zero_grad()
        model.loss(tokens, rng).backward()
        optimiser.step()
    model.eval()
    none = torch.zeros(2000, 4, dtype=torch.bool)

    def valid(drawn):
        return float((drawn.sort(1).values == torch.arange(4)).all(1).float().mean())

    start = torch.zeros(2000, 4, dtype=torch.long)
    many, one = (
        valid(model.sample(start, none, steps, seeds.torch_stream(0, "s"))) for steps in (32, 1)
    )
    assert many > 0.85 and one < 0.2
    given = none.clone()
    given[:, 0] = True
    drawn = model.sample(start + 2, given, 32, seeds.torch_stream(1, "s"))
    assert (drawn[:, 0] == 2).all() and valid(drawn) > 0.85
