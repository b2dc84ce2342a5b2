"""Taking captures in: by hash, in whole steps, bad ones aside with their reasons, whatever is
killed and whoever comes at once."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from captures import (  # noqa: F401 (a fixture)
    DROP,
    PARAMETERS,
    QUARANTINE,
    RAW,
    ROOT,
    START_S,
    drop,
    intake,
    judge,
    names,
    project,
    toy,
    tree,
)

from stages import files
from stages.errors import DataError, InputError, IntegrityError, JudgeError, ParamsError
from stages.winds.retraining import intake as work
from stages.winds.retraining.captures import state_of
from stages.winds.retraining.intake import Verdict


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def manifest() -> dict:
    return json.loads((RAW / "manifest.json").read_text())


# --- what a run leaves


def test_captures_are_taken_in_under_the_time_and_the_hash_of_their_content():
    drop(late_csv=toy(3), early_csv=toy(1))
    told = intake()
    stored = sorted(path.name for path in RAW.iterdir())
    assert stored == [
        f"20260115T070000Z-{digest(toy(1))[:12]}.csv",
        f"20260115T090000Z-{digest(toy(3))[:12]}.csv",
        "manifest.json",
    ]
    assert [(RAW / name).read_bytes() for name in stored[:2]] == [toy(1), toy(3)]
    assert sorted(names(told["accepted"])) == ["early.csv", "late.csv"] and (
        told["captures"],
        told["span_s"],
    ) == (2, 3 * 3600.0)
    assert told == json.loads(Path(".work/retraining/intake.json").read_text())
    assert [*DROP.iterdir()] == [] == [*work.INCOMING.iterdir()]


def test_manifest_and_record_have_the_shape_of_an_acquired_set():
    drop(one_csv=toy(0))
    intake()
    whole = manifest()
    ((name, line),) = whole["files"].items()
    assert {key: whole[key] for key in ("dataset", "entry", "kind")} == {
        "dataset": "captures",
        "entry": "frames",
        "kind": "captures",
    }
    assert line == {
        "sha256": digest(toy(0)),
        "bytes": len(toy(0)),
        "url": None,
        "licence": "own",
        "source": "one.csv",
        "first_s": START_S,
        "last_s": START_S + 3600,
    }
    record = files.read_json("data/live/records/captures.acquire.json")
    assert (record["stage"], record["cell"], record["inputs"]) == ("acquire", "live/captures", {})
    assert {path: out["sha256"] for path, out in record["outputs"].items()} == {
        f"{RAW}/{name}": digest(toy(0)),
        f"{RAW}/manifest.json": files.sha256(RAW / "manifest.json"),
    }


def test_what_was_taken_in_stays_as_it_is_and_shares_its_bytes_with_the_new_folder():
    drop(one_csv=toy(0))
    intake()
    before, (old,) = manifest()["files"], RAW.glob("*.csv")
    inode = old.stat().st_ino
    drop(two_csv=toy(1))
    intake()
    assert old.stat().st_ino == inode and old.read_bytes() == toy(0)
    assert len(manifest()["files"]) == 2 and before.items() <= manifest()["files"].items()


def test_a_receiver_that_writes_on_does_not_reach_what_was_taken_in():
    """A file that is still open somewhere is claimed by its name only: the raw folder holds a
    copy."""
    drop(one_csv=toy(0))
    with (DROP / "one.csv").open("ab") as stream:
        intake()
        stream.write(b"more")
    (kept,) = RAW.glob("*.csv")
    assert kept.read_bytes() == toy(0)


def test_nothing_new_changes_nothing():
    drop(one_csv=toy(0))
    first = intake()
    before = tree("data")
    stamps = [path.stat().st_mtime_ns for path in Path("data").rglob("*") if path.is_file()]
    again = intake(lambda *_: pytest.fail("nothing is to be judged"))
    assert (
        tree("data") == before
        and [path.stat().st_mtime_ns for path in Path("data").rglob("*") if path.is_file()]
        == stamps
    )
    assert again == first | {"accepted": []}


def test_an_empty_start_is_told_as_nothing_and_makes_the_drop_folder():
    DROP.rmdir()
    told = intake()
    assert told == {
        "accepted": [],
        "seen": [],
        "quarantined": [],
        "left": [],
        "captures": 0,
        "span_s": 0.0,
        "raw": None,
    }
    assert DROP.is_dir() and not RAW.exists() and not Path("data/live/records").exists()


# --- by hash, not by name


def test_the_same_bytes_are_taken_in_once_whatever_they_are_called_and_whenever_they_come():
    drop(a_csv=toy(0), b_csv=toy(0))
    told = intake()
    assert names(told["accepted"]) == ["a.csv"] and told["seen"] == [
        {"name": "b.csv", "sha256": digest(toy(0)), "where": "raw"}
    ]
    drop(c_csv=toy(0))
    again = intake(lambda *_: pytest.fail("known bytes are not judged again"))
    assert (
        names(again["seen"]) == ["c.csv"]
        and again["raw"] == told["raw"]
        and [*DROP.iterdir()] == []
    )


def test_one_name_may_come_again_with_other_bytes():
    drop(now_csv=toy(0))
    intake()
    drop(now_csv=toy(1))
    assert [row["source"] for row in manifest()["files"].values()] == ["now.csv"]
    assert names(intake()["accepted"]) == ["now.csv"]
    assert [row["source"] for row in manifest()["files"].values()] == ["now.csv", "now.csv"]


def test_a_capture_in_quarantine_is_not_judged_again():
    drop(bad_csv=toy(0, b"bad"))
    intake()
    before = tree("data")
    drop(again_csv=toy(0, b"bad"))
    told = intake(lambda *_: pytest.fail("known bytes are not judged again"))
    assert told["seen"] == [
        {"name": "again.csv", "sha256": digest(toy(0, b"bad")), "where": "quarantine"}
    ]
    assert tree("data") == before


@pytest.mark.fault("F19")
def test_the_state_is_that_of_names_and_hashes_alone():
    drop(a_csv=toy(0), b_csv=toy(1))
    state = intake()["raw"]
    assert state_of(RAW) == state and len(state) == 64
    whole = manifest()
    for line in whole["files"].values():
        line["source"] = "elsewhere"
    files.write_json(RAW / "manifest.json", whole)
    assert state_of(RAW) == state
    name, line = next(iter(whole["files"].items()))
    for other in ({name: line | {"sha256": "0" * 64}}, {"other.csv": line}):
        files.write_json(RAW / "manifest.json", {"files": other})
        assert state_of(RAW) != state
    with pytest.raises(DataError, match="a file is missing"):
        state_of("nowhere")


# --- what is left, put aside, refused


def test_what_is_no_finished_plain_file_is_left_and_told(tmp_path):
    (tmp_path / "elsewhere.csv").write_bytes(toy(0))
    (DROP / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    (DROP / "folder.csv").mkdir()
    os.mkfifo(DROP / "pipe.csv")
    for name in ("sp ace.csv", "line\nfeed.csv", "-option", "n" * 151):
        (DROP / name).write_bytes(toy(0))
    (DROP / os.fsdecode(b"\xff.csv")).write_bytes(toy(0))
    for name in (".hidden", "half.part", "half.tmp"):  # a receiver's own affair: not even told
        (DROP / name).write_bytes(toy(0))
    before = sorted(os.listdir(DROP))
    told = intake(lambda *_: pytest.fail("nothing is to be judged"))
    assert sorted(os.listdir(DROP)) == before and not RAW.exists()
    assert {row["name"]: row["reason"].partition(":")[0] for row in told["left"]} == {
        "link.csv": "a link",
        "folder.csv": "a folder",
        "pipe.csv": "no regular file",
        "sp ace.csv": "rename it",
        "line\nfeed.csv": "rename it",
        "-option": "rename it",
        "n" * 151: "rename it",
        "\\xff.csv": "rename it",
    }


def test_a_file_that_changes_while_it_is_judged_waits_for_the_next_run():
    drop(one_csv=toy(0), two_csv=toy(1))

    def slow(path: Path, name: str) -> Verdict:
        verdict = judge(path, name)
        if name == "one.csv":
            path.write_bytes(toy(0, tail=b"and more"))
        return verdict

    told = intake(slow)
    assert names(told["accepted"]) == ["two.csv"] and names(told["left"]) == ["one.csv"]
    assert "still being written" in told["left"][0]["reason"]
    told = intake()
    assert names(told["accepted"]) == ["one.csv"] and told["accepted"][0]["sha256"] == digest(
        toy(0, tail=b"and more")
    )


def test_a_bad_capture_goes_aside_with_its_reasons_and_changes_nothing_else():
    drop(one_csv=toy(0))
    intake()
    before = tree("data/live/raw", "data/live/records")
    drop(bad_csv=toy(1, b"bad"))
    told, sha = intake(), digest(toy(1, b"bad"))
    assert told["quarantined"] == [
        {"name": "bad.csv", "sha256": sha, "reasons": ["it does not say that it is good"]}
    ]
    assert sorted(path.name for path in QUARANTINE.iterdir()) == sorted(
        [".gitignore", f"{sha[:12]}-bad.csv", f"{sha[:12]}.json"]
    )
    note = files.read_json(QUARANTINE / f"{sha[:12]}.json")
    assert (note["name"], note["sha256"], note["reasons"]) == (
        "bad.csv",
        sha,
        ["it does not say that it is good"],
    )
    assert (QUARANTINE / f"{sha[:12]}-bad.csv").read_bytes() == toy(1, b"bad")
    assert tree("data/live/raw", "data/live/records") == before


def test_a_judge_that_fails_decides_nothing():
    drop(one_csv=toy(0))

    def broken(path: Path, name: str) -> Verdict:
        raise JudgeError("the tool failed")

    with pytest.raises(JudgeError):
        intake(broken)
    assert not RAW.exists() and sorted(os.listdir(QUARANTINE)) == [".gitignore"]
    assert names(intake()["accepted"]) == ["one.csv"]


@pytest.mark.parametrize(
    ("profile", "dataset", "hint"),
    [
        ("liev", "captures", "did you mean 'live'"),
        ("live", "capture", "did you mean 'captures'"),
        ("mini", "simulated", "acquired, not taken in"),
    ],
)
def test_names_that_are_none_are_refused_before_any_work(profile, dataset, hint):
    drop(one_csv=toy(0))
    with pytest.raises(ParamsError, match=hint):
        work.intake(PARAMETERS, profile, dataset, DROP, judge)
    assert os.listdir(DROP) == ["one.csv"] and not Path(".work").exists()


def test_a_drop_folder_that_is_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="into a folder"):
        work.intake(PARAMETERS, "live", "captures", tmp_path / "params.yaml", judge)


def test_captures_that_are_known_but_not_here_are_not_replaced_by_the_new_ones():
    """A fresh clone before `dvc pull`: a new folder would drop every earlier capture."""
    RAW.parent.mkdir(parents=True)
    Path(f"{RAW}.dvc").write_text("outs: []\n")
    drop(one_csv=toy(0))
    with pytest.raises(DataError, match="dvc pull"):
        intake()
    assert not RAW.exists()
    Path(f"{RAW}.dvc").unlink()
    assert names(intake()["accepted"]) == ["one.csv"]


def test_a_raw_folder_that_is_damaged_takes_nothing_in():
    drop(one_csv=toy(0))
    intake()
    (old,) = RAW.glob("*.csv")
    old.write_bytes(toy(9))
    drop(two_csv=toy(1))
    with pytest.raises(IntegrityError, match="nothing was taken in"):
        intake()
    assert len(manifest()["files"]) == 1
    old.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        intake()
    old.write_bytes(toy(0))
    assert names(intake()["accepted"]) == ["two.csv"]


@pytest.mark.parametrize("place", [".", "..", "/", ".git", ".work/retraining/incoming", str(RAW)])
def test_a_drop_folder_that_is_the_projects_own_is_refused_and_keeps_its_files(place):
    Path("README").write_text("kept")
    before = tree(".")
    with pytest.raises(InputError, match="moved away"):
        work.intake(PARAMETERS, "live", "captures", Path(place), judge)
    assert tree(".") == before and Path("README").read_text() == "kept"


def test_a_drop_folder_of_which_git_knows_files_is_refused(tmp_path):
    Path("docs").mkdir()
    Path("docs/a.csv").write_text("kept")
    for words in (["init", "-q"], ["add", "docs/a.csv"]):
        subprocess.run(["git", *words], check=True)
    with pytest.raises(InputError, match="docs/a.csv"):
        work.intake(PARAMETERS, "live", "captures", Path("docs"), judge)
    assert Path("docs/a.csv").read_text() == "kept"


def test_a_capture_that_cannot_be_read_waits_and_those_after_it_are_taken(monkeypatch):
    drop(a_csv=toy(1), b_csv=toy(2))
    able = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).endswith("a.csv") and able(path, mode)
    )
    told = intake()
    assert [one["name"] for one in told["accepted"]] == ["b.csv"]
    assert [one["name"] for one in told["left"]] == ["a.csv"] and "chmod" in told["left"][0][
        "reason"
    ]
