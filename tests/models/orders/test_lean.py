"""The arithmetic for reading alone, and rows in step, against the training forward."""

import pytest
import torch

from stages import seeds
from stages.layers.kernels import tiles
from stages.sequences import permutations
from stages.sequences.models import build
from stages.sequences.sampling.cache import Column
from stages.sequences.sampling.lean import Lean
from stages.sequences.sampling.sequential import sequential

LENGTH, VOCABULARY, ROWS = 9, 5, 4
ARMS = {
    "plain": {"dropout": 0.0},
    "text": {"style": "text", "positions": "learned", "dropout": 0.0},
}
arms = pytest.mark.parametrize("arm", ARMS)


def generator(*names):
    return seeds.torch_stream(0, "lean", *names)


def made(arm="plain", keys=8, dtype=torch.float64):
    seeds.everything(2)
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
    return model.to(dtype)


def some(rows=ROWS):
    draws = generator("some")
    return torch.randint(0, VOCABULARY, (rows, LENGTH), generator=draws), permutations.random(
        rows, LENGTH, draws
    )


@arms
@pytest.mark.parametrize("slab", [1, 5, 1000])
@pytest.mark.parametrize("keys", [4, 8, 12])  # heads narrower than their values, alike, wider
def test_it_is_the_models_own_function_whatever_the_heads_and_the_slabs(arm, keys, slab):
    model, draws = made(arm, keys), generator("function")
    seen, own, target = (
        torch.randint(0, high, (ROWS, 6), generator=draws) for high in (VOCABULARY, LENGTH, LENGTH)
    )
    visible = torch.rand(6, 6, generator=draws).lt(0.6) | torch.eye(6, dtype=torch.bool)

    def attention(query, key, value, scale):
        weight = (
            torch.einsum("rqhl,rshl->rhqs", query * scale, key)
            .masked_fill(~visible, -torch.inf)
            .softmax(3)
        )
        return torch.einsum("rhqs,rshl->rqhl", weight, value)

    lean = Lean(model)
    lean.slab = slab
    with torch.no_grad():
        expected = model.run(
            seen,
            own,
            target,
            lambda packed, heads, keys: attention(
                *tiles.parts(packed, heads, keys), keys**-0.5
            ).flatten(2),
        )
        found = lean.answer(
            lean.run(
                seen.flatten(),
                lean.places(own, target).flatten(0, 1),
                lambda _, parts: attention(*parts.unflatten(0, (ROWS, 6)).unbind(2), lean.scale),
            )
        )
    torch.testing.assert_close(found.view(ROWS, 6, -1), expected)


@arms
def test_rows_in_step_answer_as_the_training_forward_though_they_join_one_after_another(arm):
    model, (tokens, order) = made(arm), some()
    first, along = torch.tensor([0, 2, 2, 5]), tokens.gather(1, order)
    with torch.no_grad():
        expected = model(tokens, order)
        column = Column(model, order)
        torch.testing.assert_close(column.open(along.T, first), expected[torch.arange(ROWS), first])
        for step in range(1, LENGTH):
            rows = int((first < step).sum())
            torch.testing.assert_close(
                column.step(along.T[step - 1, :rows], step), expected[:rows, step]
            )


def test_a_row_that_joins_later_reads_nothing_of_what_stood_at_its_places_before():
    model, (tokens, order) = made(), some()
    first, draws = torch.tensor([6, 1, 4, 0]), generator("junk")
    noise = (
        -torch.empty(ROWS, LENGTH, VOCABULARY, dtype=torch.float64)
        .exponential_(generator=draws)
        .log()
    )
    hidden = (
        torch.zeros_like(tokens).scatter(1, order, (torch.arange(LENGTH) < first[:, None]).long())
        == 0
    )
    sample = sequential(model, order, tokens, draws, first, noise=noise)
    other = sequential(
        model,
        order,
        torch.where(hidden, (tokens + 1) % VOCABULARY, tokens),
        draws,
        first,
        noise=noise,
    )
    assert torch.equal(sample.tokens, other.tokens) and torch.equal(
        sample.tokens[~hidden], tokens[~hidden]
    )
    for row in range(ROWS):
        alone = sequential(
            model, order[[row]], tokens[[row]], draws, int(first[row]), noise=noise[[row]]
        )
        assert torch.equal(alone.tokens[0], sample.tokens[row])


def test_a_step_is_one_pass_of_the_rows_that_have_begun_and_the_prompt_shares_the_first(
    monkeypatch,
):
    model, (tokens, order), calls = made(dtype=torch.float32), some(), []
    run = Lean.run
    monkeypatch.setattr(
        Lean, "run", lambda lean, seen, *rest: calls.append(len(seen)) or run(lean, seen, *rest)
    )
    sample = sequential(model, order, tokens, generator("calls"), torch.tensor([2, LENGTH, 3, 2]))
    assert calls == [3 * 4, 2, *[3] * (LENGTH - 4)]
    assert (
        sample.passes.tolist() == sample.rounds.tolist() == [LENGTH - 2, 0, LENGTH - 3, LENGTH - 2]
        and len(calls) == sample.passes.max()
    )
    assert sample.when.tolist()[2] == [0, 0, 0, *range(1, LENGTH - 2)] and not sample.when[1].any()


def test_what_the_uncached_forward_computes_is_counted_in_full():
    model, (tokens, order) = made(), some()
    first, computed = torch.tensor([0, LENGTH, 3, LENGTH - 1]), []
    for row in range(ROWS):
        computed.append(sum(step + 1 for step in range(int(first[row]), LENGTH)))
    assert (
        sequential(model, order, tokens, generator("count"), first, cache=False).positions.tolist()
        == computed
    )


@arms
@pytest.mark.parametrize("training", [False, True])
def test_sampling_leaves_the_model_as_it_was_and_drops_nothing_out(arm, training):
    model, (tokens, order) = made(arm), some()
    before = {
        name: value.clone() for name, value in (*model.named_parameters(), *model.named_buffers())
    }
    model.dropout.p = 0.9
    samples = [
        sequential(model.train(mode), order, tokens, generator("same")).tokens
        for mode in (False, training)
    ]
    assert torch.equal(*samples)
    assert all(
        torch.equal(value, before[name])
        for name, value in (*model.named_parameters(), *model.named_buffers())
    )
