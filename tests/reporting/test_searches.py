"""The neighbour search in tables, figures and on the page: counts of the DAG, times of the
benchmark, printed values, and the bound explained."""

import math
import re
from pathlib import Path

import pytest
import search_project
import stage_runs
from page_reader import Page, read, rows_of
from results_project import PROFILE
from search_project import EXAMPLE, EXPERIMENT, HOME, METHODS, QUERIES, SEEN

from stages import files, records
from stages.neighbours.experiment import figures as search_figures
from stages.neighbours.experiment import page, tabulate
from stages.neighbours.experiment import results as searches
from stages.neighbours.experiment import tables as search_tables
from stages.neighbours.experiment.printed import searches as printed_searches
from stages.tables import parts
from stages.tables.gather import over_seeds

SRW = "smoothed_random_walk"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The experiment tabulated (figures and all) and the page over it; the working folder."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("searches")
        patch.chdir(root)
        search_project.build(root)
        stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
        stage_runs.write_pages(page, EXPERIMENT, PROFILE)
        yield parts.read(HOME)


@pytest.fixture(scope="module")
def found(project) -> search_tables.SearchResults:
    return searches.found_in(EXPERIMENT, PROFILE, project)


@pytest.fixture(scope="module")
def seen(project) -> Page:
    return read(f"{EXPERIMENT}/{PROFILE}/page.html")


def by_method(table: search_tables.Table) -> dict[tuple[str, str], dict[str, str]]:
    return {row[:2]: dict(zip(table.titles, row, strict=True)) for row in table.rows}


def test_metrics_have_the_form_that_audit_walks_and_tell_what_each_set_is(project):
    assert set(project["cells"]) == {
        f"{name}/{cell}" for name in ("simulated", SRW) for cell in search_project.cells()
    }
    assert (
        project["arms"].keys() == project["cells"].keys()
    )  # one cell an arm: nothing is drawn twice
    share = project["arms"][f"{SRW}/boxes-aniso-k1000"]["metrics"]["comparisons_share"]
    assert share == {
        "mean": 0.04,
        "low": pytest.approx(0.036),
        "high": pytest.approx(0.044),
        "unit": "1",
        "n": QUERIES,
    }
    assert project["sets"] == {
        name: {"points": 50_000, "trajectories": 100, "window": 0.05} for name in ("simulated", SRW)
    }
    assert project["bound"]["counterexample"] == EXAMPLE and set(project["bound"]["counted"]) == {
        "simulated",
        SRW,
    }


def test_counts_times_and_printed_values_stand_side_by_side(found):
    rows = by_method(search_tables.main(found, SRW))
    assert len(rows) == len(METHODS) + 2  # every method, and linear search and TNN on the GPU
    assert rows["TNN (thesis), bound mended", "CPU"] == {
        "method": "TNN (thesis), bound mended",
        "device": "CPU",
        "comparisons a query": "2,000 [1,800, 2,200]",
        "of what it sees [%]": "5.00 [4.50, 5.50]",
        "printed comparisons": "58,408 (thesis 1.3)",
        "points timed": "1,000,000",  # comparisons are of the 50,000 that stand above the table
        "query [ms]": "1.25",
        "printed query [ms]": "1.60 (thesis 1.3)",
        "build [s]": "0.75",
        "printed build [s]": "1.00 (thesis A.2)",
        "wrong answers": f"0 of {QUERIES}",
    }
    gpu = rows["TNN (thesis), bound mended", "GPU"]
    assert (
        gpu["query [ms]"],
        gpu["printed query [ms]"],
        gpu["comparisons a query"],
        gpu["wrong answers"],
    ) == ("0.125", "0.39 (thesis 1.3)", "–", "–")
    assert rows["k-d tree in Python, masked", "CPU"]["query [ms]"] == "123"
    assert rows["boxes, compiled", "CPU"]["query [ms]"] == "–"  # was not timed


def test_the_documents_own_winds_stand_beside_a_prepared_set_whatever_its_name(found):
    rows = by_method(search_tables.main(found, "simulated"))
    assert rows["linear search", "CPU"]["printed comparisons"] == "811,372 (thesis 1.3)"
    assert rows["linear search", "CPU"]["comparisons a query"].startswith(f"{SEEN:,} ")
    assert (
        by_method(search_tables.main(found, SRW))["linear search", "CPU"]["printed comparisons"]
        == "–"
    )


def test_wrong_answers_are_told():
    arms = over_seeds({"d/linear-aniso-k5": search_project.cell(1.0, wrong=3)})
    rows = by_method(search_tables.main(search_tables.SearchResults(arms, {}, {}), "d"))
    assert (
        rows["linear search", "CPU"]["wrong answers"] == f"3 of {QUERIES}"
        and rows["boxes, compiled", "CPU"]["wrong answers"] == "–"
    )


