"""The cache against the training forward, sequential and burst sampling, and the bias of
algorithm 3 as printed."""

import math

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
from stages.sequences.sampling.cache import Cache
from stages.sequences.sampling.lean import Lean
from stages.sequences.sampling.sequential import density, sequential

LENGTH, VOCABULARY, ROWS = 11, 4, 6
ARMS = {
    "plain": {"dropout": 0.0},
    "text": {"style": "text", "positions": "learned", "dropout": 0.0},
}
arms = pytest.mark.parametrize("arm", ARMS)
KNOWN = torch.tensor([0, 3, 1, 7, 3, 10])  # each row at another length


def generator(*names):
    return seeds.torch_stream(0, "sampling", *names)


def made(arm="plain", keys=4):
    seeds.everything(1)
    model = build(
        "sigma_gpt",
        ARMS[arm],
        {"width": 16, "keys": keys, "hidden": 24, "heads": 2, "blocks": 3},
        VOCABULARY,
        LENGTH,
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model


def some():
    draws = generator("some")
    return torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=draws), permutations.random(
        ROWS, LENGTH, draws
    )


def rest(order, known):
    """Remaining positions, padded with the last one, and which are real."""
    place = known[:, None] + torch.arange(order.shape[1] - int(known.min()))
    return order.gather(1, place.clamp(max=order.shape[1] - 1)), place < order.shape[1]


def asked_next(model, tokens, order, known, position):
    """The training forward's logits of `position` when it is asked after the first `known` of
    one row's order."""
    with torch.no_grad():
        return model(tokens[None], torch.cat((order[:known], position[None]))[None])[0, -1]


def close(ours, theirs):
    """Whether two tensors of one shape are equal to rounding."""
    return ours.shape == theirs.shape and torch.allclose(ours, theirs, atol=1e-5, rtol=1e-5)


@arms
@pytest.mark.parametrize("keys", [4, 8, 12])
def test_burst_logits_are_the_causal_logits_of_each_position_asked_next(arm, keys):
    model, (tokens, order) = made(arm, keys), some()
    remaining, real = rest(order, KNOWN)
    found, _ = Cache(model, tokens, order, KNOWN).ask(bursts=remaining)
    for row in range(ROWS):
        for place in real[row].nonzero()[:, 0]:
            assert close(
                found[row, place],
                asked_next(model, tokens[row], order[row], int(KNOWN[row]), remaining[row, place]),
            )


@arms
@pytest.mark.parametrize("chains", [1, 3])
def test_chains_and_what_is_kept_of_them_equal_the_uncached_forward_with_rows_at_different_lengths(
    arm, chains
):
    model, (tokens, order) = made(arm), some()
    cache = Cache(model, tokens, order, KNOWN)
    known = KNOWN.clone()
    draws = generator("chains", chains)
    cache.ask()  # the prompt alone
    while (known < LENGTH).all():
        remaining, real = rest(order, known)
        shuffle = (
            torch.rand(ROWS, chains, real.shape[1], generator=draws)
            .masked_fill(~real[:, None], 2)
            .argsort(2)
        )
        orders = remaining[:, None].expand(-1, chains, -1).gather(2, shuffle)
        drafts = torch.randint(0, VOCABULARY, orders.shape, generator=draws)
        found_burst, found = cache.ask(remaining, orders, drafts)
        choice, left = torch.randint(0, chains, (ROWS,), generator=draws), real.sum(1)
        for row in range(ROWS):
            for chain in range(chains):
                whole = torch.cat((order[row, : known[row]], orders[row, chain, : left[row]]))
                drafted = tokens[row].scatter(
                    0, orders[row, chain, : left[row]], drafts[row, chain, : left[row]]
                )
                with torch.no_grad():
                    assert close(
                        found[row, chain, : left[row]],
                        model(drafted[None], whole[None])[0, known[row] :],
                    )
            assert close(
                found_burst[row, 0],
                asked_next(model, tokens[row], order[row], int(known[row]), remaining[row, 0]),
            )
        count = torch.minimum(torch.randint(1, 4, (ROWS,), generator=draws), left)
        row = torch.arange(ROWS)
        accepted = drafts[row, choice].clone()
        accepted[row, count - 1] = (
            accepted[row, count - 1] + 1
        ) % VOCABULARY  # the last accepted one need not be its draft
        cache.keep(choice, count, accepted)
        for row in range(ROWS):
            order[row, known[row] :] = orders[row, choice[row], : left[row]]
            tokens[row, orders[row, choice[row], : count[row]]] = accepted[row, : count[row]]
        known = known + count


