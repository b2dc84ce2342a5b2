"""README.md and the texts that it leads to can be followed: their commands are understood, their
targets and files exist; the numbers of the findings are those of metrics.json.

Each check takes the text and the project's folder and returns what is wrong, so that it can be
shown to find planted mistakes.
"""

import json
from pathlib import Path

import pytest
from readme_checks import (
    BLOCK,
    CHECKS,
    ROOT,
    commands,
    left_blank,
    lines_not_understood,
    links_that_lead_nowhere,
    numbers_not_measured,
    numbers_not_published,
    ours,
    tables,
    targets_not_made,
)

from stages import cli
from stages.audit.history import blobs, git
from stages.errors import DataError
from stages.page import experiment
from stages.page.findings import FINDINGS, fill
from stages.winds import page as winds
from stages.winds.printed import companions, format_printed
from stages.winds.tables import label

# --- the project's own texts

TEXTS = ("README.md", FINDINGS.as_posix(), "reports/AUDIT.md")
WORDS = 1200  # of README.md; more is not read


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def told() -> str:
    """The findings."""
    return (ROOT / FINDINGS).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    """The commit's tables beside the working copy's other files: the findings are the commit's,
    and another processor's may differ from them (`tradewind compare` judges those). Without git,
    the working copy itself."""
    listed = git(ROOT, "ls-tree", "-r", "HEAD", "--", "reports")
    if not listed:
        return ROOT
    root = tmp_path_factory.mktemp("committed")
    for entry in ROOT.iterdir():
        if entry.name != "reports":
            (root / entry.name).symlink_to(entry)
    names = {
        path: about.split()[2]
        for about, _, path in (line.partition("\t") for line in listed.splitlines())
    }
    contents = blobs(ROOT, set(names.values()))
    for path, name in names.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(contents[name])
    return root


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_texts_say_nothing_that_is_not_so(committed, check, name):
    if check is numbers_not_measured and name != FINDINGS.as_posix():
        pytest.skip("only the findings have tables of results")
    text = (ROOT / name).read_text(encoding="utf-8")
    from_there = check is links_that_lead_nowhere
    assert check(text, (committed / name).parent if from_there else committed) == []


def test_the_readme_shows_the_two_commands_and_every_verb_and_the_nowcast_first(readme):
    assert {tuple(words[:2]) for words in commands(readme)} >= {("make", "repro"), ("make", "test")}
    verbs = [words[1] for words in ours(readme)]
    known = next(action.choices for action in cli.parser()._actions if action.dest == "verb")
    assert verbs[0] == "nowcast" and set(verbs) == set(known)


def test_the_readme_is_short_and_leads_to_the_findings_and_the_audit(readme, told):
    assert len(readme.split()) <= WORDS
    assert all(f"]({name})" in readme for name in TEXTS[1:])
    assert "mini" in [profile for profile, _ in BLOCK.findall(told)]


def test_printed_values_in_the_findings_are_those_of_the_transcriptions(told, monkeypatch):
    monkeypatch.chdir(ROOT)
    for caption, titles, rows in [
        table for _, block in BLOCK.findall(told) for table in tables(block)
    ]:
        experiment = "wind_baselines" if "wind_baselines" in caption else "wind_nowcast"
        printed = {label(arm): values for arm, values in companions(experiment).items()}
        at = next(i for i, title in enumerate(titles) if title.startswith("printed"))
        assert {row[0]: row[at] for row in rows} == {
            row[0]: format_printed(printed.get(row[0], [])) for row in rows
        }


# --- the checks find what is planted

GOOD = """# Wind
`make repro` and `TRADEWIND_MIRROR=x make repro PROFILE=sample JOBS=2`, or `make`, [how](Makefile) \
and [why](https://example.org/nothing).
```console
$ tradewind nowcast --context x.csv \\
    --at 46.5,7.2,34000,2026-01-17T05:00:00Z | head -3  # first rows
tradewind said nothing that can be parsed
```
```sh
OMP_NUM_THREADS=1 .venv/bin/tradewind audit wind_nowcast/mini/sim/knn/nse && make test
```
<!-- results:mini wind_nowcast wind_baselines -->
*mini, sim*: 3,210 held-out points, sensor noise 2.50 kn

| model | RMSE per component [kn] | against the hour average | printed in the thesis [kn] |
| --- | ---: | ---: | --- |
| hour_average | 20.00 [18.00, 22.00] | +0 % | – |
| **knn** | 9.99 ± 0.50 [9.00, 11.00] | -50 % | 7.57–9.86 (thesis 1.2, 3 days) |

<!-- /results -->
"""


