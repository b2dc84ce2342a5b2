"""A Prefect server of the project's own, as a child process that does not outlive this one.

It listens on loopback and asks for a password: the user's own (PREFECT_SERVER_API_AUTH_STRING,
"user:password") or one made here once and kept in `.work/prefect/auth`, which only its owner can
read. Beyond loopback it listens with the user's own alone. Its data are in `.work/prefect`
(SQLite), or in the PostgreSQL database that a URL names, one database a project. Neither password
nor URL is printed; what the server itself says goes to `.work/prefect/server.log`.
"""

import base64
import contextlib
import ipaddress
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from flows.process import WORK, FlowError, environment, leashed

HOME = WORK / "prefect"
AUTH = HOME / "auth"
LOG = HOME / "server.log"
START_S = 600.0  # until the server must answer; a slow machine that also trains takes minutes
END_S = 20.0
BUSY_S = 60.0  # for how long a busy server is asked again: SQLite takes one writer at a time
PASSWORDS = ("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING")
DATABASES = ("PREFECT_SERVER_DATABASE_CONNECTION_URL", "PREFECT_API_DATABASE_CONNECTION_URL")
DRIVERS = dict.fromkeys(
    ("postgresql", "postgres", "postgresql+psycopg2", "postgresql+asyncpg"), "postgresql+asyncpg"
) | {"sqlite+aiosqlite": "sqlite+aiosqlite"}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def credentials(host: str) -> tuple[str, str]:
    """("user:password", where it comes from in words). FlowError 2 where the server would stand
    open or the user's own is malformed."""
    for name in PASSWORDS:
        if text := os.environ.get(name, ""):
            if not all(text.partition(":")[::2]):
                raise FlowError(f"{name} is not of the form user:password", 2)
            return text, f"as {name} says"
    if not is_loopback(host):
        raise FlowError(
            f"a server at {host} can be reached from other machines, and no password of yours is "
            "set\n"
            f"  remedy: set {PASSWORDS[0]}=user:password in the environment, or listen at "
            "127.0.0.1",
            2,
        )
    if (
        not AUTH.exists() or AUTH.stat().st_mode & 0o077
    ):  # one that others could have read is no password any more
        AUTH.parent.mkdir(parents=True, exist_ok=True)
        new = AUTH.with_name(f".auth.{os.getpid()}.tmp")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(f"tradewind:{secrets.token_urlsafe(24)}")
        os.replace(new, AUTH)
    return AUTH.read_text(encoding="utf-8").strip(), f"in {AUTH}"


def database(url: str | None) -> str | None:
    """The connection URL with the driver that Prefect needs: the argument, else the
    environment's, else None. FlowError 2 if it is none."""
    url = url or next((os.environ[name] for name in DATABASES if os.environ.get(name)), None)
    if url is None:
        return None
    scheme, found, rest = url.partition("://")
    if not found or not rest or scheme not in DRIVERS:
        raise FlowError(
            "the database's URL is not understood (it is not shown here: it may hold a password)\n"
            "  expected: postgresql://USER:PASSWORD@HOST:PORT/NAME\n"
            f"  found: {scheme[:20] if found else 'no'} scheme",
            2,
        )
    return f"{DRIVERS[scheme]}://{rest}"


def free_port(host: str, port: int) -> int:
    """The port (0: any free one). FlowError 2 when it is taken or the host is none of this
    machine's."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
            return trial.getsockname()[1]
    except OSError as error:
        raise FlowError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}\n"
            "  remedy: end what listens there, or choose another with --port (0: any free one)",
            2,
        ) from None


def answer(url: str, auth: str | None = None, body: object = None) -> tuple[int, object]:
    """A request's status and JSON (None: no JSON); 0 when nobody answers. With a body it is a POST.

    503 is the server's word for a database that was busy: nothing was done, and the request is
    repeated for at most `BUSY_S`.
    """
    headers = {"Content-Type": "application/json"}
    if auth:
        headers["Authorization"] = "Basic " + base64.b64encode(auth.encode("utf-8")).decode("ascii")
    asked = urllib.request.Request(
        url, headers=headers, data=None if body is None else json.dumps(body).encode("utf-8")
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            with opener.open(asked, timeout=30) as reply:
                text = reply.read()
                return reply.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                return error.code, None
        except (OSError, ValueError):
            return 0, None
        time.sleep(0.5)


def hidden(text: str, *passwords: str | None) -> str:
    """The text without these words and without any URL's password."""
    for word in filter(None, passwords):
        text = text.replace(word, "***")
    return re.sub(r"(?<=://)[^\s/@]+@", "***@", text)


