"""Results on sequences in any order in tables and records: what was measured beside bounds,
companions and what is printed, by numbers one can reckon."""

import re
from pathlib import Path

import orders_project
import pytest
import stage_runs
from orders_project import CURRICULUM, DIFFUSION, EXPERIMENT, FRACTAL, GPT, RANDOM, WORTH
from results_project import PROFILE

from stages import files, records
from stages.audit.chain import Metric, pick
from stages.errors import DataError
from stages.sequences import page, tabulate
from stages.sequences.reporting import arms as order_arms
from stages.sequences.reporting import gallery as order_gallery
from stages.sequences.reporting import printed as order_printed
from stages.sequences.reporting import results as order_results
from stages.tables import parts
from stages.tables.published import Printed

HOME = Path("reports", EXPERIMENT, PROFILE)


def plain(home: Path, prepared: Path, content: dict) -> None:
    """In place of order_gallery.draw: a file a data set."""
    with files.atomic_folder(home / "figures") as folder:
        for dataset in content["about"]:
            (folder / f"{dataset}-passes.png").write_bytes(dataset.encode())


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """The experiment tabulated without figures; the working folder of the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("orders")
        patch.chdir(root)
        orders_project.build(root)
        patch.setattr(order_gallery, "draw", plain)
        stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
        yield root


def told() -> dict:
    return parts.read(HOME)


def rows(table, key: int = 0) -> dict[str, dict[str, str]]:
    return {row[key]: dict(zip(table.titles, row, strict=True)) for row in table.rows}


def tables_of(dataset: str) -> dict[str, tuple]:
    """Title's first word(s) -> (table, note)."""
    section = next(
        one for one in order_results.sections(EXPERIMENT, told()) if one.dataset == dataset
    )
    return {title: (table, note) for title, table, note in section.tables}


def the(dataset: str, words: str) -> tuple:
    return next(one for title, one in tables_of(dataset).items() if words in title)


def test_an_arm_stands_beside_its_companions_and_the_printed_accuracy():
    table, note = tables_of("mazes")[""]
    found = rows(table)
    assert list(found) == [
        "uniform",
        "marginals",
        "GPT (left to right), tiny",
        "σ-GPT, random, tiny",
        "σ-GPT, fractal, tiny",
        "discrete diffusion, tiny",
    ]
    assert found["σ-GPT, random, tiny"] == {
        "model": "σ-GPT, random, tiny",
        "seeds": "2",
        "parameters": "17,664",
        "sampler": "own",
        "correct [%]": "97.0 ± 1.4 [93.0, 100]",
        "shortest [%]": "97.0 ± 1.4",
        "maze copied [%]": "97.0 ± 1.4",
        "printed accuracy [%]": "98.3 ± 0.67 (thesis 4.2)",
        "nats, own order": "0.600 ± 0",
        "nats, left to right": "0.900 ± 0",
    }
    assert found["uniform"]["printed accuracy [%]"] == "–" and found["uniform"][
        "correct [%]"
    ].startswith("0 [0, ")
    assert (
        found["discrete diffusion, tiny"]["nats, own order"] == "at most 0.900"
        and found["discrete diffusion, tiny"]["sampler"] == "diffusion_16"
    )
    assert note == ""  # "1000 novel mazes" leaves nothing open


def test_the_mse_of_flights_is_told_in_both_units_and_the_printed_one_bears_its_doubt():
    table, note = tables_of("climbs")[""]
    found = rows(table)["σ-GPT, random, tiny"]
    assert found["MSE [FL²]"] == "101 ± 1.4 [91.8, 111]" and found["MSE [ft²]"].startswith(
        "1,010,000"
    )
    assert (
        found["printed MSE [unit not stated]"] == "141 ± 4.1‡ (thesis 4.2)"
        and "altitude unit not stated" in note
    )


