"""Cells become arms by the arithmetic one does by hand, and table.md says what metrics.json
says."""

import json
import re
from pathlib import Path

import pytest
import results_project
import stage_runs
from results_project import CELLS, EXPERIMENT, FLOOR, HOME, POINTS, PROFILE, SHARED, number

from stages import files, records
from stages.errors import DataError
from stages.tables import parts
from stages.tables.gather import gather, over_seeds
from stages.tables.table import arm_of
from stages.winds import figures, tables, tabulate
from stages.winds.printed import weather

PRINTED = "printed RMSE [kn]"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The hand-made project, tabulated once; the working folder of the module's tests."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("project")
        patch.chdir(root)
        results_project.build(root)
        asked = []
        patch.setattr(
            figures,
            "draw",
            lambda *given: (asked.append(given), results_project.plain_figures(*given)),
        )
        stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
        yield asked


def arms_of(**cells: dict) -> dict:
    return over_seeds(
        {
            name.replace("__", "/").replace("_s", "-s"): {"metrics": metrics}
            for name, metrics in cells.items()
        }
    )


@pytest.mark.parametrize(
    "cell, arm",
    [
        ("msa-shared-5k-s0", "msa-shared-5k"),
        ("simulated/msa-shared-5k-s12", "simulated/msa-shared-5k"),
        ("knn", "knn"),
        ("msa-s3-5k-s0", "msa-s3-5k"),
        ("day_average", "day_average"),
        ("msa-s1x", "msa-s1x"),
    ],
)
def test_only_the_seed_at_the_end_of_a_cell_is_taken_off(cell, arm):
    assert arm_of(cell) == arm


def test_an_arm_is_mean_sample_std_and_mean_interval_of_its_seeds(project):
    arm = parts.read(HOME)["arms"]["simulated/msa-shared-20k"]
    assert arm["seeds"] == 3
    assert arm["metrics"]["rmse_component_kn"] == {
        **{key: pytest.approx(value, abs=1e-12) for key, value in SHARED.items()},
        "unit": "kn",
        "n": POINTS,
    }
    assert arm["metrics"]["nse"] == {"mean": 0.875, "std": 0.0, "unit": "1", "n": POINTS}


def test_one_seed_has_no_spread():
    arm = arms_of(sim__msa_s0={"x": number(3.0, 2.0, 5.0)})["sim/msa"]
    assert arm == {
        "seeds": 1,
        "metrics": {"x": {"mean": 3.0, "low": 2.0, "high": 5.0, "unit": "kn", "n": POINTS}},
    }


def test_a_metric_or_a_bound_that_one_seed_lacks_is_not_averaged_over_the_others():
    arm = arms_of(
        sim__msa_s0={"x": number(3.0, 2.0, 5.0), "y": number(1.0)}, sim__msa_s1={"x": number(5.0)}
    )["sim/msa"]["metrics"]
    assert arm == {"x": {"mean": 4.0, "std": pytest.approx(2**0.5), "unit": "kn", "n": POINTS}}


def test_arms_of_two_data_sets_are_not_mixed():
    arms = arms_of(
        a__msa_s0={"x": number(3.0)}, b__msa_s0={"x": number(5.0)}, b__msa_s1={"x": number(7.0)}
    )
    assert {name: (arm["seeds"], arm["metrics"]["x"]["mean"]) for name, arm in arms.items()} == {
        "a/msa": (1, 3.0),
        "b/msa": (2, 6.0),
    }


@pytest.mark.parametrize(
    "summary, interval, text",
    [
        (None, True, "–"),
        ({"mean": 7.005}, True, "7.00"),
        ({"mean": -0.5, "std": 0.126}, False, "-0.50 ± 0.13"),
        ({"mean": 7.6, "std": 0.0}, False, "7.60 ± 0.00"),
        ({"mean": 7.6, "low": 6.7, "high": 8.5}, False, "7.60"),
        ({"mean": 7.6, "std": 0.65, "low": 6.7, "high": 8.5}, True, "7.60 ± 0.65 [6.70, 8.50]"),
    ],
)
def test_a_number_shows_spread_and_interval_where_there_are_any(summary, interval, text):
    assert tables.number(summary, interval) == text


@pytest.mark.parametrize(
    "mean, base, text",
    [
        (10.0, 20.0, "-50 %"),
        (24.0, 20.0, "+20 %"),
        (20.0, 20.0, "+0 %"),
        (19.99, 20.0, "+0 %"),
        (7.6, 20.0, "-62 %"),
        (3.0, None, "–"),
    ],
)
def test_the_distance_to_the_baseline_is_in_whole_percent(mean, base, text):
    assert tables.against(mean, base) == text


def test_of_gens_operators_the_best_alone_is_drawn_with_all_others():
    names = [
        f"x/{name}"
        for name in (
            "gen-message_le-20k",
            "knn",
            "gen-message_gat-20k",
            "gen-shared-20k",
            "msa-shared-20k",
        )
    ]
    assert (
        tables.leading(names) == names[1:]
        and tables.leading(names[:1]) == names[:1]
        and tables.leading([]) == []
    )


