"""The exact sampler against listed laws (chi-square, total variation), sequential sampling with
the same noise, and its goals."""

import pytest
import torch
import toy_laws
from scipy.stats import chisquare

from stages import seeds
from stages.errors import InputError
from stages.sequences import permutations
from stages.sequences.evaluation.bias import frequencies
from stages.sequences.models import build
from stages.sequences.sampling import gumbel
from stages.sequences.sampling.burst import burst
from stages.sequences.sampling.exact import DRAFTS, exact
from stages.sequences.sampling.sequential import sequential

DRAWS = 100_000


def generator(*names):
    return seeds.torch_stream(0, "exact", *names)


def zeros(batch, length):
    return torch.zeros(batch, length, dtype=torch.int64)


def judged(tokens, sequences, probabilities):
    """(p of the chi-square test, total variation, largest total variation to expect of an exact
    sampler)."""
    share, law = frequencies(tokens, sequences), probabilities / probabilities.sum()
    counts, kept = share[:-1] * len(tokens), law > 0
    assert abs(share[-1]) < 1e-9 and counts[~kept].sum() == 0, "a sequence that cannot be"
    p = chisquare(counts[kept], law[kept] * len(tokens)).pvalue if kept.sum() > 1 else 1.0
    return (
        p,
        float((share[:-1] - law).abs().sum()) / 2,
        float((law * (1 - law) / len(tokens)).sqrt().sum()),
    )


def network(length=4, vocabulary=2, seed=0, dtype=torch.float32):
    """Small, untrained and far from uniform."""
    seeds.everything(seed)
    model = build(
        "sigma_gpt",
        {"dropout": 0.0},
        {"width": 8, "keys": 4, "hidden": 16, "heads": 2, "blocks": 2},
        vocabulary,
        length,
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0).add_(0.2 * torch.randn(parameter.shape))
    return model.to(dtype)


def joint(model, order):
    """All sequences of a network and their probabilities when drawn in `order` (1, T), from its
    training forward alone."""
    sequences = torch.cartesian_prod(*[torch.arange(model.vocabulary)] * model.length)
    here = order.expand(len(sequences), -1)
    with torch.no_grad():
        logs = model(sequences, here).log_softmax(2).gather(2, sequences.gather(1, here)[..., None])
    return sequences, logs.sum((1, 2)).double().exp()


LISTED = {
    "correlated": toy_laws.correlated(4, 2, 0),
    "three tokens": toy_laws.correlated(3, 3, 1),
    "step": toy_laws.step(8, 3),
    "step, lost when wrong": toy_laws.step(8, 3, "uniform"),
}


@pytest.mark.parametrize(
    ("name", "drafts"),
    [*((name, "both") for name in LISTED), ("correlated", "chain"), ("step", "burst")],
)
def test_listed_laws_are_sampled_exactly_in_random_orders(name, drafts):
    law, draws = LISTED[name], generator(name, drafts)
    sample = exact(
        law,
        permutations.random(DRAWS, law.length, draws),
        zeros(DRAWS, law.length),
        draws,
        drafts=drafts,
    )
    p, distance, most = judged(sample.tokens, law.sequences, law.probabilities)
    assert p > 1e-3 and distance < most


def test_all_permutations_of_four_are_alike():
    law, draws = toy_laws.Permutation(4), generator("permutation")
    sample = exact(law, permutations.random(DRAWS, 4, draws), zeros(DRAWS, 4), draws)
    sequences = torch.cartesian_prod(*[torch.arange(4)] * 4)
    sequences = sequences[sequences.sort(1).values.eq(torch.arange(4)).all(1)]
    p, distance, most = judged(sample.tokens, sequences, torch.ones(24, dtype=torch.float64))
    assert len(sequences) == 24 and p > 1e-3 and distance < most


def test_a_prompt_anywhere_is_kept_and_conditioned_on():
    law, draws = LISTED["correlated"], generator("prompt")
    given = zeros(DRAWS, 4)
    given[:, 2] = 1
    order = permutations.ahead(
        permutations.random(DRAWS, 4, draws), (torch.arange(4) == 2).expand(DRAWS, 4)
    )
    sample = exact(law, order, given, draws, first=1)
    p, distance, most = judged(
        sample.tokens, law.sequences, law.probabilities * (law.sequences[:, 2] == 1)
    )
    assert p > 1e-3 and distance < most


