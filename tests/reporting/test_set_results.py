"""Results on sets of points in tables, figures and summaries: what was measured beside what is
printed, by numbers one can reckon by hand."""

import re
from pathlib import Path

import pytest
import sets_project
import stage_runs
from PIL import Image
from results_project import PROFILE
from sets_project import COPIES, FAILURES, FIELDS, POISSON, N

from stages import files, records
from stages.errors import DataError
from stages.fields import figures as set_figures
from stages.fields import results as set_results
from stages.fields import tables as set_tables
from stages.fields import tabulate
from stages.fields.printed import levels, sets
from stages.page.summary import summary
from stages.tables import parts
from stages.tables.published import Printed


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """Both experiments tabulated, figures and all; the working folder of the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("sets")
        patch.chdir(root)
        sets_project.build(root)
        for experiment in (FIELDS, FAILURES):
            stage_runs.tabulate(tabulate, experiment, PROFILE)
        yield root


def told(experiment: str) -> dict:
    return parts.read(Path("reports", experiment, PROFILE))


def rows(table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.titles, row, strict=True)) for row in table.rows}


def section(experiment: str, dataset: str):
    content = told(experiment)
    found = {
        one.dataset: one
        for one in set_results.sections(experiment, PROFILE, content["arms"], content["cells"])
    }
    return found[dataset]


def test_every_arm_has_a_row_with_its_companions_and_the_best_comes_last():
    title, table, _ = section(FIELDS, "poisson").tables[0]
    found = rows(table)
    assert (
        title == ""
        and set(found) == set(POISSON)
        and table.rows[table.best][0] == table.rows[-1][0] == "msa-shared-20k"
    )
    assert found["msa-shared-20k"] == {
        "model": "msa-shared-20k",
        "seeds": "2",
        "parameters": "18,506",
        "MSE": "0.00800 ± 0.00028 [0.00727, 0.00880]",
        "of the mean's MSE [%]": "2.0",
        "validation MSE": "0.00880 ± 0.00031",
        "the same, mean of batches": "0.00880 ± 0.00031",
        "printed MSE, validation": "0.00700 ± 0.0004 (thesis C.2)",
        "RMSE": "0.0894 ± 0.0016",
        "printed RMSE, validation": "0.0800 ± 0.003 (thesis 3.2)",
        "R²": "0.992 ± 0.00028",
        "context shuffled, MSE": "0.0800 ± 0.0028",
        "of the mean's [%]": "20.0",
    }
    assert (
        found["mean"]["of the mean's MSE [%]"] == "100.0"
        and found["mean"]["parameters"] == found["mean"]["printed MSE, validation"] == "–"
    )
    assert found["tfs-distance-20k"]["printed MSE, validation"] == "0.0420 ± 0.023‡ (thesis C.5)"


def test_a_misprint_bears_its_mark_and_its_note_and_its_scale_is_mended():
    _, table, notes = section(FIELDS, "darcy").tables[0]
    assert (
        rows(table)["msa-shared-20k"]["printed MSE, validation"]
        == "0.000674 ± 3.8e-05† (thesis C.2)"
    )  # the header says RMSE x 1e-4
    assert (
        "† thesis C.2: header prints" in notes
        and "†" not in rows(table)["msa-shared-20k"]["printed RMSE, validation"]
    )


def test_sharing_stands_beside_the_printed_ratio_which_the_caption_inverts():
    tables = {title: (table, notes) for title, table, notes in section(FIELDS, "poisson").tables}
    table, notes = next(one for title, one in tables.items() if "table 3.4" in title)
    found = rows(table)
    assert set(found) == {
        f"{model}-shared-20k / traditional-20k" for model in ("cnp", "gen", "msa", "tfs")
    }
    row = found["msa-shared-20k / traditional-20k"]
    low, value, high = (
        float(re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", row["MSE shared over not shared [%]"])[k])
        for k in (2, 1, 3)
    )
    assert (
        low < value < high
        and value == pytest.approx(25.0, abs=0.1)
        and row["printed (mean of 5k, 20k, 100k) [%]"] == "24.8† (thesis 3.4)"
    )
    assert row["seeds"] == "2, 1" and "the caption prints the inverse ratio" in notes
    assert not any(
        "table 3.4" in title for title, *_ in section(FIELDS, "darcy").tables
    )  # no model with both encoders


def test_copying_is_told_by_frequency_with_the_documents_bar():
    ((_, table, _),) = set_results.across(FAILURES, told(FAILURES)["arms"])
    found = rows(table)
    assert table.titles == ("model", "sines_5, MSE", "copies, MSE") and set(found) == set(COPIES)
    assert found["gng-plain-5k"]["copies, MSE"].endswith("✓") and not found["gen-lattice_7-5k"][
        "copies, MSE"
    ].endswith("✓")
    assert set_results.across(FIELDS, told(FIELDS)["arms"]) == []


@pytest.mark.parametrize(
    "dataset, value",
    [
        ("sines", 1.0),
        ("sines_05", 0.5),
        ("sines_0_5", 0.5),
        ("sines_10", 10.0),
        ("sines_2", 2.0),
        ("copies", float("inf")),
    ],
)
def test_a_sets_frequency_is_in_its_name(dataset, value):
    assert set_tables.frequency(dataset)[0] == value


def test_probes_are_means_over_seeds_and_a_count_that_was_cut_off_says_so():
    tables = {title: table for title, table, _ in section(FAILURES, "sines_5").tables}
    found = rows(next(table for title, table in tables.items() if "planted" in title))
    assert (
        found["msa-tied-5k"]["updates to undo the error"] == "101 ± 1.4"
        and found["msa-tied-5k"]["latents"] == "64"
    )
    assert (
        found["gen-lattice_2-5k"]["latents touched (effective)"] == "12.0"
        and found["cnp-traditional-5k"]["updates to undo the error"] == "–"
    )
    cells = told(FAILURES)["cells"]
    cells["sines_5/gen-lattice_2-5k-s0"]["probes"]["correction"]["steps"]["capped"] = True
    assert (
        rows(set_tables.errors_undone(cells, "sines_5"))["gen-lattice_2-5k"][
            "updates to undo the error"
        ]
        == "more than 400"
    )


def test_overlaps_run_from_none_to_all():
    table = next(
        table
        for title, table, _ in section(FAILURES, "sines_5").tables
        if "one model asked at each" in title
    )
    assert table.titles == ("model", "0 %, MSE", "25 %, MSE", "50 %, MSE", "100 %, MSE")
    assert [cell.split(" ")[0] for cell in rows(table)["msa-tied-5k"].values()] == [
        "msa-tied-5k",
        "0.0200",
        "0.0150",
        "0.00800",
        "0.00100",
    ]


def test_the_printed_overlaps_stand_beside_ours_on_the_documents_problem():
    cells = {
        name.replace("sines_5", "darcy"): content
        for name, content in told(FAILURES)["cells"].items()
    }
    table, notes = set_tables.overlap(cells, "darcy", sets(FAILURES))
    assert [cell.split("‡")[0] for cell in table.rows[-1][1:]] == [
        "0.140",
        "0.140",
        "0.0900",
        "0.0300",
    ] and "metric not stated" in notes


def test_numbers_of_the_summary_are_those_of_the_arms():
    summary(PROFILE)
    found = files.read_json(Path(f"reports/summary-{PROFILE}.json"))["mse"]
    assert set(found) == {FIELDS, FAILURES} and found[FIELDS]["poisson"][
        "msa-shared-20k"
    ] == pytest.approx(0.008)
    assert set(found[FIELDS]["poisson"]) == set(POISSON)


def test_the_table_says_how_to_audit_each_number_and_how_many_values_there_are():
    text = Path("reports", FIELDS, PROFILE, "table.md").read_text()
    assert (
        f"{N:,} test values." in text
        and f"`tradewind audit {FIELDS}/{PROFILE}/poisson/CELL/mse`" in text
        and "`msa-shared-20k-s1`" in text
    )
    assert re.findall(r"(?m)^## (.+)$", text) == [
        "darcy",
        "poisson",
        "Time and memory against the context's size (thesis, figure C.4)",
    ]
    assert all(
        len({line.count("|") for line in block.splitlines()}) == 1
        for block in re.findall(r"(?m)(?:^\|.*\n)+", text)
    )


def test_figures_are_drawn_for_every_data_set_small_and_with_the_same_bytes_again():
    home = Path("reports", FAILURES, PROFILE, "figures")
    names = {file.name for file in home.iterdir()}
    assert names == {
        "copying.png",
        "copies-learning.png",
        "copies-example.png",
        "sines_5-learning.png",
        "sines_5-example.png",
        "sines_5-planted.png",
        "sines_5-overlap.png",
    }
    before = {file.name: file.read_bytes() for file in home.iterdir()}
    assert all(len(content) < 60_000 for content in before.values())
    mine = {
        key: {name: one for name, one in told(FAILURES)[key].items() if name.startswith("sines_5")}
        for key in ("arms", "cells")
    }
    again = Path("again", PROFILE)
    files.write_json(again / "evaluated/sines_5/metrics.json", {})
    (again / "evaluated/sines_5/predictions.safetensors").write_bytes(
        (home.parent / "evaluated/sines_5/predictions.safetensors").read_bytes()
    )
    set_figures.draw(
        again, Path("data", PROFILE, "prepared"), mine["arms"], mine["cells"], sets(FAILURES)
    )
    drawn = {
        file.name: file.read_bytes()
        for file in (again / "figures").iterdir()
        if file.name != "copying.png"
    }
    assert drawn == {
        name: content for name, content in before.items() if name.startswith("sines_5")
    }
    assert all(Image.open(file).size[0] >= 400 for file in home.iterdir())


def test_an_example_shows_the_best_msa_and_the_best_of_the_others():
    content = told(FIELDS)
    predicted = {
        name.partition("/")[2]: None for name in content["cells"] if name.startswith("poisson/")
    }
    assert set_figures.shown_cells(predicted, content["arms"], "poisson") == [
        "msa-shared-20k-s0",
        "tfs-decoder_4-20k-s0",
    ]


def test_the_record_names_code_inputs_and_every_output():
    for experiment in (FIELDS, FAILURES):
        home = Path("reports", experiment, PROFILE)
        record = files.read_json(records.location("tabulate", PROFILE, experiment=experiment))
        made = {
            file.as_posix()
            for file in home.rglob("*")
            if file.is_file()
            and file.parts[3]
            in ("metrics.json", "breakdowns.json", "table.md", "claims.json", "figures")
        }
        assert set(record["outputs"]) == made and record["code"]["modules"] == [
            "stages.fields.tabulate"
        ]
        assert {name for name in record["inputs"] if "/prepared/" in name} == {
            f"data/{PROFILE}/prepared/{dataset}/sets.json"
            for dataset in {name.split("/")[0] for name in told(experiment)["arms"]}
        }
        assert f"reports/{experiment}/companions.csv" in record["inputs"]


def test_companions_name_printed_rows_and_one_that_names_none_is_refused(tmp_path, monkeypatch):
    assert {
        table for found in sets(FIELDS).values() for table in (one.table for one in found.values())
    } == {"thesis C.2", "thesis C.3", "thesis 3.2", "thesis 3.4", "thesis C.5", "thesis C.6"}
    place = Path("reports", FIELDS, "companions.csv")
    text = place.read_text()
    place.write_text(text + "ghost-shared-20k,thesis C.2,ghost,,\n")
    with pytest.raises(DataError, match="names no printed row"):
        sets(FIELDS)
    place.write_text(text)


def test_where_the_documents_unit_is_not_known_it_is_said_beside_its_numbers():
    printed = Printed("thesis C.2", "darcy", 6.74e-4, None, "a note")
    told = levels([printed], "darcy_16")
    assert told.startswith("Printed levels: ") and "unit" in told and told.endswith("a note")
    assert levels([printed], "poisson_rooms") == "‡ thesis C.2: a note"
    assert levels([], "darcy_16") == ""
