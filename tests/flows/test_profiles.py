"""The profile switch: one word for the run's time, restored whatever happens."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows import profiles
from flows.process import FlowError, environment, only_one

ROOT = Path(__file__).parents[2]
TEXT = """# a comment that must stay
profiles:
  mini: &mini
    profile: mini
    seeds: [0]
  sample: &sample
    profile: sample
    seeds: [1, 2]

run: *mini    # the one word
after: 1
"""
CELLS = """# an experiment's cells
mini: &mini
  cells: {mini-a-b: {dataset: a, model: b}}
sample: &sample {cells: {}}

run: *mini    # the same word
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(TEXT)
    for experiment in ("x", "y"):
        file_of(experiment).parent.mkdir(parents=True)
        file_of(experiment).write_text(CELLS)
    return tmp_path


def file_of(experiment):
    return Path("reports", experiment, "cells.yaml")


def words():
    """The profile that each file names."""
    return {path.as_posix(): profiles.current(path.read_text()) for path in profiles.files()}


EVERYWHERE = ("params.yaml", "reports/x/cells.yaml", "reports/y/cells.yaml")


def start(profile, *command):
    """`python -m flows.profiles` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "flows.profiles", profile, "--", *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(code):
    return [sys.executable, "-c", code]


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def text():
    return Path("params.yaml").read_text()


def test_one_word_and_nothing_else():
    with profiles.switched("sample") as name:
        assert name == "sample"
        assert text() == TEXT.replace("run: *mini ", "run: *sample ")
        assert file_of("x").read_text() == CELLS.replace("run: *mini ", "run: *sample ")
        assert words() == dict.fromkeys(EVERYWHERE, "sample")
    assert text() == TEXT and {file_of(name).read_text() for name in "xy"} == {CELLS}
    assert not list(Path(".work/profile").rglob("*"))


def test_line_ends_mode_and_bytes_stay():
    raw = TEXT.replace("\n", "\r\n").replace("comment", "cömment").encode()
    Path("params.yaml").write_bytes(raw)
    Path("params.yaml").chmod(0o640)
    with profiles.switched("sample"):
        assert Path("params.yaml").read_bytes() == raw.replace(b"run: *mini ", b"run: *sample ")
    assert Path("params.yaml").read_bytes() == raw
    assert Path("params.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("profile", [None, "mini"])
def test_the_set_profile_does_not_touch_the_file(profile):
    Path("params.yaml").chmod(0o444)
    before = Path("params.yaml").stat()
    with profiles.switched(profile) as name:
        assert name == "mini"
    after = Path("params.yaml").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_error_inside_restores():
    with pytest.raises(ZeroDivisionError), profiles.switched("sample"):
        raise ZeroDivisionError
    assert text() == TEXT


def test_an_edit_during_the_run_is_kept():
    with profiles.switched("sample"):
        Path("params.yaml").write_text(text().replace("after: 1", "after: 2"))
    assert text() == TEXT.replace("after: 1", "after: 2")
    with profiles.switched("sample"):
        Path("params.yaml").write_text(text().replace("run: *sample", "run: *other"))
    assert "run: *other" in text(), "a word that somebody else wrote is not ours to change"


@pytest.mark.parametrize(
    "bad, reason",
    [
        (TEXT.replace("run: *mini", "ran: *mini"), "exactly one"),
        (TEXT + "run: *mini\n", "exactly one"),
        (TEXT.replace("profiles:", "profiles: ["), "cannot be read"),
        (TEXT.replace("&sample", "&other"), "cannot be read"),
        (
            TEXT.replace("sample: &sample", "sample: &other").replace(
                "after: 1", "after: &sample 1"
            ),
            "cannot be read",
        ),
    ],
)
def test_a_file_it_cannot_switch(bad, reason):
    Path("params.yaml").write_text(bad)
    with pytest.raises(FlowError, match=reason) as error, profiles.switched("sample"):
        raise AssertionError("not reached")
    assert error.value.exit_code == 2 and text() == bad


def test_the_true_params_can_be_switched_to_every_profile():
    from stages import params

    true = (ROOT / "params.yaml").read_text()
    Path("stages").symlink_to(ROOT / "stages")
    shutil.rmtree("reports")
    for file in sorted(ROOT.glob(profiles.CELLS)):
        home = file.relative_to(ROOT)
        home.parent.mkdir(parents=True)
        home.write_bytes(file.read_bytes())
    assert len(profiles.files()) > 10
    Path("params.yaml").write_text(true)
    for name in params.load(ROOT / "params.yaml").profiles:
        with profiles.switched(name):
            assert set(words().values()) == {name}
            assert params.load("params.yaml").run.profile == name


def test_the_true_files_all_name_one_profile():
    files = [ROOT / "params.yaml", *ROOT.glob(profiles.CELLS)]
    assert len({profiles.current(file.read_text(encoding="utf-8")) for file in files}) == 1


def test_files_that_name_different_profiles_are_refused_by_name_and_set_again():
    file_of("y").write_text(CELLS.replace("run: *mini", "run: *sample"))
    for profile in (None, "mini", "sample"):
        refused = pytest.raises(FlowError, match="reports/y/cells.yaml sample")
        with refused as error, profiles.switched(profile):
            raise AssertionError("not reached")
        assert error.value.exit_code == 2 and "--set mini" in str(error.value)
    assert profiles.main(["--set", "sample"]) == 0
    assert words() == dict.fromkeys(EVERYWHERE, "sample")
    assert profiles.main(["--set", "mini"]) == 0
    assert text() == TEXT and {file_of(name).read_text() for name in "xy"} == {CELLS}
    assert not profiles.SWITCH.exists(), "set for good: nothing is to be turned back"


def test_an_unknown_profile_is_not_set(capsys):
    assert profiles.main(["--set", "sampel"]) == 2
    assert "known: mini, sample" in capsys.readouterr().err
    file_of("y").write_text(CELLS.replace("sample: &sample {cells: {}}\n", ""))
    assert profiles.main(["--set", "sample"]) == 2
    assert "reports/y/cells.yaml" in capsys.readouterr().err
    assert words() == dict.fromkeys(EVERYWHERE, "mini"), "all files or none"


def test_a_kill_between_two_files_is_healed():
    """After each write of a switch a SIGKILL leaves some files turned and some not."""
    files = profiles.files()
    for turned in range(len(files) + 1):
        for path in files:
            profiles.write(profiles.SAVED / path, path.read_text())
        profiles.write(profiles.SWITCH, json.dumps({"from": "mini", "to": "sample"}))
        for path in files[:turned]:
            path.write_text(profiles.switch(path.read_text(), "sample", path))
        with profiles.switched() as name:
            assert name == "mini" and words() == dict.fromkeys(EVERYWHERE, "mini")
        assert text() == TEXT and {file_of(name).read_text() for name in "xy"} == {CELLS}


def test_an_unknown_profile_is_told_with_the_known():
    run = start("sampel", "true")
    _, errors = run.communicate(timeout=20)
    assert run.returncode == 2 and "mini, sample" in errors and text() == TEXT
    assert (
        subprocess.run(
            [sys.executable, "-m", "flows.profiles", "sample"],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        ).returncode
        == 2
    )


def test_the_command_runs_under_the_profile_and_gives_its_exit_code():
    run = start(
        "sample",
        *python(
            "import os, sys; print(open('params.yaml').read()); print(os.environ['PREFECT_HOME']); "
            "sys.exit(7)"
        ),
    )
    output, _ = run.communicate(timeout=20)
    assert run.returncode == 7
    assert "run: *sample" in output and str(Path(".work/prefect").absolute()) in output
    assert text() == TEXT
    missing = start("sample", "no-such-command-anywhere")
    assert "no-such-command-anywhere" in missing.communicate(timeout=20)[1]
    assert missing.returncode == 127


def test_a_flow_command_inside_another_one():
    inner = [sys.executable, "-m", "flows.profiles", "sample", "--", *python("print('innermost')")]
    run = start("sample", *inner)
    assert run.communicate(timeout=20)[0] == "innermost\n" and run.returncode == 0
    inner[3] = "mini"
    run = start("sample", *inner)
    assert "set to profile 'sample'" in run.communicate(timeout=20)[1] and run.returncode == 2
    assert text() == TEXT


@pytest.mark.parametrize("second", ["sample", "mini"])
def test_two_at_once(second):
    """Also a run under the set profile must not run in the middle of another's switch."""
    run = start("sample", *python("import time; time.sleep(30)"))
    try:
        wait_for(lambda: "run: *sample" in text())
        other = start(second, "true")
        assert "already running" in other.communicate(timeout=20)[1] and other.returncode == 75
        assert "run: *sample" in text()
    finally:
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=20)
    assert run.returncode == 143 and text() == TEXT


