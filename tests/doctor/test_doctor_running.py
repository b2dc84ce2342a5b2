"""What the doctor finds of runs and servers: locks, paths held by the dead, switches, APIs, the
mirror."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from ailing import ROOT, states, told, write

from stages.doctor import running, sources
from stages.doctor.finding import FAIL, OK, WARN, Place

GONE = 4_000_000  # above the greatest process number that Linux gives


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
        and "0 of the 337" in found.found
        and "commb/sample_data_adsb.csv" in found.found
        and "327 more" in found.found
    )
    pinned = (
        sources.params.load(place.root / "params.yaml")
        .datasets["commb"]
        .files["sample_data_adsb.csv"]
    )
    with (folder / "other_bytes").open("wb") as stream:
        stream.truncate(pinned.bytes)  # the right size, other bytes
    assert "0 of the 337" in sources.mirror(asked).found
    monkeypatch.setattr(
        sources, "matches", lambda path, source: source == pinned and path.name == "other_bytes"
    )
    assert "1 of the 337" in sources.mirror(asked).found
