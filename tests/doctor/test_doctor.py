"""`tradewind doctor`: each planted ailment is found, with its state and a remedy; nothing else
is; no secret is shown, nothing is written."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from ailing import ROOT, configured, pretend, states, told, write

from stages import cli, doctor
from stages.doctor import environment, project
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place, safe

# --- the whole


def test_every_check_of_a_healthy_project_answers_and_none_fails(place, monkeypatch):
    pretend(place, monkeypatch)
    monkeypatch.setattr(environment.stages, "__file__", str(place.root / "stages/__init__.py"))
    found = doctor.examine(place.root, dict(place.environ))
    assert {one.name: one.found for one in found if one.state == FAIL} == {}
    assert len({one.name for one in found}) == len(found) >= len(doctor.CHECKS) and all(
        one.found for one in found
    )
    assert (
        not (place.root / ".work").exists()
        and subprocess.run(
            ["git", "status", "--porcelain"], cwd=place.root, capture_output=True, check=True
        ).stdout
        == b""
    )


def test_in_a_folder_that_is_no_clone_only_what_a_package_needs_is_looked_at(tmp_path):
    found = doctor.examine(tmp_path, dict(os.environ))
    assert {one.name: one.found for one in found if one.state == FAIL} == {}
    assert [one.name for one in found] == [
        "folder",
        "python",
        "package",
        "variables",
        "arithmetic",
        "example",
        "disk: temporary files",
        "memory",
        "gpu",
        "clock",
    ]
    assert "is loaded" in found[5].found and not list(tmp_path.iterdir())


def test_a_damaged_clone_is_no_folder_without_one(tmp_path):
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    failed = [one.name for one in doctor.examine(tmp_path, {}) if one.state == FAIL]
    assert {"python", "packages", "parameters", "git"} <= {*failed}


def test_a_package_that_is_missing_or_out_of_bounds_is_named(tmp_path, monkeypatch):
    from stages.doctor import alone

    real = environment.installed
    other = {"polars": None, "scipy": "1.0"}
    monkeypatch.setattr(
        environment, "installed", lambda name: other[name] if name in other else real(name)
    )
    _, package = alone.package(Place(tmp_path, {}))
    assert package.state == FAIL and "polars missing" in package.found
    assert "scipy 1.0 (needs" in package.found and "torch" not in package.found


def test_a_check_that_breaks_is_a_failed_finding_and_the_others_still_speak(place):
    def broken(_):
        raise OSError("https://me:hush-hush@example.org/x is lost")

    found = doctor.examine(
        place.root, {}, {"broken": broken, "whole": lambda _: Finding("whole", OK, "well")}
    )
    assert states(found) == {"broken": FAIL, "whole": OK}
    assert (
        "OSError" in found[0].found and "hush" not in told(found) and doctor.exit_code(found) == 1
    )


def test_wrong_parameters_are_told_once_and_break_no_other_check(place, tmp_path):
    file = place.root / "params.yaml"
    file.write_text(file.read_text().replace("    wind: [", "    wind: [nowhere, ", 1))
    chosen = {name: doctor.CHECKS[name] for name in ("parameters", "mirror")}
    found = doctor.examine(place.root, {"TRADEWIND_MIRROR": str(tmp_path)}, chosen)
    assert states(found) == {"parameters": FAIL, "mirror": WARN}
    assert "makers" not in told(found) and "parameters are not right" in found[1].found


@pytest.mark.parametrize("state, code", [(OK, 0), (WARN, 0), (FAIL, 1)])
def test_only_a_failure_ends_with_1_and_json_says_what_the_table_says(state, code):
    found = [Finding("a", OK, "well", "never shown"), Finding("bee", state, "like this", "do that")]
    assert doctor.exit_code(found) == code
    content = json.loads(doctor.as_json(found))
    assert content["ok"] is not code and content["findings"][1] == {
        "name": "bee",
        "state": state,
        "found": "like this",
        "remedy": "do that",
    }
    lines = doctor.render(found).splitlines()
    assert (
        lines[1].split() == [state, "bee", "like", "this"]
        and "never shown" not in "".join(lines)
        and "\033" not in "".join(lines)
    )
    assert ("remedy: do that" in lines[2]) == (state != OK)
    assert doctor.render(found, colour=True).startswith("\033[32mok")


def test_the_command_prints_and_ends_as_the_findings_say(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    monkeypatch.setattr(
        doctor,
        "CHECKS",
        {"x": lambda place: Finding("x", FAIL if place.root == tmp_path else OK, "here")},
    )
    monkeypatch.setattr(sys, "argv", ["tradewind", "doctor", "--json"])
    assert cli.main() == 1 and json.loads(capsys.readouterr().out)["findings"][0]["found"] == "here"


def test_a_folder_that_is_no_project_is_told_without_a_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "stages.cli", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (
        (done.returncode, done.stderr) == (0, "")
        and "is no clone of the project" in done.stdout
        and "project's root" in done.stdout
        and "Traceback" not in done.stdout
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("F20")
def test_no_planted_secret_is_shown(place):
    secrets = {
        "TRADEWIND_SWEEPS_URL": "postgresql://me:sw33ps-pass@db.example.org/x",
        "PREFECT_API_URL": "http://me:pr3fect-pass@127.0.0.1:1/api?key=t0ken-a",
        "AWS_SECRET_ACCESS_KEY": "aws-s3cret-b",
        "PREFECT_SERVER_API_AUTH_STRING": "admin:auth-c",
        "MY_TOKEN": "t0ken-d",
    }
    write(
        place,
        ".dvc/config",
        "[core]\n    remote = far\n['remote \"far\"']\n"
        "    url = https://me:r3mote-pass@example.org/store?sig=s1gn\n    password = c0nfig-pass\n",
    )
    write(
        place, ".dvc/tmp/rwlock", json.dumps({"write": {"x": {"pid": "aws-s3cret-b", "cmd": "y"}}})
    )
    found = doctor.examine(place.root, {**place.environ, **secrets})
    shown = doctor.as_json(found) + doctor.render(found)
    for secret in (
        "sw33ps",
        "pr3fect",
        "t0ken",
        "aws-s3cret",
        "auth-c",
        "r3mote",
        "s1gn",
        "c0nfig",
    ):
        assert secret not in shown
    assert (
        "far" in shown
        and "example.org/store" in shown
        and "TRADEWIND_SWEEPS_URL" in shown
        and "holds a secret: password, url" in shown
    )


@pytest.mark.parametrize(
    "text, shown",
    [
        ("s3://bucket/path", "s3://bucket/path"),
        ("ssh://me@host/x", "ssh://(hidden)@host/x"),
        ("https://a:b@h/x?q=1#f y", "https://(hidden)@h/x?(hidden) y"),
        ("/mnt/a?b", "/mnt/a?b"),
        ("a p@ss c", "a p@ss c"),
        ("key is hunter22", "key is (hidden)"),
    ],
)
@pytest.mark.fault("F20")
def test_urls_lose_what_may_be_secret_and_other_text_stays(text, shown):
    assert safe(text, {"A_PASSWORD": "hunter22"}) == shown


# --- the working copy


def test_parameters_that_break_the_schema_fail_with_what_is_wrong(place):
    write(place, "params.yaml", (place.root / "params.yaml").read_text() + "surplus: 1\n")
    found = project.parameters(place)
    assert found.state == FAIL and "surplus" in found.found


def test_git_tells_what_differs_and_who_commits(place):
    write(place, "new.txt", "x")
    write(place, "dvc.yaml", "stages: {}  # edited\n")
    found = project.git(place)
    assert states(found) == {"git": OK, "git identity": WARN} and found[0].found.startswith(
        "1 files differ from the last commit, 1 are new"
    )
    subprocess.run(["git", "config", "user.name", "x"], cwd=place.root, check=True)
    assert "user.email not set" in told(project.git(Place(place.root, place.environ)))
    assert (
        states(
            project.git(
                Place(place.root, {**place.environ, "GIT_COMMITTER_EMAIL": "x@example.org"})
            )
        )["git identity"]
        == OK
    )


def test_a_folder_outside_git_and_a_dvc_that_does_not_answer_fail(place, monkeypatch):
    shutil.rmtree(place.root / ".git")
    assert states(project.git(place)) == {"git": FAIL}
    monkeypatch.setattr(
        Place, "dvc", lambda *_: subprocess.CompletedProcess([], 1, "", "x\nNo module named dvc")
    )
    (place.root / ".dvc/config").unlink()
    found = project.dvc(place)
    assert states(found) == {"dvc": FAIL, "dvc project": FAIL} and "No module named dvc" in told(
        found
    )


def test_a_default_remote_that_is_not_there_fails_and_none_at_all_is_well(place):
    assert states(project.remotes(configured(place))) == {"dvc remotes": OK}
    assert states(project.remotes(configured(place, "core.remote=far\n"))) == {"dvc remotes": FAIL}
    found = project.remotes(configured(place, "core.remote=far\nremote.far.url=s3://bucket/x\n"))
    assert states(found) == {"dvc remotes": OK} and "far (s3://bucket/x) default" in told(found)


@pytest.mark.parametrize("name", ["dvc.lock", "reports/e/dvc.lock"])
@pytest.mark.parametrize(
    "text, state",
    [
        ("schema: '2.0'\nstages:\n<<<<<<< HEAD\n  a: {}\n=======\n  b: {}\n>>>>>>> other\n", FAIL),
        ("schema: '2.0'\nstages: {a: [}\n", FAIL),
        ("just text\n", FAIL),
        ("schema: '2.0'\nstages:\n  a:\n    cmd: echo '<<<<<<< no mark'\n", OK),
    ],
)
def test_a_lock_file_with_marks_of_a_conflict_or_that_is_none_fails_by_name(
    place, name, text, state
):
    write(place, name, text)
    found = project.lockfiles(place)
    assert found.state == state and (state == OK or name in found.found)
