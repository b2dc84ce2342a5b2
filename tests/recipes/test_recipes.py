"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the project: what they add
works, and they touch few files.

The copy's profile mini is shrunk to its smallest data set, which is prepared once; each recipe has
a clone of that copy.
"""

import hashlib
import json
import re
import shutil

import polars as pl
import pytest
from recipe import ROOT, Step, commit, copy, recipes, run, touched

from stages.tables import parts

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = recipes(TEXT)
MODEL, DATASET, EXPERIMENT = "Add a field model", "Add a data set", "Add an experiment"
FAMILY = "Add a family"  # followed in test_family.py
SMALL = [("[simulated, gp_wind", "[gp_wind"), ("original: [simulated]", "original: [gp_wind]")]
CELLS = [  # of mini: those of the data set that is left
    ("wind_nowcast", r"\bsimulated\b", "gp_wind"),
    ("wind_processes", r"\bsimulated\b", "gp_wind"),
    ("wind_baselines", r"(?m)^    mini-simulated-.*\n|(?<=\[)simulated, ", ""),
]
DVC = ("dvc", "repro")


def hour() -> bytes:
    """The published file of the data set's recipe: twelve aircraft, a report each half minute."""
    rows = ["unix_s,aircraft,latitude,longitude,altitude_ft,speed_kn,from_deg"]
    for step in range(120):
        for a in range(12):
            rows.append(
                f"{1767225600 + 30 * step},4b1{a:03x},{45 + (7 * a + step) % 100 / 50:.4f},"
                f"{6 + (11 * a + 2 * step) % 150 / 50:.4f},{28000 + 900 * a + 10 * (step % 5)},"
                f"{40 + (3 * a + step // 4) % 30},{(230 + 5 * a + step) % 360}"
            )
    return ("\n".join(rows) + "\n").encode()


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A copy of the project whose profile mini has one data set, prepared."""
    folder = copy(tmp_path_factory.mktemp("small") / "project")
    params = folder / "params.yaml"
    head, tail = params.read_text(encoding="utf-8").split("\n  sample: &sample", 1)
    for old, new in SMALL:
        assert old in head, f"params.yaml, profile mini: {old}"
        head = head.replace(old, new)
    params.write_text(f"{head}\n  sample: &sample{tail}", encoding="utf-8")
    for experiment, old, new in CELLS:
        file = folder / "reports" / experiment / "cells.yaml"
        head, tail = file.read_text(encoding="utf-8").split("\nsample: &sample", 1)
        assert re.search(old, head), file
        file.write_text(f"{re.sub(old, new, head)}\nsample: &sample{tail}", encoding="utf-8")
    budget = folder / "stages/params/budgets/mini/winds.yaml"
    budget.write_text(
        budget.read_text(encoding="utf-8").replace("bootstrap: 1000", "bootstrap: 100"),
        encoding="utf-8",
    )
    run(folder, *DVC, "prepare@mini-gp_wind")
    commit(folder)
    return folder


@pytest.fixture
def project(small, tmp_path):
    """A clone of the small project, in which a recipe can be followed."""
    return shutil.copytree(small, tmp_path / "project", symlinks=True)


def follow(folder, *titles: str) -> set[str]:
    """Follow recipes one after the other; the files of the last that differ from before it."""
    for title in titles:
        commit(folder) if touched(folder) else None
        for step in RECIPES[title]:
            step.follow(folder)
    return touched(folder)


def test_contributing_holds_the_four_recipes_and_nothing_else_that_would_go_unproven():
    assert set(RECIPES) == {MODEL, DATASET, EXPERIMENT, FAMILY}
    assert (
        sum(map(len, RECIPES.values()))
        == len(re.findall(r"<!-- (?:file|edit)", TEXT))
        == len(re.findall(r"(?m)^```\w+$", TEXT))
    )


def test_a_step_that_does_not_fit_its_file_is_refused(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\ntwo\nthree\n")
    Step("edit", "a.txt", " one\n+new\n@@\n-three\n+3\n").follow(tmp_path)
    assert file.read_text() == "one\nnew\ntwo\ntwo\n3\n"
    for text in (" absent\n+new\n", " two\n+new\n", "+new\n", " one\n"):
        with pytest.raises(AssertionError):
            Step("edit", "a.txt", text).follow(tmp_path)
    with pytest.raises(AssertionError, match="already"):
        Step("file", "a.txt", "x").follow(tmp_path)


def test_a_model_by_the_recipe_obeys_the_laws_passes_its_own_test_and_is_a_stage_in_five_files(
    project,
):
    files = follow(project, MODEL)
    assert len(files) <= 5 and files == {step.path for step in RECIPES[MODEL]}
    said = run(
        project,
        "pytest",
        "tests/models/test_laws.py",
        "tests/models/test_median.py",
        "-k",
        "median",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    )
    assert int(re.search(r"(\d+) passed", said)[1]) > 12 + 5
    stages = run(project, "dvc", "stage", "list", "--name-only", "reports/wind_baselines/dvc.yaml")
    assert re.search(r"plain@mini-gp_wind-median\b", stages)


@pytest.mark.slow_fault
def test_a_data_set_by_the_recipe_is_acquired_decoded_judged_and_prepared_in_six_files(
    project, tmp_path
):
    published = tmp_path / "mirror/anything"
    published.parent.mkdir()
    published.write_bytes(hour())
    assert f"sha256: {hashlib.sha256(hour()).hexdigest()}\n+      bytes: {len(hour())}" in TEXT
    files = follow(project, DATASET)
    assert len(files) <= 6 and files == {step.path for step in RECIPES[DATASET]}
    run(project, "pytest", "tests/preparation/test_amdar.py", "-n", "0", "-p", "no:cacheprovider")
    run(project, "flows.profiles", "--set", "sample")
    run(project, *DVC, "prepare@sample-amdar_hour", TRADEWIND_MIRROR=str(published.parent))
    data = project / "data/sample"
    assert (data / "raw/amdar_hour/amdar_hour.csv").read_bytes() == hour()
    assert json.loads((data / "validated/amdar_hour.json").read_text())["success"] is True
    told = json.loads((data / "prepared/amdar_hour/prepared.json").read_text())
    assert told["kept"] == told["read"] == 1440 and min(told["rows"].values()) > 0
    first = (
        pl.read_parquet(data / "decoded/amdar_hour/winds.parquet")
        .filter(pl.col("record") == 0)
        .row(0, named=True)
    )
    assert (first["u_m_s"], first["v_m_s"]) == pytest.approx(
        (15.763, 13.227), abs=1e-3
    )  # 40 kn from 230 degrees


def test_an_experiment_by_the_recipe_ends_in_metrics_table_and_page_without_python(project):
    files = follow(project, MODEL, EXPERIMENT)
    assert files == {step.path for step in RECIPES[EXPERIMENT]} and not [
        name for name in files if name.endswith(".py")
    ]
    run(project, *DVC, "reports/robust_average/dvc.yaml:tabulate@mini")
    home = project / "reports/robust_average/mini"
    arms = parts.read(home)["arms"]
    assert set(arms) == {"gp_wind/persistence", "gp_wind/median"}
    assert all(0 < arm["metrics"]["rmse_component_kn"]["mean"] < 100 for arm in arms.values())
    table = (home / "table.md").read_text()
    assert all(
        re.search(
            rf"(?m)^\| \**{name}\** \| "
            rf"\**{arms[f'gp_wind/{name}']['metrics']['rmse_component_kn']['mean']:.2f}",
            table,
        )
        for name in ("persistence", "median")
    )
    commit(project)
    # what other experiments recorded and measured, perhaps before the tree was last edited, is no
    # matter of the recipe's
    run(
        project,
        "pytest",
        "tests/structure",
        "-k",
        "test_dag and not recorded or declarations",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    )
    for other in {*project.glob("reports/*/*/metrics.json")} - {home / "metrics.json"}:
        other.unlink()
    run(project, "stages.winds.page", "robust_average", "mini")
    run(project, "stages.page.report")
    assert (
        "Does the median of a minute" in (project / "reports/index.html").read_text()
        and (home / "figures").is_dir()
    )


def test_the_copy_is_the_project_as_it_stands_here(small):
    assert (small / "stages/errors.py").read_bytes() == (ROOT / "stages/errors.py").read_bytes()
    where = run(small, "timeit", "-n", "1", "-r", "1", "import stages; print(stages.__file__)")
    assert str(small) in where, (
        "the copy would run the project's code, and the recipes prove nothing"
    )
