"""The forgeries, as a table: what a forger does, the smallest depth of verification at which it
falls, and the file that is named.

Every case starts from a number that passes at that depth, and passes at the depths before it: what
a depth is for is what only it finds. A careless forger edits files and commits; a careful one also
makes records, locks and cache `agree`. All of them date their commits back. `all` is `tradewind
verify --all`. What falls at no depth: a figure drawn anew by other code of the same name,
everything else agreeing.
"""

import re
import shutil
from pathlib import Path

import audit_project
import pytest
from audit_project import NUMBER, evaluation  # noqa: F401 (a fixture)
from forgery_cases import FORGERIES

from stages.audit.everything import everything
from stages.audit.verify import DEPTHS, audit


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The project without its one file of no record, so that `verify --all` passes it."""
    return audit_project.build(
        tmp_path_factory.mktemp("forged"), without=("data/mini/prepared/other/rows.parquet",)
    )


@pytest.fixture
def project(whole, tmp_path, monkeypatch, evaluation):
    """A copy of it, evaluated, tabulated and claimed by its own arithmetic; every commit claims
    to be of 2001."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2001-01-01T00:00:00Z")
    return Path(shutil.copytree(whole, tmp_path / "project", symlinks=True))


def verified(project: Path, depth: str):
    """What a depth of verification finds."""
    return everything(project) if depth == "all" else audit(NUMBER, depth, project)


@pytest.mark.parametrize("case", FORGERIES, ids=lambda case: case.name.replace(" ", "_"))
def test_a_forgery_falls_at_its_depth_by_name_and_not_before(project, case):
    depths = (*DEPTHS, "all")
    case.before(project)
    assert verified(project, case.depth).verdict == "PASS"
    case.forge(project)
    for depth in depths[: depths.index(case.depth)]:
        assert verified(project, depth).verdict == "PASS", depth
    found = verified(project, case.depth)
    assert found.verdict == case.verdict
    assert any(
        problem.verdict == case.verdict and problem.path == case.path and case.word in problem.text
        for problem in found.problems
    ), found.problems


@pytest.mark.parametrize("text", ["README.md", "reports/AUDIT.md"])
def test_the_texts_tell_how_many_forgeries_there_are(text):
    told = re.findall(r"(\d+)\s+planted forgeries", (audit_project.HOME / text).read_text())
    assert told == [str(len(FORGERIES))]


def test_each_forgery_has_another_name():
    assert len({case.name for case in FORGERIES}) == len(FORGERIES)
    # what falls to raw alone is planted in tests/audit, on real results
    assert {case.depth for case in FORGERIES} == {*DEPTHS, "all"} - {"raw"}
