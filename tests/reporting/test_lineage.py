"""The lineage shows every stage from raw bytes to the table, with the digests its records hold,
as well-formed SVG."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
import results_project
from markupsafe import Markup
from results_project import EXPERIMENT, PROFILE, digest

from stages import records
from stages.errors import DataError
from stages.files import read_json, write_json
from stages.page import chains as page_chains
from stages.page.blocks import Part
from stages.page.lineage import lineage, steps
from stages.page.result import Result

STAGES = ("acquire", "decode", "validate", "prepare", "train", "evaluate", "tabulate")
CELLS = ("knn", "msa-shared-20k-s0", "msa-shared-20k-s1")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Records of one data set, and of another whose name begins alike."""
    monkeypatch.chdir(tmp_path)
    results_project.all_records("simulated", CELLS)
    results_project.all_records("simulated_2", CELLS[:1])


def svg(dataset: str = "simulated") -> ET.Element:
    return ET.fromstring(lineage(EXPERIMENT, PROFILE, dataset))


def texts(root: ET.Element, kind: str | None = None) -> list[str]:
    return [node.text for node in root.iter("text") if kind is None or node.get("class") == kind]


def test_every_stage_is_a_box_in_order_and_arrows_join_them():
    root = svg()
    assert [text for text in texts(root) if text in STAGES] == list(STAGES)
    assert texts(root, "title") == [
        "raw",
        "decoded",
        "gate",
        "prepared",
        "trained",
        "evaluated",
        "tables",
    ]
    assert len(list(root.iter("rect"))) == 7 and len(list(root.iter("path"))) == 6


def test_boxes_lie_inside_the_picture_and_apart():
    root = svg()
    width, height = map(float, root.get("viewBox").split()[2:])
    spans = [
        (float(rect.get("x")), float(rect.get("x")) + float(rect.get("width")))
        for rect in root.iter("rect")
    ]
    assert spans[0][0] >= 0 and spans[-1][1] <= width
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(spans))
    assert all(
        0 < float(text.get("y")) < height and 0 < float(text.get("x")) < width
        for text in root.iter("text")
    )


def test_every_stage_tells_its_code_and_what_it_made():
    found = texts(svg())
    for stage in STAGES:
        assert f"code {digest(stage, 'code')[:10]}" in found, stage
    for stage in STAGES[:4] + STAGES[5:6]:
        assert f"rows.parquet {digest(stage, 'simulated', 'out')[:8]}" in found, stage
    assert f"rows.parquet {digest('tabulate', '', 'out')[:8]}" in found
    assert found.count("2 files, 3.5 MB") == 6


def test_the_cells_counted_are_those_of_the_data_set():
    assert ("3 cells" in texts(svg())) and ("1 cells" in texts(svg("simulated_2")))


def test_a_changed_record_changes_the_picture():
    before = lineage(EXPERIMENT, PROFILE, "simulated")
    results_project.record("decode", "simulated", first="winds.parquet")
    after = lineage(EXPERIMENT, PROFILE, "simulated")
    assert after != before and "winds.parquet" in after
    assert lineage(EXPERIMENT, PROFILE, "simulated") == after


def test_names_are_text_never_markup():
    results_project.all_records('s<i>"&', CELLS)
    results_project.record("acquire", 's<i>"&', first="a<b>&c.csv")
    made = lineage(EXPERIMENT, PROFILE, 's<i>"&')
    root = ET.fromstring(made)
    assert isinstance(made, Markup) and "<i>" not in made and "<b>" not in made
    assert root.get("aria-label") == 'lineage of s<i>"&'
    assert any(text.startswith("a<b>&c.csv ") for text in texts(root))


def test_the_picture_says_what_it_is_and_takes_its_colours_from_the_page():
    root = svg()
    assert (root.get("role"), root.get("aria-label"), root.get("class")) == (
        "img",
        "lineage of simulated",
        "lineage",
    )
    assert not re.search(
        r"#[0-9a-f]{3,6}\b|style=|href=|url\(", lineage(EXPERIMENT, PROFILE, "simulated")
    )


@pytest.mark.parametrize(
    "stage, experiment",
    [("acquire", None), ("validate", None), ("evaluate", EXPERIMENT), ("tabulate", EXPERIMENT)],
)
def test_a_missing_record_is_an_error_that_names_it(stage, experiment):
    path = records.location(
        stage, PROFILE, None if stage == "tabulate" else "simulated", experiment=experiment
    )
    path.unlink()
    with pytest.raises(DataError, match=re.escape(str(path))):
        lineage(EXPERIMENT, PROFILE, "simulated")


def test_a_data_set_without_trained_cells_still_has_its_chain():
    for path in records.location("tabulate", PROFILE, experiment=EXPERIMENT).parent.glob(
        "simulated.*.train.json"
    ):
        path.unlink()
    assert [stage for stage, _, _ in steps(EXPERIMENT, PROFILE, "simulated")] == [
        stage for stage in STAGES if stage != "train"
    ]


