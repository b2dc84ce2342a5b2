"""Whether sequences can be told apart, against sums written out and planted samplers: alike,
noise, copies; and what the map is made of."""

import json
from math import dist, exp, isfinite

import numpy as np
import pytest

from stages.sequences.evaluation import generations
from stages.sequences.evaluation.generations import Reader

VOCABULARY, LENGTH, COUNT = 6, 40, 40
CHANCE = np.array([0.35, 0.25, 0.2, 0.1, 0.06, 0.04])


def chained(count: int, seed: int) -> np.ndarray:
    """Sequences of a law in which the next letter is mostly the one after the last."""
    rng = np.random.default_rng(seed)
    made = np.empty((count, LENGTH), int)
    made[:, 0] = rng.choice(VOCABULARY, count, p=CHANCE)
    for place in range(1, LENGTH):
        new = rng.choice(VOCABULARY, count, p=CHANCE)
        made[:, place] = np.where(
            rng.random(count) < 0.6, (made[:, place - 1] + 1) % VOCABULARY, new
        )
    return made


SPLITS = {"train": chained(400, 0), "val": chained(60, 1), "test": chained(50, 2)}
NOISE = np.random.default_rng(3).integers(VOCABULARY, size=(COUNT, LENGTH))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader.of(SPLITS, VOCABULARY, 0, COUNT)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def compared(reader: Reader, tokens: np.ndarray) -> dict[str, float]:
    return {name: one["value"] for name, one in reader.compare(tokens, rng()).items()}


def apart(first: np.ndarray, second: np.ndarray, width: float = 1.0) -> dict[str, float]:
    return {
        name: one["value"]
        for name, one in generations.told_apart(first, second, width, rng()).items()
    }


def test_the_discrepancy_is_the_unbiased_sum_written_out():
    draw = np.random.default_rng(6)
    first, second, width = draw.normal(size=(7, 3)), draw.normal(size=(7, 3)) + 0.5, 0.8

    def kernel(a, b):
        return exp(-(dist(a, b) ** 2) / (2 * width**2))

    within = [
        sum(kernel(one[i], one[j]) for i in range(7) for j in range(7) if i != j) / 42
        for one in (first, second)
    ]
    across = sum(kernel(a, b) for a in first for b in second) / 49
    assert apart(first, second, width)["mmd"] == pytest.approx(sum(within) - 2 * across)


def test_the_neighbours_are_those_found_one_by_one():
    draw = np.random.default_rng(7)
    both = draw.normal(size=(18, 2))
    hits = 0
    for i in range(18):
        nearest = min((j for j in range(18) if j != i), key=lambda j: dist(both[i], both[j]))
        hits += (i < 9) == (nearest < 9)
    assert apart(both[:9], both[9:])["neighbour"] == pytest.approx(hits / 18)


def test_of_neighbours_equally_near_their_share_counts():
    same = np.zeros((8, 2))
    found = apart(same, same)
    assert found["neighbour"] == pytest.approx(7 / 15) and found["neighbour_p"] == 1
    assert found["mmd"] == pytest.approx(0, abs=1e-12) and found["mmd_p"] == 1


def test_samples_of_one_law_have_no_discrepancy_in_the_mean_and_even_p():
    draw = np.random.default_rng(8)
    found = [apart(draw.normal(size=(12, 3)), draw.normal(size=(12, 3))) for _ in range(150)]
    values = np.array([one["mmd"] for one in found])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(150)
    shares = {
        name: np.mean([one[name] <= 0.1 for one in found]) for name in ("mmd_p", "neighbour_p")
    }
    assert (
        0.025 < shares["mmd_p"] < 0.175 and shares["neighbour_p"] < 0.175
    )  # three deviations; the counts of neighbours are few, so their p is careful
    assert min(one[name] for one in found for name in shares) >= 1 / (1 + generations.PERMUTATIONS)
    assert 0.4 < np.mean([one["mmd_p"] for one in found]) < 0.6


def test_the_same_law_cannot_be_told_and_noise_can(reader):
    same, noise = compared(reader, chained(COUNT, 9)), compared(reader, NOISE)
    assert same["mmd_p"] > 0.05 and same["neighbour_p"] > 0.05
    assert noise["mmd_p"] == noise["neighbour_p"] == 1 / (1 + generations.PERMUTATIONS)
    assert noise["neighbour"] > 0.9 and noise["mmd"] > 10 * abs(same["mmd"])


def test_letters_in_their_right_shares_but_no_order_are_told_apart(reader):
    mixed = np.random.default_rng(10).permuted(chained(COUNT, 11), axis=1)
    assert compared(reader, mixed)["neighbour"] > 0.8


