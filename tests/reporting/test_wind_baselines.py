"""wind_baselines in tables and on the page: percent of the optimum, days as in table 1.2, leads
as in figure 3.3, sweeps, names whole for audit."""

import re
from pathlib import Path

import baselines_project
import pytest
import results_project
import stage_runs
from baselines_project import EXPERIMENT, HOME
from results_project import PROFILE

from stages import files, records
from stages.figures import sweeps as sweep_figures
from stages.figures.colours import colour
from stages.figures.drawing import plt
from stages.page.findings import block
from stages.tables import parts
from stages.tables.gather import over_seeds
from stages.tables.published import Printed
from stages.tables.table import Table, label
from stages.winds import figures, page, tables, tabulate


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Both experiments with forecasts, tabulated, and the page over them; the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("baselines")
        patch.chdir(root)
        results_project.build(root)
        baselines_project.build(root)
        patch.setattr(figures, "draw", results_project.plain_figures)
        for experiment in (results_project.EXPERIMENT, EXPERIMENT):
            stage_runs.tabulate(tabulate, experiment, PROFILE)
            stage_runs.write_pages(page, experiment, PROFILE)
        yield parts.read(HOME)


def section(dataset: str) -> str:
    """The part of table.md about a data set."""
    return next(
        part
        for part in re.split(r"(?m)^## ", (HOME / "table.md").read_text())
        if part.startswith(dataset + "\n")
    )


def column(found: Table, title: str) -> dict[str, str]:
    return {row[0]: row[found.titles.index(title)] for row in found.rows}


def test_the_percent_of_the_optimum_is_its_error_over_the_models_and_only_where_it_is_known(
    project,
):
    arms = project["arms"]
    assert column(tables.results(arms, "gp_wind", {}), "of the optimum [%]") == {
        "hour_average": "25.0",
        "persistence": "41.7",
        "kriging": "80.0",
        "optimum": "100.0",
    }
    assert "of the optimum [%]" not in tables.results(arms, "simulated", {}).titles
    assert "best forecast there is" in section(
        "gp_wind"
    ) and "best forecast there is" not in section("simulated")
    assert not any(
        "optimum" in key for arm in arms.values() for key in arm["metrics"]
    )  # derived where it is shown


def test_people_read_names_without_a_size_that_is_none_and_audit_gets_them_whole(project):
    text = section("simulated")
    shown = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| gka")]
    assert {"gka-swept", "gka_tnn-cached", "gka_tnn-requery", "gka_mlp_tnn-cached"} <= set(
        shown
    ) and not any("none" in name for name in shown)
    assert (
        "`gka_tnn-cached-none-s1`" in text
        and f"tradewind audit {EXPERIMENT}/{PROFILE}/simulated/CELL/rmse_component_kn" in text
    )
    assert set(project["cells"]) == {
        f"{dataset}/{cell}" for dataset, cells in baselines_project.CELLS.items() for cell in cells
    }


@pytest.mark.parametrize(
    "name, shown",
    [
        ("gka_tnn-cached-none", "gka_tnn-cached"),
        ("gka_tnn-cached-none-s2", "gka_tnn-cached-s2"),
        ("optimum", "optimum"),
        ("msa-shared-20k", "msa-shared-20k"),
        ("nonesuch-none-x", "nonesuch-none-x"),
    ],
)
def test_only_a_size_is_left_out_of_a_name(name, shown):
    assert label(name) == shown


def test_days_stand_beside_the_documents_days_and_epochs(project):
    printed = {
        "gka_tnn-cached-none": [
            results_project_printed(day, value) for day, value in ((1, 8.71), (2, 9.19), (3, 7.55))
        ],
        "hour_average": [results_project_printed(1, 26.19)],
    }
    found = tables.by_day(
        project["arms"],
        project["cells"],
        "simulated",
        printed,
        {"printed epoch [s]": {"gka_tnn-cached-none": "253"}},
    )
    assert found.titles == (
        "model",
        "2026-01-15 [kn]",
        "2026-01-16 [kn]",
        *(f"printed, day {day} [kn]" for day in (1, 2, 3)),
        "printed epoch [s]",
    )
    rows = {row[0]: row[1:] for row in found.rows}
    # mean over the two seeds: 9.2 [8.2, 10.2]; the second day is 2 kn worse
    assert rows["gka_tnn-cached"] == (
        "9.20 [8.20, 10.20]",
        "11.20 [10.20, 12.20]",
        "8.71",
        "9.19",
        "7.55",
        "253",
    )
    assert rows["hour_average"] == (
        "20.00 [18.00, 22.00]",
        "22.00 [20.00, 24.00]",
        "26.19",
        "–",
        "–",
        "–",
    )
    assert (
        "| gka_tnn-cached | 9.20 [8.20, 10.20] | 11.20 [10.20, 12.20] | 8.71 | 9.19 | 7.55 | 253 |"
        in section("simulated")
    )


