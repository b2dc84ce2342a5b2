"""The printed numbers beside ours are the documents' own, each with its note; none goes missing without a word."""

import csv
from pathlib import Path

import pytest
import results_project
from results_project import ROOT

from stages import params
from stages.errors import DataError
from stages.reporting import published
from stages.reporting.published import Printed, shown

EXPERIMENTS = sorted(file.parent.name for file in ROOT.glob("reports/*/companions.csv"))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two hand-made printed tables and the companions of an experiment."""
    monkeypatch.chdir(tmp_path)
    results_project.printed()
    return tmp_path


@pytest.fixture
def real(monkeypatch):
    """The project's own transcriptions."""
    monkeypatch.chdir(ROOT)


def listed(experiment: str) -> list[dict]:
    with Path("reports", experiment, "companions.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


# --- the project's own files


def test_there_is_an_experiment_to_check():
    assert "wind_nowcast" in EXPERIMENTS


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_companion_row_finds_printed_numbers_of_its_table_and_each_arm_has_one_row(real, experiment):
    rows = listed(experiment)
    found = published.companions(experiment)
    assert sorted(row["arm"] for row in rows) == sorted(found), "an arm stands twice, and the later row hides the earlier"
    for row in rows:
        assert found[row["arm"]] and {printed.table for printed in found[row["arm"]]} == {row["table"]}


def test_every_companion_stands_beside_an_arm_that_can_be_run(real):
    settings = params.load()
    possible = set()
    for name, model in settings.models.items():
        arms, sizes = (getattr(model, part, None) or {} for part in ("arms", "sizes"))
        possible |= {f"{name}-{arm}-{size}" for arm in arms for size in sizes} or {name}
    assert {row["arm"] for row in listed("wind_nowcast")} <= possible


@pytest.mark.parametrize("arm, values", [
    ("day_average", [27.87, 20.19, 13.86]), ("hour_average", [26.19, 17.51, 12.67]), ("knn", [9.02, 9.86, 7.57]), ("kernel", [8.71, 9.19, 7.55]),
    ("msa-shared-5k", [8.07]), ("msa-shared-20k", [7.98]), ("msa-shared-100k", [8.18]),
    ("msa-traditional-5k", [8.40]), ("msa-traditional-20k", [8.47]), ("msa-traditional-100k", [8.98])])
def test_the_values_are_those_on_the_documents_pages(real, arm, values):
    assert [printed.mean for printed in published.companions("wind_nowcast")[arm]] == values


def test_spreads_and_notes_come_along(real):
    found = published.companions("wind_nowcast")
    assert [found[f"msa-shared-{size}"][0].std for size in ("5k", "20k", "100k")] == [0.11, 0.03, 0.14]
    assert all("not causal" in printed.note for printed in found["day_average"])
    assert all(printed.std is None for printed in found["kernel"])


def test_no_transcribed_number_is_lost_on_reading(real):
    """A mean that is no number would vanish as if nothing had been printed."""
    rows = [row for path in sorted(Path("data/published").glob("*.csv")) for row in csv.DictReader(path.open(encoding="utf-8", newline=""))]
    given = [(row["table"], float(row["mean"]), row["note"]) for row in rows if row["mean"]]
    read = published.read()
    assert len(given) > 500
    assert [(table, mean, note or "") for table, mean, note in read.select("table", "mean", "note").iter_rows()] == given
    misprints = [note for note in read["note"] if note and "misprint" in note]
    assert misprints == [row["note"] for row in rows if row["mean"] and "misprint" in row["note"]] != []


# --- hand-made files


def test_a_companion_is_rmse_in_knots_on_wind_with_the_misprints_note(project):
    found = published.companions("wind_nowcast")
    assert found == {"kernel": [Printed("thesis 1.2", f"wind_day{day}", value, None, f"day {day}") for day, value in ((1, 8.71), (2, 9.19), (3, 7.55))],
                     "msa-shared-20k": [Printed("thesis 3.2", "wind", 7.98, 0.03, "printed 7:98, a misprint of 7.98")]}


@pytest.mark.parametrize("row", ["kernel,thesis 9.9,gka_tnn,,", "kernel,thesis 1.2,gka,,", "msa-shared-20k,thesis 3.2,msa,shared,100k",
                                 "msa-shared-20k,thesis 3.2,msa,other,20k"])
def test_a_companion_that_names_no_printed_row_is_an_error_that_tells_it(project, row):
    Path("reports/wind_nowcast/companions.csv").write_text(f"arm,table,model,variant,size\n{row}\n")
    with pytest.raises(DataError, match="names no printed row") as caught:
        published.companions("wind_nowcast")
    assert all(part in str(caught.value) for part in ("reports/wind_nowcast/companions.csv", *filter(None, row.split(","))))


def test_a_transcription_without_a_column_is_an_error_that_names_it(project):
    Path("data/published/c.csv").write_text("table,experiment,dataset,model,variant,size,split,metric,unit,mean,note\n")
    with pytest.raises(DataError, match=r"c\.csv(.|\n)*no \['std'\]"):
        published.read()


def test_no_transcriptions_at_all_is_an_error_that_names_the_folder(project):
    for path in Path("data/published").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="data/published"):
        published.read()


def test_an_arm_that_stands_twice_in_the_companions_is_an_error(project):
    with Path("reports/wind_nowcast/companions.csv").open("a") as stream:
        stream.write("kernel,thesis 3.2,msa,shared,5k\n")
    with pytest.raises(DataError, match="twice(.|\n)*kernel"):
        published.companions("wind_nowcast")


@pytest.mark.parametrize("rows, text", [
    ([], "–"), ([Printed("thesis 3.2", "wind", 7.98, 0.03, "")], "7.98 ± 0.03 (thesis 3.2)"), ([Printed("t", "wind", 8.0, None, "")], "8.00 (t)"),
    ([Printed("t", "wind", 8.0, 0.0, "")], "8.00 ± 0.00 (t)"),
    ([Printed("t", f"wind_day{i}", value, None, "") for i, value in enumerate((8.71, 9.19, 7.55))], "7.55–9.19 (t, 3 days)")])
def test_a_printed_value_is_shown_with_its_spread_or_range_and_its_table(rows, text):
    assert shown(rows) == text
