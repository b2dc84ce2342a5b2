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
from order_cells import LENGTH, PLAN, SETTINGS, SIZE, VOCABULARY, drawn_by, held, prepared
from safetensors.numpy import load_file

from stages import files, params, seeds
from stages.errors import DataError, InputError
from stages.params.orders import OrderBudget
from stages.scores import pool, shell
from stages.sequences import evaluate as command
from stages.sequences.evaluation import likelihood, passes
from stages.sequences.evaluation import measure as evaluation
from stages.sequences.evaluation.data import EvaluationData
from stages.sequences.models import build
from stages.sequences.models.sigma_gpt import SigmaGPT
from stages.training import store

RUNS = "reports/any_order/mini/runs/orders"


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


# --- the command


@pytest.fixture
def planned(project, monkeypatch):
    """The project as a working copy whose parameters have these sequences, models and a plan."""
    (project / "reports/any_order/dvc.yaml").touch()
    (project / "stages").symlink_to(Path.cwd() / "stages")
    budget = OrderBudget(steps=10, validate_every=5, patience=2, batch=8, learning_rate=1e-3)
    cells = [
        params.Declared(dataset="orders", model=model, arm=arm, size="tiny", seed=seed)
        for model, arm, seed in (
            ("sigma_gpt", "random", 0),
            ("sigma_gpt", "random", 1),
            ("sigma_gpt", "gpt", 0),
            ("diffusion", "plain", 0),
        )
    ]
    profile = SimpleNamespace(profile="mini", learning_orders={"orders": budget}, orders=PLAN)
    parameters = SimpleNamespace(
        profiles={"mini": profile},
        trained=lambda *_: params.Cells(cells={f"mini-orders-{one.name}": one for one in cells}),
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
        ("gpt2", "not declared in reports/any_order/cells.yaml"),
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
