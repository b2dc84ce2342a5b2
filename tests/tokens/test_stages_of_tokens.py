"""From a made set to its table: small sets go through every stage's work."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import files, params, seeds
from stages.errors import DataError, ParamsError
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.tokens import (
    acquire,
    claims,
    costs,
    evaluate,
    figures,
    measure,
    prepare,
    tables,
    train,
    validate,
)
from stages.tokens.layout import ABOUT, INPUTS, KINDS, PAIRS, ROWS, SPLIT, TARGETS
from stages.tokens.models import build
from stages.tokens.sets import Sets
from stages.tokens.settings import Made, Split, Tokens, made_of, tokens_of
from stages.tokens.tasks import glue
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

MADE = {
    "pairs": {"seed": 0, "task": "pairs", "rows": 600, "nouns": 4, "fillers": 1},
    "shapes": {"seed": 0, "task": "shapes", "rows": 400},
    "pictures": {"seed": 0, "task": "pictures", "rows": 400, "high": 3, "wide": 3, "points": 2,
                 "statements": 2},
}  # fmt: skip
SPLIT_OF = {"train": 200, "val": 60}
BUDGET = {"steps": 20, "validate_every": 10, "patience": 9, "batch": 8, "learning_rate": 0.005,
          "schedule": "cosine"}  # fmt: skip
TOLD = {
    "datasets": tuple(MADE),
    "splits": dict.fromkeys(MADE, SPLIT_OF),
    "training": dict.fromkeys(MADE, BUDGET),
    "drawn": 20, "maps": 4, "resamples": 100,
}  # fmt: skip
KINDS_OF = {"label": "pairs", "value": "shapes", "next": "pictures"}
MODELS = {"pairs": "hypermixing", "shapes": "mlp_mixer", "pictures": "self_attention"}
each = pytest.mark.parametrize("name", MADE)


def made(name: str, **other) -> Made:
    return checked(Made, MADE[name] | other, f"datasets.{name}.made")


@pytest.fixture(scope="module")
def told() -> Tokens:
    return checked(Tokens, TOLD, "families.tokens")


@pytest.fixture(scope="module")
def place(told, tmp_path_factory) -> Path:
    """raw/NAME and prepared/NAME of each set."""
    folder = tmp_path_factory.mktemp("tokens")
    for name in MADE:
        for layer in ("raw", "prepared"):
            (folder / layer / name).mkdir(parents=True)
        acquire.make(made(name), folder / "raw" / name)
        prepare.write(
            folder / "raw" / name, folder / "prepared" / name, made(name), told.splits[name]
        )
    return folder


def trained(place: Path, name: str, kept: Path, steps: int = 20):
    data = Sets.open(place / "prepared" / name)
    seeds.everything(0)
    model = build(MODELS[name], {"width": 16, "feed": 16}, data.dimensions)
    settings = loop.Settings(
        steps, BUDGET["validate_every"], 9, 0.005, 4.0, 0, slices=8, schedule="cosine"
    )
    return model, loop.train(model, data, settings, Checkpoints(kept))


# --- data


@each
def test_a_set_is_the_same_bits_when_it_is_made_again(name, place, tmp_path):
    acquire.make(made(name), tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (place / "raw" / name / file.name).read_bytes()
    acquire.make(made(name, seed=1), tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() != (place / "raw" / name / file.name).read_bytes()


def test_a_pair_is_one_sequence_of_its_words_with_a_separator(place):
    folder = place / "prepared/pairs"
    inputs, targets = np.load(folder / INPUTS), np.load(folder / TARGETS)
    about = files.read_json(folder / ABOUT)
    table = glue.read(place / "raw/pairs" / PAIRS, glue.FORMATS["pairs"])
    texts = [" ".join(about["words"][number] for number in row if number) for row in inputs]
    raw = [" <sep> ".join(one) for one in table.sentences]
    rows = [*zip(texts, targets.tolist(), strict=True)]
    assert sorted(rows) == sorted(zip(raw, table.labels, strict=True)), "no row is left out"


def test_shapes_are_standardised_by_what_trains(place):
    folder = place / "prepared/shapes"
    inputs = np.load(folder / INPUTS)
    assert inputs[:200].mean() == pytest.approx(0, abs=1e-5)
    assert inputs[:200].std() == pytest.approx(1, abs=1e-5)
    assert np.load(folder / KINDS).max() == 4


def test_a_damaged_raw_array_is_refused_by_name(place, told, tmp_path):
    with np.load(place / "raw/shapes" / ROWS) as found:
        arrays = dict(found)
    arrays["answers"][7, 3] = np.nan
    np.savez(tmp_path / ROWS, **arrays)
    with pytest.raises(DataError, match=r"answers[\s\S]*400 rows of finite numbers"):
        prepare.write(tmp_path, tmp_path, made("shapes"), told.splits["shapes"])


def test_a_picture_that_belies_its_statements_is_refused(place, told, tmp_path):
    with np.load(place / "raw/pictures" / ROWS) as found:
        sequences = found["sequences"]
    sequences[:, -9:] = np.roll(sequences[:, -9:], 1, 0)
    np.savez(tmp_path / ROWS, sequences=sequences)
    with pytest.raises(DataError, match="does not meet its statements"):
        prepare.write(tmp_path, tmp_path, made("pictures"), told.splits["pictures"])


def test_a_set_that_says_too_much_or_too_little_is_told():
    with pytest.raises(ParamsError, match="pairs needs nouns and fillers; given: nouns"):
        made("pairs", fillers=None)
    with pytest.raises(ParamsError, match=r"splits: x is missing.*training: x is missing"):
        checked(Tokens, {"datasets": ("x",)}, "families.tokens")


def test_of_every_fifth_row_the_others_neither_train_nor_test(place, tmp_path):
    few = Split(train=200, val=60, every=5)
    prepare.write(place / "raw/shapes", tmp_path, made("shapes"), few)
    whole = place / "prepared/shapes"
    answers, split = np.load(whole / TARGETS), np.load(tmp_path / SPLIT)
    assert (split == 0).sum() == 40 and len(split) == 240
    expected = np.concatenate((answers[:200:5], answers[200:]))
    np.testing.assert_array_equal(np.load(tmp_path / TARGETS), expected)
    inputs = np.load(tmp_path / INPUTS)
    assert inputs[split == 0].mean() == pytest.approx(0, abs=1e-5), "standardised by what trains"


@each
def test_the_gate_sees_splits_and_classes(name, place):
    raw = place / "raw" / name
    files.write_json(raw / "manifest.json", {"files": {}})
    found, _ = validate.gather(raw, place / "prepared" / name, {})
    (raw / "manifest.json").unlink()
    assert {row["part"]: row["rows"] for row in found["parts"].rows}["train"] in range(200, 210)
    (row,) = found["set"].rows
    assert 0 <= row["dropped"] < 1 and row["largest"] < 0.9


# --- training


@each
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(name, place, tmp_path):
    whole, _ = trained(place, name, tmp_path / "whole")
    model, _ = trained(place, name, tmp_path / "pieces")
    again = Checkpoints(tmp_path / "pieces")
    assert again.folder.exists()
    resumed, history = trained(place, name, tmp_path / "pieces")
    assert history["steps"] == 20
    for key, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[key]) and torch.equal(
            value, model.state_dict()[key]
        )


def test_the_next_token_counts_in_the_picture_alone(place):
    data = Sets.open(place / "prepared/pictures")
    batch = data.batch([0, 1])
    assert batch.counted.sum(1).tolist() == [9, 9]
    said = data.about["said"]
    torch.testing.assert_close(batch.targets[batch.counted].view(2, 9), data.inputs[:2, said:])
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])


def test_hypermixing_learns_pairs_that_feature_mixing_does_not(tmp_path):
    """Without fillers, in 400 steps: a small proof that the task needs token mixing."""
    (tmp_path / "raw").mkdir(), (tmp_path / "prepared").mkdir()
    one = made("pairs", rows=6000, fillers=0)
    acquire.make(one, tmp_path / "raw")
    split = Split(train=4000, val=500)
    prepare.write(tmp_path / "raw", tmp_path / "prepared", one, split)
    data, losses = Sets.open(tmp_path / "prepared"), {}
    for name, given in (("hypermixing", {"hidden": 64}), ("unmixed", {})):
        seeds.everything(0)
        model = build(name, {"width": 32, "feed": 64, "layout": "post_norm", **given},
                      data.dimensions)  # fmt: skip
        settings = loop.Settings(400, 100, 9, 0.006, 4.0, 0, slices=32, schedule="cosine")
        losses[name] = loop.train(model, data, settings, Checkpoints(tmp_path / name))["best_loss"]
    assert losses["hypermixing"] < 0.5 < 0.65 < losses["unmixed"], losses  # quantifiers: ln 2


# --- evaluation, tables, claims


@pytest.fixture(scope="module")
def evaluated(place, told, tmp_path_factory) -> Path:
    """evaluated/NAME of a trained cell each."""
    home = tmp_path_factory.mktemp("evaluated") / "reports/token_mixing/mini"
    for name, model in MODELS.items():
        run = home / f"runs/{name}/{model}-post_norm-none-s0"
        run.mkdir(parents=True)
        network, history = trained(place, name, home / "kept" / name)
        sets = Sets.open(place / "prepared" / name)
        metadata = {"model": model, "arm": "post_norm", "size": "none", "seed": 0,
                    "arguments": {"width": 16, "feed": 16}, **sets.dimensions}  # fmt: skip
        (run / shell.WEIGHTS).write_bytes(store.dump(network, metadata))
        files.write_json(run / "history.json", history)
        data = measure.Data.open(place / "prepared" / name, made(name), told, 0, "cpu")
        found = measure.companions(data) | {run.name: measure.network(run, data, 1)}
        assert measure.network(run, data, 1).entry == found[run.name].entry
        measure.write(found, data, home / "evaluated" / name)
    return home / "evaluated"


def content_of(evaluated: Path) -> dict:
    cells, about = {}, {}
    for name in MADE:
        told = files.read_json(evaluated / name / "metrics.json")
        cells |= {f"{name}/{cell}": entry for cell, entry in told["cells"].items()}
        about[name] = told["about"]
    counted = {"costs": costs.curves(), "crossings": costs.crossings()}
    return {"cells": cells, "arms": over_seeds(cells), "about": about} | counted


def test_companions_are_what_they_say(evaluated):
    content = content_of(evaluated)
    metrics = {name: one["metrics"] for name, one in content["arms"].items()}
    assert 0.4 < metrics["pairs/majority"]["accuracy"]["mean"] < 0.6
    assert metrics["shapes/mean"]["mse"]["mean"] == pytest.approx(29, rel=0.2)
    assert metrics["pictures/true"]["satisfied"]["mean"] == 1
    assert metrics["pictures/true"]["satisfied_other"]["mean"] < 0.5


def test_tables_have_a_row_for_each_and_figures_are_drawn(evaluated, tmp_path):
    content = content_of(evaluated)
    for name in MADE:
        table = tables.results(content, name, {})
        assert len(table.rows) == 2 and {len(row) for row in table.rows} == {len(table.titles)}
        assert "nan" not in " ".join(map(" ".join, table.rows)).lower()
        assert tables.sentence(content["about"][name])
    assert len(tables.costs(content).rows) == len(content["costs"])
    figures.draw(evaluated, tmp_path, content)
    assert {file.name for file in tmp_path.iterdir()} == {
        "cost.png", "shapes-maps.png", "pictures-gallery.png",
    }  # fmt: skip


def test_the_partners_share_is_one_of_what_looks_at_its_kind_alone_and_a_third_by_chance():
    kinds = np.zeros((1, 100), dtype=int)
    for shape in range(1, 5):
        kinds[0, 20 * shape : 20 * shape + 5 + shape] = shape
    even = np.ones((1, 100, 100))
    assert measure.partners(even, kinds) == pytest.approx([1 / 3])
    same = (kinds[0][:, None] + 1) // 2 == (kinds[0] + 1) // 2
    assert measure.partners(same[None] * even, kinds) == pytest.approx([1])


@pytest.mark.parametrize(("tied", "verdict"), [(0.955, "fails"), (0.8, "undecided")])
def test_claims_are_decided_from_seeds_and_fail_only_by_what_has_learned(tied, verdict, tmp_path):
    home = tmp_path / "reports/token_mixing/mini"

    def one(value):
        return {"value": value, "low": value - 0.01, "high": value + 0.01, "n": 900, "unit": "1"}

    def cells(levels: dict, *metrics: str) -> dict:
        return {
            f"{name}-w-s{seed}": {"metrics": {metric: one((1 + 0.002 * seed) * level)
                                              for metric in metrics}}
            for name, level in levels.items() for seed in (0, 1, 2)
        }  # fmt: skip

    accuracy = {"hypermixing-tied": tied, "hypermixing-untied": 0.8, "hypermixing-token_only": 0.5,
                "hypermixing-rezero_none": 0.5, "hypermixing-rezero_layer": 0.94,
                "self_attention-post_norm": 0.95, "self_attention-rezero": 0.94,
                "mlp_mixer-post_norm": 0.6, "weight_vector-post_norm": 0.98,
                "unmixed-post_norm": 0.5}  # fmt: skip
    error = {"hypermixing-tied": 0.2, "self_attention-post_norm": 0.3, "mlp_mixer-post_norm": 1.0,
             "unmixed-post_norm": 6.0}  # fmt: skip
    drawn = cells({"self_attention-pre_norm": 0.8}, "satisfied")
    for entry in drawn.values():
        entry["metrics"]["satisfied_other"] = one(0.2)
    shaped = cells(error, "mse")
    alike = {"hypermixing": tied, "mlp_mixer": 0.9}
    for name, entry in shaped.items():
        if (value := alike.get(name.partition("-")[0])) is not None:
            entry["metrics"]["likeness"] = one(value)
    found = {"label": cells(accuracy, "accuracy"), "value": shaped, "next": drawn}
    for task, told in found.items():
        about = {"task": task, "made": {"task": KINDS_OF[task]}, "every": 1, "rows": {"train": 9}}
        counted = {"costs": costs.curves(), "crossings": costs.crossings()}
        about |= counted if task == "label" else {}
        (home / "evaluated" / task).mkdir(parents=True)
        text = json.dumps({"cells": told, "about": about})
        (home / "evaluated" / task / "metrics.json").write_text(text)
    entries = {entry["id"]: entry for entry in claims.check(home)}
    assert {*entries} == {f"H-{number}" for number in range(1, 11)}
    verdicts = {name: entry["verdict"] for name, entry in entries.items()}
    assert verdicts["H-7"] == verdict, "the shared vector is enough here, or HyperMixer untrained"
    assert ("untrained" in entries["H-7"]["why"]) == (verdict == "undecided")
    assert verdicts["H-9"] == verdicts["H-10"] == "holds"
    assert {verdicts[name] for name in ("H-1", "H-2", "H-4", "H-5", "H-8")} == {"undecided"}
    parts = entries["H-8"]["compared"]
    assert [one["verdict"] for one in parts.values()][:3] == ["holds"] * 3
    assert entries["H-3"]["compared"]["linear"]["value"] <= 1.001
    assert verdicts["H-3"] == "fails" and "from N = 385 on" in entries["H-3"]["why"]
    assert verdicts["H-6"] == ("holds" if tied > 0.9 else "fails"), "by the likeness of the maps"


# --- the command line


@pytest.mark.parametrize(
    ("main", "names", "told"),
    [
        (acquire.main, ["mini", "shape"], "did you mean 'shapes'"),
        (prepare.main, ["mini", "poisson"], "unknown set of tokens"),
        (validate.main, ["mini", "pictur"], "unknown set of tokens"),
        (train.main, ["token_mixing", "mini", "shapes", "hypermix"], "did you mean 'hypermixing'"),
        (train.main, ["token_mixing", "mini", "shapes", "fnet", "--arm", "x"], "unknown arm"),
        (evaluate.main, ["token_mixing", "sample", "pictures"], "unknown set of tokens"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_is_told_before_any_work(main, names, told, monkeypatch, capsys):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(names) == 2
    assert re.search(told, capsys.readouterr().err)


@pytest.mark.parametrize("profile", ["mini", "sample", "full"])
def test_every_split_of_a_profile_leaves_rows_to_test(profile):
    parameters = params.load()
    asked = tokens_of(parameters, profile)
    made = {name: made_of(parameters, name) for name in asked.datasets}
    left = {
        name: one.rows - asked.splits[name].train - asked.splits[name].val
        for name, one in made.items() if one
    }  # fmt: skip
    assert left and min(left.values()) >= 100, left
    assert all((made[name] is None) == (asked.splits[name].text is not None) for name in made)