def test_leaves_hold_the_dag_s_trees_and_the_timed_ones_in_order(found):
    rows = by_method(search_tables.leaves(found, SRW))
    assert [name for name, _ in rows] == [
        "SciPy cKDTree, plain, leaves of 10",
        *(
            f"k-d tree, {kind}, leaves of {leaf}"
            for kind in ("plain", "scaled", "masked")
            for leaf in (10, 100)
        ),
    ]
    assert rows["k-d tree, masked, leaves of 100", "CPU"]["query [ms]"] == "123" and rows[
        "k-d tree, plain, leaves of 10", "CPU"
    ]["comparisons a query"].startswith("15,000 ")
    assert (
        rows["SciPy cKDTree, plain, leaves of 10", "CPU"]["comparisons a query"] == "–"
    )  # SciPy does not tell


def test_shares_are_told_at_every_k_and_scale(found):
    table = search_tables.shares(found, SRW)
    assert table.titles[1:] == tuple(
        f"({scale}), k = {k} [%]" for scale in ("1, 1, 1, 1", "1, 1, 4, 9") for k in (16, 1000)
    )
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["boxes, compiled"][:2] == ("1.00 [0.90, 1.10]", "2.00 [1.80, 2.20]")
    assert rows["TNN, the box's bound alone"] == ("–", "5.00 [4.50, 5.50]", "–", "–")


def test_ratios_goals_and_the_large_index_are_the_benchmarks(found):
    speed = search_tables.speed(found)
    assert speed.titles[3:] == (
        "yardstick [ms a query]",
        "compiled over it",
        "boxes over it",
        "linear over it",
    )
    assert (
        speed.rows[0] == (SRW, "1, 1, 1, 1", "16", "4", "0.075", "0.25", "2")
        and len(speed.rows) == 4
    )
    assert [row[3] for row in search_tables.goals(found).rows] == ["met", "missed"]
    assert search_tables.large(found).rows[1][1:] == (
        "33,000,000",
        "61",
        "1,900",
        "4",
        "4.0 (at 33 times the points)",
    )


def test_times_name_their_machine_and_a_noisy_one_is_told(found):
    assert all(
        part in search_tables.measured_on(found.times)
        for part in (
            "make bench-neighbours",
            "Some CPU",
            "2 cores",
            "1 thread,",
            "Some GPU",
            "2026-01-02",
        )
    )
    assert "not quiet" not in search_tables.measured_on(found.times)
    assert "1.5 cores" in search_tables.measured_on(
        {**found.times, "quiet": False, "others_cores": 1.5}
    )


