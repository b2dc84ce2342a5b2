"""Samples and likelihoods of models of sequences: planted samplers good and bad, losses by hand,
exact and wrong densities."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from order_cells import COUNTS, LENGTH, PLAN, SIZE, VOCABULARY, drawn_by, held

from stages.contracts import SequenceModel
from stages.errors import DataError, DivergedError
from stages.scores import pool
from stages.sequences import tokens as sequences
from stages.sequences.evaluation import (
    companions,
    densities,
    likelihood,
    passes,
    posteriors,
    samples,
)
from stages.sequences.evaluation import measure as evaluation
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.evaluation.passes import Drawn, Sampler
from stages.sequences.models import build
from stages.sequences.models.diffusion import Diffusion
from stages.sequences.tokens import Sequences


def made(tokens: np.ndarray) -> Sampler:
    """A sampler that answers with these sequences, one pass each."""

    def draw(shown, known, generator, state={"at": 0}):  # noqa: B006 (calls share it)
        rows = torch.from_numpy(tokens[state["at"] : state["at"] + len(shown)])
        state["at"] += len(shown)
        one = torch.ones_like(known)
        return Drawn(
            rows, torch.arange(rows.shape[1]).expand_as(rows), one, one, one * rows.shape[1]
        )

    return Sampler(draw)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """These networks are too small for more threads, or processes."""
    torch.set_num_threads(1)
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})


# --- samplers, planted


@pytest.mark.parametrize(
    ("kind", "chance"),
    [("permutation", math.factorial(LENGTH) / LENGTH**LENGTH), ("step", 5 / 2**LENGTH)],
)
def test_a_perfect_sampler_is_valid_and_uniform_tokens_are_by_chance(tmp_path, kind, chance):
    given = held(tmp_path, kind, settings=Settings(PLAN.model_copy(update={"samples": 60}), 0))
    uniform = passes.trivial(np.full((LENGTH, VOCABULARY[kind]), 1.0))
    entries, shown = samples.sampled(
        given, {"perfect": made(drawn_by(kind, 500)[40:]), "uniform": uniform}, "x"
    )
    perfect, bad = (entries[name]["prompt"]["metrics"] for name in ("perfect", "uniform"))
    assert perfect["valid"]["value"] == 1 and perfect["valid"]["n"] == 60
    assert bad["valid"]["value"] <= chance + 4 * math.sqrt(chance / 60)
    assert (
        perfect["passes"]["value"] == 1
        and perfect["passes"]["sd"] == 0
        and perfect["positions"]["value"] == LENGTH
    )
    assert bad["passes"]["value"] == 0
    assert (
        shown["perfect/prompt/tokens"].shape == (8, LENGTH) == shown["uniform/prompt/order"].shape
    )


def test_a_sampler_sees_its_prompt_and_nothing_else(tmp_path):
    given, seen = held(tmp_path, "permutation", prompt=2), []

    def spy(tokens, known, generator):
        seen.append((tokens.clone(), known.clone()))
        return Drawn(tokens, tokens, known, known, known)

    samples.sampled(given, {"spy": Sampler(spy)}, "x")
    tokens, known = (torch.cat(parts) for parts in zip(*seen, strict=True))
    assert [len(part[0]) for part in seen] == [16, 16, 8] and (known == 2).all()
    truth = given.tokens[given.sampled()]
    assert (tokens[:, :2].numpy() == truth[:, :2]).all() and (tokens[:, 2:] == 0).all()


def test_tokens_that_there_are_not_are_refused_with_their_sampler(tmp_path):
    with pytest.raises(DataError, match="(?s)tokens that there are not.*cell, wild"):
        samples.sampled(
            held(tmp_path, "product"), {"wild": made(np.full((100, LENGTH), 2))}, "cell"
        )


STEPS = 12
CLIMB = {
    "steps": STEPS,
    "step_s": 60,
    "bin_ft": 100,
    "bins": 300,
    "types": ["A320"],
    "nothing": 301,
}


def climbs(folder: Path) -> EvaluationData:
    """Flights that climb to 250 at a rate of their own; the sixty test flights are of twelve
    aircraft."""
    rng, count = np.random.default_rng(2), sum(COUNTS)
    level = np.minimum(50 + np.arange(STEPS) * rng.integers(5, 30, size=(count, 1)), 250)
    tokens = np.concatenate([np.full((count, 1), 300), np.full((count, STEPS), 250), level], 1)
    split, number = np.repeat([0, 1, 2], COUNTS), np.arange(count)
    folder.mkdir()
    sequences.write(
        Sequences(
            "climb",
            tokens,
            split,
            split,
            number,
            ("a", "b", "c"),
            302,
            STEPS + 2,
            CLIMB,
            group=split * 1000 + number // 5,
        ),
        folder,
        {},
    )
    return EvaluationData.open(
        folder, Settings(PLAN.model_copy(update={"samples": 60, "batch": 100}), 0)
    )


def test_flights_are_judged_by_prompt_and_the_truth_has_no_error_where_a_kept_altitude_has(
    tmp_path,
):
    given = climbs(tmp_path / "climbs")
    truth = given.tokens[given.sampled()]
    entries, _ = samples.sampled(given, {"perfect": made(np.tile(truth, (4, 1)))}, "x")
    assert set(entries["perfect"]) == {"0", "10", "50", "mid_climb"}
    assert all(one["metrics"]["mse"]["value"] == 0 for one in entries["perfect"].values())
    found = {name: entry for name, entry, _ in companions.companions(given)}
    assert set(found) == {"uniform", "marginals", "persistence", "constant_rate"}
    mse = {name: found[name]["samplers"][name]["10"]["metrics"]["mse"]["value"] for name in found}
    assert 0 < mse["constant_rate"] < 0.2 * min(mse["persistence"], mse["uniform"])
    kept = np.mean([(100.0 * (line[STEPS + 2 :] - line[STEPS + 1])) ** 2 for line in truth])
    assert found["persistence"]["samplers"]["persistence"]["0"]["metrics"]["mse"][
        "value"
    ] == pytest.approx(kept)


def test_a_flight_is_sampled_as_often_as_asked_by_the_sampler_that_stands_for_a_model(tmp_path):
    given = climbs(tmp_path / "climbs")
    several = Settings(given.settings.plan.model_copy(update={"each": 3}), 0)
    given = EvaluationData(given.tokens, given.placed, given.group, given.meta, several)
    count, asked = len(given.sampled()), []

    def draw(tokens, known, generator):
        asked.append(known.tolist())
        good = torch.from_numpy(given.tokens[given.sampled().repeat(3)][: len(tokens)])
        made = good.clone()
        made[2::3, STEPS + 2 :] -= 3  # every third sample is off
        made = torch.where(torch.arange(good.shape[1]) < known[:, None], good, made)
        costs = torch.arange(len(tokens)) % 3
        return Drawn(made, torch.zeros_like(made), costs, costs, costs)

    plan = given.settings.plan.model_copy(update={"batch": 3 * count})
    given = EvaluationData(given.tokens, given.placed, given.group, given.meta, Settings(plan, 0))
    once = made(np.tile(given.tokens[given.sampled()], (4, 1)))
    entries, shown = samples.sampled(given, {"own": Sampler(draw), "burst_5": once}, "sigma_gpt")
    assert [len(one) for one in asked] == [3 * count] * 4
    assert all(one == sorted(one) or len(set(one)) > 1 for one in asked)
    own = entries["own"]["0"]["metrics"]
    assert own["mse"]["value"] == pytest.approx(300.0**2 / 3)
    assert own["mse"]["n"] == 3 * entries["burst_5"]["0"]["metrics"]["mse"]["n"]
    assert own["rounds"]["n"] == count and own["rounds"]["value"] == 1
    assert np.array_equal(shown["own/0/tokens"], given.tokens[given.sampled()[:8]])


# --- likelihood


class Knows(SequenceModel):
    """Answers product's law exactly, or with `share` for its 0.3."""

    def __init__(self, share=0.3):
        super().__init__()
        self.law = torch.tensor([1 - share, share]).log()

    def forward(self, tokens, order):
        return self.law.expand(*order.shape, 2)