def results_project_printed(day: int, value: float) -> Printed:
    return Printed("thesis 1.2", f"wind_day{day}", value, None, "")


def test_leads_compare_what_averages_its_neighbours_with_persistence(project):
    found = tables.by_lead(project["arms"], project["cells"], "simulated")
    assert found.titles == ("model", "5 min [kn]", "30 min [kn]", "120 min [kn]")
    assert [row[0] for row in found.rows] == [
        "persistence",
        "gka-swept",
        "gka_tnn-cached",
        "gka_tnn-requery",
        "gka_mlp_tnn-cached",
    ]
    assert found.rows[2][1:] == (
        "9.20 [8.20, 10.20]",
        "10.20 [9.20, 11.20]",
        "11.20 [10.20, 12.20]",
    )
    alone = {
        name: cell
        for name, cell in project["cells"].items()
        if "gka" not in name and "optimum" not in name
    }
    assert tables.by_lead(over_seeds(alone), alone, "simulated") is None


def test_sweeps_tell_the_first_best_trial_with_units(project):
    found = tables.sweeps(HOME / "sweeps/simulated", "simulated")
    assert found.rows == (
        ("gka", "tpe", "4", "1", "1", "8.50", "horizontal 26.6 km, places 8, noise 0.7"),
    )
    assert tables.sweeps(HOME / "sweeps/gp_wind", "gp_wind") is None
    assert "| gka | tpe | 4 | 1 | 1 | 8.50 | horizontal 26.6 km, places 8, noise 0.7 |" in section(
        "simulated"
    )


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("horizontal_km", "5", "horizontal 5 km"),
        ("time_min", "90", "time 90 min"),
        ("ageing_s", "112", "ageing 112 s"),
        ("places", "8", "places 8"),
        ("km", "8", "km 8"),
        ("walk_per_m", "1", "walk_per_m 1"),
    ],
)
def test_an_argument_is_told_with_the_unit_in_its_name(name, value, shown):
    assert tables.quantity(name, value) == shown


def test_the_history_of_a_sweep_falls_to_its_best_and_marks_what_was_pruned(project):
    folder = HOME / "sweeps/simulated"
    drawn = sweep_figures.drawn(
        tables.trials_of(folder),
        sweep_figures.importances_of(folder),
        tables.samplers_of(folder),
        colour,
    )
    panels = [panel for part in drawn.subfigs for panel in part.axes]
    assert [panel.get_title() or panel.get_xlabel() for panel in panels] == [
        "error, and the least so far",
        "expected best of k draws",
        "importance",
        "horizontal_km",
        "places",
        "noise",
    ]
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in panels[0].get_lines()]
    assert lines[1] == ([1, 2, 4, 4], [11.25, 8.5, 8.5, 8.5]) and lines[2][0] == [3]
    assert [panel.get_xscale() for panel in panels[3:]] == ["log", "linear", "log"]
    assert [bar.get_width() for bar in panels[2].patches] == [0.5, 0.3, 0.2]
    assert "not independent" in panels[1].texts[0].get_text()
    plt.close(drawn)


def test_the_record_names_the_sweeps_it_showed(project):
    record = files.read_json(records.location("tabulate", PROFILE, experiment=EXPERIMENT))
    assert f"{HOME}/sweeps/simulated/gka/trials.csv" in record["inputs"]


