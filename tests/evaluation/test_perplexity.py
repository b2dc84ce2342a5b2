"""Losses of windows of text in any order against models whose every probability is known, and their metrics against closed forms."""

import math

import numpy as np
import pytest
import torch

from stages import seeds
from stages.errors import DataError, InputError
from stages.evaluation.orders import perplexity
from stages.models.orders.sigma_gpt import SigmaGPT

V, T = 4, 6
LAW = {"per": {"test": {"tokens": 100, "characters": 250, "words": 40}}}


class ByPlace(torch.nn.Module):
    """Every position has a law of its own, whatever came before: logits (T, V)."""

    def __init__(self):
        super().__init__()
        self.logits = torch.randn(T, V, generator=seeds.torch_stream(0, "places"))

    def forward(self, tokens, order):
        return self.logits[order]


class Copy(torch.nn.Module):
    """Knows that all tokens of a window are alike: the first one costs log V, the others nearly nothing."""

    def forward(self, tokens, order):
        first = torch.nn.functional.one_hot(tokens.gather(1, order[:, :1]), V).float() * 50
        return torch.cat((torch.zeros(len(tokens), 1, V), first.expand(-1, T - 1, V)), 1)


def drawn(count=50):
    return torch.randint(V, (count, T), generator=seeds.torch_stream(0, "tokens"))


@pytest.mark.parametrize("kind", perplexity.ORDERS)
def test_losses_stand_at_their_positions_in_whatever_order_they_were_found(kind):
    tokens = drawn()
    model = ByPlace()
    found = perplexity.losses(model, tokens, kind, seeds.torch_stream(1, "order"), batch=7)
    by_hand = -model.logits.double().log_softmax(1)[torch.arange(T), tokens]
    assert found.shape == (50, T) and np.allclose(found, by_hand.numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", perplexity.ORDERS)
def test_all_orders_of_a_perfect_model_agree_in_the_sum_over_a_window(kind):
    found = perplexity.losses(Copy(), drawn()[:, :1].repeat(1, T), kind, seeds.torch_stream(1, "order"))
    assert np.allclose(found.sum(1), math.log(V), atol=1e-9)
    assert (np.argmax(found, 1) == {"left_to_right": 0, "fractal": 3}.get(kind, np.argmax(found, 1))).all()
    assert kind != "random" or len(set(np.argmax(found, 1))) == T


def test_a_real_model_is_read_in_eval_mode_and_its_losses_are_those_of_its_own_logits():
    torch.manual_seed(0)
    model, tokens = SigmaGPT(V, T, dropout=0.5), drawn(5)
    found = perplexity.losses(model, tokens, "left_to_right", seeds.torch_stream(0, "o"))
    logits = model.eval()(tokens, torch.arange(T).repeat(5, 1))
    assert np.allclose(found, torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens, reduction="none").detach().numpy(), atol=1e-5)


def test_metrics_are_those_of_the_closed_form():
    found = np.full((30, T), math.log(5.0))
    named = perplexity.metrics(found, LAW, "test", seeds.stream(0, "m"))
    assert named["nats"]["value"] == pytest.approx(math.log(5)) and named["perplexity"]["value"] == pytest.approx(5)
    assert named["bits_per_character"]["value"] == pytest.approx(math.log2(5) * 100 / 250)
    assert named["perplexity_per_word"]["value"] == pytest.approx(5 ** 2.5) and named["nats"]["n"] == 30 * T
    assert all(one["low"] == pytest.approx(one["value"]) == pytest.approx(one["high"]) for one in named.values())


def test_two_levels_of_tokens_that_tell_the_same_text_as_well_have_the_same_bits_and_the_same_perplexity_per_word():
    """100 characters, 20 words: told in 100 tokens of 1.2 nats or in 40 of 3 nats."""
    single = perplexity.metrics(np.full((20, 5), 1.2), {"per": {"test": {"tokens": 100, "characters": 100, "words": 20}}}, "test", seeds.stream(0, "m"))
    pieces = perplexity.metrics(np.full((20, 2), 3.0), {"per": {"test": {"tokens": 40, "characters": 100, "words": 20}}}, "test", seeds.stream(0, "m"))
    assert single["perplexity"]["value"] != pytest.approx(pieces["perplexity"]["value"])
    for name in ("bits_per_character", "perplexity_per_word"):
        assert single[name]["value"] == pytest.approx(pieces[name]["value"]), name


def test_windows_that_differ_make_an_interval_around_the_value_and_a_text_without_counts_has_no_words():
    named = perplexity.metrics(seeds.stream(0, "losses").exponential(2.0, (200, T)), {}, "test", seeds.stream(0, "m"))
    assert set(named) == {"nats", "perplexity", "bits_per_character"}
    for one in named.values():
        assert one["low"] < one["value"] < one["high"]
    assert 0.05 < named["nats"]["high"] - named["nats"]["low"] < 0.4  # 3.3 sd of a mean of 200 windows: 0.19


def test_the_unigram_baseline_is_the_entropy_of_its_own_text_and_knows_tokens_it_never_saw():
    text = seeds.stream(0, "text").choice(3, (400, 50), p=[0.7, 0.2, 0.1])
    entropy = -sum(p * math.log(p) for p in (0.7, 0.2, 0.1))
    assert perplexity.unigram(text, text, 4).mean() == pytest.approx(entropy, abs=0.01)
    assert np.isfinite(perplexity.unigram(text, np.array([[3]]), 4)).all()


def test_an_unknown_order_and_a_loss_that_is_not_finite_are_told():
    with pytest.raises(InputError, match="left_to_right, random, fractal"):
        perplexity.losses(ByPlace(), drawn(), "backwards", seeds.torch_stream(0, "o"))
    broken = ByPlace()
    broken.logits[2, 1] = float("nan")
    with pytest.raises(DataError, match="not finite"):
        perplexity.losses(broken, drawn(), "left_to_right", seeds.torch_stream(0, "o"))
    with pytest.raises(DataError, match="too large"):
        perplexity.metrics(np.full((30, T), 1000.0), LAW, "test", seeds.stream(0, "m"))
