"""Where a stream comes from: a growing file, standard input, or a receiver's TCP port.

A source yields bytes as they come, None while nothing comes (some times a second, so that whoever
reads can look at the clock and at `stop`), and b"" where it goes on somewhere else: a file that was
cut or replaced, a new connection. `tell` is given the name of what befell it.
"""

import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from stages.errors import InputError
from stages.winds.modes.frames import GZIP

BLOCK_BYTES = 1 << 16
LOOK_S = 0.25  # between two looks at a source that is quiet
CONNECT_S = 10.0
SILENT_S = 120.0  # a connection that is silent for so long may be dead without saying so
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
EXPECTED = "a file, - (standard input), or tcp://HOST:PORT"
Chunks = Iterator[bytes | None]
Tell = Callable[[str], None]


def open_source(name: str, stop: threading.Event, tell: Tell) -> Chunks:
    """The chunks of the source of that name, until it ends or `stop` is set. InputError for what
    is none."""
    if name == "-":
        return piped(sys.stdin.fileno(), stop)
    if "://" in name:
        return received(*address(name), stop, tell)
    path = Path(name)
    if path.exists() and not (path.is_file() or path.is_dir()):
        return piped(os.open(path, os.O_RDONLY), stop)
    try:
        with path.open("rb") as stream:
            head = stream.read(len(GZIP))
    except OSError as error:
        raise InputError(
            "the stream cannot be read",
            where=name,
            found=error.strerror or str(error),
            expected=EXPECTED,
        ) from None
    if head == GZIP:
        raise InputError(
            "a compressed file is no stream",
            where=name,
            expected=EXPECTED,
            remedy=f"`gunzip -c {name} | tradewind nowcast --follow -`, or give it as --context",
        )
    return growing(path, stop, tell)


def address(name: str) -> tuple[str, int]:
    """Host and port of tcp://HOST:PORT; InputError for anything else."""
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.scheme != "tcp" or parts.path not in ("", "/"):
        raise InputError("that is no stream", found=name, expected=EXPECTED)
    return host, port


def growing(path: Path, stop: threading.Event, tell: Tell) -> Chunks:
    """A file from its beginning on, and what is written to it from then on."""
    stream = path.open("rb")
    try:
        while not stop.is_set():
            if chunk := stream.read(BLOCK_BYTES):
                yield chunk
                continue
            yield None
            stop.wait(LOOK_S)
            try:
                now = path.stat()
            except OSError:  # between two files of that name
                continue
            if now.st_ino != os.fstat(stream.fileno()).st_ino:
                tell("replaced")
                while chunk := stream.read(BLOCK_BYTES):  # what came before the other took its name
                    yield chunk
                stream.close()
                stream = path.open("rb")
                yield b""
            elif now.st_size < stream.tell():
                tell("truncated")
                stream.seek(0)
                yield b""
    finally:
        stream.close()


def piped(descriptor: int, stop: threading.Event) -> Chunks:
    """What comes through a pipe until its other end is closed."""
    while not stop.is_set():
        if not select.select([descriptor], [], [], LOOK_S)[0]:
            yield None
            continue
        chunk = os.read(descriptor, BLOCK_BYTES)
        if not chunk:
            return
        yield chunk


def received(host: str, port: int, stop: threading.Event, tell: Tell) -> Chunks:
    """What a receiver sends; connected again after pauses that grow while it sends nothing."""
    pause_s, before = FIRST_PAUSE_S, False
    while not stop.is_set():
        try:
            connection = socket.create_connection((host, port), CONNECT_S)
        except socket.gaierror as error:
            if not before:
                raise InputError(
                    "there is no such host", where=f"tcp://{host}:{port}", found=str(error)
                ) from None
            connection = None
        except OSError:
            connection = None
        before = True
        if connection is None:
            tell("unreachable")
        else:
            yield b""
            with connection:
                for chunk in arriving(connection, stop):
                    pause_s = FIRST_PAUSE_S if chunk else pause_s
                    yield chunk
            if not stop.is_set():
                tell("disconnected")
        yield None
        stop.wait(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def arriving(connection: socket.socket, stop: threading.Event) -> Chunks:
    """What comes through a connection until it breaks or is silent for SILENT_S."""
    connection.settimeout(LOOK_S)
    last_s = time.monotonic()
    while not stop.is_set() and time.monotonic() - last_s < SILENT_S:
        try:
            chunk = connection.recv(BLOCK_BYTES)
        except TimeoutError:
            yield None
            continue
        except OSError:
            return
        if not chunk:
            return
        last_s = time.monotonic()
        yield chunk