def test_steps_to_the_loss_that_both_reach_stand_beside_the_printed_ratio():
    (title, table, note), (_, other, _) = order_results.across(EXPERIMENT, told())
    found = {(row[0], row[1]): dict(zip(table.titles, row, strict=True)) for row in table.rows}
    assert "table 4.3" in title and "caption says" in note
    row = found["mazes", "σ-GPT, random, tiny"]
    assert (
        float(row["ratio"]) == pytest.approx(3.0, abs=0.1)
        and row["loss of both [nats]"] == "0.4"
        and row["printed ratio"].startswith("4.04‡ (78.0 / 19.3")
    )
    assert (
        float(found["mazes", "σ-GPT, fractal, tiny"]["ratio"]) == pytest.approx(4.0, abs=0.1)
        and found["mazes", "σ-GPT, fractal, tiny"]["printed ratio"] == "–"
    )
    assert float(found["grammar", "σ-GPT, curriculum, tiny"]["ratio"]) == pytest.approx(
        1.0, abs=0.02
    )
    fractal = {row[1]: dict(zip(other.titles, row, strict=True)) for row in other.rows}
    assert {row[0] for row in other.rows} == {"mazes"} and fractal["σ-GPT, fractal, tiny"][
        "printed"
    ] == "98.0 ± 1.9 (thesis 4.5)"


def test_perplexities_from_left_to_right_stand_beside_every_printed_one():
    table, note = the("grammar", "table 4.4")
    found = rows(table)
    assert found["σ-GPT, random, tiny"]["test perplexity, left to right"].startswith(
        "2.46"
    ) and found["σ-GPT, random, tiny"]["own order"].startswith("1.82")
    assert (
        found["GPT (left to right), tiny"]["printed, WikiText-103 validation"]
        == "20.3‡ (thesis 4.4)"
    )
    assert found["σ-GPT, random, tiny"]["printed, OpenWebText validation"] == "30.4 (thesis 4.4)"
    assert (
        found["printed: curriculum 50 %"]["printed, WikiText-103 validation"].startswith("16.7")
        and "123M" in note
    )
    assert found["uniform"]["test perplexity, left to right"].startswith("7.39")  # its one order


def test_prompts_stand_beside_all_printed_sizes():
    table, note = the("climbs", "table D.1")
    found, columns = rows(table), table.titles[3:]
    assert [found["GPT (left to right), tiny"][name].split(" ")[0] for name in columns] == [
        "202",
        "162",
        "20.2",
        "15.1",
    ]
    assert [
        found["printed: GPT (left to right), small"][name].split(" ")[0] for name in columns
    ] == ["275", "180", "52.9", "46.1"]
    assert (
        sum(name.startswith("printed") for name in found) == 12
        and found["printed: discrete diffusion, base"][columns[2]] == "–"
    )
    assert (
        found["persistence"][columns[0]].startswith("2,000") and note.count("unit not stated") == 1
    )


def test_every_sampler_tells_its_costs_beside_the_fewest_passes_there_can_be():
    table, note = the("permutation", "figure 4.6")
    found = {
        row[2]: dict(zip(table.titles, row, strict=True))
        for row in table.rows
        if "random" in row[0]
    }
    assert list(found) == ["left_to_right", "own", "burst_1", "burst_5", "burst_20", "exact"]
    burst = found["burst_5"]
    assert (
        burst["passes, as the thesis counts them"] == "3.00 ± 0 (sd 0.5)"
        and burst["passes of the network"] == "6.00 ± 0"
    )
    assert (
        burst["fewest there can be"] == "3.20 ± 0.50"
        and found["exact"]["fewest there can be"] == "–"
        and burst["positions computed"] == "300 ± 0"
    )
    assert "perfect model" in note and "perfect model" not in the("mazes", "figure 4.6")[1]


def test_densities_are_told_where_exact_ones_are_known_and_only_there():
    table, _ = the("walk", "exact ones")
    assert (
        rows(table)["σ-GPT, random, tiny"]["0 % known, total variation"]
        == "0.0350 ± 0.0071 [0.0315, 0.0385]"
    )
    assert rows(table)["uniform"]["50 % known, total variation"].startswith("0.600")
    assert not any("exact ones" in title for title in tables_of("climbs"))