def test_a_network_is_sampled_in_the_joint_law_of_its_order():
    model, draws, order = network(), generator("network"), torch.tensor([[2, 0, 3, 1]])
    sequences, law = joint(model, order)
    sample = exact(model, order.expand(DRAWS, -1), zeros(DRAWS, 4), draws)
    p, distance, most = judged(sample.tokens, sequences, law)
    assert p > 1e-3 and distance < most
    _, other = joint(
        model, torch.tensor([[0, 1, 2, 3]])
    )  # the test tells this network's orders apart
    assert judged(sample.tokens, sequences, other)[0] < 1e-6


@pytest.mark.parametrize(
    "wrong", ["rejected without a residual", "the best of five orders", "an unchecked burst"]
)
def test_wrong_samplers_are_told_from_the_law(wrong):
    law, draws = LISTED["correlated"], generator(wrong)
    blank = zeros(DRAWS, 4)
    if wrong == "an unchecked burst":
        reader = law.open(blank, blank, torch.zeros(DRAWS, dtype=torch.int64))
        tokens = (
            reader.ask(permutations.left_to_right(DRAWS, 4))[0] + gumbel((DRAWS, 4, 2), draws)
        ).argmax(2)
    else:
        tokens = burst(law, blank, draws, orders=5 if "five" in wrong else 1).tokens
    assert judged(tokens, law.sequences, law.probabilities)[0] < 1e-6


@pytest.mark.parametrize("drafts", DRAFTS)
def test_it_draws_the_very_sample_of_sequential_sampling_with_the_same_noise(drafts):
    model, draws = network(13, 5, seed=3, dtype=torch.float64), generator("pathwise", drafts)
    order = permutations.random(40, 13, draws)
    prompt = torch.randint(0, 5, (40, 13), generator=draws)
    noise = gumbel((40, 13, 5), draws, torch.float64)
    first = torch.randint(0, 14, (40,), generator=draws)
    fast = exact(model, order, prompt, draws, first, drafts, noise)
    slow = sequential(model, order, prompt, draws, first, noise=noise)
    assert torch.equal(fast.tokens, slow.tokens) and torch.equal(fast.order, order)
    assert (
        torch.equal(slow.passes, 13 - first)
        and (fast.passes <= slow.passes).all()
        and (fast.passes < slow.passes).any()
    )


@pytest.mark.parametrize(
    ("name", "law", "most"),
    [
        ("product", toy_laws.Product(100), 2.0),
        ("step", toy_laws.step(100, 10), 6.0),
        ("step, lost when wrong", toy_laws.step(100, 10, "uniform"), 7.5),
        ("permutation", toy_laws.Permutation(60), 9.5),
    ],
)
def test_it_takes_at_most_1_3_times_the_passes_of_algorithm_3(name, law, most):
    draws, blank = generator("passes", name), zeros(40, law.length)
    ours = (
        exact(law, permutations.random(40, law.length, draws), blank, draws).passes.double().mean()
    )
    printed = burst(law, blank, draws, orders=5).passes.double().mean()
    assert ours <= most and ours <= 1.3 * printed


def test_a_pass_is_one_call_and_none_waits_for_another():
    law, draws = toy_laws.step(40, 5), generator("calls")
    readers = []
    law.open = lambda *given: readers.append(toy_laws.Reader(law, *given)) or readers[-1]
    sample = exact(law, permutations.random(64, 40, draws), zeros(64, 40), draws)
    assert (
        readers[0].calls == sample.passes.max() > sample.passes.min()
        and (sample.rounds == sample.passes - 1).all()
    )


def test_a_row_gives_the_same_sample_alone_and_in_a_batch():
    model, draws = network(9, 3, seed=5, dtype=torch.float64), generator("alone")
    order, noise = permutations.random(6, 9, draws), gumbel((6, 9, 3), draws, torch.float64)
    together = exact(model, order, zeros(6, 9), draws, noise=noise)
    for row in range(6):
        alone = exact(model, order[[row]], zeros(1, 9), draws, noise=noise[[row]])
        assert (
            torch.equal(alone.tokens[0], together.tokens[row])
            and alone.passes[0] == together.passes[row]
        )
        assert alone.positions[0] == together.positions[row]


def test_nothing_to_draw_takes_no_pass_and_other_drafts_are_refused():
    law = toy_laws.step(8, 3)
    draws = generator("nothing")
    given = torch.ones(2, 8, dtype=torch.int64)
    sample = exact(law, permutations.left_to_right(2, 8), given, draws, first=8)
    assert torch.equal(sample.tokens, given) and not sample.passes.any()
    with pytest.raises(InputError, match="no such drafts"):
        exact(law, permutations.left_to_right(2, 8), given, draws, drafts="best")
