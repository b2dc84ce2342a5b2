"""What leaves the project is judged by the standards' own validators: Croissant by mlcroissant,
RO-Crate by roc-validator, CITATION.cff by its schema.

They judge what is made of this repository's own commit. The validators stand in the extra
`standards`; roc-validator looks its context up on the network, so it is handed the official one
that the package rocrate brings (version 1.3, with 1.1's addresses for workflows).
"""

import csv
import json
import os
import tomllib
from pathlib import Path

import pytest

from stages import exports
from stages.errors import DataError, InputError
from stages.exports import bundle, citation, crate, croissant, model_card
from stages.exports.columns import TABLES
from stages.exports.tree import Tree, of_commit

HOME = Path(__file__).parents[2]
MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
CELL = "wind_nowcast/mini/simulated/msa-shared-20k-s0"


@pytest.fixture(scope="module")
def tree():
    """The repository's own commit."""
    return of_commit(HOME)


@pytest.fixture(scope="module")
def about(tree):
    return tomllib.loads(tree.files["pyproject.toml"].decode())["project"]


@pytest.fixture(scope="module")
def small(tree):
    """The same commit with the records of one chain only: what a validator of graphs can read in
    a second."""
    kept = [
        path
        for path in tree.modes
        if "/records/" not in path
        or path.startswith("data/mini/records/simulated.")
        or path
        in (
            f"reports/wind_nowcast/mini/records/{name}.json"
            for name in ("simulated.msa-shared-20k-s0.train", "simulated.evaluate", "tabulate")
        )
    ]
    kept = [
        path
        for path in kept
        if not path.startswith(
            (
                "tests/",
                "stages/",
                "data/published/",
                "flows/",
                "reports/any",
                "reports/spa",
                "reports/nei",
            )
        )
        or path.endswith(("dvc.yaml", "metrics.json", "__main__.py"))
    ]
    return Tree(
        {path: tree.files[path] for path in kept},
        {path: tree.modes[path] for path in kept},
        tree.commit,
    )


def test_every_raw_set_is_valid_croissant_with_the_hashes_of_its_record(tree, tmp_path):
    mlcroissant = pytest.importorskip(
        "mlcroissant", reason="mlcroissant is not installed: see the extra `standards`"
    )
    described = dict(croissant.every(tree))
    assert {
        "mini/simulated",
        "mini/poisson",
        "sample/hour_winds",
        "sample/climbs_real",
    } <= described.keys()
    assert len(described) == len([node for node in tree.nodes if node.stage == "acquire"])
    for name, content in described.items():
        file = tmp_path / f"{name.replace('/', '-')}.json"
        file.write_text(json.dumps(content))
        if (
            len(content["distribution"]) > 60
        ):  # 240 files alike take the validator seconds: the first say as much
            file.write_text(json.dumps(content | {"distribution": content["distribution"][:10]}))
        issues = mlcroissant.Dataset(str(file)).metadata.issues
        assert (list(issues.errors), list(issues.warnings)) == ([], []), name
        recorded = tree.homes[f"data/{name.replace('/', '/raw/')}"].record["outputs"]
        assert {
            f"data/{name.replace('/', '/raw/')}/{one['@id']}": one["sha256"]
            for one in content["distribution"]
        } == {path: told["sha256"] for path, told in recorded.items()}


def test_the_validator_refuses_a_set_whose_file_has_no_hash_or_whose_column_no_file(tree, tmp_path):
    mlcroissant = pytest.importorskip(
        "mlcroissant", reason="mlcroissant is not installed: see the extra `standards`"
    )
    for spoil in (
        lambda told: told["distribution"][0].pop("sha256"),
        lambda told: told["recordSet"][0]["field"][0]["source"].update(fileObject={"@id": "gone"}),
    ):
        content = json.loads(json.dumps(dict(croissant.every(tree))["mini/gp_wind"]))
        spoil(content)
        (tmp_path / "x.json").write_text(json.dumps(content))
        with pytest.raises(mlcroissant.ValidationError):
            assert not list(mlcroissant.Dataset(str(tmp_path / "x.json")).metadata.issues.warnings)


def test_pinned_sets_name_their_source_and_licence_simulated_ones_seed_and_code(tree):
    described = dict(croissant.every(tree))
    wind, made = described["sample/hour_winds"], described["mini/simulated"]
    assert (
        wind["license"] == ["https://spdx.org/licenses/GPL-3.0-only"]
        and wind["creator"][0]["name"] == "junzis/meteo-particle-model"
    )
    assert all(
        one["contentUrl"].startswith("https://raw.githubusercontent.com/")
        for one in wind["distribution"]
        if one["@id"] != "manifest.json"
    )
    assert (
        "m/s, blowing towards" in wind["description"]
        and "seed 20260" in made["description"]
        and made["license"] == ["https://spdx.org/licenses/MIT"]
    )
    record = tree.homes["data/mini/raw/simulated"].record
    assert (
        record["code"]["digest"] in made["description"] and tree.commit.name in made["description"]
    )