@pytest.fixture
def project(tmp_path):
    """A folder with the real Makefile and params.yaml, and metrics of two arms."""
    for name in ("Makefile", "params.yaml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def arm(floor, **rmse):
        return {"seeds": 1, "metrics": {"rmse_component_kn": {**rmse, "n": 3210}, **floor}}

    arms = {
        "sim/hour_average": arm({}, mean=20.0, low=18.0, high=22.0),
        "sim/knn": arm(
            {"noise_floor_component_kn": {"mean": 2.5}}, mean=9.9901, std=0.4999, low=9.0, high=11.0
        ),
    }
    home = tmp_path / "reports/wind_nowcast/mini"
    home.mkdir(parents=True)
    (home / "metrics.json").write_text(
        json.dumps({"arms": arms, "cells": {"sim/knn": {"metrics": {"nse": {"value": 0.5}}}}})
    )
    return tmp_path


def test_a_readme_that_is_right_passes_every_check(project):
    assert {check.__name__: check(GOOD, project) for check in CHECKS} == {
        check.__name__: [] for check in CHECKS
    }
    assert [words[0] for words in commands(GOOD)] == [
        "tradewind",
        "head",
        ".venv/bin/tradewind",
        "make",
    ]


@pytest.mark.parametrize(
    "check, right, wrong, told",
    [
        (lines_not_understood, "--context x.csv", "--capture x.csv", "--capture"),
        (lines_not_understood, "nowcast", "forecast", "forecast"),
        (lines_not_understood, "46.5,7.2,34000,", "46.5,7.2,", "46.5,7.2,2026"),
        (lines_not_understood, "46.5,7.2", "146.5,7.2", "146.5"),
        (numbers_not_published, "sim/knn/nse", "sim/knn/rmse", "sim/knn/rmse"),
        (numbers_not_published, "sim/knn/nse", "sim/knm/nse", "knm"),
        (numbers_not_published, "wind_nowcast/mini/sim", "wind_nowcast/full/sim", "full"),
        (targets_not_made, "make test", "make tests", "tests"),
        (targets_not_made, "`make repro`", "`make results`", "results"),
        (targets_not_made, "PROFILE=sample", "PROFILE=simple", "PROFILE=simple"),
        (targets_not_made, "JOBS=2", "JOB=2", "JOB=2"),
        (links_that_lead_nowhere, "(Makefile)", "(docs/how.md#there)", "docs/how.md"),
        (left_blank, "# Wind\n", "# Wind\n\nFINDINGS\n\n", "FINDINGS"),
        (numbers_not_measured, "20.00 [", "20.01 [", "mean 20.01"),
        (numbers_not_measured, "± 0.50", "± 0.51", "std 0.51"),
        (numbers_not_measured, " ± 0.50", "", "std None"),
        (numbers_not_measured, "11.00]", "11.10]", "high 11.10"),
        (numbers_not_measured, "[18.00", "[17.99", "low 17.99"),
        (numbers_not_measured, "-50 %", "-51 %", "-51 %"),
        (numbers_not_measured, "9.99 ± 0.50 [9.00, 11.00]", "about 10", "mean ?"),
        (numbers_not_measured, "| **knn**", "| knn2", "sim/knn2 was not measured"),
        (numbers_not_measured, "| **knn**", "| knn2", "sim/knn is not told"),
        (numbers_not_measured, "3,210", "3,211", "3,211"),
        (numbers_not_measured, "2.50 kn", "2.40 kn", "2.40"),
        (numbers_not_measured, ", sensor noise 2.50 kn", "", "2.50"),
        (numbers_not_measured, "*mini, sim*:", "*mini, other*:", "other/knn"),
        (numbers_not_measured, "*mini, sim*:", "All:", "without"),
        (numbers_not_measured, "results:mini", "results:full", "full/metrics.json"),
        (numbers_not_measured, "RMSE per component", "RMSE", "column"),
        (
            numbers_not_measured,
            "<!-- results:mini wind_nowcast wind_baselines -->\n",
            "",
            "no results block",
        ),
    ],
)
def test_a_planted_mistake_is_told(project, check, right, wrong, told):
    assert right in GOOD
    assert any(told in problem for problem in check(GOOD.replace(right, wrong, 1), project))


def test_an_empty_results_block_tells_every_arm_that_it_leaves_out(project):
    assert numbers_not_measured(
        "<!-- results:mini wind_nowcast wind_baselines -->\n<!-- /results -->", project
    ) == ["mini: sim/hour_average is not told", "mini: sim/knn is not told"]


# --- the blocks as they are made


@pytest.fixture
def filled(project, monkeypatch):
    """README.md of the hand-made project after its block was filled; the working folder."""
    monkeypatch.chdir(project)
    (project / "data").mkdir()
    (project / "data/published").symlink_to(ROOT / "data/published")
    (project / "reports/wind_nowcast/companions.csv").write_bytes(
        (ROOT / "reports/wind_nowcast/companions.csv").read_bytes()
    )
    path = project / "README.md"
    page_tells(project)
    marker = "<!-- results:mini wind_nowcast wind_baselines -->\n<!-- /results -->"
    path.write_text(BLOCK.sub(marker, GOOD))
    fill(path)
    return path


def page_tells(project: Path) -> None:
    """page.json of the hand-made experiment: its short tables, as winds' page tells them."""
    home = project / "reports/wind_nowcast/mini"
    arms = json.loads((home / "metrics.json").read_text())["arms"]
    told = [experiment.short(winds.short("wind_nowcast", arms, "sim"))]
    (home / experiment.DATA).write_text(json.dumps({"short": told}))


def test_a_filled_block_passes_the_checks_and_nothing_else_is_touched(filled, project):
    text = filled.read_text()
    assert {check.__name__: check(text, project) for check in CHECKS} == {
        check.__name__: [] for check in CHECKS
    }
    assert BLOCK.sub("", text) == BLOCK.sub("", GOOD)
    assert "| knn | 9.99 ± 0.50 [9.00, 11.00] | -50 % | 7.57–9.86 (thesis 1.2, 3 days) |" in text


def test_filling_again_gives_the_same_bytes_and_new_numbers_replace_the_old(filled, project):
    before = filled.read_bytes()
    fill(filled)
    assert filled.read_bytes() == before
    metrics = project / "reports/wind_nowcast/mini/metrics.json"
    metrics.write_text(metrics.read_text().replace("9.9901", "8.0"))
    assert numbers_not_measured(filled.read_text(), project) != []
    page_tells(project)
    fill(filled)
    assert (
        numbers_not_measured(filled.read_text(), project) == [] and "9.99" not in filled.read_text()
    )


def test_a_readme_without_a_block_is_an_error_and_stays_as_it_was(filled):
    filled.write_text("# Wind\n")
    with pytest.raises(DataError, match="results:PROFILE"):
        fill(filled)
    assert filled.read_text() == "# Wind\n"
