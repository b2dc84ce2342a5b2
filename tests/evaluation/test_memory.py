"""Memorisation against the size of a data set (thesis 4.3.6): planted memories, families of data
sets, claim A-5 by hand-made numbers."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from known_spreads import content as known
from known_spreads import keep
from torch import nn

from stages import files
from stages.contracts import SequenceModel
from stages.params.orders import OrderEvaluation
from stages.params.sequences import Maze, Reading
from stages.sequences import memory_claims as claims
from stages.sequences import tokens as sequences
from stages.sequences.comparisons import Ordered
from stages.sequences.data import maze as reader
from stages.sequences.data import maze as simulator
from stages.sequences.evaluation import likelihood, memory, passes, samples
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.models.diffusion import Diffusion
from stages.spreads import Spreads

CELLS = 35
MADE = Maze(seed=3, train=40, val=12, test=30, rows=5, columns=7, walls=2, far=3)
PLAN = OrderEvaluation(
    samples=25, batch=8, orders=(1,), diffusion=(1, 3), posteriors=0, bootstrap=200, memory=40
)
GPT, RANDOM = "sigma_gpt-left_to_right-tiny", "sigma_gpt-random-tiny"


def prepared(folder: Path, **changed) -> Path:
    """Prepared mazes; `changed`: what differs from MADE."""
    (folder / "raw").mkdir(parents=True)
    simulator.make(MADE.model_copy(update=changed), folder / "raw")
    (folder / "prepared").mkdir()
    sequences.write(reader.read(folder / "raw", 0, Reading(seed=0)), folder / "prepared", {})
    return folder / "prepared"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return prepared(tmp_path_factory.mktemp("mazes"))


def held(folder: Path, **plan) -> EvaluationData:
    return EvaluationData.open(folder, Settings(PLAN.model_copy(update=plan), seed=0))


class Table(SequenceModel):
    """A model that knows the sequences it was given and nothing else: their tokens after the
    prompt, or always the token 0."""

    def __init__(self, known: np.ndarray, vocabulary: int = 5):
        super().__init__()
        self.vocabulary = vocabulary
        self.known = {row[:CELLS].tobytes(): torch.from_numpy(row) for row in known}

    def forward(self, tokens, order):
        rows = [
            self.known.get(row[:CELLS].numpy().tobytes(), torch.zeros(len(row), dtype=torch.int64))
            for row in tokens
        ]
        asked = torch.take_along_dim(torch.stack(rows), order, 1)
        return torch.log(torch.nn.functional.one_hot(asked, self.vocabulary) * 0.96 + 0.008)


def sampler(model: nn.Module) -> passes.Sampler:
    """The likeliest tokens of a model."""

    def draw(tokens, known, generator):
        plain = torch.arange(tokens.shape[1]).expand_as(tokens)
        guess = model(tokens, plain).argmax(2)
        one = torch.ones_like(known)
        return passes.Drawn(
            torch.where(plain < known[:, None], tokens, guess), plain, one, one, one
        )

    return passes.Sampler(draw)


def losses(model: nn.Module):
    return lambda tokens, order, first: likelihood.losses(model, tokens, order, first, 8)


# --- data sets that differ in size alone


def test_more_training_mazes_leave_all_other_mazes_and_the_first_ones_as_they_are(tmp_path):
    folders = [tmp_path / str(count) for count in (10, 40)]
    for folder, count in zip(folders, (10, 40), strict=True):
        folder.mkdir()
        simulator.make(MADE.model_copy(update={"train": count}), folder)
    few, many = (
        {name: np.load(folder / f"{name}.npy") for name in ("train", "val", "test")}
        for folder in folders
    )
    assert (few["val"] == many["val"]).all() and (few["test"] == many["test"]).all()
    assert len(few["train"]) == 10 and len(many["train"]) == 40
    assert (few["train"][:, :CELLS] == many["train"][:10, :CELLS]).all()
    assert not {row.tobytes() for row in many["train"][:, :CELLS]} & {
        row.tobytes() for row in np.concatenate([many["val"], many["test"]])[:, :CELLS]
    }


def test_held_out_is_the_same_for_another_number_of_training_mazes_and_for_nothing_else(
    tmp_path, folder
):
    same = memory.held_out(held(folder))
    assert len(same) == hashlib.sha256().digest_size * 2
    assert memory.held_out(held(prepared(tmp_path / "a", train=10))) == same
    changes = ({"seed": 4}, {"val": 11}, {"test": 29}, {"far": 4})
    others = {
        memory.held_out(held(prepared(tmp_path / str(k), **one))) for k, one in enumerate(changes)
    }
    assert len(others) == len(changes) and same not in others


# --- what a model remembers


def test_a_table_of_the_training_mazes_answers_all_of_those_and_hardly_a_test_maze(folder):
    given = held(folder)
    model = Table(given.tokens[given.split("train")])
    found = memory.remembered(given, {"own": sampler(model)}, "random", losses(model))
    assert {name: found[name]["value"] for name in ("correct", "repeated", "prompt_kept")} == {
        "correct": 1,
        "repeated": 1,
        "prompt_kept": 1,
    }
    assert found["correct"]["n"] == 25 and found["correct"]["low"] < 1
    assert (
        found["nats"]["value"] == pytest.approx(-np.log(0.968), rel=1e-5)
        and found["nats"]["n"] == 12 * CELLS
    )
    tested = samples.sampled(given, {"own": sampler(model)}, "x")[0]["own"]["prompt"]["metrics"]
    assert tested["correct"]["value"] == 0
    assert likelihood.likelihood(model, "random", given)["nats_val"]["value"] > 1


def test_a_model_that_answers_nothing_remembers_nothing_and_undefined_numbers_are_left_out(folder):
    given = held(folder)
    model = Table(given.tokens[:0])
    found = memory.remembered(
        given, {"left_to_right": sampler(model)}, "left_to_right", losses(model)
    )
    assert found["correct"]["value"] == found["repeated"]["value"] == 0
    json.dumps(found, allow_nan=False)
    assert not any(value is None for one in found.values() for value in one.values())


def test_another_shortest_path_is_correct_but_not_repeated(folder):
    given = held(folder)
    train = given.tokens[given.split("train")]
    longer = train.copy()
    spoilt = np.flatnonzero((train[:, CELLS:] == 4).sum(1) > 0)[:1]
    longer[spoilt, CELLS:] = longer[spoilt, :CELLS]  # no path at all
    found = memory.remembered(
        held(folder, samples=40), {"own": sampler(Table(longer))}, "random", None
    )
    assert (
        found["repeated"]["value"] == found["correct"]["value"] == pytest.approx(39 / 40)
        and "nats" not in found
    )


def test_training_prompts_alone_are_handed_over(folder):
    given, seen = held(folder), []

    def spy(tokens, known, generator):
        seen.append(tokens.clone())
        assert (known == CELLS).all()
        return passes.Drawn(tokens, torch.arange(2 * CELLS).expand_as(tokens), known, known, known)

    memory.remembered(given, {"own": passes.Sampler(spy)}, "random", None)
    shown = torch.cat(seen).numpy()
    train = {row.tobytes() for row in given.tokens[given.split("train")][:, :CELLS]}
    assert len(shown) == 25 == len({row.tobytes() for row in shown}) and all(
        row[:CELLS].tobytes() in train for row in shown
    )
    assert (shown[:, CELLS:] == 0).all()


def test_the_sampler_that_stands_for_a_cell():
    assert memory.standing({"left_to_right": None, "own": None, "burst_5": None}) == "own"
    assert memory.standing({"left_to_right": None, "exact": None}) == "left_to_right"
    assert (
        memory.standing(
            passes.samplers(
                Diffusion(5, 70, width=16, keys=8, hidden=16, heads=2, blocks=1), "", (1,), (1, 3)
            )
        )
        == "diffusion_3"
    )


def test_only_small_data_sets_of_a_judged_kind_are_asked(folder):
    assert (
        memory.named(held(folder)) == {"held_out": memory.held_out(held(folder))}
        and memory.named(held(folder, memory=39)) == {}
    )
    assert (
        memory.asked(held(folder))
        and not memory.asked(held(folder, memory=39))
        and not memory.asked(held(folder, memory=0))
    )
    text = held(folder)
    text.meta["kind"] = "text"
    assert not memory.asked(text)


def test_numbers_are_spread_evenly_and_none_comes_twice():
    numbers = np.arange(100, 110)
    assert (
        memory.spread(numbers, 5).tolist() == [100, 102, 104, 106, 108]
        and memory.spread(numbers, 50).tolist() == numbers.tolist()
    )
    assert memory.spread(numbers[:0], 5).size == 0


# --- the claim


def number(value: float, half: float = 0.03) -> dict:
    return {
        "value": value,
        "unit": "share",
        "n": 200,
        "low": max(value - half, 0.0),
        "high": min(value + half, 1.0),
    }


def cells(accuracies: dict[str, tuple[float, float]], seeds: int = 1) -> dict:
    """Cells of arms: arm -> accuracy on training and test prompts."""
    return {
        f"{arm}-s{seed}": {
            "memorised": {"correct": number(train)},
            "samplers": {
                "own" if arm == RANDOM else "left_to_right": {
                    "prompt": {"metrics": {"correct": number(test)}}
                }
            },
        }
        for arm, (train, test) in accuracies.items()
        for seed in range(seeds)
    }


def measured(
    size: int,
    gpt: tuple[float, float],
    random: tuple[float, float],
    digest: str = "a",
    spread: float = 1e-9,
    **more,
) -> Ordered:
    content = {
        "kind": "maze",
        "sequences": {"train": size, "val": 10, "test": 20},
        "held_out": digest,
        "cells": cells({GPT: gpt, RANDOM: random}, **more),
    }
    spreads = Spreads(known(("sigma_gpt",), spread) if spread else {})
    return Ordered(f"mazes_{size}", content, spreads)


BOTH, MEMORY, LEARNED, NOTHING = (0.99, 0.95), (0.99, 0.05), (0.97, 0.9), (0.1, 0.0)
PRINTED = {100: (MEMORY, MEMORY), 1000: (LEARNED, MEMORY), 9000: (BOTH, BOTH)}


def told(table: dict, **more) -> list[dict]:
    return claims.entries(
        claims.families([measured(size, *pair, **more) for size, pair in table.items()])
    )


@pytest.mark.parametrize("seeds", [1, 3])
def test_numbers_like_the_printed_ones_make_the_claim_hold_at_the_size_where_gpt_first_generalises(
    seeds,
):
    (entry,) = told(PRINTED, seeds=seeds)
    assert (
        entry["id"] == "A-5"
        and entry["verdict"] == "holds"
        and entry["dataset"] == "mazes_9000"
        and entry["seeds"] == seeds
    )
    assert set(entry["compared"]) == {f"{GPT} generalises at 1,000", f"{RANDOM} memorises at 1,000"}
    part = entry["compared"][f"{RANDOM} memorises at 1,000"]
    assert part["value"] == pytest.approx(0.94)
    if seeds == 1:  # independent samples: halves of the two intervals, added in squares
        assert np.diff(part["interval"]) / 2 == pytest.approx(np.hypot(0.02, 0.03), rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "verdict", "words"),
    [
        ({1000: (LEARNED, LEARNED)}, "fails", f"{RANDOM} memorises at 1,000"),
        ({1000: (LEARNED, (0.99, 0.47))}, "undecided", f"{RANDOM} memorises at 1,000"),
        ({1000: (LEARNED, NOTHING)}, "undecided", "neither memorises nor generalises"),
        ({1000: ((0.95, 0.46), MEMORY)}, "undecided", f"{GPT} generalises at 1,000"),
        (
            {1000: (MEMORY, MEMORY), 9000: (MEMORY, MEMORY)},
            "undecided",
            "generalises at none of 100, 1,000, 9,000",
        ),
        ({1000: (MEMORY, LEARNED)}, "fails", f"{RANDOM} memorises at 9,000"),
    ],
)
def test_other_numbers_make_it_fail_or_leave_it_undecided_by_name(changed, verdict, words):
    (entry,) = told(PRINTED | changed)
    assert entry["verdict"] == verdict and words in entry["why"]


def test_one_seed_needs_the_spread_of_training_and_a_wide_one_leaves_it_undecided():
    verdicts = {spread: told(PRINTED, spread=spread)[0] for spread in (0.0, 0.02, 0.5)}
    assert [one["verdict"] for one in verdicts.values()] == ["undecided", "holds", "undecided"]
    assert "the spread over seeds was not measured" in verdicts[0.0]["why"]
    assert told(PRINTED, spread=0.0, seeds=3)[0]["verdict"] == "holds"


def test_families_are_found_by_their_held_out_sequences_and_ranked_by_size_whatever_their_names():
    small, large = measured(10, MEMORY, MEMORY), measured(300, BOTH, BOTH)
    large.dataset = "a"
    other, alone = measured(10, MEMORY, MEMORY, digest="b"), measured(500, BOTH, BOTH, digest="c")
    unasked = measured(900, BOTH, BOTH)
    for cell in unasked.cells.values():
        del cell["memorised"]
    twin = measured(10, BOTH, BOTH, digest="b")  # another data set of the same size: no family
    assert claims.families([large, unasked, other, alone, small, twin]) == [[small, large]]
    (nowhere,) = claims.entries(claims.families([alone]))
    assert (
        nowhere["verdict"] == "undecided"
        and nowhere["dataset"] == "–"
        and "differ in that alone" in nowhere["why"]
    )


def test_arms_that_were_not_run_are_told_by_name():
    family = [measured(size, *pair) for size, pair in PRINTED.items()]
    for one in family:
        one.cells = {name: cell for name, cell in one.cells.items() if "random" not in name}
    (entry,) = claims.entries([family])
    assert entry["verdict"] == "undecided" and "no sigma_gpt-random" in entry["why"]
    family[1].cells |= cells({RANDOM: MEMORY})
    (entry,) = claims.entries([family])
    assert entry["verdict"] == "holds"
    family = [measured(size, *pair) for size, pair in PRINTED.items()]
    del family[1].cells[f"{RANDOM}-s0"]
    (entry,) = claims.entries([family])
    assert entry["verdict"] == "undecided" and "was not measured at 1,000" in entry["why"]


def test_what_is_written_is_read_back_by_the_check_of_all_claims(tmp_path):
    home = tmp_path / "reports/any_order/mini"
    keep(home, ("sigma_gpt",), 0.01)
    for size, pair in PRINTED.items():
        one = measured(size, *pair)
        files.write_json(
            home / f"evaluated/{one.dataset}/metrics.json",
            {
                "cells": one.cells,
                "kind": one.kind,
                "sequences": one.sequences,
                "held_out": one.held_out,
            },
        )
    from stages.sequences.claims import check

    (entry,) = (entry for entry in check(home) if entry["id"] == "A-5")
    assert entry["verdict"] == "holds" and entry["dataset"] == "mazes_9000"
