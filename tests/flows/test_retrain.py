"""The retraining flow on a pretended project: one entry and one commit a state of the data,
whatever is killed, fails or runs beside it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import retraining_project as toy
from living import alive

from flows import repro, retrain, server
from flows.process import FlowError

WHOLE = ["intake", "taken", "prepare", "tabulate", "judge", "entered", "report", "commit"]
NO_DVC = "raise SystemExit('dvc was called')"  # as ./dvc.py it stands before the real one


@pytest.fixture(scope="module")
def prefect(tmp_path_factory, migrated):
    """One real server for this file: what a run must be told to use it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("server"))
        migrated()
        for name in [name for name in os.environ if name.startswith("PREFECT")]:
            patch.delenv(name)
        port, (auth, _) = server.free_port("127.0.0.1", 0), server.credentials("127.0.0.1")
        with server.running("127.0.0.1", port, auth):
            yield {
                "PREFECT_API_URL": server.address("127.0.0.1", port),
                "PREFECT_API_AUTH_STRING": auth,
            }


@pytest.fixture
def project(tmp_path, monkeypatch):
    return toy.make(monkeypatch, tmp_path)


@pytest.fixture
def served(project, prefect, monkeypatch):
    """The project with the server in its environment."""
    for name, value in prefect.items():
        monkeypatch.setenv(name, value)
    return project


def plain(_name, work):
    """A step without Prefect."""
    return work


@pytest.fixture
def quick(project, monkeypatch):
    """A run in this process and without Prefect, whose tasks are one line around each step; its
    end and what it said."""

    def serial(graph, *, jobs, **_):
        def start(stage, done):
            try:
                repro.reproduce("-s", stage, log=repro.log_of(stage))
                done(True)
            except FlowError:
                done(False)

        return repro.schedule(graph, start, jobs=jobs)

    def run(**more):
        said = []
        return retrain.once(plain, said.append, **more), said

    monkeypatch.setattr(repro, "run", serial)
    return run


def commits():
    return toy.git("log", "--format=%s").splitlines()


def test_one_entry_and_one_commit_a_state_and_nothing_new_costs_no_dvc(served, quick):
    """What the user staged, changed and left untracked elsewhere is as it was; only the live
    profile's own stages run."""
    Path("README.md").write_text("Staged by the user.\n")
    toy.git("add", "README.md")
    Path("notes.txt").write_text("Changed by the user.\n")
    Path("new.txt").write_text("Left by the user.\n")
    before = toy.git("status", "--short"), toy.git("diff", "--cached")
    toy.drop("a.csv", "one ")
    toy.drop("bad.csv", "x")
    code, text = toy.run()
    assert code == 0 and text.endswith("promoted, ledger entry 1\n"), text
    assert "took in 1 captures, 1 in all" in text and "bad.csv is in quarantine: it is bad" in text
    assert toy.trace() == WHOLE, "the stage of the other experiment does not run"
    assert commits() == ["Retrain on 1 captures: promoted (ledger entry 1)", "Begin"]
    assert toy.git("log", "-1", "--format=%an <%ae>") == "Tradewind <retraining@localhost>\n"
    assert (toy.git("status", "--short"), toy.git("diff", "--cached")) == before
    assert toy.git("show", "--format=", "--name-only").split() == [
        "data/live/.gitignore",
        "data/live/champions.dvc",
        "data/live/prepared/.gitignore",
        "data/live/raw/.gitignore",
        "data/live/raw/captures.dvc",
        "dvc.lock",
        "reports/index.html",
        "reports/ledger.jsonl",
        "reports/wind_nowcast/dvc.lock",
        "reports/wind_nowcast/live/metrics.json",
    ]
    assert Path("params.yaml").read_text() == toy.PARAMS

    Path("dvc.py").write_text(NO_DVC)
    code, text = toy.run()
    assert code == 0 and text.endswith("nothing new\n"), text
    assert toy.trace() == ["intake", "taken"] and len(commits()) == 2
    Path("dvc.py").unlink()

    toy.drop("b.csv", "two ")
    end, _ = quick()
    assert (end.kind, end.message, end.exit_code) == ("completed", "promoted, ledger entry 2", 0)
    assert toy.trace() == WHOLE and [entry["number"] for entry in toy.entries()] == [1, 2]
    assert commits()[0] == "Retrain on 2 captures: promoted (ledger entry 2)"
    assert (
        Path("reports/wind_nowcast/live/metrics.json").read_text()
        == "tabulate of prepare of one two "
    )