def test_copies_of_validation_sequences_stand_out_by_neighbours_of_the_other_kind(reader):
    copies = generations.spread(SPLITS["val"], COUNT)
    found = compared(reader, copies)
    assert found["neighbour"] == 0 and found["neighbour_p"] == 1 and found["mmd"] < 0


def test_the_floor_is_test_against_validation_sequences(reader):
    found = reader.floor(rng())
    assert found == reader.compare(generations.spread(SPLITS["test"], COUNT), rng())
    assert found["neighbour"]["n"] == COUNT and found["mmd_p"]["value"] > 0.05


def test_the_same_stream_gives_the_same_numbers(reader):
    assert reader.compare(NOISE, rng()) == reader.compare(NOISE, rng())


def test_what_was_given_is_not_compared():
    begun = {
        name: np.concatenate([np.full((len(one), 9), k), one], 1)
        for k, (name, one) in enumerate(SPLITS.items())
    }
    given, plain = Reader.of(begun, VOCABULARY, 9, COUNT), Reader.of(SPLITS, VOCABULARY, 0, COUNT)
    np.testing.assert_array_equal(given.held, plain.held)
    np.testing.assert_array_equal(
        given.points(np.concatenate([np.ones((COUNT, 9), int), NOISE], 1)), plain.points(NOISE)
    )


def test_of_too_few_sequences_nothing_is_said_and_nothing_laid_out():
    few = Reader.of(
        {"train": SPLITS["train"], "val": SPLITS["val"][:3], "test": SPLITS["test"]},
        VOCABULARY,
        0,
        COUNT,
    )
    assert all(one["value"] is None for one in few.compare(NOISE, rng()).values())
    entry, tensors = generations.generations(few, {"marginals/marginals": NOISE}, rng())
    assert entry["floor"] == {} and tensors == {} and "map" not in entry


def test_validation_sequences_that_are_all_the_same_are_no_yardstick():
    one = Reader.of(SPLITS | {"val": np.repeat(SPLITS["val"][:1], 20, 0)}, VOCABULARY, 0, 20)
    assert one.compare(NOISE, rng())["mmd"]["value"] is None


def test_the_map_holds_of_each_first_seed_the_ways_that_the_thesis_compares():
    names = [
        f"sigma_gpt-random-60k-s{seed}/{one}"
        for seed in (0, 1)
        for one in ("left_to_right", "own", "burst_1", "burst_5", "burst_20", "exact")
    ]
    names += [
        "sigma_gpt-left_to_right-60k-s0/left_to_right",
        "sigma_gpt-left_to_right-60k-s0/exact",
        "uniform/uniform",
        "marginals/marginals",
    ]
    names += [f"diffusion-plain-60k-s0/diffusion_{steps}" for steps in (1, 4, 16)]
    assert set(generations.chosen(dict.fromkeys(names))) == {
        "sigma_gpt-random-60k-s0/own",
        "sigma_gpt-random-60k-s0/burst_5",
        "sigma_gpt-left_to_right-60k-s0/left_to_right",
        "marginals/marginals",
        "diffusion-plain-60k-s0/diffusion_16",
    }


def test_the_map_lays_all_out_together_and_its_names_are_no_samples(reader):
    made = {
        "uniform/uniform": NOISE,
        "marginals/marginals": NOISE,
        "sigma_gpt-random-60k-s0/own": chained(COUNT, 12),
    }
    entry, tensors = generations.generations(reader, made, rng())
    assert set(tensors) == {"map/val", "map/marginals/marginals", "map/sigma_gpt-random-60k-s0/own"}
    assert all(
        one.shape == (COUNT, 2) and one.dtype == np.float32 and np.isfinite(one).all()
        for one in tensors.values()
    )
    assert all(len(name.split("/")) != 4 for name in tensors)
    json.dumps(entry, allow_nan=False)
    assert entry["map"]["points"] == 3 * COUNT and isfinite(entry["map"]["kl"])
    centre = {name: one.mean(0) for name, one in tensors.items()}
    near, far = (
        np.linalg.norm(centre["map/val"] - centre[f"map/{name}"])
        for name in ("sigma_gpt-random-60k-s0/own", "marginals/marginals")
    )
    assert far > 3 * near


def test_a_map_has_no_more_points_than_are_allowed(reader, monkeypatch):
    monkeypatch.setattr(generations, "POINTS", 33)
    _, tensors = generations.generations(
        reader, {"marginals/marginals": NOISE, "a-s0/own": NOISE}, rng()
    )
    assert {len(one) for one in tensors.values()} == {11}
