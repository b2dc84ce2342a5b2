"""The ledger: appended once a case, in an order no clock decides, and no line can be changed
unseen."""

import json
import subprocess
import sys
import time
from pathlib import Path

import live_project
import pytest

from stages.errors import BusyError, DataError, IntegrityError
from stages.files import guard
from stages.winds.retraining import ledger

FIELDS = {
    "kind": "refused",
    "raw": "r",
    "commit": "c",
    "before": "",
    "after": "",
    "reference": "",
    "challenger": "x",
    "reasons": ["Too few, grün."],
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("reports").mkdir()


def fill(count: int) -> list[str]:
    for i in range(count):
        ledger.append(FIELDS | {"case": f"case {i}", "raw": f"raw {i}"})
    return ledger.LEDGER.read_text(encoding="utf-8").splitlines()


def write(lines: list[str]) -> None:
    ledger.LEDGER.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def test_no_ledger_and_an_empty_one_hold_nothing():
    assert ledger.read() == [] and ledger.after([]) == ""
    write([])
    assert (
        ledger.read() == []
        and ledger.render([]) == "the ledger is empty: nothing was promoted or refused yet"
    )


def test_every_line_names_its_number_the_line_before_and_itself():
    lines = fill(3)
    entries = ledger.read()
    assert [entry["number"] for entry in entries] == [1, 2, 3]
    assert [entry["previous"] for entry in entries] == ["", *map(ledger.hashed, lines[:2])]
    assert all(entry["digest"] == ledger.digest(entry) for entry in entries)
    assert entries[1] == entries[1] | FIELDS | {"case": "case 1", "raw": "raw 1"}


@pytest.mark.fault("F7")
def test_the_same_case_is_entered_once():
    lines = fill(3)
    entry = ledger.append(FIELDS | {"case": "case 1", "kind": "promoted"})
    assert (
        entry["number"] == 2
        and entry["kind"] == "refused"
        and ledger.LEDGER.read_text().splitlines() == lines
    )


@pytest.mark.fault("F19")
def test_the_order_is_that_of_the_numbers_when_the_clock_jumps_back(monkeypatch):
    real = ledger.dt.datetime

    class Clock(ledger.dt.datetime):
        hour = 12

        @classmethod
        def now(cls, tz=None):
            cls.hour -= 1
            return real(2026, 3, 29, cls.hour, tzinfo=tz)

    monkeypatch.setattr(ledger.dt, "datetime", Clock)
    fill(3)
    entries = ledger.read()
    assert [entry["number"] for entry in entries] == [1, 2, 3] and sorted(
        entry["time"] for entry in entries
    ) == [entry["time"] for entry in entries][::-1]
    assert (
        ledger.of_raw(entries, "raw 2") == entries[2]
        and ledger.of_raw(entries, "raw 7") is None
        and ledger.of_raw(entries, "") is None
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.fault("F19")
def test_times_are_told_in_utc_wherever_it_runs(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    before = ledger.dt.datetime.now(ledger.dt.UTC).replace(microsecond=0)
    fill(1)
    told = ledger.dt.datetime.fromisoformat(ledger.read()[0]["time"])
    assert before <= told <= ledger.dt.datetime.now(ledger.dt.UTC)
    monkeypatch.undo()
    time.tzset()


def edited(line: str, **fields) -> str:
    return ledger.line_of(json.loads(line) | fields)


def redone(line: str, **fields) -> str:
    """A forger's best for one line: its own digest agrees again."""
    entry = json.loads(line) | fields
    return ledger.line_of(entry | {"digest": ledger.digest(entry)})


FORGED = {
    "an edited line": (lambda x: [x[0], edited(x[1], kind="promoted"), *x[2:]], 2),
    "an edited last line": (lambda x: [*x[:3], edited(x[3], after="f" * 64)], 4),
    "an edited line with a new digest": (
        lambda x: [x[0], redone(x[1], kind="promoted"), *x[2:]],
        3,
    ),
    "a deleted first line": (lambda x: x[1:], 1),
    "a deleted line": (lambda x: [x[0], *x[2:]], 2),
    "a deleted line, the others numbered anew": (
        lambda x: [x[0], *(redone(line, number=n) for n, line in enumerate(x[2:], 2))],
        2,
    ),
    "two lines changed about": (lambda x: [x[0], x[2], x[1], x[3]], 2),
    "a line put in between": (lambda x: [x[0], redone(x[1], case="other"), *x[1:]], 3),
    "a line twice": (lambda x: [*x, x[3]], 5),
    "a line appended by hand": (lambda x: [*x, edited(x[3], number=5)], 5),
    "white space": (lambda x: [*x[:3], x[3].replace(": ", ":  ", 1)], 4),
    "a blank line": (lambda x: [*x[:2], "", *x[2:]], 3),
    "not JSON": (lambda x: [x[0], "promoted", *x[2:]], 2),
    "no object": (lambda x: [x[0], "[1]", *x[2:]], 2),
    "a number that is none": (lambda x: [*x[:3], x[3].replace('"number": 4', '"number": NaN')], 4),
    "an unknown kind": (lambda x: [*x[:3], redone(x[3], kind="crowned")], 4),
    "an older entry's second key": (lambda x: [*x[:3], x[3][:-1] + ', "after": ""}'], 4),
}


@pytest.mark.parametrize("case", FORGED)
@pytest.mark.fault("F20")
def test_a_forged_line_is_found_and_named(case):
    lines = fill(4)
    forge, number = FORGED[case]
    write(forge(lines))
    for use in (ledger.read, lambda: ledger.append(FIELDS | {"case": "new"})):
        with pytest.raises(IntegrityError, match=f"ledger.jsonl, line {number}\n"):
            use()


def test_a_cut_or_turned_line_end_is_found():
    lines = fill(2)
    ledger.LEDGER.write_bytes("\n".join(lines).encode())
    with pytest.raises(IntegrityError, match="cut off"):
        ledger.read()
    ledger.LEDGER.write_bytes("".join(line + "\r\n" for line in lines).encode())
    with pytest.raises(IntegrityError, match="line 1"):
        ledger.read()


def test_lines_cut_off_the_end_are_found_by_what_git_holds():
    lines = fill(3)
    live_project.commit()
    ledger.check_committed()
    more = fill(5)  # the first three cases stand already
    ledger.check_committed()
    assert len(more) == 5 and more[:3] == lines
    write(lines[:2])
    assert len(ledger.read()) == 2  # the chain alone cannot know
    for use in (ledger.check_committed, lambda: ledger.append(FIELDS | {"case": "new"})):
        with pytest.raises(IntegrityError, match="does not continue the committed one"):
            use()
    ledger.LEDGER.unlink()
    with pytest.raises(IntegrityError, match="does not continue"):
        ledger.check_committed()


@pytest.mark.fault("F7")
def test_one_writes_at_a_time():
    with guard("ledger"), pytest.raises(BusyError):
        fill(1)
    assert not ledger.LEDGER.exists()


def test_a_number_that_is_not_finite_never_reaches_the_ledger():
    with pytest.raises(DataError, match="not finite"):
        ledger.append(FIELDS | {"case": "c", "difference_kn": {"value": float("nan")}})
    assert not ledger.LEDGER.exists()


@pytest.mark.parametrize("point", ["before_rename", "after_rename"])
def test_a_kill_while_appending_leaves_the_old_ledger_or_the_new_one(point):
    lines = fill(2)
    code = (
        f"from stages.winds.retraining import ledger; ledger.append({FIELDS | {'case': 'new'}!r})"
    )
    died = subprocess.run(
        [sys.executable, "-c", code],
        env={"FAULT": f"{point}:1", "PYTHONPATH": str(live_project.ROOT), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert died.returncode == -9
    assert ledger.LEDGER.read_text(encoding="utf-8").splitlines()[:2] == lines and len(
        ledger.read()
    ) == (2 if point == "before_rename" else 3)
    assert ledger.append(FIELDS | {"case": "new"})["number"] == 3 and len(ledger.read()) == 3
    assert [path.name for path in Path("reports").iterdir()] == ["ledger.jsonl"]


# --- the tree


def test_the_tree_is_told_by_its_commit_and_by_tracked_files_that_differ():
    assert ledger.tree("live") == ("", [])
    live_project.commit()
    assert ledger.tree("live") == (live_project.git("rev-parse", "HEAD").strip(), [])
    Path("untracked.py").write_text("")
    assert ledger.tree("live")[1] == []
    Path("code.py").write_text("2\n")
    assert ledger.tree("live")[1] == ["code.py"]
    live_project.git("add", "code.py")
    assert ledger.tree("live")[1] == ["code.py"]  # staged is not committed
    Path("code.py").unlink()
    assert ledger.tree("live")[1] == ["code.py"]


def test_what_a_retraining_run_changes_itself_is_not_dirt_and_the_rest_is():
    paths = (
        "data/live/drift.json",
        "data/live/raw/captures.dvc",
        "dvc.lock",
        "reports/wind_nowcast/dvc.lock",
        "reports/index.html",
        "reports/ledger.jsonl",
        "reports/wind_nowcast/live/metrics.json",
        "data/mini/records/a.json",
        "reports/wind_nowcast/dvc.yaml",
        "data/lively/b",
        "notes dvc.lock.txt",
    )
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    live_project.git("init", "-q")
    live_project.git("add", "-A")
    live_project.git("commit", "-q", "-m", "all")
    for path in map(Path, paths):
        path.write_text("2\n")
    assert ledger.tree("live")[1] == sorted(paths[-4:])


def test_the_profiles_word_is_not_dirt_and_a_parameter_is():
    live_project.commit()
    Path("params.yaml").write_text("a: 1\nrun: *live\n")
    assert ledger.tree("live")[1] == []
    Path("params.yaml").write_text("a: 2\nrun: *live\n")
    assert ledger.tree("live")[1] == ["params.yaml"]


def test_the_table_tells_errors_interval_and_reason_under_titles_with_units():
    ledger.append(
        FIELDS
        | {
            "case": "1",
            "kind": "promoted",
            "after": "ab" * 32,
            "rmse_component_kn": {"challenger": 7.125, "against": 8.5},
            "difference_kn": {"value": -1.375, "low": -1.5, "high": -0.25},
            "evaluation": {"slices": 59},
            "drift": {"state": "steady"},
        }
    )
    ledger.append(FIELDS | {"case": "2"})
    _, titles, first, second = ledger.render(ledger.read()).splitlines()
    assert "challenger kn" in titles and "difference kn [90 %]" in titles
    assert all(
        text in first
        for text in ("promoted", "7.12", "8.50", "-1.38 [-1.50, -0.25]", "59", "steady", "ab" * 6)
    )
    assert (
        "refused" in second
        and "Too few, grün." in second
        and titles.index("why") == second.index("Too few")
    )


@pytest.mark.fault("F20")
def test_a_git_that_gives_no_answer_is_no_proof():
    lines = fill(3)
    live_project.commit()
    write(lines[:2])
    Path(".git/config").write_text("[core\n")
    with pytest.raises(IntegrityError, match="git cannot say"):
        ledger.check_committed()


def test_a_line_that_has_no_bytes_is_found_and_named():
    lines = fill(1)
    write([lines[0].replace("Too few", "\\ud800")])
    with pytest.raises(IntegrityError, match="line 1"):
        ledger.read()
