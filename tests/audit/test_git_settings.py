"""No program that a repository's settings name is run, and no answer of one is believed."""

from types import SimpleNamespace

import pytest
import real
from planted import programs

from stages.audit import derivable, hashes, history
from stages.errors import DataError
from stages.page import promotions

LEDGER = promotions.LEDGER.as_posix()


@pytest.fixture
def repository(tmp_path):
    """Two committed ledgers, the second of which takes a line back, and settings that run
    programs."""
    real.git(tmp_path, "init", "-q")
    for text in ("one\ntwo\n", "one\n"):
        real.write(tmp_path, LEDGER, text)
        real.commit(tmp_path)
    programs(tmp_path)
    return tmp_path


def test_git_itself_would_run_them(repository):
    real.git(repository, "log", "-1")
    assert (repository / "spied").exists()


def test_no_verifier_of_signatures_is_run_and_a_ledger_is_read_as_it_is(repository):
    case = SimpleNamespace(root=repository, bytes=hashes.Bytes(repository))
    told = [problem.text for problem in derivable.ledgers(case)]
    assert any("lines were taken back" in text for text in told)
    assert history.git(repository, "log", "-1", "--format=%h")
    assert not (repository / "spied").exists()


def test_a_missing_object_is_asked_of_no_remote(repository):
    with pytest.raises(DataError, match="does not hold an object"):
        history.blobs(repository, {"a" * 40})
    assert not (repository / "spied").exists()


@pytest.fixture
def borrowed(tmp_path):
    """A clone of three commits that borrows all objects from a store outside of it."""
    for text in ("one\n", "one\ntwo\n", "one\ntwo\nthree\n"):
        if not (tmp_path / "lent/.git").is_dir():
            real.git(tmp_path, "init", "-q", "lent")
        real.write(tmp_path / "lent", LEDGER, text)
        real.commit(tmp_path / "lent")
    real.git(tmp_path, "clone", "-q", "--shared", str(tmp_path / "lent"), str(tmp_path / "clone"))
    return tmp_path / "clone"


def forged(clone, name: str, other: str) -> None:
    """Under an object's name in the store that a clone borrows from, the bytes of another."""
    objects = clone.parent / "lent/.git/objects"
    real.write(objects, f"{name[:2]}/{name[2:]}", (objects / other[:2] / other[2:]).read_bytes())


def test_objects_of_a_store_outside_of_the_clone_are_what_their_names_say(borrowed):
    commits = real.git(borrowed, "rev-list", "HEAD").split()
    now, before = (
        real.git(borrowed, "rev-parse", f"{one}:{LEDGER}").strip() for one in commits[:2]
    )
    assert history.blobs(borrowed, {now})[now] == b"one\ntwo\nthree\n"
    forged(borrowed, now, before)
    with pytest.raises(DataError, match="other bytes under an object's name"):
        history.blobs(borrowed, {now})


def test_a_commit_of_other_bytes_that_ends_history_is_told(borrowed):
    case = SimpleNamespace(root=borrowed, bytes=hashes.Bytes(borrowed))
    assert list(derivable.ledgers(case)) == [] and history.cut(borrowed) == []
    _, middle, first = real.git(borrowed, "rev-list", "HEAD").split()
    forged(borrowed, middle, first)
    (found,) = derivable.ledgers(case)
    assert found.verdict == "FAIL" and "its history is damaged" in found.text


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "taken_away"])
def test_of_a_history_that_is_cut_off_nobody_says_that_no_line_was_taken_back(borrowed, kept):
    """Objects are all here, .git/shallow says that they are not."""
    case = SimpleNamespace(root=borrowed, bytes=hashes.Bytes(borrowed))
    if not kept:
        (borrowed / LEDGER).unlink()
        real.commit(borrowed)
    head = real.git(borrowed, "rev-parse", "HEAD").strip()
    real.write(borrowed, ".git/shallow", f"{head}\n")
    (found,) = derivable.ledgers(case)
    assert found.verdict == "INCONCLUSIVE" and f"cut off here at {head[:12]}" in found.text
