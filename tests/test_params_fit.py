"""Parts of params.yaml that must fit each other: names, sequences, figures; and parts in files of
their own."""

import json
from pathlib import Path
from typing import Annotated

import pytest
from params_changed import TRUE, changed, load, refused
from pydantic import Field

from stages import params
from stages.errors import ParamsError

BUDGET = {"steps": 9, "validate_every": 3, "patience": 3, "batch": 4, "learning_rate": 1e-3}
CELL = {"dataset": "product", "model": "sigma_gpt", "arm": "random", "size": "tiny", "seed": 0}
CELLS = {"orders": {"mini": {"cells": {"mini-product-sigma_gpt-random-tiny-s0": CELL}}}}
FIELD = {"dataset": "copies", "model": "kernel"}
FIELDS = {"copying": {"mini": {"plain": {"mini-copies-kernel": FIELD}}}}


def test_names_that_do_not_meet_are_listed_at_once(tmp_path):
    text = (
        changed("size: 5k, seed: 0}", "size: 6k, seed: 0}")
        .replace("    wind: [simulated] ", "    wind: [simulated, simulated] ", 1)
        .replace("width: 32", "width: 33")
    )
    message = refused(tmp_path, text)
    assert all(
        words in message
        for words in ("no size '6k'", "mini.wind: 'simulated' stands", "100k.width is 33")
    )


def test_what_msa_takes_is_what_the_model_says():
    from stages.fields import models as fields
    from stages.params import checks

    msa = fields.model_class("msa")
    assert {key: set(words) for key, words in checks.MSA_WORDS.items()} == {
        key: set(msa.words[key]) for key in ("encoder", "head", "block")
    }
    assert {key: fields.LIMITS[key] for key in checks.MSA_COUNTS} == checks.MSA_COUNTS


# --- the parts that have files of their own


def parted(tmp_path, **files: str) -> params.Params:
    """The example, its models, its protocol and mini's training budget moved into files of their
    own (or others in their place)."""
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    parts = {f"models/{name}.yaml": one for name, one in whole.pop("models").items()}
    parts["protocol.yaml"] = {key: whole.pop(key) for key in ("training", "contexts")}
    parts["budgets/mini/winds.yaml"] = {
        key: whole["profiles"]["mini"].pop(key) for key in ("training", "evaluation")
    }
    for name, content in parts.items():
        place = tmp_path / "stages/params" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            files.get(name.replace("/", "_").removesuffix(".yaml"), json.dumps(content)),
            encoding="utf-8",
        )
    whole.pop("run")
    (tmp_path / "params.yaml").write_text(
        json.dumps(whole)[:-1] + ', "run": ' + json.dumps(whole["profiles"]["mini"]) + "}",
        encoding="utf-8",
    )
    return params.load(tmp_path / "params.yaml")


def test_parts_in_files_of_their_own_make_the_same_parameters(tmp_path):
    assert parted(tmp_path) == load(tmp_path / "stages", TRUE)


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("protocol", '{"decode": {}}', "parameters stand twice"),
        ("budgets_mini_winds", '{"profile": "mini"}', "profile, also in"),
        ("budgets_mini_winds", "[1]", "these parameters are no mapping"),
        ("models_msa", "arms: [", "the file is not plain YAML"),
        ("models_msa", "{}", "models.msa.arms"),
        ("protocol", '{"trainign": 1}', "trainign"),
    ],
)
def test_a_part_that_is_no_part_is_told_with_its_file_or_key(tmp_path, file, text, told):
    with pytest.raises(ParamsError) as caught:
        parted(tmp_path, **{file: text})
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("protocol", "learning_rate", "learning_rat", "training.learning_rat: "),
        ("protocol", '"seed": 0', '"seed": -1', "training.seed: "),
        ("budgets_mini_winds", '"bootstrap": ', '"bootstrap": -', "evaluation.bootstrap: "),
        ("models_knn", "", '{"arms": {"plain": {"neighbours": [-1, 2]}}}', "of at least 1"),
        ("models_knn", "", '{"arms": {"plain": {"neighbour": [2]}}}', "did you mean 'neighbours'"),
        ("models_kernel", "", '{"arms": {"plain": {"width": -3}}}', "at least 0, not -3"),
    ],
)
def test_a_mistake_is_told_once_and_with_the_file_that_holds_it(tmp_path, file, old, new, told):
    parted(tmp_path)
    place = tmp_path / "stages/params" / f"{'/'.join(file.split('_', 2))}.yaml"
    text = place.read_text(encoding="utf-8") if place.exists() else ""
    assert old in text
    place.write_text(text.replace(old, new, 1) if old else new, encoding="utf-8")
    with pytest.raises(ParamsError) as caught:
        params.load(tmp_path / "params.yaml")
    assert told in caught.value.found and caught.value.where == str(place)


