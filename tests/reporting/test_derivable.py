"""What follows from other files is derived: a sweep's winner, and the ledger of before."""

from pathlib import Path
from types import SimpleNamespace

import audit_project
import pytest

from stages.audit import derivable, derive, hashes

BEST = """# Found by the sweep stage: draw 1 of 4
arguments: {width: 8, by: tree}
error_kn: 1.25
trials: 4
sampler: tpe
finished: 2
pruned: 1
not_finite: 1
"""
TRIALS = """draw,width,by,error_kn,state
0,4,tree,2.5,finished
1,8,tree,1.25,finished
2,9,list,0.5,pruned
3,2,list,,not finite
"""
EDITS = {
    "another winner": ("1.25\n", "1.0\n", "the least of its trials is 1.25"),
    "other arguments": ("width: 8", "width: 9", "of no trial of that error"),
    "another word": ("by: tree", "by: list", "of no trial of that error"),
    "fewer pruned": ("pruned: 1", "pruned: 0", "it says pruned 0, there are 1"),
    "more trials": ("trials: 4", "trials: 40", "it says trials 40, there are 4"),
}


def said(folder: Path, best: str) -> list[str]:
    """What is wrong with a winner of these trials."""
    (folder / "best.yaml").write_text(best)
    (folder / "trials.csv").write_text(TRIALS)
    return list(derivable.unlike(hashes.read_data(folder / "best.yaml"), folder / "trials.csv"))


def test_an_honest_winner_is_that_of_its_trials(tmp_path):
    assert said(tmp_path, BEST) == []


@pytest.mark.parametrize("name", EDITS)
def test_a_winner_that_contradicts_its_trials_is_told(tmp_path, name):
    old, new, word = EDITS[name]
    assert any(word in text for text in said(tmp_path, BEST.replace(old, new, 1)))


@pytest.mark.parametrize("committed", [True, False])
def test_a_ledger_taken_back_or_written_anew_is_told_by_the_commit_before(tmp_path, committed):
    case, ledger = SimpleNamespace(root=tmp_path), tmp_path / "reports/ledger.jsonl"
    ledger.parent.mkdir()
    audit_project.run(tmp_path, "git", "init", "-q")
    for text in ("one\n", "one\ntwo\n", "one\ntwo\nthree\n"):
        ledger.write_text(text)
        audit_project.commit(tmp_path)
    ledger.write_text("one\ntwo\nthree\nfour\n")
    assert list(derivable.ledgers(case)) == []
    for text in ("one\ntwo\n", "one\n2\nthree\n"):
        ledger.write_text(text)
        if committed:
            audit_project.commit(tmp_path)
        assert any("does not begin with" in one.text for one in derivable.ledgers(case))


def test_a_picture_that_is_an_output_of_its_own_is_compared_by_bytes(tmp_path):
    laid = SimpleNamespace(root=tmp_path / "here", folder=tmp_path / "again")
    for folder in (laid.root, laid.folder):
        (folder / "film").mkdir(parents=True)
        (folder / "film/sky.gif").write_bytes(b"GIF89a\x90\xff")
    (laid.root / "constraints.txt").write_text("")
    assert list(derive.same(laid, "film/sky.gif", "the stream")) == []
    (laid.root / "film/sky.gif").write_bytes(b"GIF89a\x90\xfe")
    (found,) = derive.same(laid, "film/sky.gif", "the stream")
    assert (found.verdict, found.path) == ("FAIL", "film/sky.gif")