def test_densities_of_mazes_are_told_a_path_cell_and_over_all_cells():
    table, note = the("mazes", "exact ones")
    row = rows(table)["σ-GPT, random, tiny"]
    assert row["0 % known, total variation a path cell"].startswith("0.105 ")
    assert row["0 % known, total variation of all cells"].startswith("0.0350 ")
    assert "a copied maze without a path has 1" in note
    assert "7 of 400 such cells with 50 % known" in note
    assert "path" not in the("walk", "exact ones")[1]


def test_a_data_set_tells_its_sequences_its_prompt_and_its_entropy():
    sections = {one.dataset: one for one in order_results.sections(EXPERIMENT, told())}
    assert (
        sections["mazes"].told
        == "Sequences: 1,000 train, 50 val, 100 test; the first 35 tokens are given"
    )
    assert "entropy of the law 1.6656 nats" in sections["permutation"].told


def test_what_a_document_leaves_open_is_marked_once_with_its_note():
    doubtful = Printed("thesis D.1", "x", 1.0, None, 'unit not stated; row printed "Causal"')
    plain_one = Printed("thesis 4.2", "x", 2.0, 0.1, "1000 mazes")
    assert (
        order_printed.theirs(doubtful) == "1.00‡ (thesis D.1)"
        and order_printed.theirs(plain_one) == "2.00 ± 0.1 (thesis 4.2)"
    )
    assert (
        order_printed.notes([doubtful, doubtful, plain_one, None])
        == "‡ thesis D.1: unit not stated"
    )


def test_an_arm_of_which_a_seed_lacks_a_number_has_none():
    cells = {"d/m-a-s0": {"metrics": {"x": {"value": 1.0}}}, "d/m-a-s1": {"metrics": {}}}
    assert order_arms.at(cells, "d", "m-a", "metrics", "x") is None
    cells["d/m-a-s1"]["metrics"]["x"] = {"value": 2.0}
    assert order_arms.at(cells, "d", "m-a", "metrics", "x")["mean"] == 1.5


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        (GPT, "GPT (left to right), tiny"),
        ("sigma_gpt-random", "σ-GPT, random"),
        ("sigma_gpt-curriculum_50-base", "σ-GPT, curriculum 50, base"),
        (DIFFUSION, "discrete diffusion, tiny"),
        ("constant_rate", "constant rate"),
        ("diffusion-plain-none", "discrete diffusion"),
        ("diffusion-loud_clock-134k_two", "discrete diffusion (loud clock), 134k two"),
    ],
)
def test_arms_are_told_as_people_read_them(arm, name):
    assert order_arms.called(arm) == name


def test_the_audit_finds_every_number_by_its_address():
    cells, sections = told()["cells"], order_results.sections(EXPERIMENT, told())
    assert {one.dataset for one in sections} == set(WORTH)
    for section in sections:
        metric = Metric.parse(
            f"{EXPERIMENT}/{PROFILE}/{section.dataset}/{RANDOM}-s0/{section.address}".replace(
                "/left_to_right/", "/own/"
            )
        )
        assert pick(cells[metric.key], metric)["value"] == pytest.approx(
            WORTH[section.dataset][RANDOM][0]
        )


def test_the_table_is_well_formed_and_has_a_section_a_data_set():
    text = (HOME / "table.md").read_text()
    assert re.findall(r"(?m)^## (.+)$", text) == sorted(WORTH)
    assert all(
        len({line.count("|") for line in block.splitlines()}) == 1
        for block in re.findall(r"(?m)(?:^\|.*\n)+", text)
    )
    assert "nan" not in text and f"`{CURRICULUM}-s1`" in text and f"`{FRACTAL}-s0`" in text


def test_the_claims_are_written():
    entries = files.read_json(HOME / "claims.json", list)
    assert {entry["id"] for entry in entries} == {f"A-{k}" for k in range(1, 11)}
    verdicts = {(entry["id"], entry["dataset"]): entry["verdict"] for entry in entries}
    assert (
        verdicts["A-1", "climbs"]
        == verdicts["A-3", "grammar"]
        == verdicts["A-8", "permutation"]
        == verdicts["A-10", "climbs"]
        == "holds"
    )
    assert verdicts["A-4", "grammar"] == verdicts["A-5", "–"] == "undecided"


