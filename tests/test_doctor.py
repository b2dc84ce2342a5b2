"""`tradewind doctor`: each planted ailment is found, with its state and a remedy; nothing else
is; no secret is shown, nothing is written."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from stages import cli, doctor
from stages.doctor import environment, machine, project, running, sources
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place, safe

ROOT = Path(__file__).parents[1]
GONE = 4_000_000  # above the greatest process number that Linux gives
Usage = namedtuple("Usage", "total used free")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A small healthy project: the real parameters and constraints, DVC's files, a git
    repository with one commit."""
    folder = tmp_path_factory.mktemp("healthy")
    for name in ("params.yaml", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    for name in ("data/sources", "stages/params"):
        shutil.copytree(ROOT / name, folder / name)
    for name, text in {
        ".dvc/config": "[core]\n    analytics = false\n",
        "dvc.yaml": "stages: {}\n",
        ".gitignore": ".work/\n",
        "dvc.lock": "schema: '2.0'\nstages: {}\n",
        "reports/e/dvc.lock": "schema: '2.0'\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def place(healthy, tmp_path):
    """A copy of that project, in an environment of its own."""
    home = shutil.copytree(healthy, tmp_path / "project")
    return Place(home, {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})


def states(told) -> dict[str, str]:
    return {one.name: one.state for one in (told if isinstance(told, list) else [told])}


def told(found) -> str:
    return " ".join(
        f"{one.found} {one.remedy}" for one in (found if isinstance(found, list) else [found])
    )


def write(place: Place, name: str, text: str) -> Path:
    path = place.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def configured(place: Place, text: str = "") -> Place:
    """The place anew, with what `dvc config --list` would say there (one test asks DVC itself)."""
    said = subprocess.CompletedProcess([], 0, text, "")
    return Place(
        place.root, place.environ, {(sys.executable, "-m", "dvc", "config", "--list"): said}
    )


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
        (done.returncode, done.stderr) == (1, "")
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


# --- packages


def pretend(place: Place, monkeypatch, **other: str | None) -> None:
    """Let what constraints.txt lists be installed, but for `other`."""
    lines = (place.root / "constraints.txt").read_text().splitlines()
    known = {
        canonicalize_name(name): version
        for name, version in (line.split("==") for line in lines if "==" in line)
    } | other
    monkeypatch.setattr(environment, "installed", lambda name: known.get(canonicalize_name(name)))


@pytest.mark.parametrize(
    "other, packages, pins, pairs, says",
    [
        ({}, OK, OK, OK, "all as listed"),
        ({"attrs": "1.0"}, WARN, OK, OK, "attrs 1.0 (not"),
        ({"attrs": None}, WARN, OK, OK, "not installed: attrs"),
        ({"polars": "1.9"}, WARN, FAIL, OK, "polars 1.9 (needs"),
        ({"torch": None}, WARN, FAIL, OK, "torch missing"),
        ({"fastapi": "0.163.0"}, WARN, FAIL, FAIL, "fastapi<0.151"),
        ({"sqlalchemy": "2.1.9"}, WARN, FAIL, FAIL, "sqlalchemy<2.1"),
        ({"prefect": "4.0", "fastapi": "0.163.0"}, WARN, FAIL, OK, "prefect 4.0"),
    ],
)
def test_packages_that_differ_are_missing_or_break_each_other_are_told(
    place, monkeypatch, other, packages, pins, pairs, says
):
    pretend(place, monkeypatch, **other)
    found = [environment.packages(place), environment.pins(place), environment.pairs(place)]
    assert [one.state for one in found] == [packages, pins, pairs] and says in told(found)


def test_a_version_of_another_build_is_the_same_version(monkeypatch):
    monkeypatch.setattr(environment.metadata, "version", lambda name: "2.13.0+cpu")
    assert environment.installed("torch") == "2.13.0"


def test_an_old_interpreter_and_another_folders_code_are_told(place, monkeypatch):
    monkeypatch.setattr(environment.platform, "python_version", lambda: "3.10.1")
    assert states(environment.python(place)) == {
        "python": FAIL,
        "code": WARN,
    }  # the tests run the real project's code, not this copy's
    monkeypatch.setattr(environment.platform, "python_version", lambda: "3.11.7")
    assert states(environment.python(Place(ROOT, {}))) == {"python": OK, "code": OK}


@pytest.mark.parametrize(
    "name, state",
    [
        ("TRADEWIND_DEVICE", OK),
        ("FAULT", WARN),
        ("TRADEWIND_FLOW", WARN),
        ("TRADEWIND_MIRROR", OK),
        ("EDITOR", OK),
    ],
)
def test_variables_are_named_without_their_values_and_perilous_ones_are_warned_of(
    place, name, state
):
    found = environment.variables(Place(place.root, {name: "value-of-it"}))
    assert (
        found.state == state
        and "value-of-it" not in told(found)
        and (name in found.found) == (name != "EDITOR")
    )


# --- machine


@pytest.mark.parametrize(
    "gib, expected",
    [
        (100, (OK, OK, OK)),
        (3, (WARN, WARN, OK)),
        (0.5, (FAIL, FAIL, WARN)),
        (0.1, (FAIL, FAIL, FAIL)),
    ],
)
def test_a_disk_that_fills_is_warned_of_before_it_fails(place, monkeypatch, gib, expected):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(0, 0, gib * machine.GIB))
    found = machine.disk(configured(place))
    assert tuple(one.state for one in found) == expected and all(
        f"{gib:.1f} GiB" in one.found for one in found
    )


def test_the_cache_that_the_configuration_names_is_the_one_looked_at(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("cache")
    write(place, ".dvc/config.local", f"[cache]\n    dir = {elsewhere}\n")
    assert (
        any(str(elsewhere) in one.found for one in machine.disk(place))
        and project.cache(place).state == OK
    )
    assert (
        project.cache(configured(place, "cache.dir=../dvc.yaml\n")).state == FAIL
    )  # a file stands there


@pytest.mark.parametrize("gib, state", [(8, OK), (2, WARN), (0.5, FAIL)])
def test_memory_is_judged_by_what_can_be_had(place, monkeypatch, gib, state):
    monkeypatch.setattr(machine, "available", lambda: gib * machine.GIB)
    assert machine.memory(place).state == state


@pytest.mark.parametrize(
    "torch, driver, answer, wanted, state, says",
    [
        (False, False, None, "", FAIL, "torch is not installed"),
        (True, False, None, "", OK, "none here"),
        (True, False, None, "cuda", FAIL, "TRADEWIND_DEVICE"),
        (True, True, (0, "2.13.0 NVIDIA X", ""), "", OK, "NVIDIA X"),
        (True, True, (0, "2.13.0+cpu False", ""), "", WARN, "cannot use it"),
        (True, True, (1, "", "Traceback\nImportError: libcudart"), "", WARN, "libcudart"),
    ],
)
def test_a_gpu_is_found_where_torch_can_use_it(
    place, monkeypatch, tmp_path, torch, driver, answer, wanted, state, says
):
    monkeypatch.setattr(machine, "find_spec", lambda name: object() if torch else None)
    monkeypatch.setattr(machine, "DRIVER", (tmp_path if driver else tmp_path / "none",))
    here = Place(place.root, {"TRADEWIND_DEVICE": wanted})
    if answer:
        here.answers[(sys.executable, "-c", machine.ASK_TORCH)] = subprocess.CompletedProcess(
            [], *answer
        )
    found = machine.gpu(here)
    assert found.state == state and says in told(found)


def test_a_clock_before_the_last_commit_is_warned_of_and_no_time_zone_is(place, monkeypatch):
    made = int(place.ask("git", "log", "-1", "--format=%ct").stdout)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert machine.clock(place).state == OK
    monkeypatch.setattr(machine.time, "time", lambda: made - 3600.0)
    found = machine.clock(place)
    monkeypatch.undo()
    time.tzset()
    assert found.state == WARN and "3600 s before" in found.found


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


# --- what runs and what was left


def test_a_lock_is_held_by_the_process_that_has_it_and_free_after(place):
    lock = write(place, ".work/locks/flow", "")
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print('held', "
        "flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        flow, schedule = running.flow(place)
        assert f"process {holder.pid}" in flow.found and schedule.found == "none at work"
        holder.stdin.close()
    assert [one.found for one in running.flow(place)] == ["none at work"] * 2
    with lock.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody kept it


@pytest.mark.parametrize(
    "text, state, says",
    [
        (json.dumps({"write": {}}), OK, "none in use"),
        (
            json.dumps({"write": {"a": {"pid": GONE, "cmd": "dvc repro"}}, "read": {}}),
            WARN,
            str(GONE),
        ),
        (
            json.dumps({"read": {"a": [{"pid": os.getpid(), "cmd": "dvc repro"}]}}),
            OK,
            f"in use by process {os.getpid()}",
        ),
        ("{", FAIL, "rm .dvc/tmp/rwlock"),
        ("[]", FAIL, "rwlock"),
    ],
    ids=["none", "dead", "living", "cut", "list"],
)
def test_paths_held_by_dead_processes_are_told(place, text, state, says):
    write(place, ".dvc/tmp/rwlock", text)
    found = running.dvc_runs(place)
    assert states(found) == {"dvc lock": OK, "dvc paths": state} and says in told(found)


def test_a_killed_runs_switch_is_warned_of_unless_that_run_is_still_at_work(place):
    assert running.left_over(place).state == OK
    switch = write(place, ".work/profile/switch.json", json.dumps({"from": "mini", "to": "sample"}))
    found = running.left_over(place)
    assert (
        found.state == WARN
        and "from mini to sample" in found.found
        and "flows.profiles" in found.remedy
    )
    with write(place, ".work/locks/flow", "").open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert running.left_over(place).state == OK
    switch.write_text("half")
    assert running.left_over(place).state == FAIL


def test_the_remedy_for_a_killed_runs_switch_mends_it(place):
    text = (place.root / "params.yaml").read_text()
    write(place, ".work/profile/params.yaml", text)
    write(place, ".work/profile/switch.json", json.dumps({"from": "mini", "to": "sample"}))
    write(place, "params.yaml", text.replace("\nrun: *mini", "\nrun: *sample"))
    remedy = running.left_over(place).remedy.partition(" (")[0].split()
    subprocess.run(
        [sys.executable, *remedy[1:]],
        cwd=place.root,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert running.left_over(place).state == OK and (place.root / "params.yaml").read_text() == text


def test_a_prefect_server_of_this_project_is_found_and_told_apart_when_its_starter_is_gone(
    place, monkeypatch
):
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, "prefect", "server", "start"]
    mine = (place.root / ".work/prefect").resolve()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PREFECT_HOME": str(mine)},
    ) as child:
        assert child.stdout.readline() == "up\n"
        assert (
            running.servers(mine) == [(child.pid, os.getpid())]
            and running.servers(mine / "other") == []
        )
        assert states(running.prefect(place)) == {"prefect servers": OK, "prefect api": OK}
        child.stdin.close()
    monkeypatch.setattr(running, "servers", lambda home: [(GONE, 1)])
    found = running.prefect(place)[0]
    assert found.state == WARN and f"kill {GONE}" in found.remedy


@pytest.mark.parametrize(
    "mode, state",
    [(0o600, {}), (0o644, {"prefect password": FAIL}), (0o660, {"prefect password": FAIL})],
)
def test_a_servers_password_that_others_can_read_fails(place, mode, state):
    write(place, ".work/prefect/auth", "tradewind:hush-hush").chmod(mode)
    found = running.prefect(place)
    assert states(found) == {
        "prefect servers": OK,
        "prefect api": OK,
    } | state and "hush" not in told(found)


class Health(BaseHTTPRequestHandler):
    """An API whose health asks for a password, or is ill."""

    def do_GET(self):
        self.send_response(self.server.status if self.path == "/api/health" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("status, state", [(200, OK), (401, OK), (500, FAIL)])
def test_an_api_on_loopback_is_asked_for_its_health(place, status, state):
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        server.status = status
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        found = running.prefect(
            Place(place.root, {"PREFECT_API_URL": f"http://127.0.0.1:{server.server_port}/api"})
        )[1]
        server.shutdown()
        thread.join()
    assert found.state == state
    gone = running.prefect(
        Place(place.root, {"PREFECT_API_URL": f"http://127.0.0.1:{server.server_port}/api"})
    )[1]
    assert gone.state == FAIL and "unset PREFECT_API_URL" in gone.remedy


@pytest.mark.parametrize(
    "url",
    [
        "http://prefect.example.org/api",
        "http://10.0.0.7:4200/api",
        "http://127.0.0.1.example.org/api",
    ],
)
def test_an_api_of_another_machine_is_not_asked(place, monkeypatch, url):
    monkeypatch.setattr(running, "answers", lambda url: pytest.fail("it was asked"))
    assert running.prefect(Place(place.root, {"PREFECT_API_URL": url}))[1].state == OK


# --- the mirror


def test_the_mirror_is_asked_for_every_pinned_file_by_its_bytes(
    place, monkeypatch, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("mirror")
    asked = Place(place.root, {"TRADEWIND_MIRROR": str(folder)})
    assert (
        sources.mirror(place).state == OK
        and sources.mirror(Place(place.root, {"TRADEWIND_MIRROR": str(folder / "no")})).state
        == FAIL
    )
    found = sources.mirror(asked)
    assert (
        found.state == WARN
        and "0 of the 1226" in found.found
        and "commb/sample_data_adsb.csv" in found.found
        and "1216 more" in found.found
    )
    pinned = (
        sources.params.load(place.root / "params.yaml")
        .datasets["commb"]
        .files["sample_data_adsb.csv"]
    )
    with (folder / "other_bytes").open("wb") as stream:
        stream.truncate(pinned.bytes)  # the right size, other bytes
    assert "0 of the 1226" in sources.mirror(asked).found
    monkeypatch.setattr(
        sources, "matches", lambda path, source: source == pinned and path.name == "other_bytes"
    )
    assert "1 of the 1226" in sources.mirror(asked).found