def test_an_arm_that_diverged_is_named_and_not_ranked():
    def arm(error: float, skill: float) -> dict:
        of = {"rmse_component_kn": {"mean": error}, "nse": {"mean": skill}}
        of |= {"rmse_component_m_s": {"mean": error / 2}}
        return {"metrics": of, "seeds": 1, "slices": 9}

    arms = {"x/gen-message_le-20k": arm(4247.0, -3e4), "x/kernel": arm(40.0, -9.0)}
    found = tables.results(arms, "x", {})
    rows = [dict(zip(found.titles, row, strict=True)) for row in found.rows]
    assert rows[0]["RMSE per component [kn]"] == "diverged"
    assert "4247" not in str(rows[0]) and rows[0]["vs hour_average"] == "–"
    assert rows[1]["RMSE per component [kn]"].startswith("40.00")
    day = {"2023-01-01": {"rmse_component_kn": {"value": 4247.0}}}
    cells = {"x/gen-message_le-20k-s0": {"by_day": day}, "x/kernel": {"by_day": day}}
    days = tables.by_day(arms, cells, "x", {})
    assert [row[1] for row in days.rows] == ["diverged", "4247.00"]
    for one in arms.values():
        one["metrics"] |= {key: {"mean": 1.0} for key, _, _ in tables.WEATHER if key != "nse"}
    shown = tables.weather(arms, "x", {"GEN": {}})
    assert set(shown.rows[0][1:]) == {"diverged"} and "diverged" not in shown.rows[1]


def test_arms_go_from_worst_to_best_within_their_data_set(project):
    arms = parts.read(HOME)["arms"]
    assert [name.split("/")[1] for name in tables.ordered(arms, "simulated")] == [
        "day_average",
        "hour_average",
        "knn",
        "kernel",
        "msa-shared-20k",
        "msa-gaussian-20k",
    ]
    assert [name.split("/")[1] for name in tables.ordered(arms, "hour_winds")] == [
        "knn",
        "hour_average",
        "msa-shared-20k",
    ]


def test_the_noise_floor_is_known_where_truth_is(project):
    arms = parts.read(HOME)["arms"]
    assert (
        tables.floor_of(arms, "simulated"),
        tables.floor_of(arms, "hour_winds"),
        tables.floor_of(arms, "sim"),
    ) == (FLOOR["simulated"], None, None)


def test_every_cell_is_gathered_as_it_was_evaluated_and_half_written_folders_are_not(project):
    half = HOME / "evaluated/.simulated.abcdefgh.tmp"
    files.write_json(half / "metrics.json", {"cells": {"ghost": {}}})
    cells = gather(HOME)
    (half / "metrics.json").unlink()
    assert set(cells) == {
        f"{dataset}/{cell}" for dataset, values in CELLS.items() for cell in values
    }
    assert cells == parts.read(HOME)["cells"]
    assert (
        cells["hour_winds/knn"]
        == files.read_json(HOME / "evaluated/hour_winds/metrics.json")["cells"]["knn"]
    )


def test_nothing_evaluated_is_an_error_that_says_what_to_run(tmp_path):
    with pytest.raises(DataError, match="dvc repro") as caught:
        gather(tmp_path)
    assert str(tmp_path / "evaluated") in str(caught.value)


# --- table.md


