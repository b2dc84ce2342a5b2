"""The schedule on a real Prefect server: a run appears on its own and completes, the password is
asked for, the dead are told as dead."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import retraining_project as toy
from living import alive

from flows import server
from flows.process import FlowError


@pytest.fixture
def project(tmp_path, monkeypatch):
    return toy.make(monkeypatch, tmp_path)


class Schedule:
    """A running `python -m flows.schedule` of the current project, and its API."""

    def __init__(self, *words):
        Path("ready").unlink(missing_ok=True)
        self.log = Path("schedule.log")
        with self.log.open("a") as stream:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "flows.schedule", "--port", "0", "--ready", "ready", *words],
                stdout=stream,
                stderr=stream,
                env=dict(os.environ),
                start_new_session=True,
            )
        toy.until(
            lambda: Path("ready").exists() or self.child.poll() is not None, 240, "the schedule"
        )
        assert self.child.poll() is None, self.log.read_text()
        self.api = Path("ready").read_text().strip()
        self.auth = server.AUTH.read_text()

    def ask(self, path, body=None):
        status, reply = server.answer(f"{self.api}/{path}", self.auth, body)
        assert status in (200, 201), (path, status)
        return reply

    def runs(self):
        """{id: (state's type, message, whether the clock asked for it)} of the runs that began."""
        found = self.ask("flow_runs/filter", {"flows": {"name": {"any_": ["retrain"]}}})
        return {
            run["id"]: (run["state"]["type"], run["state"]["message"], run["auto_scheduled"])
            for run in found
            if run["start_time"]
        }

    def parts(self):
        """The states of the runs inside runs."""
        return [
            run["state"]["type"]
            for run in self.ask("flow_runs/filter", {"flows": {"name": {"any_": ["reproduce"]}}})
        ]

    def ask_for_a_run(self):
        place = self.ask("deployments/name/retrain/retrain")["id"]
        return self.ask(f"deployments/{place}/create_flow_run", {"state": {"type": "SCHEDULED"}})[
            "id"
        ]

    def until_state(self, run, kind):
        return toy.until(
            lambda: (found := self.runs().get(run)) and found[0] == kind and found,
            180,
            f"{kind} of a run",
        )

    def processes(self):
        """The ids of this schedule's own descendants."""
        parents = {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parents[int(place.name)] = int(
                    (place / "stat").read_text().rpartition(")")[2].split()[1]
                )
        found = {self.child.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.child.pid}


def engine(pid):
    """The process of the flow run above a step's process."""
    while b"prefect.engine" not in (place := Path(f"/proc/{pid}")).joinpath("cmdline").read_bytes():
        pid = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    return pid


def at(step):
    """Wait until a held step is reached; its process id."""
    toy.until(lambda: Path(f"at-{step}").exists(), 240, step)
    return int(Path(f"at-{step}").read_text())


def let_go(step):
    for kind in ("hold", "at"):
        Path(f"{kind}-{step}").unlink(missing_ok=True)


def stored():
    """The runs' states in the database itself: {id: type}."""
    with sqlite3.connect(server.HOME / "prefect.db") as base:
        return {
            str(uuid.UUID(run)): kind
            for run, kind in base.execute("select id, state_type from flow_run")
        }


def behind_a_password(schedule):
    """The password: needed, kept from others, said nowhere; and one schedule a project."""
    assert stat.S_IMODE(server.AUTH.stat().st_mode) == 0o600
    for auth in (None, "tradewind:wrong", "tradewind:"):
        assert server.answer(f"{schedule.api}/flow_runs/filter", auth, {})[0] == 401
    assert schedule.api.startswith("http://127.0.0.1:")
    code = toy.start("flows.schedule", "--port", "0").wait(60)
    assert code == 75, "one schedule a project"


def promoted(schedule, asked, entry):
    """Wait until a run has promoted what became ledger entry `entry`: the one that was asked for,
    or one that the clock started a moment before it, by which the other is cancelled."""
    message = f"promoted, ledger entry {entry}"
    toy.until(
        lambda: message in [said for _, said, _ in schedule.runs().values()],
        240,
        lambda: f"{message!r} among {stored()}",
    )
    assert asked in schedule.runs() or stored()[asked] == "CANCELLED"


def run_killed_and_finished(schedule):
    """A run that the clock asked for, its process killed; the next one finishes the work."""
    step = at("prepare")
    ((first, (kind, _, by_clock)),) = schedule.runs().items()
    assert kind == "RUNNING" and by_clock
    os.kill(engine(step), signal.SIGKILL)
    schedule.until_state(first, "CRASHED")
    toy.until(lambda: schedule.parts() == ["CRASHED"], what="the part of the killed run")
    toy.until(lambda: not alive(step), what="the end of the step")
    let_go("prepare")
    second = schedule.ask_for_a_run()
    toy.until(lambda: toy.entries(), 240, "a ledger entry")
    promoted(schedule, second, 1)
    assert [entry["number"] for entry in toy.entries()] == [1]
    assert toy.git("log", "--format=%s").splitlines() == [
        "Retrain on 1 captures: promoted (ledger entry 1)",
        "Begin",
    ]


def killed_whole(schedule):
    """The whole schedule killed in the middle of a run: nothing of it goes on, and the next one,
    which is returned, tells that run as crashed."""
    Path("hold-judge").touch()
    toy.drop("b.csv", "two ")
    schedule.ask_for_a_run()
    at("judge")
    ((third, _),) = (
        (run, state) for run, state in schedule.runs().items() if state[0] == "RUNNING"
    )
    children = schedule.processes()
    assert len(children) >= 3
    schedule.child.kill()
    schedule.child.wait()
    toy.until(lambda: not any(map(alive, children)), what="the end of the schedule's children")
    let_go("judge")
    schedule = Schedule("--cron", "0 0 1 1 *")
    schedule.until_state(third, "CRASHED")
    fourth = schedule.ask_for_a_run()
    promoted(schedule, fourth, 2)  # the place of the dead run is free again
    return schedule


def ended(schedule):
    """SIGTERM ends the run that is at work and the server."""
    Path("hold-intake").touch()
    last = schedule.ask_for_a_run()
    step, children = at("intake"), schedule.processes()
    schedule.child.terminate()
    assert schedule.child.wait(120) == 0, schedule.log.read_text()
    toy.until(
        lambda: not any(map(alive, {step} | children)), what="the end of the schedule's children"
    )
    states = stored()
    assert states[last] in ("CANCELLED", "CRASHED")
    assert not {"RUNNING", "PENDING", "CANCELLING"} & set(states.values())


def told_nowhere(schedule):
    """The password stands in no log."""
    secret = schedule.auth.partition(":")[2]
    assert not any(
        secret in path.read_text(errors="replace") for path in (schedule.log, server.LOG)
    )


def test_a_schedule_takes_in_a_capture_promotes_and_ends_with_its_run(project, migrated):
    migrated()
    toy.drop("a.csv", "one ")
    schedule = Schedule("--cron", "0 0 1 1 *")
    behind_a_password(schedule)
    promoted(schedule, schedule.ask_for_a_run(), 1)
    assert [entry["number"] for entry in toy.entries()] == [1]
    ended(schedule)
    told_nowhere(schedule)


@pytest.mark.slow_fault
def test_a_schedule_survives_a_killed_run_and_its_own_death(project, migrated):
    """One server session for what needs the clock, a second for what the first one's death left."""
    migrated()
    Path("hold-prepare").touch()
    toy.drop("a.csv", "one ")
    schedule = Schedule("--cron", "* * * * *")
    behind_a_password(schedule)
    run_killed_and_finished(schedule)
    schedule = killed_whole(schedule)
    ended(schedule)
    told_nowhere(schedule)
    assert (
        "took in 1 captures, 2 in all" in schedule.log.read_text()
        and "promoted, ledger entry 2" in schedule.log.read_text()
    )


def refused(*words, **more):
    """What `flows.schedule` says when it must not even start a server; the exit code was 2."""
    with toy.start("flows.schedule", *words, **more) as child:
        text, _ = child.communicate(timeout=120)
    assert child.returncode == 2, text
    assert not server.LOG.exists(), "no server was started"
    return text


@pytest.mark.fault("F20")
def test_beyond_loopback_only_with_a_password_of_the_users_own(project, monkeypatch):
    assert "0.0.0.0 can be reached from other machines" in refused(
        "--host", "0.0.0.0", "--port", "0"
    )
    assert not server.AUTH.exists()
    for host, own in {
        "127.0.0.1": False,
        "127.8.8.8": False,
        "::1": False,
        "localhost": False,
        "0.0.0.0": True,
        "::": True,
        "192.0.2.1": True,
        "example.org": True,
        "127.0.0.1.example.org": True,
    }.items():
        assert server.is_loopback(host) != own, host
        if own:
            with pytest.raises(FlowError):
                server.credentials(host)
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "me:secret")
    assert server.credentials("0.0.0.0") == ("me:secret", "as PREFECT_SERVER_API_AUTH_STRING says")


@pytest.mark.parametrize(
    ("words", "environment", "told"),
    [
        (["--cron", "every day"], {}, "'every day' is no cron expression"),
        (
            ["--database", "mysql://me:hidden@host/base"],
            {},
            "expected: postgresql://USER:PASSWORD@HOST:PORT/NAME",
        ),
        ([], {"PREFECT_API_DATABASE_CONNECTION_URL": "me:hidden@host"}, "found: no scheme"),
        (
            [],
            {"PREFECT_API_AUTH_STRING": "hidden"},
            "PREFECT_API_AUTH_STRING is not of the form user:password",
        ),
    ],
)
@pytest.mark.fault("F20")
def test_the_users_mistakes_end_before_a_server_starts_and_show_no_secret(
    project, words, environment, told
):
    text = refused("--port", "0", *words, **environment)
    assert told in text and "hidden" not in text and "Traceback" not in text


def test_a_taken_port_is_told(project):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        text = refused("--port", str(port))
    assert f"port {port}" in text and "remedy" in text


def test_the_password_is_made_once_and_anew_when_others_could_have_read_it(project):
    first, where = server.credentials("127.0.0.1")
    assert where == "in .work/prefect/auth" and first.startswith("tradewind:") and len(first) >= 40
    assert (
        server.credentials("localhost")[0] == first
        and stat.S_IMODE(server.AUTH.stat().st_mode) == 0o600
    )
    server.AUTH.chmod(0o644)
    assert (
        server.credentials("127.0.0.1")[0] != first
        and stat.S_IMODE(server.AUTH.stat().st_mode) == 0o600
    )


@pytest.mark.slow_fault
def test_the_server_keeps_its_data_in_postgresql_and_tells_no_password(project, monkeypatch):
    """A real PostgreSQL server: Prefect's tables are there, none in SQLite; with a wrong
    password the start fails and shows neither."""
    monkeypatch.syspath_prepend(toy.ROOT / "tests/sweeps")
    import postgres
    import psycopg2

    if not postgres.programs():
        pytest.skip(postgres.ABSENT)
    with postgres.server() as url:
        auth, port = server.credentials("127.0.0.1")[0], server.free_port("127.0.0.1", 0)
        with server.running("127.0.0.1", port, auth, server.database(url)):
            assert server.answer(
                f"{server.address('127.0.0.1', port)}/flow_runs/count", auth, {}
            ) == (200, 0)
            with (
                contextlib.closing(psycopg2.connect(url.replace("+psycopg2", ""))) as base,
                base.cursor() as cursor,
            ):
                cursor.execute("select count(*) from flow_run")
                assert cursor.fetchone() == (0,)
        assert not (server.HOME / "prefect.db").exists()
        password = url.partition("sweeper:")[2].partition("@")[0]
        assert password not in server.LOG.read_text()
        wrong = server.database(url).replace(password, "wrong-word")
        with (
            pytest.raises(FlowError, match="the Prefect server ended with") as error,
            server.running("127.0.0.1", port, auth, wrong),
        ):
            pass
        assert "wrong-word" not in str(error.value) and auth not in str(error.value)


def test_the_deployments_of_the_table_exist():
    """The declared flows are there under their names, and the clock of the real project is one
    that Prefect takes."""
    code = (
        "import json; from flows import schedule; made = [schedule.deployment(name, "
        "schedule.checked(schedule.settings().cron), {}) for name in schedule.DEPLOYMENTS]; "
        "print(json.dumps([(one.name, one.flow_name, one.entrypoint, "
        "one.schedules[0].schedule.timezone) for one in made]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=toy.ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PREFECT_HOME": os.devnull},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["retrain", "retrain", "flows.retrain.retrain", "UTC"]
    ]
