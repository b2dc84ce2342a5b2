"""DVC in a process that has loaded it once: each command on its own, and none that outlives it."""

import os
import threading
from pathlib import Path

import pytest
import retraining_project as toy
from living import alive

from flows import repro
from flows.process import FlowError
from flows.served import Server


@pytest.fixture
def project(tmp_path, monkeypatch):
    return toy.make(monkeypatch, tmp_path)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.kill()


def run(server, *words, environment=None):
    log = Path("log")
    log.write_bytes(b"")
    return server.run(list(words), environment or dict(os.environ), log), log.read_text()


def test_commands_run_one_after_the_other_each_in_its_folder_and_environment(
    project, server, tmp_path, monkeypatch
):
    code, told = run(server, "root")
    assert (code, told.strip()) == (0, ".")
    code, told = run(server, "repro", "-s", "nothing")
    assert code == 255 and "nothing" in told
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, told = run(server, "root")
    assert code == 253 and "not inside of a DVC repository" in told
    assert server.alive()


def test_a_command_sees_the_environment_that_it_was_given(project, server):
    verbose = dict(os.environ) | {"DVC_GLOBAL_CONFIG_DIR": str(Path("mine").absolute())}
    Path("mine").mkdir()
    Path("mine/config").write_text("[core]\n    remote = given\n")
    assert run(server, "config", "core.remote", environment=verbose)[1].strip() == "given"
    assert run(server, "config", "core.remote")[1].strip() == ""


def test_a_killed_server_is_told_and_the_thread_gets_another(project, monkeypatch):
    def held():
        with pytest.raises(FlowError, match="ended with"):
            repro.reproduce("-s", "prepare", log=Path("killed.log"))
        again.append(True)
        repro.reproduce("--help", log=Path("after.log"))

    again = []
    Path("hold-prepare").touch()
    raw = Path("data/mini/raw/captures/a.csv")
    raw.parent.mkdir(parents=True)
    raw.write_text("one ")
    monkeypatch.setattr(repro, "_children", set())
    thread = threading.Thread(target=held)
    thread.start()
    toy.until(lambda: Path("at-prepare").exists() or not thread.is_alive(), 120, "the step")
    step = int(Path("at-prepare").read_text())
    (server,) = repro._children
    server.process.kill()
    thread.join(60)
    assert again and not thread.is_alive() and "usage" in Path("after.log").read_text()
    toy.until(lambda: not alive(step), what="the end of the step")