def shown(text: str, place: int = 0) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Data set -> (titles, rows of cells) of its first Markdown table, or of another one."""
    found = {}
    for part in re.split(r"(?m)^## ", text)[1:]:
        grids = re.findall(r"(?m)(?:^\|.*\n)+", part)
        lines = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in grids[place].splitlines()
        ]
        assert len({len(line) for line in lines}) == 1, "rows of unequal length"
        found[part.splitlines()[0]] = (lines[0], lines[2:])
    return found


def test_every_number_of_the_table_is_the_one_in_metrics_json(project):
    arms = parts.read(HOME)["arms"]
    metric = {title: key for key, title in tables.COLUMNS}
    assert len(metric) == len(tables.COLUMNS)
    seen = []
    for dataset, (titles, rows) in shown((HOME / "table.md").read_text()).items():
        for row in rows:
            arm = arms[f"{dataset}/{row[0]}"]
            seen.append(f"{dataset}/{row[0]}")
            assert row[1] == str(arm["seeds"])
            assert set(titles) - set(metric) == {
                "model",
                "seeds",
                "vs hour_average",
                PRINTED,
            } and set(metric) < set(titles)
            for title, cell in zip(titles, row, strict=True):
                if title not in metric:
                    continue
                summary = arm["metrics"].get(metric[title])
                said = re.fullmatch(
                    r"(-?\d+\.\d\d)(?: ± (\d+\.\d\d))?(?: \[(-?\d+\.\d\d), (-?\d+\.\d\d)\])?", cell
                )
                if summary is None:
                    assert cell == "–"
                    continue
                ends = (
                    ("mean", "std", "low", "high")
                    if metric[title] == "rmse_component_kn"
                    else ("mean", "std")
                )
                assert list(said.groups()[: len(ends)]) == [
                    f"{summary[p]:.2f}" if p in summary else None for p in ends
                ]
    assert sorted(seen) == sorted(arms)


def test_the_table_names_points_floor_and_printed_values(project):
    text = (HOME / "table.md").read_text()
    simulated, hour = re.split(r"(?m)^## ", text)[2], re.split(r"(?m)^## ", text)[1]
    assert simulated.startswith(
        "simulated\n\n3,210 held-out points. Noise floor of the sensors: 2.50 kn per component.\n"
    )
    assert hour.startswith("hour_winds\n\n3,210 held-out points.\n") and "Noise floor" not in hour
    printed = {
        row[0]: row[titles.index(PRINTED)] for titles, rows in shown(text).values() for row in rows
    }
    assert printed == {
        "day_average": "–",
        "hour_average": "–",
        "knn": "–",
        "kernel": "7.55–9.19 (thesis 1.2, 3 days)",
        "msa-shared-20k": "7.98 ± 0.03 (thesis 3.2)",
        "msa-gaussian-20k": "–",
    }


# --- the stage


def test_the_record_names_what_was_read_and_what_was_written(project):
    record = files.read_json(records.location("tabulate", PROFILE, experiment=EXPERIMENT))
    drawn = {file.as_posix() for file in (HOME / "figures").iterdir()}
    assert (
        set(record["outputs"])
        == {
            f"{HOME}/{name}"
            for name in ("metrics.json", "breakdowns.json", "table.md", "claims.json")
        }
        | drawn
        and len(drawn) == 10
    )
    for path, described in (record["outputs"] | record["inputs"]).items():
        assert described == {"sha256": files.sha256(path), "bytes": Path(path).stat().st_size}
    read = {
        f"{HOME}/evaluated/{dataset}/{name}"
        for dataset in CELLS
        for name in ("metrics.json", "slices.parquet", "predictions-knn.parquet")
    }
    assert read | {
        f"reports/{EXPERIMENT}/companions.csv",
        "data/published/a.csv",
        "data/mini/prepared/simulated/rows.parquet",
    } <= set(record["inputs"])
    assert record["code"]["modules"] == ["stages.winds.tabulate"]
    assert {"stages/winds/claims.py", "stages/tables/table.py"} <= set(record["code"]["files"])


def test_the_weather_services_metrics_stand_above_the_printed_rows(monkeypatch):
    monkeypatch.chdir(results_project.ROOT)  # to read what the document prints
    names = [key for key, _, _ in tables.WEATHER]
    arms = {
        "hour_winds/msa-shared-20k": {
            "seeds": 1,
            "metrics": {
                name: {"mean": float(k), "unit": "1", "n": 3} for k, name in enumerate(names)
            },
        },
        "hour_winds/knn": {
            "seeds": 1,
            "metrics": {tables.RMSE: {"mean": 9.0, "unit": "kn", "n": 3}},
        },
    }
    table = tables.weather(arms, "hour_winds", weather())
    assert table.rows[0] == (
        "msa-shared-20k",
        "0.00",
        "1.00",
        "2.00",
        "3.00",
        "4.00",
        "5.00",
        "6.00",
    ) and not any(row[0] == "knn" for row in table.rows)
    told = {row[0]: row[1:] for row in table.rows}
    assert told["printed, msa"] == (
        "7.36 ± 0.06",
        "20.48 ± 0.48",
        "5.67 ± 0.11",
        "0.00 ± 0.02",
        "-0.04 ± 0.64",
        "1.09 ± 0.02",
        "0.55 ± 0.05",
    )
    assert set(told) == {
        "msa-shared-20k",
        *(f"printed, {model}" for model in ("cnp", "gen", "gka", "tfs", "msa")),
    }
    assert (
        tables.weather({"hour_winds/knn": arms["hour_winds/knn"]}, "hour_winds", weather()) is None
    )


def test_claims_are_checked_on_every_data_set_and_come_from_its_slices(project):
    claims = json.loads((HOME / "claims.json").read_text())
    assert {(claim["id"], claim["dataset"]) for claim in claims} >= {
        (name, dataset) for name in ("I-1", "I-5", "I-10", "I-12") for dataset in CELLS
    }
    late = next(
        claim for claim in claims if claim["id"] == "I-5" and claim["dataset"] == "simulated"
    )["compared"]["msa-shared-20k < kernel at 120 min"]
    assert late["difference_kn"] == pytest.approx(
        1.4 * 1.25**0.5, abs=0.01
    )  # 9.0 - 7.6 kn, times the root of the slices' mean 1 + 0.1 s


def test_figures_are_asked_for_with_the_arms_and_cells_of_the_table(project):
    home, prepared, arms, cells = project[0]
    stored = parts.read(HOME)
    assert (home, prepared, arms, cells) == (
        HOME,
        Path("data/mini/prepared"),
        stored["arms"],
        stored["cells"],
    )


def test_a_second_run_writes_the_same_bytes(project):
    paths = [
        HOME / name for name in ("metrics.json", "breakdowns.json", "table.md", "claims.json")
    ] + [records.location("tabulate", PROFILE, experiment=EXPERIMENT)]
    before = [path.read_bytes() for path in paths]
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    assert [path.read_bytes() for path in paths] == before