@pytest.mark.parametrize("prompt", [0, 2])
def test_likelihood_is_the_mean_log_chance_of_the_tokens_after_the_prompt(tmp_path, prompt):
    given = held(tmp_path, "product", prompt)
    found = likelihood.likelihood(Knows(), "random", given)
    for split, suffix in (("test", ""), ("val", "_val")):
        ones = given.tokens[given.split(split)][:, prompt:]
        expected = -np.where(ones == 1, math.log(0.3), math.log(0.7)).mean()
        for order in ("", "_left_to_right"):
            one = found[f"nats{order}{suffix}"]
            assert (
                one["value"] == pytest.approx(expected, rel=1e-6)
                and one["n"] == ones.size
                and one["low"] < expected < one["high"]
            )
            assert found[f"perplexity{order}{suffix}"]["value"] == pytest.approx(
                math.exp(expected), rel=1e-6
            )


def test_intervals_of_a_grammar_are_of_independent_sequences_and_those_of_a_text_of_runs(tmp_path):
    """Losses that rise from window to window: runs of 10 of 60 move the mean far more."""
    width = {}
    values = np.linspace(0.5, 1.5, 60)[:, None].repeat(LENGTH, 1)
    for kind in ("grammar", "text"):
        found = likelihood.token_metrics(held(tmp_path, kind), "test", values, "")
        assert set(found) == {"nats", "perplexity", "bits_per_character"}
        for name, form in (
            ("perplexity", math.exp),
            ("bits_per_character", lambda x: x / math.log(2)),
        ):
            for end in ("value", "low", "high"):
                assert found[name][end] == pytest.approx(form(found["nats"][end]), rel=0.01)
        assert found["nats"]["n"] == values.size and found["nats"]["value"] == pytest.approx(1)
        width[kind] = found["nats"]["high"] - found["nats"]["low"]
    independent = 2 * 1.645 * values[:, 0].std(ddof=1) / math.sqrt(60)
    assert width["grammar"] == pytest.approx(independent, rel=0.2)
    assert width["text"] > 2 * independent


