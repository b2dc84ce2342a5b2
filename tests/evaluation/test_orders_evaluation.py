"""Evaluation of models of sequences: likelihoods, planted samplers good and bad, exact and wrong
densities, what the command writes."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from stages import files, params, seeds
from stages.contracts import SequenceModel
from stages.errors import DataError, DivergedError, InputError
from stages.params.orders import OrderBudget, OrderCell, OrderEvaluation
from stages.scores import pool, shell
from stages.sequences import evaluate as command
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
from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.sequences.tokens import Sequences
from stages.training import store

SIZE = {"width": 16, "keys": 8, "hidden": 16, "heads": 2, "blocks": 1}
PLAN = OrderEvaluation(
    samples=40, batch=16, orders=(1, 5), diffusion=(1, 3), posteriors=10, bootstrap=200
)
SETTINGS = Settings(PLAN, seed=0)
COUNTS = (30, 12, 60)  # train, val, test
LENGTH = 6
RUNS = "reports/any_order/mini/runs/orders"


def drawn_by(kind: str, count: int) -> np.ndarray:
    """Sequences of the laws of these tests."""
    rng = np.random.default_rng(7)
    if kind == "product":
        return (rng.random((count, LENGTH)) < 0.3).astype(int)
    if kind == "permutation":
        return np.stack([rng.permutation(LENGTH) for _ in range(count)])
    if kind == "step":
        begin = rng.integers(5, size=(count, 1))
        return ((np.arange(LENGTH) >= begin) & (np.arange(LENGTH) < begin + 2)).astype(int)
    return rng.integers(3, size=(count, LENGTH))  # text


LAWS = {
    "product": {"length": LENGTH, "share": 0.3},
    "permutation": {"length": LENGTH},
    "step": {"length": LENGTH, "width": 2, "places": 5},
    "text": {},
}
VOCABULARY = {"product": 2, "permutation": LENGTH, "step": 2, "text": 3}


def prepared(folder: Path, kind: str, prompt: int = 0) -> Path:
    """Prepared sequences of a kind."""
    count = sum(COUNTS)
    folder.mkdir(parents=True)
    split = np.repeat([0, 1, 2], COUNTS)
    sequences.write(
        Sequences(
            kind,
            drawn_by(kind, count),
            split,
            split,
            np.arange(count),
            ("a", "b", "c"),
            VOCABULARY[kind],
            prompt,
            LAWS[kind],
        ),
        folder,
        {},
    )
    return folder


def held(tmp_path, kind, prompt=0, settings=SETTINGS) -> EvaluationData:
    return EvaluationData.open(prepared(tmp_path / kind, kind, prompt), settings)


def made(tokens: np.ndarray) -> Sampler:
    """A sampler that answers with these sequences, one pass each."""

    def draw(shown, known, generator, state={"at": 0}):  # noqa: B006 (kept from call to call)
        rows = torch.from_numpy(tokens[state["at"] : state["at"] + len(shown)])
        state["at"] += len(shown)
        one = torch.ones_like(known)
        return Drawn(
            rows, torch.arange(rows.shape[1]).expand_as(rows), one, one, one * rows.shape[1]
        )

    return Sampler(draw)


def write_cell(
    runs: Path, kind: str, model="sigma_gpt", arm="random", order="random", seed=0
) -> Path:
    """An untrained cell in the checkpoint's format."""
    seeds.everything(seed)
    network = build(model, SIZE, None, VOCABULARY[kind], LENGTH)
    folder = runs / f"{model}-{arm}-tiny-s{seed}"
    folder.mkdir(parents=True)
    meta = {
        "module": f"stages.sequences.models.{model}",
        "model": model,
        "arm": arm,
        "size": "tiny",
        "seed": seed,
        "arguments": SIZE,
        "order": order,
        "vocabulary": VOCABULARY[kind],
        "length": LENGTH,
    }
    (folder / "weights.safetensors").write_bytes(store.dump(network, meta))
    files.write_json(
        folder / "history.json", {"val": [{"step": 5, "loss": 0.7, "left_to_right": 0.7}]}
    )
    return folder


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


def test_losses_follow_the_order_and_see_what_came_before_only(tmp_path):
    network = SigmaGPT(3, LENGTH, **SIZE).eval()
    tokens = torch.from_numpy(drawn_by("text", 20))
    order = passes.ordered("random", 20, LENGTH, 2, torch.Generator().manual_seed(0))
    whole = likelihood.losses(network, tokens, order, 2, 7)
    last = order[:, -1:]
    changed = tokens.scatter(1, last, (tokens.gather(1, last) + 1) % 3)
    np.testing.assert_allclose(
        likelihood.losses(network, changed, order, 2, 20)[:, :-1], whole[:, :-1], atol=1e-6
    )
    with torch.no_grad():
        law = network(tokens, order).softmax(2)
    assert whole[3, 1] == pytest.approx(
        -math.log(float(law[3, 3, tokens[3, order[3, 3]]])), rel=1e-5
    )


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

    assert {name: one["value"] for name, one in densities.densities(given, exact).items()} == {
        "0": 0,
        "10": 0,
        "50": 0,
    }
    uniform = densities.densities(
        given,
        lambda tokens, known: np.full((*tokens.shape, VOCABULARY[kind]), 1 / VOCABULARY[kind]),
    )
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