@pytest.mark.skipif(
    not MIRROR, reason="TRADEWIND_MIRROR is not set: the real files' headers cannot be read"
)
def test_the_columns_told_are_those_of_the_real_files():
    found = {file.name: file for file in Path(MIRROR).rglob("*.csv") if file.name in TABLES}
    assert len(found) == 5
    for name, file in found.items():
        with file.open(encoding="utf-8", newline="") as stream:
            assert next(csv.reader(stream)) == [column for column, _, _ in TABLES[name]], name


def test_croissant_files_are_written_for_the_sets_asked_for(tmp_path):
    (file,) = exports.write_croissant(tmp_path, HOME, ("mini/gp_wind",))
    assert (
        file == tmp_path / "mini/gp_wind.json"
        and json.loads(file.read_text())["name"] == "tradewind-mini-gp-wind"
    )
    with pytest.raises(InputError, match="did you mean 'mini/gp_wind'"):
        exports.write_croissant(tmp_path, HOME, ("mini/gp_winds",))


def validated(content, folder, monkeypatch, level="REQUIRED"):
    """roc-validator's issues with a crate by the profile of workflow runs."""
    validator = pytest.importorskip(
        "rocrate_validator", reason="roc-validator is not installed: CONTRIBUTING says how"
    )
    pytest.importorskip("rocrate", reason="rocrate is not installed: see the extra `standards`")
    from importlib.resources import files

    from rocrate_validator import services
    from rocrate_validator.utils import http

    context = json.loads((files("rocrate") / "data/ro-crate.jsonld").read_text())
    bioschemas = "https://bioschemas.org/"
    context["@context"] |= {
        "ComputationalWorkflow": f"{bioschemas}ComputationalWorkflow",
        "FormalParameter": f"{bioschemas}FormalParameter",
        "input": f"{bioschemas}ComputationalWorkflow#input",
        "output": f"{bioschemas}ComputationalWorkflow#output",
    }

    class Answer:
        status_code, headers, text, url, ok = (
            200,
            {"Content-Type": "application/ld+json"},
            json.dumps(context),
            "",
            True,
        )
        content = text.encode()

        def json(self):
            return json.loads(self.text)

    def get(self, url, *_, **__):
        if url != "https://w3id.org/ro/crate/1.1/context":
            raise http.OfflineCacheMissError(url)
        return Answer()

    monkeypatch.setattr(http.HttpRequester, "get", get, raising=False)
    assert validator
    (folder / crate.NAME).write_text(json.dumps(content))
    result = services.validate(
        {
            "rocrate_uri": str(folder),
            "profile_identifier": "workflow-run-crate",
            "requirement_severity": level,
            "metadata_only": True,
            "offline": True,
        }
    )
    return sorted({f"{issue.check.identifier}: {issue.message}" for issue in result.get_issues()})


def test_a_releases_crate_is_a_valid_workflow_run_crate(small, about, tmp_path, monkeypatch):
    assert validated(crate.describe(small, about, {}), tmp_path, monkeypatch) == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(
            lambda graph: graph["./"].pop("datePublished"), id="date", marks=pytest.mark.slow_fault
        ),
        pytest.param(
            lambda graph: graph["dvc.yaml"].update({"@type": "File"}),
            id="workflow",
            marks=pytest.mark.slow_fault,
        ),
        pytest.param(lambda graph: graph["#run-mini"].pop("instrument"), id="instrument"),
    ],
)
def test_the_validator_refuses_a_crate_that_lacks_a_part(
    small, about, tmp_path, monkeypatch, spoil
):
    content = crate.describe(small, about, {})
    spoil({entity["@id"]: entity for entity in content["@graph"]})
    assert validated(content, tmp_path, monkeypatch) != []


def test_the_crate_tells_every_record_as_an_action_with_the_recorded_hashes(tree, about):
    entities = {one["@id"]: one for one in crate.describe(tree, about, {})["@graph"]}
    for node in tree.nodes:
        action = entities["#" + node.path.removesuffix(".json")]
        for side, key in (("inputs", "object"), ("outputs", "result")):
            told = {
                entities[one["@id"]]["name"]: entities[one["@id"]].get("sha256")
                for one in action[key]
                if entities[one["@id"]]["@type"] != "PropertyValue"
            }
            assert told == {
                path: tree.sha256.get(path, described["sha256"])
                for path, described in node.record[side].items()
            }, node.path
        assert action["instrument"]["@id"] in entities
    mentioned = {one["@id"] for one in _references(list(entities.values()))}
    assert {name for name in mentioned if not name.startswith("http")} <= entities.keys() and len(
        entities["./"]["hasPart"]
    ) == len(tree.modes)