def test_a_prediction_that_is_no_number_stops(tmp_path):
    with pytest.raises(DivergedError, match="not a finite number"):
        likelihood.likelihood(Knows(float("nan")), "random", held(tmp_path, "product"))


def test_diffusion_tells_its_bound(tmp_path):
    found = likelihood.likelihood(
        Diffusion(2, LENGTH, **SIZE).eval(), "left_to_right", held(tmp_path, "product", 1)
    )
    assert set(found) == {"nats_bound", "nats_bound_val"}
    assert (
        found["nats_bound"]["value"] > -(0.3 * math.log(0.3) + 0.7 * math.log(0.7)) - 0.05
    )  # no bound is below the entropy


# --- densities


@pytest.mark.parametrize("kind", ["product", "permutation", "step"])
def test_exact_densities_are_no_distance_from_themselves_and_uniform_ones_are_the_known_one(
    tmp_path, kind
):
    given = held(tmp_path, kind)

    def exact(tokens, known):
        return posteriors.conditionals(kind, tokens, known, given.meta["law"])

    found = densities.densities(given, exact)
    assert set(found) == {"posteriors"}
    assert {name: one["value"] for name, one in found["posteriors"].items()} == {
        "0": 0,
        "10": 0,
        "50": 0,
    }
    uniform = densities.densities(
        given,
        lambda tokens, known: np.full((*tokens.shape, VOCABULARY[kind]), 1 / VOCABULARY[kind]),
    )["posteriors"]
    expected = {
        "product": 0.2,
        "permutation": 0.0,
    }  # |0.3 - 0.5|; unconditioned, a permutation's places are uniform
    if kind in expected:
        assert (
            uniform["0"]["value"] == pytest.approx(expected[kind], abs=1e-12)
            and uniform["0"]["n"] == 10 * LENGTH
        )
    assert uniform["50"]["value"] > 0.1


def test_text_is_told_in_perplexity_and_bits_and_its_samples_by_passes_and_a_judge(tmp_path):
    given = held(tmp_path, "text")
    entry, _ = evaluation.measure(
        build("sigma_gpt", SIZE, None, 3, LENGTH),
        {"order": "left_to_right", "vocabulary": 3, "length": LENGTH},
        given,
        "x",
    )
    assert entry["metrics"]["bits_per_character"]["value"] == pytest.approx(
        entry["metrics"]["nats"]["value"] / math.log(2)
    )
    assert {*entry["samplers"]["left_to_right"]["prompt"]["metrics"]} == {
        "rounds",
        "passes",
        "positions",
        "mmd",
        "mmd_p",
        "neighbour",
        "neighbour_p",
    }
    none = densities.densities(given, lambda tokens, known: None)
    assert none == {"posteriors": {}}  # no exact one is known