def test_the_record_names_code_inputs_and_every_output():
    record = files.read_json(records.location("tabulate", PROFILE, experiment=EXPERIMENT))
    made = {
        file.as_posix()
        for file in HOME.rglob("*")
        if file.is_file()
        and file.parts[3]
        in ("metrics.json", "breakdowns.json", "table.md", "claims.json", "figures")
    }
    assert set(record["outputs"]) == made and record["code"]["modules"] == [
        "stages.sequences.tabulate"
    ]
    assert {name for name in record["inputs"] if "/prepared/" in name} == {
        f"data/{PROFILE}/prepared/{dataset}/sequences.json" for dataset in WORTH
    }
    assert f"reports/{EXPERIMENT}/companions.csv" in record["inputs"]


def test_every_line_of_companions_names_a_printed_number_and_one_that_names_none_is_refused():
    found = order_printed.companions(EXPERIMENT)
    assert {one.table for row in found.values() for one in row.values()} == {
        "thesis 4.2",
        "thesis 4.3",
        "thesis 4.4",
        "thesis 4.5",
        "thesis D.1",
    }
    place = Path("reports", EXPERIMENT, "companions.csv")
    text = place.read_text()
    for line, says in (
        ("ghost,thesis 4.2,maze,ghost,,\n", "names no printed row"),
        (text.splitlines()[1] + "\n", "stands twice"),
    ):
        place.write_text(text + line)
        with pytest.raises(DataError, match=says):
            order_printed.companions(EXPERIMENT)
    place.write_text(text)


def test_an_evaluation_of_something_else_is_refused(tmp_path):
    files.write_json(
        tmp_path / "evaluated/poisson/metrics.json", {"cells": {"mean": {"metrics": {}}}}
    )
    with pytest.raises(DataError, match="not of sequences"):
        order_results.read_descriptions(tmp_path)


def test_the_page_s_part_shows_every_table_and_figure():
    content = told()
    for dataset in content["about"]:
        orders_project.stage_records(dataset)
    part = page.part(EXPERIMENT, PROFILE, content)
    kinds = [[type(block).__name__ for block in one.blocks] for one in part.sections]
    tables = [one.tables for one in order_results.sections(EXPERIMENT, content)]
    written = [len(content["texts"].get(one.title, [])) > 0 for one in part.sections]
    assert [names.count("Grid") for names in kinds] == [
        len(one) + more for one, more in zip(tables, written, strict=True)
    ]
    assert all({"Pair", "Drawing", "Cells"} <= set(names) for names in kinds)
    assert [type(block).__name__ for block in part.intro].count("Grid") == 2
    assert "`" not in part.intro[0].text
    names = {
        "mazes",
        "strip",
        "climbs",
        "infilled",
        "map",
        "bias",
        "passes",
        "learning",
        "sizes",
        "densities",
    }
    assert {*order_results.pictures("maze"), *order_results.FIGURES} == names


def test_the_experiment_has_a_page_of_its_own_and_the_index_leads_there():
    for dataset in told()["about"]:
        orders_project.stage_records(dataset)
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    address = f"{EXPERIMENT}/{PROFILE}/page.html"
    index, own = (Path("reports", name).read_text() for name in ("index.html", address))
    name = re.search(r'aria-label="[^"]*\(' + f"{EXPERIMENT}, {PROFILE}", own)
    assert name and name[0] not in index
    assert f'href="{address}#{EXPERIMENT}-{PROFILE}-' in index
    assert 'href="../../index.html"' in own
    for text in (index, own):  # claims stand in both; the gates and the ledger on the index alone
        assert f"claims of {EXPERIMENT}, {PROFILE}" in text and text.count("<h1>") == 1
        links = set(re.findall(r'href="#([^"]+)"', text))
        assert links <= set(re.findall(r'id="([^"]+)"', text))
    assert 'id="validation"' in index and 'id="ledger"' in index
    assert 'id="validation"' not in own and 'id="ledger"' not in own
