"""Exact sampling by windows: the sample of the same noise, the listed laws (chi-square, total
variation), and what it may cost."""

import pytest
import torch
import toy_laws
from test_exact_sampling import DRAWS, joint, judged, network, zeros

from stages import seeds
from stages.errors import InputError
from stages.sequences import permutations
from stages.sequences.sampling import gumbel
from stages.sequences.sampling.exact import exact
from stages.sequences.sampling.sequential import density, sequential
from stages.sequences.sampling.window import windowed

windows = pytest.mark.parametrize("window", [1, 2, 5, 40])
priors = pytest.mark.parametrize("told", [False, True], ids=["uniform", "prior"])


def generator(*names):
    return seeds.torch_stream(0, "window", *names)


def blind(law):
    """Logits of what the law gives every position without seeing any."""
    blank = zeros(1, law.length)
    return density(law, blank, blank > 0)[0].log()


@pytest.mark.parametrize("window", [1, 2, 8])
@priors
def test_listed_laws_are_sampled_exactly_in_random_orders(window, told):
    law, draws = toy_laws.correlated(4, 2, 0), generator("laws", str(window))
    prior = 3 * torch.randn(4, 2, generator=draws) if told else None
    sample = windowed(
        law,
        permutations.random(DRAWS, 4, draws),
        zeros(DRAWS, 4),
        draws,
        window=window,
        prior=prior,
    )
    p, distance, most = judged(sample.tokens, law.sequences, law.probabilities)
    assert p > 1e-3 and distance < most


@pytest.mark.parametrize(
    ("name", "law"),
    [("three tokens", toy_laws.correlated(3, 3, 1)), ("step", toy_laws.step(8, 3, "uniform"))],
)
def test_other_laws_are_sampled_exactly_too_and_drafts_that_nothing_checked_are_told_from_them(
    name, law
):
    draws, blank = generator(name), zeros(DRAWS, law.length)
    order = permutations.random(DRAWS, law.length, draws)
    prior = torch.randn(law.length, law.vocabulary, generator=draws)
    p, distance, most = judged(
        windowed(law, order, blank, draws, window=2, prior=prior).tokens,
        law.sequences,
        law.probabilities,
    )
    assert p > 1e-3 and distance < most
    reader = law.open(blank, order, torch.zeros(DRAWS, dtype=torch.int64))
    first = (reader.ask(order[:, :1])[0][:, 0] + gumbel((DRAWS, law.vocabulary), draws)).argmax(1)
    drafts = (prior + gumbel((*blank.shape, law.vocabulary), draws)).argmax(2)
    with pytest.raises(AssertionError):
        assert (
            judged(
                torch.where(torch.arange(law.length) == order[:, :1], first[:, None], drafts),
                law.sequences,
                law.probabilities,
            )[0]
            > 1e-6
        )


@priors
def test_a_network_is_sampled_in_the_joint_law_of_its_order(told):
    model, draws, order = network(), generator("network"), torch.tensor([[2, 0, 3, 1]])
    sequences, law = joint(model, order)
    sample = windowed(
        model,
        order.expand(DRAWS, -1),
        zeros(DRAWS, 4),
        draws,
        window=2,
        prior=blind(model) if told else None,
    )
    p, distance, most = judged(sample.tokens, sequences, law)
    assert p > 1e-3 and distance < most
    assert (
        judged(sample.tokens, sequences, joint(model, torch.tensor([[0, 1, 2, 3]]))[1])[0] < 1e-6
    )  # orders are told apart


@windows
@priors
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["compiled", "torch"])
def test_it_draws_the_sample_of_sequential_sampling_with_the_same_noise_from_any_prompt(
    window, told, dtype
):
    model, draws = network(13, 5, seed=3, dtype=dtype), generator("pathwise", str(window))
    order = permutations.random(40, 13, draws)
    prompt = torch.randint(0, 5, (40, 13), generator=draws)
    noise, first = gumbel((40, 13, 5), draws, dtype), torch.randint(0, 14, (40,), generator=draws)
    prior = blind(model) if told else None
    fast = windowed(model, order, prompt, draws, first, window, prior, noise)
    slow = sequential(model, order, prompt, draws, first, noise=noise)
    assert torch.equal(fast.tokens, slow.tokens) and torch.equal(fast.order, order)
    assert (fast.passes <= slow.passes).all() and (window == 1 or (fast.passes < slow.passes).any())
    assert (
        (fast.when.amax(1) == fast.passes).all()
        and torch.equal(fast.when > 0, slow.when > 0)
        and (fast.when.diff(dim=1) >= 0).all()
    )
    other = windowed(
        model,
        order,
        torch.where(torch.zeros_like(prompt).scatter(1, order, slow.when) > 0, 4 - prompt, prompt),
        draws,
        first,
        window,
        prior,
        noise,
    )
    assert torch.equal(other.tokens, fast.tokens)  # what is to be drawn is not looked at


