"""Training of models of sequences: which order a step shows, what counts in the loss, and that a
killed run ends with the same bits."""

import itertools
import math

import pytest
import torch
from small_orders import BUDGET, data, prepared

from stages.contracts import SequenceModel
from stages.errors import InputError
from stages.sequences.batches import Denoised, Ordered, wrapped
from stages.sequences.losses import cross_entropy, nats
from stages.training.group import Group


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """These networks are too small for more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the loss


def test_nats_are_those_of_the_tokens_asked_for_in_the_orders_steps():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(3, 5, 4, generator=generator)
    tokens = torch.randint(4, (3, 5), generator=generator)
    order = torch.stack([torch.randperm(5, generator=generator) for _ in range(3)])
    got = nats(logits, tokens, order, 2)
    law = logits.double().softmax(-1)
    for b, i in itertools.product(range(3), range(3)):
        assert float(got[b, i]) == pytest.approx(
            -math.log(float(law[b, i + 2, tokens[b, order[b, i + 2]]])), rel=1e-5
        )
    assert float(cross_entropy(logits, tokens, order, 2)) == pytest.approx(float(got.mean()))


# --- what a step sees


def test_an_order_is_drawn_for_every_sequence_by_seed_and_step_alone():
    first = data().drawn([0, 1, 2], 5)
    again = data().drawn([9, 8, 7], 5)
    later = data().drawn([0, 1, 2], 6)
    other = data(seed=4).drawn([0, 1, 2], 5)
    assert (
        torch.equal(first.order, again.order)
        and not torch.equal(first.order, later.order)
        and not torch.equal(first.order, other.order)
    )
    seen = {
        tuple(row)
        for step in range(40)
        for row in data().drawn(list(range(8)), step).order.tolist()
    }
    assert len(seen) > 200  # of 320 draws out of 720 orders
    assert torch.equal(first.tokens, prepared().tokens[[0, 1, 2]])


@pytest.mark.parametrize("kind", ["left_to_right", "random", "fractal", "curriculum"])
@pytest.mark.parametrize("prompt", [0, 2])
def test_every_order_is_a_permutation_with_the_prompt_in_front(kind, prompt):
    order = data(kind, prompt=prompt).drawn(list(range(8)), 4).order
    assert torch.equal(order.sort(1).values, torch.arange(6).expand(8, 6))
    assert (order[:, :prompt] == torch.arange(prompt)).all()
    plain = (order == torch.arange(6)).all(1)
    assert bool(plain.all()) == (kind == "left_to_right")


def test_the_prompt_counts_and_is_shuffled_only_where_asked():
    told = BUDGET.model_copy(update={"prompt_loss": True})
    assert data(prompt=2).first == 2 and data(prompt=2, budget=told).first == 0
    orders = torch.cat(
        [data(prompt=2, budget=told).drawn(list(range(8)), step).order for step in range(8)]
    )
    assert not (orders[:, 0] == 0).all()


def test_a_wrong_answer_in_the_prompt_costs_nothing():
    given = data("left_to_right", prompt=2)
    batch = given.drawn([0, 1], 0)
    good = torch.nn.functional.one_hot(batch.tokens, 2).float() * 40 - 20
    good[:, :2] *= -1  # certain of the wrong token wherever it is given
    assert float(given.loss(good, batch)) < 1e-6
    told = data("left_to_right", BUDGET.model_copy(update={"prompt_loss": True}), prompt=2)
    assert float(told.loss(good, told.drawn([0, 1], 0))) == pytest.approx(2 / 6 * 40, rel=1e-4)


def test_a_model_learns_nothing_from_the_prompts_answers():
    """The gradient of the loss is the same whatever the logits of given steps are."""
    batch = data(prompt=3).drawn([0, 1, 2], 0)
    logits = torch.randn(3, 6, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    data(prompt=3).loss(logits, batch).backward()
    assert (logits.grad[:, :3] == 0).all() and (logits.grad[:, 3:] != 0).all()


def test_a_curriculum_falls_linearly_from_its_share_to_none_sequence_by_sequence():
    budget = BUDGET.model_copy(update={"steps": 100, "curriculum": 0.8, "batch": 8})
    given = data("curriculum", budget, length=12)
    assert [given.share(step) for step in (0, 25, 50, 100, 120)] == pytest.approx(
        [0.8, 0.6, 0.4, 0, 0]
    )
    many = list(range(64)) * 40
    for step in (0, 50, 99):
        plain = (given.drawn(many, step).order == torch.arange(12)).all(1).float()
        assert abs(float(plain.mean()) - given.share(step)) < 4 * math.sqrt(0.25 / len(many))
    mixed = (given.drawn(list(range(64)), 30).order == torch.arange(12)).all(1)
    assert mixed.any() and not mixed.all()  # not one coin for the batch


def test_several_processes_see_the_orders_that_one_sees():
    whole = data().drawn(list(range(8)), 7)
    parts = [
        data(group=Group(rank, 2)).drawn(Group(rank, 2).share(list(range(8))), 7) for rank in (0, 1)
    ]
    for rank, part in enumerate(parts):
        assert torch.equal(part.order, whole.order[rank::2]) and torch.equal(
            part.tokens, whole.tokens[rank::2]
        )


def test_an_unknown_order_is_told_with_the_nearest():
    with pytest.raises(
        InputError, match="(?s)unknown kind of order.*did you mean 'random'"
    ) as caught:
        data("randon")
    assert caught.value.exit_code == 2


# --- validation


class Constant(SequenceModel):
    """Says `share` for every token 1, whatever it sees; keeps the orders that it was asked in."""

    def __init__(self, share):
        super().__init__()
        self.logits, self.asked = torch.tensor([1 - share, share]).log(), []

    def forward(self, tokens, order):
        self.asked.append(order)
        return self.logits.expand(*order.shape, 2)


@pytest.mark.parametrize("prompt", [0, 2])
def test_validation_is_the_mean_over_all_tokens_that_count_in_unequal_batches_too(prompt):
    given = data(prompt=prompt)
    found = given.validate(wrapped(Constant(0.2)))
    tokens = (
        prepared(prompt=prompt).tokens[64:84, prompt:].double()
    )  # 20 sequences: batches of 8, 8 and 4
    expected = -float((tokens * math.log(0.2) + (1 - tokens) * math.log(0.8)).mean())
    assert found == {
        "loss": pytest.approx(expected, rel=1e-6),
        "left_to_right": pytest.approx(expected, rel=1e-6),
    }


def test_validation_asks_in_the_own_order_and_from_left_to_right_and_alike_every_time():
    spy, given = Constant(0.2), data("curriculum", BUDGET.model_copy(update={"curriculum": 1.0}))
    given.validate(wrapped(spy))
    own, plain = torch.cat(spy.asked[::2]), torch.cat(spy.asked[1::2])
    assert (plain == torch.arange(6)).all() and len(own) == 20
    assert (
        len({tuple(row) for row in own.tolist()}) > 10
    )  # a curriculum ends at random orders, which its validation is in from the start
    before = list(spy.asked)
    given.validate(wrapped(spy))
    assert all(torch.equal(a, b) for a, b in zip(before, spy.asked[len(before) :], strict=True))


def test_what_has_a_loss_of_its_own_learns_by_it_and_its_prompt_is_given():
    seen = []

    class Own(SequenceModel):
        ordered = False

        def loss(self, tokens, generator, given=None):
            seen.append((given, torch.rand(1, generator=generator)))
            return torch.tensor(0.5)

    made = wrapped(Own())
    assert isinstance(made, Denoised) and isinstance(wrapped(Constant(0.1)), Ordered)
    given = data("left_to_right", prompt=2)
    assert given.validate(made) == {"loss": pytest.approx(0.5)}
    assert all(mask.sum(1).eq(2).all() and mask[:, :2].all() for mask, _ in seen)
    made.loss(given.drawn([0], 1)), made.loss(given.drawn([0], 1)), made.loss(given.drawn([0], 2))
    assert seen[-3][1] == seen[-2][1] != seen[-1][1]
    made.loss(data("left_to_right").drawn([0], 1))
    assert seen[-1][0] is None