@pytest.mark.parametrize(
    "names, expected",
    [
        (["knn", "kernel", "msa-gaussian-20k", "trend"], ["trend", "kernel", "msa-gaussian-20k"]),
        (["persistence", "gka-swept-none", "kriging"],) * 2,
        (
            ["day_average", "persistence", "gka-swept-none", "gka_tnn-cached-none"],
            ["persistence", "gka_tnn-cached-none"],
        ),
        (["hour_average"],) * 2,
    ],
)
def test_errors_are_mapped_of_models_worth_comparing(names, expected):
    assert figures.mapped(names) == expected


def test_claims_of_both_experiments_are_their_own(project):
    ids = {
        experiment: {
            claim["id"]
            for claim in files.read_json(Path("reports", experiment, PROFILE, "claims.json"), list)
        }
        for experiment in (results_project.EXPERIMENT, EXPERIMENT)
    }
    assert ids[EXPERIMENT] == {"W-1"} and "W-1" not in ids[results_project.EXPERIMENT]


def test_each_experiment_has_its_page_and_the_front_page_leads_to_both(project):
    text = Path("reports/index.html").read_text()
    for experiment in (results_project.EXPERIMENT, EXPERIMENT):
        address = f"{experiment}/{PROFILE}/page.html"
        assert f'href="#{experiment}-{PROFILE}"' in text
        assert f'href="{address}#{experiment}-{PROFILE}-simulated"' in text
        own = Path("reports", address).read_text()
        assert f'id="{experiment}-{PROFILE}-simulated"' in own
        assert f"results on simulated ({experiment}, {PROFILE})" in own
    part = own[
        own.index(f'id="{EXPERIMENT}-{PROFILE}-gp_wind"') : own.index(
            f'id="{EXPERIMENT}-{PROFILE}-simulated"'
        )
    ]
    assert "<td>80.0</td>" in part and "best forecast there is in mean square" in part
    assert "<code>gka_tnn-cached-none-s0</code>" in own


def test_an_epoch_stands_beside_the_printed_one_where_it_was_timed_and_says_on_which_machine(
    project, tmp_path, monkeypatch
):
    columns, said = page.durations(EXPERIMENT, PROFILE)
    assert (
        columns == {"printed epoch [s]": {"gka_tnn-cached-none": "253"}}
        and "document's machine" in said
    )
    monkeypatch.chdir(tmp_path)
    baselines_project.build(tmp_path)
    with (HOME.parent / "companions.csv").open("a") as stream:
        stream.write("gka_mlp_tnn-cached-none,thesis 1.2,gka_mlp_tnn,,\n")
    with Path("data/published/b.csv").open("a") as stream:
        stream.write("thesis 1.2,x,wind_1day,gka_mlp_tnn,,,none,epoch_duration,s,min,261,,,\n")
    files.write_json(
        Path("reports/neighbours", PROFILE, "benchmarks.json"),
        {
            "epoch": {
                "points": 1_000_000,
                "steps": 1440,
                "targets": 700,
                "context": 64,
                "steps_timed": 200,
                "seconds": 41.4,
            }
        },
    )
    columns, said = page.durations(EXPERIMENT, PROFILE)
    assert columns == {
        "epoch [s]": {"gka_mlp_tnn-cached-none": "41"},
        "printed epoch [s]": {"gka_tnn-cached-none": "253", "gka_mlp_tnn-cached-none": "261"},
    }
    assert "1,000,000 points" in said and "41 s" in said and "document's machine" in said


def test_the_readmes_block_has_a_table_a_set_of_each_experiment(project):
    text = block(PROFILE, [results_project.EXPERIMENT, EXPERIMENT])
    assert re.findall(r"(?m)^\*([^*]+)\*:", text) == [
        f"{PROFILE}, hour_winds",
        f"{PROFILE}, simulated",
        f"{PROFILE}, gp_wind, {EXPERIMENT}",
        f"{PROFILE}, simulated, {EXPERIMENT}",
    ]
    assert "| kriging | 6.25 [6.00, 6.50] | -69 % | 80.0 | – |" in text
    assert (
        "| gka_tnn-cached | 9.20 ± 0.28 [8.20, 10.20] | -54 % | 7.55–9.19 (thesis 1.2, 3 days) |"
        in text
    )
    assert text.count("| against the hour average |") == 4 and text.count("of the optimum [%]") == 1
