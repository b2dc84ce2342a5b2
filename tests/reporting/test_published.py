"""The printed numbers beside ours are the documents' own, each with its note; none goes missing
without a word."""

import csv
from pathlib import Path

import pytest
import results_project
from results_project import ROOT

from stages import params
from stages.errors import DataError
from stages.neighbours.experiment.printed import searches
from stages.tables import published
from stages.tables.published import Printed
from stages.winds.printed import companions, epochs, format_printed

OTHERS = {
    "neighbours",
    "sparse_fields",
    "failure_modes",
    "sensitivity",
    "any_order",
    "chaos",
    "token_mixing",
    "series",
    "processes",
    "on_off_grid",
    "pictures",
    "shapes",
}  # whose companions are read, and tested, elsewhere
EXPERIMENTS = sorted(
    file.parent.name
    for file in ROOT.glob("reports/*/companions.csv")
    if file.parent.name not in OTHERS
)


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
    assert {"wind_nowcast", "wind_baselines"} <= set(EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_companion_row_finds_printed_numbers_of_its_table_and_each_arm_has_one_row(
    real, experiment
):
    rows = listed(experiment)
    found = companions(experiment)
    assert sorted(row["arm"] for row in rows) == sorted(found), (
        "an arm stands twice, and the later row hides the earlier"
    )
    for row in rows:
        assert found[row["arm"]] and {printed.table for printed in found[row["arm"]]} == {
            row["table"]
        }


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_companion_stands_beside_an_arm_that_can_be_run(real, experiment):
    settings = params.load()
    possible = set()
    for name, model in settings.models.items():
        arms, sizes = (getattr(model, part, None) or {} for part in ("arms", "sizes"))
        possible |= {f"{name}-{arm}-{size}" for arm in arms for size in sizes or ("none",)} | (
            set() if sizes else {name}
        )
    assert {row["arm"] for row in listed(experiment)} <= possible


@pytest.mark.parametrize(
    "arm, values",
    [
        ("day_average", [27.87, 20.19, 13.86]),
        ("hour_average", [26.19, 17.51, 12.67]),
        ("knn", [9.02, 9.86, 7.57]),
        ("kernel", [8.71, 9.19, 7.55]),
        ("msa-shared-5k", [8.07]),
        ("msa-shared-20k", [7.98]),
        ("msa-shared-100k", [8.18]),
        ("msa-traditional-5k", [8.40]),
        ("msa-traditional-20k", [8.47]),
        ("msa-traditional-100k", [8.98]),
    ],
)
def test_the_values_are_those_on_the_documents_pages(real, arm, values):
    assert [printed.mean for printed in companions("wind_nowcast")[arm]] == values


@pytest.mark.parametrize(
    "arm, values, epoch",
    [
        ("particle", [9.98, 10.07, 7.84], 25035),
        ("gka-swept-none", [9.07, 9.64, 7.66], 9558),
        ("knn_tnn-swept-none", [9.02, 9.86, 7.57], 16307),
        ("gka_tnn-cached-none", [8.71, 9.19, 7.55], 253),
        ("gka_mlp_tnn-cached-none", [8.01, 8.51, 6.87], 261),
        ("day_average", [27.87, 20.19, 13.86], 3),
    ],
)
def test_table_1_2_stands_beside_chapter_1s_models_days_and_epochs(real, arm, values, epoch):
    """4:13 and 4:21 are minutes and seconds; 6:57:15, 2:39:18 and 4:31:47 hours, minutes and
    seconds."""
    assert [printed.mean for printed in companions("wind_baselines")[arm]] == values
    assert epochs("wind_baselines")[arm] == epoch


@pytest.mark.parametrize(
    "of, expected",
    [
        (
            ("original", "linear"),
            {"comparisons": (811372, "thesis 1.3"), "query_ms": (9.03, "thesis 1.3")},
        ),
        (
            ("original", "trajectory"),
            {
                "comparisons": (28579, "thesis 1.3"),
                "query_ms": (1.03, "thesis 1.3"),
                "build_s": (1.0, "thesis A.1"),
            },
        ),
        (
            ("original", "trajectory-gpu"),
            {
                "comparisons": (81611, "thesis 1.3"),
                "query_ms": (0.16, "thesis 1.3"),
                "build_s": (9.0, "thesis A.1"),
            },
        ),
        (
            ("original", "forest"),
            {"query_ms": (0.70, "thesis 1.4"), "build_s": (0.03, "thesis 1.4")},
        ),
        (
            ("original", "kdtree-masked-leaf10"),
            {"query_ms": (97.76, "thesis A.1"), "build_s": (3.822, "thesis A.1")},
        ),
        (
            ("smoothed_random_walk", "trajectory"),
            {
                "comparisons": (58408, "thesis 1.3"),
                "query_ms": (1.60, "thesis 1.3"),
                "build_s": (1.0, "thesis A.2"),
            },
        ),
    ],
)
def test_printed_searches_are_those_on_the_pages_in_our_units(real, of, expected):
    assert searches("neighbours")[of] == expected


def test_a_search_companion_that_stands_twice_or_names_nothing_is_an_error(project):
    Path("reports/neighbours").mkdir()
    file, head = Path("reports/neighbours/companions.csv"), "set,arm,table,dataset,model,variant\n"
    file.write_text(head + "original,linear,thesis 1.3,tnn_original,linear_search,device=cpu\n" * 2)
    with pytest.raises(DataError, match="twice(.|\n)*original, linear, thesis 1.3"):
        searches("neighbours")
    file.write_text(head + "original,linear,thesis 9.9,tnn_original,linear_search,\n")
    with pytest.raises(DataError, match="names no printed row(.|\n)*thesis 9.9"):
        searches("neighbours")


def test_spreads_and_notes_come_along(real):
    found = companions("wind_nowcast")
    assert [found[f"msa-shared-{size}"][0].std for size in ("5k", "20k", "100k")] == [
        0.11,
        0.03,
        0.14,
    ]
    assert all("not causal" in printed.note for printed in found["day_average"])
    assert all(printed.std is None for printed in found["kernel"])


def test_no_transcribed_number_is_lost_on_reading(real):
    """A mean that is no number would vanish as if nothing had been printed."""
    rows = [
        row
        for path in sorted(Path("data/published").glob("*.csv"))
        for row in csv.DictReader(path.open(encoding="utf-8", newline=""))
    ]
    given = [(row["table"], float(row["mean"]), row["note"]) for row in rows if row["mean"]]
    read = published.read()
    assert len(given) > 500
    assert [
        (table, mean, note or "")
        for table, mean, note in read.select("table", "mean", "note").iter_rows()
    ] == given
    misprints = [note for note in read["note"] if note and "misprint" in note]
    assert (
        misprints
        == [row["note"] for row in rows if row["mean"] and "misprint" in row["note"]]
        != []
    )


# --- hand-made files


def test_a_companion_is_rmse_in_knots_on_wind_with_the_misprints_note(project):
    found = companions("wind_nowcast")
    assert found == {
        "kernel": [
            Printed("thesis 1.2", f"wind_day{day}", value, None, f"day {day}")
            for day, value in ((1, 8.71), (2, 9.19), (3, 7.55))
        ],
        "msa-shared-20k": [
            Printed("thesis 3.2", "wind", 7.98, 0.03, "printed 7:98, a misprint of 7.98")
        ],
    }


@pytest.mark.parametrize(
    "row",
    [
        "kernel,thesis 9.9,gka_tnn,,",
        "kernel,thesis 1.2,gka,,",
        "msa-shared-20k,thesis 3.2,msa,shared,100k",
        "msa-shared-20k,thesis 3.2,msa,other,20k",
    ],
)
def test_a_companion_that_names_no_printed_row_is_an_error_that_tells_it(project, row):
    Path("reports/wind_nowcast/companions.csv").write_text(f"arm,table,model,variant,size\n{row}\n")
    with pytest.raises(DataError, match="names no printed row") as caught:
        companions("wind_nowcast")
    assert all(
        part in str(caught.value)
        for part in ("reports/wind_nowcast/companions.csv", *filter(None, row.split(",")))
    )


def test_a_transcription_without_a_column_is_an_error_that_names_it(project):
    Path("data/published/c.csv").write_text(
        "table,experiment,dataset,model,variant,size,split,metric,unit,mean,note\n"
    )
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
        companions("wind_nowcast")


@pytest.mark.parametrize(
    "rows, text",
    [
        ([], "–"),
        ([Printed("thesis 3.2", "wind", 7.98, 0.03, "")], "7.98 ± 0.03 (thesis 3.2)"),
        ([Printed("t", "wind", 8.0, None, "")], "8.00 (t)"),
        ([Printed("t", "wind", 8.0, 0.0, "")], "8.00 ± 0.00 (t)"),
        (
            [
                Printed("t", f"wind_day{i}", value, None, "")
                for i, value in enumerate((8.71, 9.19, 7.55))
            ],
            "7.55–9.19 (t, 3 days)",
        ),
    ],
)
def test_a_printed_value_is_shown_with_its_spread_or_range_and_its_table(rows, text):
    assert format_printed(rows) == text