def _references(value):
    """Every {"@id": ...} that stands alone."""
    if isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_the_citation_is_valid_and_names_whom_the_licence_names(tree, about):
    from ruamel.yaml import YAML

    told = YAML(typ="safe").load(citation.cff(tree, about))
    assert (
        told["authors"] == [{"name": "The Tradewind authors"}]
        and told["commit"] == tree.commit.name
        and told["license"] == "MIT"
    )
    assert citation.authors(tree, {"authors": [{"name": "A. Person"}]}) == ["A. Person"]
    with pytest.raises(DataError, match="nobody is named"):
        citation.authors(Tree({}, {}, tree.commit), {})
    vendored = pytest.importorskip(
        "check_jsonschema.catalog",
        reason="check-jsonschema is not installed: see the extra `standards`",
    )
    import jsonschema
    from check_jsonschema.builtin_schemas import get_builtin_schema

    assert vendored
    schema = get_builtin_schema("vendor.citation-file-format")
    jsonschema.validate(told, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: value for key, value in told.items() if key != "authors"}, schema)


def test_only_what_we_simulate_may_be_passed_on(tree):
    table = [
        line.split(" | ")
        for line in citation.licences(tree).splitlines()
        if line.startswith("| ") and "---" not in line
    ][1:]
    may = {row[0].removeprefix("| "): row[-1] for row in table}
    assert {row[1] for row in table if row[-1].startswith("yes")} == {"MIT"} and may[
        "mini/simulated"
    ].startswith("yes")
    assert all(
        may[name].startswith("no")
        for name in (
            "sample/hour_winds",
            "sample/commb",
            "sample/weather_germany",
            "sample/poisson_rooms",
            "sample/wikitext_2",
        )
    )


def test_a_card_tells_weights_data_numbers_and_how_to_check_them(tree):
    text = exports.card(CELL, HOME)
    _, experiment, profile, dataset, cell = ("", *CELL.split("/"))
    record = json.loads(
        tree.files[f"reports/{experiment}/{profile}/records/{dataset}.{cell}.train.json"]
    )  # the commit's: another processor's run differs
    number = json.loads(tree.files[f"reports/{experiment}/{profile}/metrics.json"])["cells"][
        f"{dataset}/{cell}"
    ]["metrics"]["rmse_component_kn"]
    assert (
        all(
            one["sha256"] in text for side in ("inputs", "outputs") for one in record[side].values()
        )
        and record["code"]["digest"] in text
    )
    assert (
        f"| rmse_component_kn | {number['value']:.6g} | [{number['low']:.6g}, "
        f"{number['high']:.6g}] | {number['n']} | kn |"
    ) in text
    assert (
        f"tradewind audit {CELL}/rmse_component_kn --verify eval" in text
        and "Not for operational use" in text
    )
    with pytest.raises(InputError, match="did you mean"):
        exports.card(CELL.replace("msa-shared", "msa-shred"), HOME)


def ledger(tree, **changes):
    """The commit with one promotion in its ledger."""
    from stages.page.promotions import sha256

    (weights,) = model_card.weights(tree.homes[f"reports/{CELL.replace('mini/', 'mini/runs/')}"])
    entry = {
        "number": 1,
        "previous": "",
        "kind": "promoted",
        "time": "2026-02-01T00:00:00Z",
        "after": weights,
        "before": "",
        "commit": "c" * 40,
        "against": "persistence",
        "raw": "r",
        "rmse_component_kn": {"challenger": 13.9, "against": 17.2},
        "difference_kn": {"value": -3.3, "low": -4.0, "high": -2.5},
        "evaluation": {"slices": 40},
        "drift": {"state": "none"},
        "reasons": ["It is better."],
        "reference": "f",
    } | changes
    entry["digest"] = sha256(json.dumps(entry, sort_keys=True, ensure_ascii=False))
    text = (json.dumps(entry, sort_keys=True, ensure_ascii=False) + "\n").encode()
    return Tree(dict(tree.files) | {model_card.LEDGER: text}, tree.modes, tree.commit)


def test_every_promotion_has_a_card_against_its_predecessor_and_a_broken_ledger_none(tree):
    ((name, text),) = model_card.promoted(ledger(tree))
    assert (
        name.startswith("0001-")
        and "-3.30 kn, 90 % interval [-4.00, -2.50]" in text
        and "Promoted by entry 1" in text
        and "## Training" in text
    )
    ((_, text),) = model_card.promoted(ledger(tree, after="0" * 64))
    assert "tradewind ledger --verify" in text and "## Champion against predecessor" in text
    broken = ledger(tree)
    broken.files[model_card.LEDGER] = broken.files[model_card.LEDGER].replace(b"13.9", b"12.9")
    with pytest.raises(DataError, match="ledger is broken"):
        list(model_card.promoted(broken))


def test_all_that_is_made_of_a_commit_is_the_same_twice(tree):
    assert bundle.derived(tree) == bundle.derived(of_commit(HOME))