def killed_at(step: str) -> None:
    """A run killed at the step; what it had started has ended."""
    hold, at = Path(f"hold-{step}"), Path(f"at-{step}")
    hold.touch()
    child = toy.start("flows.retrain")
    begun = toy.until(lambda: at.exists() or child.poll() is not None, what=step)
    assert begun and child.poll() is None, (step, child.stdout.read())
    pid = int(at.read_text())
    child.kill()
    child.wait()
    if step != "commit":  # git ends in its own time: a killed one would leave its lock behind
        toy.until(lambda: not alive(pid), what=f"the end of {step}")
    hold.unlink()
    toy.until(lambda: not alive(pid), what=f"the end of {step}")
    at.unlink()


@pytest.mark.fault("F1")
@pytest.mark.parametrize(
    "steps",
    [
        # test_schedule.py kills a run for `make test`
        pytest.param(["entered"], id="entered", marks=pytest.mark.slow_fault),
        # two steps have nothing of their own to spoil
        pytest.param(
            [step for step in WHOLE if step not in ("intake", "tabulate")],
            id="each",
            marks=pytest.mark.slow_fault,
        ),
    ],
)
def test_a_run_killed_at_any_point_is_finished_by_the_next_with_one_entry_and_one_commit(
    served, steps
):
    """Killed at each step in turn, the last time between the commit and the end; nothing that it
    started goes on."""
    toy.drop("a.csv", "one ")
    for step in steps:
        killed_at(step)
    code, text = toy.run()
    assert code == 0 and text.endswith("finished an earlier run: promoted, ledger entry 1\n"), text
    assert len(toy.entries()) == 1 and commits() == [
        "Retrain on 1 captures: promoted (ledger entry 1)",
        "Begin",
    ]
    assert Path("params.yaml").read_text() == toy.PARAMS and toy.git("status", "--short") == ""
    assert toy.trace().count("commit") == 1


@pytest.mark.slow_fault
def test_a_run_that_is_asked_to_end_leaves_nothing_behind(served):
    toy.drop("a.csv", "one ")
    Path("hold-tabulate").touch()
    child = toy.start("flows.retrain")
    toy.until(lambda: Path("at-tabulate").exists() or child.poll() is not None)
    pid = int(Path("at-tabulate").read_text())
    child.send_signal(signal.SIGTERM)
    text, _ = child.communicate(timeout=120)
    assert child.returncode == 143, text
    toy.until(lambda: not alive(pid))
    assert (
        Path("params.yaml").read_text() == toy.PARAMS
        and toy.entries() == []
        and len(commits()) == 1
    )


@pytest.mark.fault("F7")
def test_of_two_at_once_one_works_and_one_ends_as_already_running(served):
    toy.drop("a.csv", "one ")
    Path("hold-judge").touch()
    first = toy.start("flows.retrain")
    toy.until(lambda: Path("at-judge").exists() or first.poll() is not None)
    toy.trace()
    code, text = toy.run()
    assert code == 75 and "already running" in text
    assert toy.trace() == [], "it did not even look"
    Path("hold-judge").unlink()
    text, _ = first.communicate(timeout=240)
    assert first.returncode == 0 and len(toy.entries()) == 1 and len(commits()) == 2, text


@pytest.mark.slow_fault
def test_a_gate_that_refuses_fails_the_run_and_is_asked_again_only_with_new_data(quick):
    toy.drop("a.csv", "poison ")
    end, _ = quick()
    message = "prepare@live: a critical expectation failed\n  where: captures\n  found: poison"
    assert end == retrain.Outcome("failed", message, 1)
    assert (
        toy.entries() == []
        and len(commits()) == 1
        and toy.trace() == ["intake", "taken", "prepare"]
    )
    Path("dvc.py").write_text(NO_DVC)
    end, said = quick()
    assert end == retrain.Outcome(
        "completed",
        "nothing new; the last attempt on these captures failed (--again tries anyway)",
        0,
    )
    assert said[-1] == message and toy.trace() == ["intake", "taken"]
    Path("dvc.py").unlink()
    toy.drop("b.csv", "more ")
    assert quick()[0].exit_code == 1 and toy.trace() == ["intake", "taken", "prepare"]


