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
