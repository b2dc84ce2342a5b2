"""A real PostgreSQL server on loopback for the length of a block, in a temporary folder, with a
password, dying with its parent.

The server refuses to run as root, so root starts it as `postgres` or `nobody`. `with server() as
url:` gives the URL of an empty database; `programs()` is None where the server is not installed
(Debian: package postgresql), for tests to skip by name.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ABSENT = "the programs of a PostgreSQL server (initdb, postgres) or setpriv are not installed"
START_S = 60


def programs() -> Path | None:
    """The folder of initdb and postgres, the newest version's; None where they, or setpriv, are
    absent."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: float(folder.parent.name),
        reverse=True,
    )
    folders += [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    whole = [
        folder
        for folder in folders
        if (folder / "initdb").exists() and (folder / "postgres").exists()
    ]
    return whole[0] if whole and shutil.which("setpriv") else None


def owner() -> pwd.struct_passwd | None:
    """Who runs the server when we are root; None otherwise: we do."""
    if os.geteuid():
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server; yields postgresql+psycopg2://sweeper:PASSWORD@127.0.0.1:PORT/postgres."""
    binaries, user, password = programs(), owner(), secrets.token_hex(16)
    own = (
        []
        if user is None
        else [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    )
    prefix = ["setpriv", *own, "--pdeathsig", "QUIT"]
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "password").write_text(password)
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
            os.chown(folder / "password", user.pw_uid, user.pw_gid)
        subprocess.run(
            [
                *prefix,
                str(binaries / "initdb"),
                "-D",
                f"{folder}/data",
                "-U",
                "sweeper",
                "-A",
                "scram-sha-256",
                "--pwfile",
                f"{folder}/password",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )
        process, url = started(prefix, binaries, folder, password)
        try:
            yield url
        finally:
            process.send_signal(
                signal.SIGINT
            )  # its fast shutdown; SIGTERM waits for clients to leave
            process.wait()


def started(
    prefix: list[str], binaries: Path, folder: Path, password: str
) -> tuple[subprocess.Popen, str]:
    """A server that answers, and its URL; another port is tried when someone was faster."""
    for _ in range(5):
        port = free_port()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *prefix,
                    str(binaries / "postgres"),
                    "-D",
                    f"{folder}/data",
                    "-p",
                    str(port),
                    "-k",
                    str(folder),
                    "-c",
                    "listen_addresses=127.0.0.1",
                    "-c",
                    "fsync=off",
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        if answers(process, port, password):
            return process, f"postgresql+psycopg2://sweeper:{password}@127.0.0.1:{port}/postgres"
    raise RuntimeError((folder / "log").read_text())


def answers(process: subprocess.Popen, port: int, password: str) -> bool:
    """Whether the server lets us in before it ends or time is up."""
    import psycopg2

    end = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(psycopg2.OperationalError):
            psycopg2.connect(
                host="127.0.0.1", port=port, user="sweeper", password=password, dbname="postgres"
            ).close()
            return True
        time.sleep(0.05)
    process.kill()
    process.wait()
    return False
