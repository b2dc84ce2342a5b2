"""Attacks on this repository's own results fall at their depth, by name, and not before; what is
planted beside them is not run; untouched, the same numbers pass."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import real
from attack import Attack
from attacks import ATTACKS

from stages.audit import derivable, hashes
from stages.audit.everything import everything
from stages.audit.render import render
from stages.audit.verify import DEPTHS, audit
from stages.page import promotions

ENOUGH = {"record": ("record",), "hash": ("record", "hash"), "nowhere": ("eval",)}
# Attacks of a kind that another one stands for in `make test`: the same done to another family's
# data, or to another number, record or commit.
REPEATED = (
    "the truth of the test of rooms doctored in prepared data",
    "walks of the test doctored in prepared data",
    "test rooms copied over training rooms, labels kept",
    "states of the test laid over training states",
    "an angle of winds edited",
    "the nats of walks edited",
    "a commit replaced in git",
    "an error on the grid told below the exact law's",
    "scores of single tasks told of other tasks: on the grid",
    "scores of single tasks told of other tasks: joint",
    "an error of shapes told below the noise",
    "an accuracy above all",
    "shapes of the test copied over training ones, raw and prepared",
    "sentence pairs of the test copied over training ones",
    "pictures of the test copied over training ones, raw and prepared",
    "a forecast valid for longer than its curve allows",
    "hours of the test laid over hours that train",
    "a training that names no outputs",
    "a training that names no code",
    "a trial of forecasters told better than the winner",
    "the unit of rooms doctored in prepared data",
    "walks of the test copied over training walks",
    "tasks of the test among those that select, raw and prepared",
    "an MSE of rooms edited",
    "a history of validation edited",
    "a horizon of forecasts edited",
    "a density told better, its gap left as it was",
    "a training that tells no parameters",
    "a lock of another command",
    "a package in the place of a module",
)
OTHERS = [case for case in ATTACKS if case.depth in ENOUGH and case.name not in REPEATED]
NUMBERS = sorted({case.number for case in ATTACKS})


@pytest.fixture(scope="session")
def honest(tmp_path_factory) -> Path:
    """This repository at HEAD with its results."""
    return real.clone(tmp_path_factory.mktemp("honest") / "project")


@pytest.fixture
def project(honest, tmp_path, monkeypatch) -> Path:
    """A copy of it; what a case says to the environment is taken back."""
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
        monkeypatch.delenv(name)
    return real.copy(honest, tmp_path / "project")


def falls(project: Path, case: Attack, depths: tuple[str, ...]) -> None:
    """The case passes at the depths before its own, and fails there with its file named."""
    for depth in depths:
        found = everything(project) if depth == "all" else audit(case.number, depth, project)
        if depth != case.depth:
            assert found.verdict == "PASS", render(found)
    assert not (project / "spied").exists()
    if case.depth != "nowhere":
        assert found.verdict == "FAIL"
        named = [one for one in found.problems if one.path.startswith(case.path)]
        assert any(case.word in one.text for one in named), found.problems


def slow(what, name: str, later: bool):
    """A parameter, which `make test` leaves out where that is so."""
    return pytest.param(
        what, id=name.replace(" ", "_"), marks=[pytest.mark.slow_fault] if later else []
    )


@pytest.mark.parametrize(
    "number", [slow(one, one, one not in {case.number for case in OTHERS}) for one in NUMBERS]
)
def test_untouched_numbers_pass(honest, number):
    found = audit(number, "hash", honest)
    assert found.verdict == "PASS", render(found)


QUICK = [case for case in ATTACKS if case.depth in ENOUGH]


def test_each_attack_that_make_test_leaves_out_is_one():
    assert {*REPEATED} < {case.name for case in QUICK}
    assert len({case.name for case in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("text", ["README.md", "reports/AUDIT.md"])
def test_the_texts_tell_how_many_attacks_there_are(text):
    told = re.findall(r"(\d+) attacks on", (real.HOME / text).read_text(encoding="utf-8"))
    assert told == [str(len(ATTACKS))]


@pytest.mark.parametrize("case", [slow(case, case.name, case.name in REPEATED) for case in QUICK])
def test_an_attack_falls_at_its_depth_by_name_and_not_before(project, case):
    case.forge(project)
    falls(project, case, ENOUGH[case.depth])


SLOW = [case for case in ATTACKS if case.depth not in ENOUGH]


@pytest.mark.slow_fault
@pytest.mark.parametrize("case", SLOW, ids=lambda case: case.name.replace(" ", "_"))
def test_an_attack_on_what_is_made_again_falls_at_its_depth(project, case):
    case.forge(project)
    all_of_it = case.depth == "all"  # pages, claims and the ledger, which no number rests on
    falls(project, case, ("record", "all") if all_of_it else DEPTHS[: DEPTHS.index(case.depth) + 1])


@pytest.mark.slow_fault
def test_of_a_clone_without_data_nothing_is_covered_and_nothing_passes(honest, tmp_path):
    real.git(honest, "clone", "-q", "--shared", str(honest), str(tmp_path / "bare"))
    found = everything(tmp_path / "bare")
    assert found.verdict == "INCONCLUSIVE", found.problems
    assert {one.whole for one in found.covers} == {0}


def cut_off(project: Path) -> str:
    """A ledger that is taken away, committed, and a history that is said to begin there."""
    ledger = promotions.LEDGER.as_posix()
    for text in ("{}\n", None):
        (project / ledger).unlink(missing_ok=True)
        if text:
            real.write(project, ledger, text)
        real.commit(project)
    head = real.git(project, "rev-parse", "HEAD").strip()
    real.write(project, ".git/shallow", f"{head}\n")
    return head


def test_a_ledger_that_is_gone_behind_a_planted_end_of_history_is_not_passed_over(project):
    head = cut_off(project)
    assert real.git(project, "rev-list", "HEAD").split() == [head]  # git believes it
    (found,) = derivable.ledgers(SimpleNamespace(root=project, bytes=hashes.Bytes(project)))
    assert found.verdict == "INCONCLUSIVE" and found.path == promotions.LEDGER.as_posix()
    assert f"cut off here at {head[:12]}" in found.text


@pytest.mark.slow_fault
def test_nor_does_all_of_it_pass(project):
    cut_off(project)
    found = everything(project)
    assert found.verdict == "INCONCLUSIVE"
    assert promotions.LEDGER.as_posix() in {one.path for one in found.problems}
