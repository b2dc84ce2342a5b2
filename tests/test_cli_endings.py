"""How the shell ends where it is not the work that ends it: Ctrl-C, a disk without room, an
encoding without a sign, a remedy that cannot be followed."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stages import cli, errors
from stages.audit import comparison, comparison_text, impact
from stages.figures import drawing
from stages.validation import docs

ROOT = Path(__file__).parents[1]
FULL = "error: nothing more could be written\n"
# What is printed once the verb is at work, or while what it needs is imported.
AT_WORK = """
import sys, time
from stages import cli
from stages.audit import impact
impact.impact = lambda *_: print("begun", flush=True) or time.sleep(60)
sys.exit(cli.main())
"""
IMPORTING = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "stages.params":
            print("begun", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
import stages.cli
"""


def run(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tradewind", *words])
    monkeypatch.chdir(ROOT)
    return cli.main()


@pytest.mark.parametrize("code", [AT_WORK, IMPORTING])
def test_ctrl_c_is_one_line_and_a_shells_exit_code(code):
    process = subprocess.Popen(
        [sys.executable, "-c", code, "impact", "file"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert (*process.communicate(timeout=60), process.returncode) == ("", "stopped\n", 130)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        *((OSError(number, os.strerror(number)), os.strerror(number)) for number in errors.FULL),
        (RuntimeError("No space left on device (os error 28)"), "No space left on device"),
        (ValueError("(sqlite3.OperationalError) database or disk is full"), "disk is full"),
    ],
)
def test_a_disk_without_room_is_told_and_no_traceback(monkeypatch, capsys, error, found):
    def fail(*_):
        raise error

    monkeypatch.setattr(impact, "impact", fail)
    assert run(monkeypatch, "impact", "file") == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(FULL) and found in err and "remedy: make room" in err


def test_what_a_full_disk_caused_is_told_as_that_and_names_the_file(monkeypatch, capsys):
    def fail(*_):
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "there/x")
        except OSError as error:
            raise RuntimeError("the writer failed") from error

    monkeypatch.setattr(impact, "impact", fail)
    assert run(monkeypatch, "impact", "file") == 1
    assert "where: there/x" in capsys.readouterr().err


def test_an_error_of_the_system_without_a_path_is_a_bug_that_is_not_hidden(monkeypatch):
    def fail(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(impact, "impact", fail)
    with pytest.raises(OSError, match="Invalid"):
        run(monkeypatch, "impact", "file")


def test_standard_output_that_takes_nothing_is_told_once():
    code = AT_WORK.replace('print("begun", flush=True) or time.sleep(60)', '["x"] * 9')
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "impact", "file"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(FULL) and len(done.stderr.splitlines()) == 3


def test_a_sign_that_the_encoding_lacks_is_replaced():
    code = AT_WORK.replace('print("begun", flush=True) or time.sleep(60)', '["12 \\u00b0C"]')
    done = subprocess.run(
        [sys.executable, "-c", code, "impact", "file"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("12 ?C\n", "", 0)


def test_a_picture_that_cannot_be_written_leaves_the_earlier_one(monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    picture = tmp_path / "a.png"
    drawing.save(drawing.plt.figure(), picture)
    before = picture.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        drawing.save(drawing.plt.figure(figsize=(2, 1)), picture)
    assert [*tmp_path.iterdir()] == [picture] and picture.read_bytes() == before


def test_an_error_that_great_expectations_passes_over_is_raised_and_not_printed(capfd):
    with pytest.raises(OSError, match="No space"), docs.errors_met():
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            docs.logging.getLogger(docs.site_builder.__name__).error("a page failed")
    assert capfd.readouterr() == ("", "")


def test_compare_advises_no_pull_where_there_is_no_remote(monkeypatch, capsys):
    monkeypatch.setattr(comparison, "of_commit", lambda *_: SimpleNamespace(exit_code=0))
    table = comparison.Judged("e", "mini", apart=["there", "here"])
    names = ("v1 (0123)", "the working copy")
    told = comparison_text.absent([table], names)
    monkeypatch.setattr(comparison_text, "render", lambda *_: told[0])
    assert run(monkeypatch, "compare") == 0
    assert capsys.readouterr().out == (
        "not compared: breakdowns.json of mini's e is missing in v1 (0123) and in the working "
        "copy; `make repro PROFILE=mini` makes it\n\n"
    )