@pytest.mark.parametrize("part", ["wind", "datasets"])
def test_of_one_wrong_name_one_line_is_told(tmp_path, part):
    line = f"    {part}: [simulated"
    message = refused(tmp_path, changed(line, line.replace("simulated", "simulatd")))
    assert message.startswith("1 problem(s)") and "did you mean 'simulated'" in message


def test_a_key_twice_is_told_without_a_way_around_the_check(tmp_path):
    message = refused(tmp_path, changed("\nprofiles:", "\nrun: 1\nrun: 2\nprofiles:"))
    assert "duplicate key" in message and "suppress" not in message


def test_a_file_where_no_parameters_belong_is_refused(tmp_path):
    parted(tmp_path)
    stray = tmp_path / "stages/params/budgets/mini.yaml"
    stray.write_text("training: {steps: 1}")
    with pytest.raises(ParamsError) as caught:
        params.load(tmp_path / "params.yaml")
    assert "no parameters belong here" in str(caught.value) and str(stray) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("params.yaml", ""),
        ("stages/params/protocol.yaml", ""),
        ("stages/params/budgets/mini.yaml", None),
        ("stages/params/models/msa.yaml", "models.msa"),
        ("stages/params/budgets/mini/winds.yaml", "profiles.mini"),
        ("stages/params/datasets/sets.yaml", "datasets"),
        ("stages/params/families/mini/toys.yaml", "profiles.mini.families.toys"),
        ("stages/params/families/toys.yaml", None),
        ("stages/params/models/msa.py", None),
        ("stages/params/other/msa.yaml", None),
        ("reports/models/msa.yaml", None),
        ("reports/chaos/cells.yaml", "cells.chaos"),
        ("reports/chaos/mini/cells.yaml", None),
    ],
)
def test_a_part_knows_its_place_in_the_whole(file, expected):
    assert params.prefix(file) == expected


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sequences": ["laws"]}, "sequences: 'laws' is unknown"),
        ({"sequences": ["simulated"]}, "enters as frames, not as sequences"),
        ({"readings": {}}, "readings: 'product' is missing"),
        ({"acquired": ["product"]}, "acquired: 'product' is not among its datasets"),
        (
            {"learning_orders": {"step": BUDGET}},
            "learning_orders: 'step' is not in its `sequences`",
        ),
        ({"learning_orders": {}}, "learning_orders: 'product' is missing"),
        ({"sequences": []}, "'product' is not a data set of the profile"),
        ({"orders": None}, "orders: missing, but there are cells to evaluate"),
    ],
)
def test_sequences_that_do_not_fit_are_told(tmp_path, change, told):
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    whole["datasets"]["product"] = {
        "entry": "sequences",
        "kind": "sequences",
        "sequences": {"kind": "product", "seed": 0, "train": 9, "val": 9, "test": 9},
    }
    whole["models"]["sigma_gpt"] = {
        "arms": {"random": {"order": "random"}},
        "sizes": {"tiny": {"width": 16}},
    }
    mini = whole["profiles"]["mini"]
    mini |= {
        "sequences": ["product"],
        "readings": {"product": {"reader": "laws", "seed": 0}},
        "learning_orders": {"product": BUDGET},
        "orders": {"samples": 9},
    }
    whole["run"] = mini
    whole["cells"] |= CELLS
    assert load(tmp_path, json.dumps(whole)).trained("orders", "mini").of("product")
    assert told in refused(
        tmp_path, json.dumps(whole | {"profiles": whole["profiles"] | {"mini": mini | change}})
    )


@pytest.mark.parametrize(("dataset", "at"), [("poisson_rooms", 3), ("hour_sets", 2)])
def test_cells_of_figure_c7_differ_in_their_learning_rate_alone(dataset, at):
    """Else the rate would not be what its panels by rate show; a size is learned at every rate,
    and GeoFNO's sizes are those of the other data set."""
    whole = params.load()
    trained, tried = whole.trained("sensitivity", "sample"), {}
    for cell in trained.of(dataset).values():
        own = dict(cell.training)
        tried.setdefault(own.pop("learning_rate"), {})[cell.model, cell.size] = (
            whole.models[cell.model].arms[cell.arm],
            cell.seed,
            own,
        )
        budget = whole.profiles["sample"].learning[dataset].model_dump()
        assert not any(own[name] == budget[name] for name in own)
    first, *others = tried.values()
    assert len(tried) == at and all(other == first for other in others)
    assert len({tuple(own.items()) for *_, own in first.values()}) == 1
    assert len(first) == {"poisson_rooms": 12, "hour_sets": 4}[dataset]
    assert len(trained.of(dataset)) == at * len(first)
    assert {size for model, size in first if model == "geofno"} == {
        cell.size for cell in trained.cells.values() if cell.model == "geofno"
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"problems": ["gusts"]}, "learning: 'copies' is not in its `problems`"),
        ({"problems": ["copies", "copies"]}, "problems: 'copies' stands there 2 times"),
        (
            {"learning": {"copies": BUDGET | {"targets": 10}}},
            "learning.copies.targets: more than the 9 of a set",
        ),
        ({"learning": {}}, "learning: 'copies' is missing"),
    ],
)
def test_problems_that_do_not_fit_are_told(tmp_path, change, told):
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    whole["datasets"]["copies"] = {
        "entry": "sets",
        "kind": "sines",
        "sines": {"seed": 0, "frequency": None, "points": 9, "train": 9, "val": 9, "test": 9},
    }
    mini = whole["profiles"]["mini"]
    mini |= {
        "problems": ["copies"],
        "sets": {"copies": {"reader": "sines", "seed": 0, "context": 9, "targets": 9}},
        "learning": {"copies": BUDGET},
    }
    whole["run"] = mini
    whole["cells"] |= FIELDS
    assert load(tmp_path, json.dumps(whole)).trained("copying", "mini").of("copies")
    assert told in refused(
        tmp_path, json.dumps(whole | {"profiles": whole["profiles"] | {"mini": mini | change}})
    )


