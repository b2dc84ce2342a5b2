"""`tradewind why --attribute`: each cause switched alone in a temporary project, its effect held
against the small project's own arithmetic."""

import json
import re
import subprocess

import pytest
from audit_project import NUMBER, edit, number_of, template  # noqa: F401 (fixtures)
from why_project import again, code, library, lived, lived_template, parameter, raw_file, seed  # noqa: F401 (fixtures)

from stages.audit import attribute as attribution
from stages.audit import why as asking

SPAN = "HEAD~1..HEAD"


def test_attribution_measures_each_cause_and_the_remainder_and_writes_nothing_in_the_project(
    lived, monkeypatch
):
    first = number_of(lived)
    (
        parameter(lived, monkeypatch),
        code(lived, monkeypatch),
        seed(lived, monkeypatch),
        raw_file(lived, monkeypatch),
    )
    again(lived)
    monkeypatch.delenv("HOURS")
    files = {file: file.stat().st_mtime_ns for file in lived.rglob("*")}
    answer = asking.why(SPAN, NUMBER, lived)
    assert sorted((cause.kind, cause.what) for cause in answer.causes) == [
        ("code", "stages/training/__init__.py"),
        ("data", "data/mini/raw/simulated/frames_02.csv"),
        ("parameter", "budget.steps"),
        ("seed", "protocol.seed"),
    ]
    made = attribution.attribute(answer, lived)
    effects = {one.label: one.value for one in made}
    assert files == {file: file.stat().st_mtime_ns for file in lived.rglob("*")}
    assert effects.keys() == {"A, made again", "A + data", "A + parameter", "A + code", "A + seed"}
    assert effects["A, made again"] == first
    assert effects["A + parameter"] - first == pytest.approx(
        0.1, abs=1e-5
    )  # a thousand steps more, 1e-4 each
    assert effects["A + code"] - first == pytest.approx(0.5, abs=1e-5)
    rows = lived / "data/mini/prepared/simulated/rows.parquet"
    old = subprocess.run(
        ["git", "-C", lived, "show", "HEAD~1:data/mini/records/simulated.prepare.json"],
        capture_output=True,
        check=True,
    ).stdout
    grown = (
        rows.stat().st_size
        - json.loads(old)["outputs"]["data/mini/prepared/simulated/rows.parquet"]["bytes"]
    )
    assert grown > 0 and effects["A + data"] - first == pytest.approx(grown, abs=1e-4)
    remainder = float(
        re.search(r"interaction +([+-][\d.e-]+)", attribution.render(answer, made))[1]
    )
    assert remainder == pytest.approx(0.0, abs=1e-4)  # the small project adds its causes up


def test_attribution_makes_simulated_data_again_by_the_stage_that_a_lock_under_data_names(
    lived, monkeypatch
):
    first = number_of(lived)
    edit(lived / "stages/acquisition/__init__.py", "acquisition", "acquisition, in other words")
    code(lived, monkeypatch)
    again(lived)
    made = attribution.attribute(asking.why(SPAN, NUMBER, lived), lived)
    assert [(one.label, one.failure) for one in made] == [("A, made again", ""), ("A + code", "")]
    assert made[0].value == first and made[1].value - first == pytest.approx(0.5, abs=1e-5)


def test_attribution_says_what_cannot_be_switched_or_made(lived, monkeypatch):
    again(lived, library(lived, monkeypatch))
    answer = asking.why(SPAN, NUMBER, lived)
    assert attribution.attribute(answer, lived) == [] and "nothing to switch" in attribution.render(
        answer, []
    )
    code(lived, monkeypatch)
    again(lived)
    answer = asking.why(SPAN, NUMBER, lived)
    monkeypatch.setattr(attribution.Snapshot, "object", lambda *a: None)
    text = attribution.render(answer, attribution.attribute(answer, lived))
    assert (
        "not made: bytes of that commit are no longer here" in text
        and "interaction and code" in text.replace("environment, ", "")
    )
