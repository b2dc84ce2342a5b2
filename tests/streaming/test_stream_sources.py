"""Sources: a file that grows, is cut or replaced; a receiver that goes away and comes back; what
is no source. And the command, stopped by a signal."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sky_frames import flown

from stages import cli
from stages.errors import InputError
from stages.winds import example
from stages.winds.streaming import follow, sources

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(sources, "LOOK_S", 0.01)
    monkeypatch.setattr(sources, "FIRST_PAUSE_S", 0.01)


def read_until(chunks, size: int) -> bytes:
    """What comes until it is `size` bytes, new beginnings as `|`."""
    found, end = b"", time.monotonic() + PATIENCE_S
    for chunk in chunks:
        found += b"|" if chunk == b"" else chunk or b""
        if len(found) >= size:
            return found
        assert time.monotonic() < end, found
    return found


def test_a_pipe_with_a_name_is_followed_from_its_first_byte_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    chunks = sources.open_source(str(tmp_path / "pipe"), threading.Event(), [].append)
    assert b"".join(filter(None, chunks)) == b"one\ntwo\n"
    writer.join()


def test_a_file_that_grows_is_cut_and_is_replaced(tmp_path):
    path, told = tmp_path / "frames", []
    path.write_bytes(b"one\n")
    chunks = sources.open_source(str(path), threading.Event(), told.append)
    assert read_until(chunks, 4) == b"one\n"
    with path.open("ab") as stream:
        stream.write(b"two\n")
    assert read_until(chunks, 4) == b"two\n" and not told
    path.write_bytes(b"3\n")
    assert read_until(chunks, 3) == b"|3\n" and told == ["truncated"]
    (tmp_path / "new").write_bytes(b"four\n")
    os.replace(tmp_path / "new", path)
    assert read_until(chunks, 6) == b"|four\n" and told == ["truncated", "replaced"]
    with path.open("ab") as stream:
        stream.write(b"late\n")
    (tmp_path / "new").write_bytes(b"4\n")
    os.replace(tmp_path / "new", path)
    assert read_until(chunks, 8) == b"late\n|4\n", "what came before the other took its name"
    path.unlink()
    assert next(chunks) is None
    path.write_bytes(b"five\n")
    assert read_until(chunks, 6) == b"|five\n"


def test_a_pipe_ends_with_its_writer():
    out, into = os.pipe()
    os.write(into, b"all of it")
    chunks = sources.piped(out, threading.Event())
    assert next(chunks) == b"all of it" and next(chunks) is None
    os.close(into)
    assert list(chunks) == []
    os.close(out)


def test_a_receiver_that_goes_away_is_connected_again():
    told, stop = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        chunks = sources.open_source(f"tcp://127.0.0.1:{port}", stop, told.append)
        for content in (b"first", b"second"):
            assert next(chunks) == b""
            with server.accept()[0] as connection:
                connection.sendall(content)
            while not (chunk := next(chunks)):
                pass
            assert chunk == content and next(chunks) is None
    while "unreachable" not in told:
        next(chunks)
    assert told == ["disconnected", "disconnected", "unreachable"]
    stop.set()
    assert [chunk for chunk in chunks if chunk] == []


def test_pauses_grow_and_begin_anew_with_the_first_bytes(monkeypatch):
    class Stop(threading.Event):
        def wait(self, pause_s=None):
            pauses.append(pause_s)
            return self.set() if len(pauses) == 9 else None

    pauses, answers = [], iter([0, 0, 0, 0, 1, 0, 0, 0, 0])

    def connect(*_):
        if next(answers):
            return one
        raise ConnectionRefusedError

    one, other = socket.socketpair()
    other.sendall(b"x")
    other.close()
    monkeypatch.setattr(sources, "LONGEST_PAUSE_S", 0.08)
    monkeypatch.setattr(socket, "create_connection", connect)
    list(sources.received("host", 1, Stop(), lambda name: None))
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.01, 0.02, 0.04, 0.08, 0.08]


def test_a_connection_that_is_silent_for_long_is_made_anew(monkeypatch):
    monkeypatch.setattr(sources, "SILENT_S", 0.05)
    told = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        chunks = sources.open_source(source, threading.Event(), told.append)
        assert read_until(chunks, 2) == b"||" and told == ["disconnected"]
        chunks.close()


@pytest.mark.parametrize(
    "name",
    ["nowhere/at all", "tcp://", "tcp://host", "tcp://host:0", "tcp://h:99999", "udp://host:1"],
)
def test_what_is_no_source(name):
    with pytest.raises(InputError):
        list(sources.open_source(name, threading.Event(), lambda name: None))


def test_a_host_that_is_none_is_told_before_anything_is_awaited(monkeypatch):
    def unknown(*_):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(InputError, match="no such host"):
        next(sources.open_source("tcp://host:1", threading.Event(), lambda name: None))


def test_a_compressed_file_is_no_stream(tmp_path):
    (tmp_path / "frames.gz").write_bytes(b"\x1f\x8b\x08 and so on")
    with pytest.raises(InputError, match="no stream"):
        sources.open_source(str(tmp_path / "frames.gz"), threading.Event(), lambda name: None)


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        follow.append(tmp_path, "line\n")


def test_a_stream_is_not_answered_as_csv_or_beside_a_capture(monkeypatch, capsys):
    words = ["tradewind", "nowcast", "--follow", "feed", "--at", "46,7,FL340,+lead"]
    monkeypatch.setattr("sys.argv", [*words, "--csv"])
    assert cli.main() == 2 and "JSON lines" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", [*words, "--every", "0"])
    assert cli.main() == 2 and "no time between answers" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", [*words, "--context", "winds.csv"])
    with pytest.raises(SystemExit):
        cli.main()


def test_the_command_follows_a_file_until_it_is_told_to_end(tmp_path):
    home = ROOT / example.place("mini")
    (run,) = (home / "runs").glob("*/*")
    lines = [f"{ts_s:.3f},{digits}\n" for ts_s, digits, _ in flown()]
    source, out, picture = tmp_path / "feed", tmp_path / "out.jsonl", tmp_path / "now.png"
    source.write_text("".join(lines[:3000]))
    words = [sys.executable, "-m", "stages.cli", "nowcast", "--follow", str(source)]
    words += ["--at", "46.5,7.2,FL340,+lead", "--model", str(run), "--every", "60"]
    words += ["--out", str(out), "--plot", str(picture)]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:

        def wait_for(count: int) -> None:
            end = time.monotonic() + PATIENCE_S
            while not out.exists() or out.read_text().count("\n") < count:
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.05)

        wait_for(3)
        with source.open("a") as stream:
            stream.writelines(lines[3000:6000])
        wait_for(8)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0 and " answers; dropped: " in said.splitlines()[-1]
    assert picture.read_bytes().startswith(b"\x89PNG")