@windows
@priors
def test_on_a_table_it_is_the_sample_of_sequential_sampling_bit_for_bit(window, told):
    law, draws = toy_laws.correlated(5, 3, 2), generator("table", str(window))
    order = permutations.random(200, 5, draws)
    prompt = torch.randint(0, 3, (200, 5), generator=draws)
    noise = gumbel((200, 5, 3), draws, torch.float64)
    first = torch.randint(0, 6, (200,), generator=draws)
    prior = blind(law) if told else None
    fast = windowed(law, order, prompt, draws, first, window, prior, noise)
    slow = sequential(law, order, prompt, draws, first, noise=noise)
    assert torch.equal(fast.tokens, slow.tokens) and (fast.passes <= 5 - first).all()


@priors
def test_a_row_gives_the_same_sample_alone_and_in_a_batch_at_the_same_cost(told):
    model, draws = network(9, 3, seed=5, dtype=torch.float64), generator("alone")
    order = permutations.random(6, 9, draws)
    noise = gumbel((6, 9, 3), draws, torch.float64)
    blank = zeros(6, 9)
    first = torch.tensor([0, 2, 0, 9, 5, 8])
    prior = blind(model) if told else None
    together = windowed(model, order, blank, draws, first, 3, prior, noise)
    for row in range(6):
        alone = windowed(
            model, order[[row]], blank[:1], draws, first[[row]], 3, prior, noise[[row]]
        )
        assert torch.equal(alone.tokens[0], together.tokens[row]) and torch.equal(
            alone.when[0], together.when[row]
        )
        assert alone.passes[0] == together.passes[row]
        assert alone.positions[0] == together.positions[row]


def test_a_window_of_all_takes_the_passes_of_chains_and_a_smaller_one_fewer_positions():
    model, draws = network(30, 3, seed=7, dtype=torch.float64), generator("positions")
    order = permutations.random(20, 30, draws)
    noise = gumbel((20, 30, 3), draws, torch.float64)
    blank = zeros(20, 30)
    chain = exact(model, order, blank, draws, drafts="chain", noise=noise)
    whole, some = (
        windowed(model, order, blank, draws, window=window, noise=noise) for window in (30, 4)
    )
    assert (whole.passes <= chain.passes).all() and (some.positions <= whole.positions).all()
    assert whole.positions.sum() > some.positions.sum()


def test_drafts_that_are_right_are_settled_in_passes_of_whole_windows():
    model, draws = network(12, 3, seed=9, dtype=torch.float64), generator("right")
    order = permutations.random(1, 12, draws).expand(5, -1)
    noise = gumbel((1, 12, 3), draws, torch.float64).expand(5, -1, -1)
    blank = zeros(5, 12)
    truth = sequential(model, order, blank, draws, noise=noise).tokens
    sample = windowed(
        model,
        order,
        blank,
        draws,
        window=5,
        prior=100 * torch.nn.functional.one_hot(truth[0], 3).double(),
        noise=noise,
    )
    assert (
        torch.equal(sample.tokens, truth)
        and (sample.passes == 3).all()
        and (sample.positions == 12).all()
    )


def test_independent_tokens_of_a_known_law_take_one_pass():
    law, draws = toy_laws.Product(30, 0.2), generator("product")
    sample = windowed(
        law, permutations.random(200, 30, draws), zeros(200, 30), draws, window=30, prior=blind(law)
    )
    assert (sample.passes == 1).all() and abs(float(sample.tokens.double().mean()) - 0.2) < 0.025


def test_nothing_to_draw_takes_no_pass_and_what_does_not_fit_is_refused():
    model, draws, given = network(8), generator("nothing"), torch.ones(2, 8, dtype=torch.int64)
    order = permutations.left_to_right(2, 8)
    sample = windowed(model, order, given, draws, first=8)
    assert torch.equal(sample.tokens, given) and not sample.passes.any()
    with pytest.raises(InputError, match="no such window"):
        windowed(model, order, given, draws, window=0)
    with pytest.raises(InputError, match="the prior does not fit"):
        windowed(model, order, given, draws, prior=torch.zeros(7, model.vocabulary))
