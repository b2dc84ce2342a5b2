"""Real captures before the real rules: an hour of the sky is taken in; noise, pages, broken
checksums and scraps are put aside."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages import params
from stages.winds.retraining import inspection
from stages.winds.retraining.intake import Verdict
from stages.winds.sky import capture

ROOT = Path(__file__).parents[2]
PARAMETERS = params.load(ROOT / "params.yaml")
DROP, RAW = Path("data/live/drop"), Path("data/live/raw/captures")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """An empty project to work in."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    DROP.mkdir(parents=True)


@pytest.fixture(scope="module")
def hours(tmp_path_factory):
    """Two hours of the simulated sky, as captures."""
    return capture.capture(
        PARAMETERS.datasets["simulated"].simulate, tmp_path_factory.mktemp("sky"), 0, 2
    )


def look(content: bytes, tmp_path: Path, name: str = "capture.csv") -> Verdict:
    (tmp_path / "claimed").write_bytes(content)
    verdict = inspection.inspect(tmp_path / "claimed", name, PARAMETERS.decode)
    assert (tmp_path / "claimed").read_bytes() == content and not inspection.WORK.exists()
    return verdict


def broken_parity(content: bytes) -> bytes:
    """The last hexadecimal digit of every frame turned into another."""
    return b"".join(
        line[:-1] + (b"0" if line[-1:] != b"0" else b"1") + b"\n" for line in content.splitlines()
    )


def test_an_hour_of_the_sky_is_good_and_its_span_is_told(hours, tmp_path):
    content = hours[0].read_bytes()
    verdict = look(content, tmp_path)
    stamps = [float(line.split(b",")[0]) for line in content.splitlines()]
    assert verdict.reasons == () and (verdict.first_s, verdict.last_s) == (min(stamps), max(stamps))
    assert verdict.lines == len(stamps) and verdict.dropped == () and verdict.winds > 1000


BAD = {
    "random bytes": (lambda good: np.random.default_rng(0).bytes(50_000), "no line of"),
    "a checksum broken in every frame": (broken_parity, "counts."),
    "a page of HTML": (
        lambda good: b"<!DOCTYPE html>\n<html><body>\n<p>Please log in</p>\n</body></html>\n" * 50,
        "no line of",
    ),
    "nothing": (lambda good: b"", "the file is empty"),
    "ten lines": (lambda good: b"\n".join(good.splitlines()[:10]) + b"\n", "counts.kept"),
    "a megabyte without an end of line": (lambda good: b"8D" * (1 << 20), "no text"),
    "stamps of a clock that never was set": (
        lambda good: b"".join(
            b"%.3f,%s\n" % (i / 100, line.split(b",")[1])
            for i, line in enumerate(good.splitlines())
        ),
        "no line of",
    ),
    "lines in no order of time": (
        lambda good: (
            b"\n".join(sorted(good.splitlines()[:20000], key=lambda line: line[-3:])) + b"\n"
        ),
        "frames.time_order",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_capture_is_refused_with_a_reason(what, hours, tmp_path):
    spoil, reason = BAD[what]
    verdict = look(spoil(hours[0].read_bytes()), tmp_path)
    assert verdict.reasons and any(reason in text for text in verdict.reasons), verdict.reasons


def test_a_capture_cut_in_the_middle_of_a_line_is_taken_and_the_line_is_counted(hours, tmp_path):
    whole = hours[0].read_bytes()
    verdict = look(whole[:-9], tmp_path)
    assert (
        verdict.reasons == ()
        and verdict.dropped == (("wrong_length", 1),)
        and verdict.lines == whole.count(b"\n")
    )


@pytest.mark.parametrize("stamp", [b"12.5", b"4200000000"])
def test_one_bad_stamp_among_thousands_of_lines_costs_its_line_and_not_the_capture(
    stamp, hours, tmp_path
):
    lines = hours[0].read_bytes().splitlines(keepends=True)
    lines[2000] = stamp + lines[2000][lines[2000].index(b",") :]
    verdict = look(b"".join(lines), tmp_path)
    assert verdict.reasons == () and sum(count for _, count in verdict.dropped) == 1
    assert verdict.lines == len(lines) > 2000
    stamps = [float(line.split(b",")[0]) for line in lines if not line.startswith(stamp)]
    assert (verdict.first_s, verdict.last_s) == (min(stamps), max(stamps))


def test_the_same_bytes_get_the_same_verdict_under_any_name(hours, tmp_path):
    content = hours[0].read_bytes()
    assert look(content, tmp_path, "other.txt") == look(content, tmp_path)


def test_the_command_takes_good_ones_in_and_puts_bad_ones_aside(hours, tmp_path):
    for path in hours:
        shutil.copy(path, DROP)
    (DROP / "page.csv").write_bytes(b"<html></html>\n")
    command = [sys.executable, "-m", "stages.winds.retraining", "intake"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run():
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["taken", "taken", "quarantined", "2"]
    assert "page.csv" in lines[2] and "no line of" in lines[2]
    assert lines[3] == "2 captures over 2.00 h, 2 of them new"
    assert [path.read_bytes() for path in sorted(RAW.glob("*.csv"))] == [
        path.read_bytes() for path in hours
    ]
    again = run()
    assert (again.returncode, again.stdout) == (0, "2 captures over 2.00 h, 0 of them new\n")
    Path("params.yaml").write_text("profiles: 3\n")
    assert run().returncode == 2