# --- families that bring a schema of their own


class Shelf(params.Section):
    """What the toys of these tests may say."""

    datasets: tuple[params.Name, ...]
    dolls: Annotated[int, Field(gt=0)]


def toys(tmp_path, mini=(), dolls=(), part=None) -> str:
    """The example with a family `toys` of one set, as JSON; what it affords in a file of its own;
    `mini` and `dolls` change the profile's part and the set."""
    whole = params.read_yaml(Path(__file__).with_name("params_example.yaml"))
    made = {"entry": "toys", "kind": "made", "made": {"seed": 3, "heads": [1, 2]}}
    whole["datasets"]["dolls"] = made | dict(dolls)
    whole["profiles"]["mini"]["families"] = {"toys": {"datasets": ["dolls"]} | dict(mini)}
    whole["run"] = whole["profiles"]["mini"]
    place = tmp_path / "stages/params/families/mini/toys.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"dolls": 2} if part is None else part))
    return json.dumps(whole)


def test_a_family_reads_its_part_of_a_profile_by_its_own_schema(tmp_path):
    told = load(tmp_path, toys(tmp_path))
    assert told.family("mini", "toys", Shelf) == Shelf(datasets=("dolls",), dolls=2)
    plan = told.datasets["dolls"].plan
    assert plan.model_dump() == {"seed": 3, "heads": (1, 2)}
    assert "made" not in told.datasets["simulated"].model_dump(), "a record would tell it"


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"dolls": 0}, "dolls: Input should be greater than 0 (found 0)"),
        ({"dolls": 1, "dollls": 1}, "did you mean 'dolls'"),
        ({}, "dolls: Field required"),
        ({"dolls": "2"}, "dolls: Input should be a valid integer (found '2')"),
    ],
)
def test_what_a_family_does_not_take_is_told_with_its_place(tmp_path, part, problem):
    told = load(tmp_path, toys(tmp_path, part=part))
    with pytest.raises(ParamsError) as caught:
        told.family("mini", "toys", Shelf)
    assert problem in str(caught.value) and "profiles.mini.families.toys" in str(caught.value)
    with pytest.raises(ParamsError, match="dolls: Field required"):
        told.family("mini", "trains", Shelf)


@pytest.mark.parametrize(
    ("mini", "dolls", "problem"),
    [
        ({"datasets": ["doll"]}, {}, "mini.families.toys.datasets: 'doll' is unknown; did you"),
        ({"datasets": ["simulated"]}, {}, "'simulated' enters as frames, not as toys"),
        ({"datasets": ["dolls"] * 2}, {}, "toys.datasets: a data set stands there twice"),
        ({}, {"entry": "toy"}, "datasets.dolls.entry is 'toy', not 'frames', 'states', 'winds'"),
        ({}, {"made": None}, "kind made needs the section `made`"),
        ({}, {"made": {"heads": 1}}, "datasets.dolls.made.seed: Field required"),
        ({"dolls": 1}, {}, "parameters stand twice"),
    ],
)
def test_families_that_do_not_fit_are_told(tmp_path, mini, dolls, problem):
    assert problem in refused(tmp_path, toys(tmp_path, mini, dolls))


def test_a_section_misspelt_is_told_before_what_lacks_beneath_its_name(tmp_path):
    told = refused(tmp_path, changed("\nprofiles:", "\nprofils:")).splitlines()
    first = next(place for place, line in enumerate(told) if line.strip() == "found:") + 1
    assert told[first].strip().startswith("profils: ") and "did you mean 'profiles'" in told[first]
    assert "Field required" in told[first + 1]