# --- everything


@pytest.fixture
def project(tmp_path):
    """A root with permutations and untrained cells."""
    return rooted(tmp_path)


def rooted(root: Path) -> Path:
    prepared(root / "data/mini/prepared/orders", "permutation")
    for arm, order in (("random", "random"), ("gpt", "left_to_right")):
        write_cell(root / RUNS, "permutation", arm=arm, order=order)
    return root


def evaluated(project, name="evaluated") -> Path:
    cells, prepared_there = shell.trained(project / RUNS), project / "data/mini/prepared/orders"
    evaluation.evaluate(cells, prepared_there, project / name, SETTINGS)
    return project / name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Such a root, evaluated by one process."""
    root = rooted(tmp_path_factory.mktemp("whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool.os, "sched_getaffinity", lambda pid: {0})
        evaluated(root)
    return root


def test_all_is_written_strictly_and_by_two_processes_with_the_same_bytes(whole, monkeypatch):
    first = whole / "evaluated"
    monkeypatch.setattr(pool.os, "sched_getaffinity", lambda pid: {0, 1})
    again = evaluated(whole, "again")
    assert {p.name for p in first.iterdir()} == {
        "metrics.json",
        "passes.json",
        "samples.safetensors",
    }
    for file in first.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes()
    text = (first / "metrics.json").read_text()
    assert not re.search(r"NaN|Infinity|null", text)
    told = json.loads(text)
    assert told["sequences"] == {"train": 30, "val": 12, "test": 60} and told[
        "entropy"
    ] == pytest.approx(math.log(720) / LENGTH)
    assert told["bounds"]["5"]["mean"] > 1 and {
        "uniform",
        "marginals",
        "sigma_gpt-random-tiny-s0",
        "sigma_gpt-gpt-tiny-s0",
    } <= set(told["cells"])
    random, gpt, uniform = (
        told["cells"][name]
        for name in ("sigma_gpt-random-tiny-s0", "sigma_gpt-gpt-tiny-s0", "uniform")
    )
    assert uniform["metrics"]["nats"]["value"] == pytest.approx(math.log(LENGTH)) and uniform[
        "metrics"
    ]["perplexity"]["value"] == pytest.approx(LENGTH)
    assert (
        set(random["posteriors"]) == {"0", "10", "50"} == set(uniform["posteriors"])
        and gpt["posteriors"] == {}
    )
    assert uniform["posteriors"]["0"]["value"] == pytest.approx(0, abs=1e-12)
    assert random["parameters"] == sum(
        p.numel() for p in SigmaGPT(LENGTH, LENGTH, **SIZE).parameters()
    )
    assert random["history"] == {"val": [[5, 0.7]]} and {
        "valid",
        "different",
        "passes",
        "rounds",
        "positions",
    } <= set(random["samplers"]["burst_5"]["prompt"]["metrics"])
    assert all(
        {"value", "unit", "n"} <= leaf.keys()
        for cell in told["cells"].values()
        for leaf in cell["metrics"].values()
    )
    tensors = load_file(first / "samples.safetensors")
    assert (
        tensors["sigma_gpt-random-tiny-s0/burst_1/prompt/tokens"].shape
        == (8, LENGTH)
        == tensors["truth"].shape
    )


def test_one_cell_alone_gives_the_same_numbers(whole):
    told = files.read_json(whole / "evaluated/metrics.json")["cells"]
    alone = evaluation.cell(
        whole / RUNS / "sigma_gpt-random-tiny-s0", whole / "data/mini/prepared/orders", SETTINGS
    )
    assert json.loads(json.dumps(alone)) == told["sigma_gpt-random-tiny-s0"]


def test_the_table_sets_passes_beside_validity(whole):
    rows = files.read_json(whole / "evaluated/passes.json")["rows"]
    found = {(row["cell"], row["sampler"]): row for row in rows}
    one = found["sigma_gpt-random-tiny-s0", "own"]
    assert (one["passes"], one["passes_sd"], one["metric"]) == (LENGTH, 0, "valid") and one[
        "quality_low"
    ] <= one["quality"] <= one["quality_high"]
    assert (
        found["sigma_gpt-random-tiny-s0", "burst_5"]["rounds"]
        <= found["sigma_gpt-random-tiny-s0", "burst_1"]["rounds"]
    )  # claim A-7
    assert found["uniform", "uniform"]["passes"] == 0
    told = files.read_json(whole / "evaluated/metrics.json")["cells"]
    assert len(rows) == sum(
        len(prompts) for cell in told.values() for prompts in cell["samplers"].values()
    )


def test_a_checkpoint_comes_back_as_it_was_and_another_is_refused(project):
    run = project / RUNS / "sigma_gpt-random-tiny-s0"
    model, meta = store.load(str(run / "weights.safetensors"))
    seeds.everything(0)
    twin = build("sigma_gpt", SIZE, None, LENGTH, LENGTH).eval()
    tokens = torch.from_numpy(drawn_by("permutation", 4))
    assert torch.equal(model(tokens, tokens), twin(tokens, tokens))
    told = [
        store.dump(twin, meta | wrong)
        for wrong in (
            {"arguments": SIZE | {"width": 32}},
            {"vocabulary": 10**9},
            {"model": "gpt"},
            {"length": "6"},
        )
    ]
    for data in (*told, b"PK\x03\x04"):
        (run / "weights.safetensors").write_bytes(data)
        with pytest.raises(DataError, match="not a model that we wrote"):
            store.load(str(run / "weights.safetensors"))


def test_other_sequences_and_no_cells_are_plain_errors(whole, tmp_path):
    other = held(tmp_path, "product")
    with pytest.raises(DataError, match="vocabulary 2"):
        cell = str(whole / RUNS / "sigma_gpt-random-tiny-s0/weights.safetensors")
        evaluation.measure(*store.load(cell), other, "x")
    with pytest.raises(InputError, match="no trained cell"):
        shell.trained(tmp_path / "none")
    with pytest.raises(DataError, match="prepared sequences are missing"):
        EvaluationData.open(tmp_path / "none", SETTINGS)


def test_text_is_told_in_perplexity_and_bits_and_its_samples_by_passes_and_whether_they_are_told_apart(
    tmp_path,
):
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
    assert densities.densities(given, lambda tokens, known: None) == {}  # no exact one is known


# --- the command


@pytest.fixture
def planned(project, monkeypatch):
    """The project as a working copy whose parameters have these sequences, models and a plan."""
    (project / "reports/any_order/dvc.yaml").touch()
    (project / "stages").symlink_to(Path.cwd() / "stages")
    budget = OrderBudget(steps=10, validate_every=5, patience=2, batch=8, learning_rate=1e-3)
    cells = [
        OrderCell(dataset="orders", model=model, arm=arm, size="tiny", seed=seed)
        for model, arm, seed in (
            ("sigma_gpt", "random", 0),
            ("sigma_gpt", "random", 1),
            ("sigma_gpt", "gpt", 0),
            ("diffusion", "plain", 0),
        )
    ]
    profile = SimpleNamespace(
        profile="mini", learning_orders={"orders": budget}, orders=PLAN, order_cells=cells
    )
    parameters = SimpleNamespace(
        profiles={"mini": profile},
        training=params.Training(seed=0, learning_rate=1e-3, clip=4.0, threads=1),
    )
    monkeypatch.chdir(project)
    monkeypatch.setenv("TRADEWIND_DEVICE", "cpu")
    monkeypatch.setattr(params, "load", lambda: parameters)
    return project


def test_the_command_writes_its_outputs_and_a_record_of_them(planned):
    assert command.main(["any_order", "mini", "orders"]) == 0
    record = files.read_json(planned / "reports/any_order/mini/records/orders.evaluate.json")
    assert set(record["outputs"]) == {
        f"reports/any_order/mini/evaluated/orders/{name}"
        for name in ("metrics.json", "passes.json", "samples.safetensors")
    }
    assert (
        record["params"]["orders"]["samples"] == 40
        and "stages/sequences/evaluation/passes.py" in record["code"]["files"]
    )
    assert "data/mini/prepared/orders/sequences.safetensors" in record["inputs"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sigma_gpt-random-tiny-s1", "its checkpoint is that of sigma_gpt-random-tiny-s0"),
        ("gpt2", "not in profiles.mini.order_cells"),
    ],
)
def test_a_cell_that_params_do_not_know_is_refused_by_name(planned, capsys, name, says):
    runs = planned / RUNS
    (runs / "sigma_gpt-random-tiny-s0").rename(runs / name)
    assert command.main(["any_order", "mini", "orders"]) == 1
    assert (
        says in capsys.readouterr().err
        and not (planned / "reports/any_order/mini/evaluated").exists()
    )


@pytest.mark.parametrize(
    "words",
    [
        ("any_ordr", "mini", "orders"),
        ("any_order", "mimi", "orders"),
        ("any_order", "mini", "order"),
    ],
)
def test_mistakes_end_with_2_and_the_nearest_name(planned, capsys, words):
    assert command.main(list(words)) == 2
    assert "did you mean" in capsys.readouterr().err