def test_a_killed_run_takes_its_command_along_and_is_healed():
    run = start(
        "sample",
        *python("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(30)"),
    )
    wait_for(lambda: Path("pid").exists() and Path("pid").read_text())
    pid = int(Path("pid").read_text())
    run.kill()
    run.communicate(timeout=20)
    assert "run: *sample" in text()

    def gone():
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    wait_for(gone, 2.0)
    with profiles.switched() as name:
        assert name == "mini" and text() == TEXT


def test_killed_at_any_moment_the_next_start_heals():
    """The states on disk that a SIGKILL can leave, one after each write of a switched run."""
    after = TEXT.replace("run: *mini", "run: *sample")
    words = json.dumps({"from": "mini", "to": "sample"})
    for saved, switch, now in (
        (TEXT, None, TEXT),
        (TEXT, words, TEXT),
        (TEXT, words, after),
        (TEXT, words, None),
        (TEXT, None, TEXT),
    ):
        profiles.write(profiles.SAVED / "params.yaml", saved)
        if switch:
            profiles.write(profiles.SWITCH, switch)
        Path("params.yaml").write_text(now) if now else Path("params.yaml").unlink()
        with profiles.switched("mini") as name:
            assert name == "mini" and text() == TEXT
        assert not profiles.SWITCH.exists()