def test_rows_may_leave_and_be_moved():
    model, (tokens, order) = made(), some()
    cache, kept = Cache(model, tokens, order, KNOWN), torch.tensor([0, 4, 2])
    cache.ask()
    cache.retain(kept)
    found, _ = cache.ask(bursts=order[kept][:, -1:])
    for row, old in enumerate(kept):
        assert close(
            found[row, 0],
            asked_next(model, tokens[old], order[old], int(KNOWN[old]), order[old, -1]),
        )


@arms
def test_cached_sequential_sampling_is_uncached_sampling_with_rows_at_different_lengths(arm):
    model, (tokens, order), noise = (
        made(arm),
        some(),
        gumbel((ROWS, LENGTH, VOCABULARY), generator("noise")),
    )
    first = torch.tensor([0, 3, 11, 7, 3, 10])
    cached = sequential(model, order, tokens, generator("a"), first, noise=noise)
    slow = sequential(model, order, tokens, generator("b"), first, cache=False, noise=noise)
    assert torch.equal(cached.tokens, slow.tokens) and torch.equal(cached.passes, LENGTH - first)
    assert (
        torch.equal(cached.positions, torch.full((ROWS,), LENGTH))
        and (slow.positions > cached.positions).any()
    )
    given = torch.zeros(ROWS, LENGTH, dtype=torch.bool).scatter(
        1, order, torch.arange(LENGTH) < first[:, None]
    )
    assert torch.equal(cached.tokens[given], tokens[given]) and not torch.equal(
        cached.tokens, tokens
    )


def test_sequential_sampling_of_a_listed_law_is_exact():
    law, draws, count = toy_laws.correlated(4, 2, 0), generator("listed"), 100_000
    sample = sequential(
        law, permutations.random(count, 4, draws), torch.zeros(count, 4, dtype=torch.int64), draws
    )
    assert (
        chisquare(
            frequencies(sample.tokens, law.sequences)[:-1] * count, law.probabilities * count
        ).pvalue
        > 1e-3
    )


def test_density_is_the_conditional_law_at_every_position_from_any_prompt():
    law, draws = toy_laws.step(8, 3), generator("density")
    tokens = law.sequences[torch.randint(0, 6, (20,), generator=draws)]
    given = torch.rand(20, 8, generator=draws) < torch.rand(20, 1, generator=draws)
    given[0], given[1] = False, True
    found = density(law, tokens, given)
    for row in range(20):
        fits = ((law.sequences == tokens[row]) | ~given[row]).all(1).double()
        torch.testing.assert_close(found[row, :, 1], fits @ law.sequences.double() / fits.sum())
    torch.testing.assert_close(found.sum(2), torch.ones(20, 8, dtype=torch.float64))


def test_density_of_a_network_is_one_pass_and_equals_its_forward(monkeypatch):
    model, (tokens, order) = made(), some()
    given = torch.zeros(ROWS, LENGTH, dtype=torch.bool).scatter(
        1, order, torch.arange(LENGTH) < KNOWN[:, None]
    )
    calls, run = [], Lean.run
    monkeypatch.setattr(Lean, "run", lambda *reads: calls.append(1) or run(*reads))
    found = density(model, tokens, given)
    assert len(calls) == 1
    for row in range(ROWS):
        before = given[row].nonzero()[:, 0]
        for place in (~given[row]).nonzero()[:, 0]:
            assert close(
                found[row, place],
                asked_next(model, tokens[row], before, len(before), place).softmax(0),
            )


def blank(count, law):
    return torch.zeros(count, law.length, dtype=torch.int64)


def test_algorithm_3_takes_one_round_for_independent_tokens_and_errata_s_rounds_for_steps():
    sample = burst(
        toy_laws.Product(60), blank(50, toy_laws.Product(60)), generator("product"), orders=2
    )
    assert (
        (sample.rounds == 1).all()
        and (sample.passes == 2).all()
        and (sample.positions == 180).all()
    )
    law = toy_laws.step(100, 10)
    for orders, mean in (
        (1, 3.7),
        (5, 3.0),
    ):  # with the perfect model: 3.7 (sd 1.0) and 3.0 (sd 0.7), never a wrong sample
        sample = burst(law, blank(200, law), generator("step", orders), orders)
        assert (
            abs(sample.rounds.double().mean() - mean) < 0.25
            and frequencies(sample.tokens, law.sequences)[-1] == 0
        )


