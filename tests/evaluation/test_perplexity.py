"""Losses of windows of text in any order against models whose every probability is known, and
their metrics against closed forms."""

import math

import numpy as np
import pytest
import torch

from stages import seeds
from stages.errors import DataError, DivergedError
from stages.sequences import permutations
from stages.sequences.evaluation import perplexity
from stages.sequences.evaluation.likelihood import losses
from stages.sequences.models.sigma_gpt import SigmaGPT

V, T = 4, 6
ORDERS = ("left_to_right", "random", "fractal")
LAW = {"per": {"test": {"tokens": 100, "characters": 250, "words": 40}}}


class ByPlace(torch.nn.Module):
    """Every position has a law of its own, whatever came before: logits (T, V)."""

    def __init__(self):
        super().__init__()
        self.logits = torch.randn(T, V, generator=seeds.torch_stream(0, "places"))

    def forward(self, tokens, order):
        return self.logits[order]


class Copy(torch.nn.Module):
    """Knows that all tokens of a window are alike: the first one costs log V, the others nearly
    nothing."""

    def forward(self, tokens, order):
        first = torch.nn.functional.one_hot(tokens.gather(1, order[:, :1]), V).float() * 50
        return torch.cat((torch.zeros(len(tokens), 1, V), first.expand(-1, T - 1, V)), 1)


def drawn(count=50):
    return torch.randint(V, (count, T), generator=seeds.torch_stream(0, "tokens"))


def orders(kind, count):
    return permutations.draw(kind, count, T, seeds.torch_stream(1, "order"))


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("first", [0, 2])
def test_losses_stand_at_the_steps_of_their_order_and_leave_out_what_is_given(kind, first):
    tokens, order, model = drawn(), orders(kind, 50), ByPlace()
    found = losses(model, tokens, order, first, batch=7)
    by_hand = (-model.logits.double().log_softmax(1)[torch.arange(T), tokens]).gather(1, order)[
        :, first:
    ]
    assert found.shape == (50, T - first) and np.allclose(found, by_hand.numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", ORDERS)
def test_all_orders_of_a_perfect_model_agree_in_the_sum_over_a_window(kind):
    found = losses(Copy(), drawn()[:, :1].repeat(1, T), orders(kind, 50), 0, batch=16)
    assert np.allclose(found.sum(1), math.log(V), atol=1e-9)
    assert (np.argmax(found, 1) == 0).all()  # only what is asked first costs anything


def test_losses_of_a_real_model_are_those_of_its_own_logits():
    torch.manual_seed(0)
    model, tokens = SigmaGPT(V, T, dropout=0.5).eval(), drawn(5)
    found = losses(model, tokens, orders("left_to_right", 5), 0, batch=2)
    logits = model(tokens, torch.arange(T).repeat(5, 1))
    assert np.allclose(
        found,
        torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
        .detach()
        .numpy(),
        atol=1e-5,
    )


def test_metrics_are_those_of_the_closed_form():
    found = np.full((30, T), math.log(5.0))
    named = perplexity.metrics(found, LAW, "test", seeds.stream(0, "m"))
    assert named["nats"]["value"] == pytest.approx(math.log(5)) and named["perplexity"][
        "value"
    ] == pytest.approx(5)
    assert named["bits_per_character"]["value"] == pytest.approx(math.log2(5) * 100 / 250)
    assert (
        named["perplexity_per_word"]["value"] == pytest.approx(5**2.5)
        and named["nats"]["n"] == 30 * T
    )
    assert all(
        one["low"] == pytest.approx(one["value"]) == pytest.approx(one["high"])
        for one in named.values()
    )


def test_two_levels_of_tokens_that_tell_a_text_as_well_have_the_same_bits_and_word_perplexity():
    """100 characters, 20 words: told in 100 tokens of 1.2 nats or in 40 of 3 nats."""
    single = perplexity.metrics(
        np.full((20, 5), 1.2),
        {"per": {"test": {"tokens": 100, "characters": 100, "words": 20}}},
        "test",
        seeds.stream(0, "m"),
    )
    pieces = perplexity.metrics(
        np.full((20, 2), 3.0),
        {"per": {"test": {"tokens": 40, "characters": 100, "words": 20}}},
        "test",
        seeds.stream(0, "m"),
    )
    assert single["perplexity"]["value"] != pytest.approx(pieces["perplexity"]["value"])
    for name in ("bits_per_character", "perplexity_per_word"):
        assert single[name]["value"] == pytest.approx(pieces[name]["value"]), name


def test_windows_that_differ_make_an_interval_and_a_text_without_counts_has_no_words():
    named = perplexity.metrics(
        seeds.stream(0, "losses").exponential(2.0, (200, T)), {}, "test", seeds.stream(0, "m")
    )
    assert set(named) == {"nats", "perplexity", "bits_per_character"}
    for one in named.values():
        assert one["low"] < one["value"] < one["high"]
    assert (
        0.05 < named["nats"]["high"] - named["nats"]["low"] < 0.4
    )  # 3.3 sd of a mean of 200 windows: 0.19


def test_a_loss_or_a_perplexity_that_is_not_finite_is_told():
    broken = ByPlace()
    broken.logits[2, 1] = float("nan")
    with pytest.raises(DivergedError, match="not a finite number"):
        losses(broken, drawn(), orders("left_to_right", 50), 0, batch=16)
    with pytest.raises(DataError, match="too large"):
        perplexity.metrics(np.full((30, T), 1000.0), LAW, "test", seeds.stream(0, "m"))