def test_telemetry_is_off_and_nothing_is_written_to_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("DVC_NO_ANALYTICS", "0")
    monkeypatch.setenv("PATH", "/usr/bin")
    found = environment()
    assert (
        found["DVC_NO_ANALYTICS"],
        found["DO_NOT_TRACK"],
        found["PREFECT_SERVER_ANALYTICS_ENABLED"],
        found["GX_ANALYTICS_ENABLED"],
    ) == ("1", "1", "false", "false")
    assert found["PREFECT_HOME"] == str(Path(".work/prefect").absolute())
    assert found["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]


def test_the_lock_is_free_again_after_an_error():
    for _ in range(2):
        with pytest.raises(KeyError), only_one():
            raise KeyError


def test_without_a_profile_the_one_that_is_set_is_run(project):
    before = Path("params.yaml").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "flows.profiles", "--", *python("print('as it is')")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "as it is\n")
    assert Path("params.yaml").read_bytes() == before


def test_a_word_that_is_no_profile_is_told_as_that_and_can_be_set_right():
    Path("params.yaml").write_text(TEXT.replace("run: *mini ", "run: *minni "))
    told = r"params.yaml: 'minni' is no profile \(known: mini, sample\)"
    with pytest.raises(FlowError, match=told) as refused, profiles.switched():
        pass
    assert refused.value.exit_code == 2
    profiles.turn("mini")
    assert text() == TEXT


def test_a_damaged_note_of_a_switch_is_told_with_what_to_do():
    profiles.SWITCH.parent.mkdir(parents=True)
    profiles.SWITCH.write_text("")
    with pytest.raises(FlowError, match="is damaged") as error, profiles.switched("mini"):
        raise AssertionError("it began")
    assert error.value.exit_code == 2 and "--set PROFILE" in str(error.value)


def test_a_file_that_cannot_be_written_is_told_and_stays(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(FlowError, match="cannot be written: No space left"),
        profiles.switched("sample"),
    ):
        raise AssertionError("it began")
    assert Path("params.yaml").read_text() == TEXT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_closed_terminal_leaves_the_profile_as_it_was(number):
    begin = "import runpy, signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # tests by nohup
    begin += "runpy.run_module('flows.profiles', run_name='__main__', alter_sys=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", begin, "sample", "--", "sleep", "60"],
        env=environment() | {"PYTHONPATH": str(ROOT)},
    )
    while Path("params.yaml").read_text() == TEXT:
        time.sleep(0.05)
    while (
        not Path("reports/y/cells.yaml").read_text().endswith("run: *sample    # the same word\n")
    ):
        time.sleep(0.05)
    child.send_signal(number)
    assert child.wait(60) == 128 + number
    assert Path("params.yaml").read_text() == TEXT