@pytest.mark.parametrize("bounded", [False, True])
def test_algorithm_3_accepts_a_token_a_round_keeps_its_prompt_and_gives_permutations(bounded):
    law, draws = toy_laws.Permutation(12), generator("permutation", bounded)
    given = torch.randint(0, 12, (300, 1), generator=draws).expand(-1, 12)
    order = permutations.ahead(
        permutations.random(300, 12, draws), (torch.arange(12) == 5).expand(300, 12)
    )
    sample = burst(law, given, draws, orders=1, first=1, order=order, bounded=bounded)
    assert torch.equal(sample.tokens[:, 5], given[:, 0]) and torch.equal(
        sample.tokens.sort(1).values, torch.arange(12).expand(300, -1)
    )
    assert (
        (sample.rounds <= 11).all()
        and (sample.passes <= 2 * sample.rounds).all()
        and torch.equal(sample.order[:, :1], order[:, :1])
    )
    assert torch.equal(sample.order.sort(1).values, torch.arange(12).expand(300, -1))
    assert not bounded or (sample.passes <= 11).all()


def test_rows_of_algorithm_3_do_not_wait_for_each_other():
    law = toy_laws.Permutation(30)
    alone = torch.stack(
        [burst(law, blank(1, law), generator("pace", row)).rounds[0] for row in range(60)]
    ).double()
    together = burst(law, blank(60, law), generator("pace")).rounds.double()
    assert (
        abs(together.mean() - alone.mean()) < 4 * (together.var() / 60 + alone.var() / 60) ** 0.5
        and together.std() > 0
    )


def bent(law, sequences, chances, orders, samples, draws):
    """Total variation of Algorithm 3's samples from a law, what as many independent draws show
    on average, mean rounds and passes."""
    made = [
        burst(law, torch.zeros(10_000, sequences.shape[1], dtype=torch.int64), draws, orders)
        for _ in range(samples // 10_000)
    ]
    share = frequencies(torch.cat([one.tokens for one in made]), sequences)
    exact = chances.double() / chances.double().sum()
    mean = {
        name: float(torch.cat([getattr(one, name) for one in made]).double().mean())
        for name in ("rounds", "passes")
    }
    return mean | {
        "total_variation": float((share[:-1] - exact).abs().sum() + share[-1]) / 2,
        "floor": float((exact * (1 - exact) * 2 / (math.pi * samples)).sqrt().sum()) / 2,
    }


def test_the_printed_algorithm_is_biased_where_tokens_depend_and_more_with_more_orders():
    law = toy_laws.correlated(4, 2, 0)
    found = [
        bent(law, law.sequences, law.probabilities, orders, 20_000, generator("bias", orders))
        for orders in (1, 5, 20)
    ]
    assert all(entry["total_variation"] > 4 * entry["floor"] for entry in found)
    assert (
        found[2]["total_variation"] > found[0]["total_variation"]
        and found[2]["rounds"] < found[0]["rounds"]
    )


def test_the_printed_algorithm_is_not_biased_for_independent_tokens():
    law = toy_laws.Product(4, 0.3)
    sequences = torch.cartesian_prod(*[torch.arange(2)] * 4)
    exact = (0.3 ** sequences.double() * 0.7 ** (1 - sequences.double())).prod(1)
    entry = bent(law, sequences, exact, 5, 40_000, generator("unbiased"))
    assert (
        entry["total_variation"] < 2 * entry["floor"]
        and entry["rounds"] == 1
        and entry["passes"] == 2
    )


def test_a_prompt_that_does_not_fit_is_refused():
    law = toy_laws.Product(8)
    with pytest.raises(InputError, match="do not fit together"):
        burst(law, blank(2, law), generator("wrong"), first=9)
    with pytest.raises(InputError, match="do not fit together"):
        sequential(
            law,
            permutations.left_to_right(2, 8),
            blank(2, law),
            generator("wrong"),
            first=torch.tensor([0, -1]),
        )