@pytest.mark.slow_fault
def test_too_little_data_is_waited_for_and_is_no_failure(quick, monkeypatch):
    monkeypatch.setenv("FILES_LEAST", "2")
    toy.drop("a.csv", "one ")
    end, _ = quick()
    assert end.kind == "completed" and end.message.startswith(
        "waiting for more captures: prepare@live: too little data"
    )
    assert quick()[0].message.startswith("nothing new; waiting for more captures")
    assert toy.trace() == ["intake", "taken", "prepare", "intake", "taken"]
    toy.drop("b.csv", "two ")
    assert quick()[0].message == "promoted, ledger entry 1"


@pytest.mark.slow_fault
def test_a_judgement_that_fails_is_told_and_tried_again_when_asked(quick):
    """Without commits, for those who want none: git is not touched."""
    Path("params.yaml").write_text(toy.PARAMS.replace("commit: true", "commit: false"))
    Path("judge-fails").touch()
    toy.drop("a.csv", "one ")
    assert quick()[0] == retrain.Outcome("failed", "judge: the challenger's record is forged", 1)
    assert quick()[0].exit_code == 0 and toy.entries() == []
    Path("judge-fails").unlink()
    assert quick(again=True)[0].message == "promoted, ledger entry 1"
    assert quick()[0].message == "nothing new" and commits() == ["Begin"]


@pytest.mark.slow_fault
def test_a_crash_is_tried_again_at_the_next_run(quick):
    """Only what a stage itself told is remembered: a stage that was killed may do better."""
    toy.drop("a.csv", "one ")
    Path("crash").touch()
    end, _ = quick()
    assert end.kind == "failed" and "prepare@live: see .work/flow/prepare@live.log" in end.message
    Path("crash").unlink()
    assert quick()[0].message == "promoted, ledger entry 1"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda: shutil.rmtree(".git"), "no git repository"),
        (lambda: toy.git("checkout", "-q", "--detach"), "detached HEAD"),
        (
            lambda: Path("params.yaml").write_text(toy.PARAMS.replace("commit: true", "commit: 1")),
            "retraining.commit should be bool, found 1",
        ),
        (
            lambda: Path("params.yaml").write_text(toy.PARAMS.replace("dataset: captures, ", "")),
            "`retraining` cannot be read: 'dataset'",
        ),
    ],
)
def test_the_users_mistakes_are_told_before_anything_is_taken_in(project, spoil, words):
    toy.drop("a.csv", "one ")
    spoil()
    with pytest.raises(FlowError, match=words) as error:
        retrain.once(plain, print)
    assert (
        error.value.exit_code == 2 and toy.trace() == [] and Path("data/live/drop/a.csv").exists()
    )


def test_another_drop_folder_is_handed_on(project):
    Path("elsewhere").mkdir()
    Path("elsewhere/bad.csv").write_text("x")
    said = []
    end = retrain.once(plain, said.append, drop="elsewhere")
    assert (end.kind, end.message, end.exit_code) == ("completed", "nothing new", 0)
    assert said == ["took in 0 captures, 0 in all (0.0 h); bad.csv is in quarantine: it is bad"]


def test_a_ledger_that_cannot_be_read_stops_the_run(project):
    Path("reports/ledger.jsonl").write_text("{}\n")
    toy.drop("a.csv", "one ")
    with pytest.raises(FlowError, match="tradewind ledger --verify"):
        retrain.once(plain, print)


def test_a_rollback_is_no_judgement(project):
    Path("reports/ledger.jsonl").write_text(
        '{"number": 1, "kind": "refused", "raw": "r"}\n'
        '{"number": 2, "kind": "rollback", "raw": "r"}\n'
        '{"number": 3, "kind": "rollback", "raw": "s"}\n'
    )
    assert (
        retrain.judged("r")["number"] == 1
        and retrain.judged("s") is None
        and retrain.judged("") is None
    )


def test_what_a_stage_told_is_found_in_its_log():
    log = (
        "Running stage 'x'\nnoise\nerror: too few rows\n  where: a.csv\n"
        "ERROR: failed to reproduce 'x'\nerror: later\n"
    )
    assert retrain.stage_error(log) == "too few rows\n  where: a.csv"
    assert retrain.stage_error("Traceback\nValueError: x\n") == ""


def test_prefect_is_not_imported_before_the_flow_is_asked_for(project):
    """A start that ends at once (already running, a mistake) stays quick."""
    code = (
        "import sys, flows.retrain as r, flows.schedule; print('prefect' in sys.modules); "
        "r.retrain; print('prefect' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n"