def test_without_a_benchmark_counts_stand_alone_and_nothing_is_invented(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    search_project.build(tmp_path, times=False)
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    text, content = (HOME / "table.md").read_text(), parts.read(HOME)
    assert "Times were not measured" in text and "## Goals" not in text and "epoch" not in text
    assert {
        row["query [ms]"]
        for row in by_method(
            search_tables.main(searches.found_in(EXPERIMENT, PROFILE, content), SRW)
        ).values()
    } == {"–"}
    assert {file.name for file in (HOME / "figures").iterdir()} == {
        "bound.png",
        "simulated-surface.png",
        f"{SRW}-surface.png",
    }
    assert (
        f"{HOME}/benchmarks.json"
        in files.read_json(records.location("tabulate", PROFILE, experiment=EXPERIMENT))["inputs"]
    )
    w4 = [
        claim["verdict"]
        for claim in files.read_json(HOME / "claims.json", list)
        if claim["id"] == "W-4"
    ]
    assert w4 == ["undecided"] * 2 and read().problems == []


def test_claims_are_the_searchs_own(project):
    claims = files.read_json(HOME / "claims.json", list)
    assert {claim["id"] for claim in claims} == {"W-2", "W-3", "W-4", "W-5"}
    assert [claim["verdict"] for claim in claims if claim["id"] == "W-2"] == ["holds", "holds"]


# --- the bound


def test_the_argument_says_the_numbers_of_the_counterexample(project):
    text = " ".join(searches.argument(project["bound"])[0])
    for part in (
        "3² − 1² = 8",
        "really 4",
        "within 2.83",
        "lies 2 away",
        "6.25 < 8",
        "3 − 1 = 2, squared 4",
    ):
        assert part in text, part
    other = {
        **EXAMPLE,
        "distance_to_line": 5.0,
        "deviation": 2.0,
        "printed": 21.0,
        "true": 9.0,
        "rival_true": 16.0,
    }
    assert "5² − 2² = 21" in " ".join(searches.argument({"counterexample": other})[0])


def test_the_failures_are_counted_for_each_set_and_scale(project):
    table = searches.bound_table(project["bound"])
    assert table.rows == tuple(
        (name, scale, share, f"17 of {QUERIES}", "0", "0")
        for name in ("simulated", SRW)
        for scale, share in (("1, 1, 1, 1", "25.00"), ("1, 1, 4, 9", "12.50"))
    )
    assert "k = 1000" in table.titles[3]


def test_the_figure_draws_the_nearest_point_inside_the_printed_circle_and_on_the_mended_one(
    monkeypatch, tmp_path
):
    kept = []
    monkeypatch.setattr(search_figures, "save", lambda figure, path: kept.append(figure.axes[0]))
    search_figures.bound(EXAMPLE, tmp_path / "x.png")
    radii = sorted(
        {patch.get_radius() for patch in kept[0].patches if hasattr(patch, "get_radius")}
    )
    near = math.dist(EXAMPLE["query"], EXAMPLE["run"][EXAMPLE["nearest"]])
    assert radii == pytest.approx([near, math.sqrt(8)]) and near < radii[1]
    search_figures.plt.close(kept[0].figure)


# --- figures


def test_figure_1_4_shows_the_counted_share_and_the_timed_speed_up(monkeypatch, tmp_path, found):
    kept = []
    monkeypatch.setattr(search_figures, "save", lambda figure, path: kept.append(figure))
    assert search_figures.surface(found, SRW, tmp_path / "x.png")
    share, faster = [[float(text.get_text()) for text in panel.texts] for panel in kept[0].axes]
    assert share == pytest.approx(
        [
            100 * (0.001 * k + 0.01 * f)
            for k in search_project.SEGMENTS
            for f in search_project.FETCH
        ],
        abs=0.05,
    )
    assert faster == pytest.approx(
        [0.05 * k / f for k in search_project.SEGMENTS for f in search_project.FETCH], rel=0.05
    )
    bold = [
        [text.get_text() for text in panel.texts if text.get_weight() == "bold"]
        for panel in kept[0].axes
    ]
    assert bold == [["3.0"], ["5"]]  # the least looked at, the fastest
    assert (
        search_figures.surface(found, "simulated", tmp_path / "x.png") and len(kept[1].axes) == 1
    )  # was not timed
    for figure in kept:
        search_figures.plt.close(figure)


def test_ratios_are_drawn_over_the_yardstick_on_a_logarithmic_axis(monkeypatch, tmp_path, found):
    kept = []
    monkeypatch.setattr(search_figures, "save", lambda figure, path: kept.append(figure.axes[0]))
    assert search_figures.ratios(found.times, tmp_path / "x.png") and not search_figures.ratios(
        {}, tmp_path / "x.png"
    )
    lines = {line.get_label(): list(line.get_ydata()) for line in kept[0].get_lines()}
    assert lines["compiled, scale 1, 1, 4, 9"] == pytest.approx([0.075, 0.075]) and lines[
        "linear, scale 1, 1, 1, 1"
    ] == pytest.approx([2, 2])
    assert kept[0].get_yscale() == "log" and [0.5, 0.5] in [
        list(line.get_ydata()) for line in kept[0].get_lines()
    ]  # the goal of boxes
    search_figures.plt.close(kept[0].figure)


def test_a_second_run_writes_the_same_bytes(project):
    paths = [
        *(HOME / name for name in ("metrics.json", "breakdowns.json", "table.md", "claims.json")),
        *sorted((HOME / "figures").iterdir()),
        records.location("tabulate", PROFILE, experiment=EXPERIMENT),
    ]
    before = [path.read_bytes() for path in paths]
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    assert [path.read_bytes() for path in paths] == before
    assert len(paths) == 9 and files.read_json(paths[-1])["code"]["modules"] == [
        "stages.neighbours.experiment.tabulate"
    ]


# --- the page


def test_the_page_is_sound_and_holds_every_table_and_figure(seen):
    assert seen.problems == [] and len(seen.ids) == len(set(seen.ids)) and len(seen.figures) == 4
    assert {
        f"{EXPERIMENT}-{PROFILE}-bound",
        f"{EXPERIMENT}-{PROFILE}",
        f"{EXPERIMENT}-{PROFILE}-{SRW}",
    } <= set(seen.ids)
    where = f"({EXPERIMENT}, {PROFILE})"
    assert {
        f"{kind} of {name} {where}"
        for kind in ("searches", "shares", "leaves")
        for name in ("simulated", SRW)
    } | {f"{name} {where}" for name in ("speed", "large", "goals", "bounds")} <= set(seen.tables)
    assert (
        next(
            row
            for row in rows_of(seen, f"searches of {SRW} {where}")
            if row["method"].startswith("TNN")
        )["query [ms]"]
        == "1.25"
    )
    assert "1 of 2 goals met" in seen.text and "41 s" in seen.text and "3² − 1² = 8" in seen.text
    assert [
        value for tag, name, value in seen.attributes if tag == "svg" and name == "aria-label"
    ] == ["lineage of simulated", f"lineage of {SRW}"]


def test_the_readme_beside_the_page_finds_the_figure(seen):
    links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", Path("reports/README.md").read_text())
    assert links and all(Path("reports", link).exists() for link in links)


def test_printed_rows_that_are_read_are_those_that_companions_name(project):
    assert set(printed_searches(EXPERIMENT)) == {
        (SRW, "trajectory"),
        (SRW, "trajectory-gpu"),
        ("original", "linear"),
    }