def ended(child: subprocess.Popen[Any], *passwords: str | None) -> FlowError:
    """What to say of a server that is gone."""
    tail = "\n".join(LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
    return FlowError(
        f"the Prefect server ended with {child.poll()}; the end of {LOG}:\n"
        f"{hidden(tail, *passwords)}"
    )


def wait(child: subprocess.Popen[Any], api: str, auth: str, *secret: str | None) -> None:
    """Until the server is healthy. FlowError when it dies, is too slow, or lets anybody in."""
    deadline = time.monotonic() + START_S
    while answer(f"{api}/health")[0] != 200:
        if child.poll() is not None:
            raise ended(child, auth, *secret)
        if time.monotonic() > deadline:
            raise FlowError(
                f"the Prefect server did not answer within {START_S:.0f} s; see {LOG}\n"
                "  remedy: try again when less runs on this machine"
            )
        time.sleep(0.2)
    statuses = [answer(f"{api}/flow_runs/count", auth=known, body={})[0] for known in (None, auth)]
    if statuses != [401, 200]:
        raise FlowError(
            "the Prefect server does not ask for its password (statuses without and with it: "
            f"{statuses}); it is not used"
        )


def address(host: str, port: int) -> str:
    """Where this machine finds the API of a server that listens there."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{near}]' if ':' in near else near}:{port}/api"


@contextlib.contextmanager
def running(
    host: str, port: int, auth: str, store: str | None = None
) -> Iterator[subprocess.Popen[Any]]:
    """A server for the block's duration, from what `credentials`, `free_port` and `database`
    said. FlowError when it does not start."""
    api = address(host, port)
    child_environment = (
        environment()
        | dict.fromkeys(PASSWORDS, auth)
        | {
            "PREFECT_SERVER_API_HOST": host,
            "PREFECT_SERVER_API_PORT": str(port),
            "PREFECT_API_URL": api,
            "PREFECT_UI_API_URL": os.environ.get("PREFECT_UI_API_URL") or api,
        }
    )
    child_environment = {
        key: value for key, value in child_environment.items() if key not in DATABASES
    }
    if store:
        child_environment[DATABASES[0]] = store
    HOME.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as log:
        # A session of its own: Ctrl-C must reach the runner first, which then tells the server how
        # its runs ended.
        command = [
            sys.executable,
            "-m",
            "prefect",
            "server",
            "start",
            "--host",
            host,
            "--port",
            str(port),
        ]
        child = subprocess.Popen(
            leashed(command),
            env=child_environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait(child, api, auth, store)
        yield child
    finally:
        child.terminate()
        try:
            child.wait(END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    """The block's flows tell a Prefect server how they fare: that of PREFECT_API_URL, else one of
    the block's own."""
    os.environ.update(environment())  # Prefect reads it when it is imported
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    if url := PREFECT_API_URL.value():
        if not urllib.request.getproxies() and not answer(f"{url}/health")[0]:
            raise FlowError(
                f"nobody answers at {hidden(url)}, which PREFECT_API_URL names\n"
                "  remedy: start that server, or unset PREFECT_API_URL",
                2,
            )
        yield
        return
    host = "127.0.0.1"
    auth, port = credentials(host)[0], free_port(host, 0)
    known = {PREFECT_API_URL: address(host, port), PREFECT_API_AUTH_STRING: auth}
    with running(host, port, auth, database(None)), temporary_settings(known):
        yield