def test_a_set_that_is_made_where_it_is_searched_begins_there():
    results_project.record("evaluate", "random_points", experiment=EXPERIMENT)
    assert [stage for stage, _, _ in steps(EXPERIMENT, PROFILE, "random_points")] == [
        "evaluate",
        "tabulate",
    ]


def test_what_was_swept_shows_the_neighbours_it_read_and_the_sweeps():
    for model in ("gka", "kalman"):
        results_project.record("sweep", "simulated", model, EXPERIMENT)
    results_project.record("contexts", "simulated")
    found = steps(EXPERIMENT, PROFILE, "simulated")
    assert [stage for stage, _, _ in found] == [
        "acquire",
        "decode",
        "validate",
        "prepare",
        "contexts",
        "sweep",
        "train",
        "evaluate",
        "tabulate",
    ]
    assert {stage: lines for stage, _, lines in found}["sweep"][0] == "2 models"


# --- the chain of a number, as the page's script opens it


def chain(results: tuple = ()) -> dict:
    """The chains of one experiment whose table holds an average, and an arm of two seeds."""
    content = {
        "arms": {
            "simulated/knn": {},
            "simulated/msa-shared-20k": {},
            "simulated/gka-swept-none": {},
        }
    }
    labels = {"simulated": {"gka-swept-none": "gka-swept"}}
    part = Part("winds", list(results), (), (), labels)
    return page_chains.chains(EXPERIMENT, PROFILE, content, part)


def test_a_chain_holds_the_record_s_digests_of_every_stage_from_the_table_to_the_raw_file():
    found = chain()

    def of(stage):
        return read_json(records.location(stage, PROFILE, "simulated"))

    assert set(found["spine"][PROFILE]) == {"simulated"}
    for stage in ("acquire", "decode", "prepare", "validate"):
        node = found["spine"][PROFILE]["simulated"][stage]
        told = {
            f"{node['at']}/{name}": {"bytes": size, "sha256": sha}
            for name, size, sha in node["files"]
        }
        assert (
            told == of(stage)["outputs"]
            and node["n"] == len(told)
            and of(stage)["code"]["digest"].startswith(node["code"])
        )
    here = found["runs"][f"{EXPERIMENT}/{PROFILE}"]["d"]["simulated"]
    assert (
        set(here["c"]) == set(CELLS)
        and here["e"]["n"] > 0
        and found["runs"][f"{EXPERIMENT}/{PROFILE}"]["t"]["n"] > 0
    )
    assert here["say"] == {"gka-swept-none": "gka-swept"} and here["a"] == [
        "knn",
        "msa-shared-20k",
        "gka-swept-none",
    ]


@pytest.mark.parametrize(
    "asked, name, expected",
    [
        (
            {
                "kind": "files",
                "files": {"a.csv": {"licence": "GPL-3.0", "url": "https://x.example/a.csv"}},
            },
            "a.csv",
            ["GPL-3.0", "https://x.example/a.csv"],
        ),
        (
            {"kind": "files", "files": {"a.csv": {"licence": None, "url": None}}},
            "a.csv",
            ["not stated", "not stated"],
        ),
        (
            {
                "kind": "listed",
                "files": {},
                "listed": {"licence": "MIT", "base": "https://x.example/", "listing": "l.txt"},
            },
            "",
            ["MIT", "https://x.example/"],
        ),
        (
            {"kind": "simulate", "files": {}},
            "",
            ["MIT, as the project", "made here by stages/acquisition (simulate), seeded"],
        ),
        ({}, "", ["not recorded", "not recorded"]),
    ],
)
def test_a_raw_file_tells_its_licence_and_its_source(asked, name, expected):
    path = records.location("acquire", PROFILE, "simulated")
    write_json(path, read_json(path) | {"params": {"dataset": asked}})
    assert chain()["spine"][PROFILE]["simulated"]["acquire"]["from"][name] == expected


def test_of_many_files_the_first_stand_in_the_page_and_all_are_counted():
    outputs = {
        f"data/x/raw/many/{place:03}.csv": {"bytes": 10, "sha256": "a" * 64} for place in range(301)
    }
    node = page_chains.node({"code": {"digest": "b" * 64}, "outputs": outputs, "seed": 7})
    assert (node["n"], node["bytes"], len(node["files"]), node["at"], node["seed"]) == (
        301,
        3010,
        page_chains.FEW,
        "data/x/raw/many",
        7,
    )


def test_a_number_stands_with_its_address_where_it_was_told():
    one = Result(
        EXPERIMENT,
        PROFILE,
        "simulated",
        "msa-shared-20k",
        "MSA",
        "2",
        "RMSE [kn]",
        "7.60",
        "8",
        "1",
        "20",
        "rmse_component_kn",
    )
    told = chain((one,))["runs"][f"{EXPERIMENT}/{PROFILE}"]["d"]["simulated"]["m"]
    assert told == {
        "msa-shared-20k": [
            f"{EXPERIMENT}/{PROFILE}/simulated/msa-shared-20k/rmse_component_kn",
            "RMSE [kn]: 7.60",
        ]
    }
