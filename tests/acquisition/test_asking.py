"""One request over TLS and through a proxy, against servers that delay or say who they are not."""

import contextlib
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
from downloads import BODY, get

from stages.acquisition import asking, download
from stages.errors import DownloadError, InputError

SILENT = 5.0  # no read of these tests is so long silent


@pytest.fixture
def certificate(tmp_path):
    """(certificate, key) of this machine by its loopback address, signed by itself."""
    if not shutil.which("openssl"):
        pytest.skip("certificates are made by openssl")
    paths = [str(tmp_path / name) for name in ("cert.pem", "key.pem")]
    words = "openssl req -x509 -nodes -newkey rsa:2048 -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]]
    subprocess.run([*words.split(), *names], capture_output=True, check=True)
    return paths


@pytest.fixture
def secured(server, replies, certificate):
    """The scripted server over TLS; its URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.script["/file.csv"] = [replies.whole(BODY)]
    return server.url().replace("http:", "https:")


@pytest.fixture
def listener(monkeypatch):
    """Starts a server of one reply and returns its port; what it was asked is in `heard`."""
    heard, over = [], threading.Event()
    with contextlib.ExitStack() as stack:

        def start(reply):
            door = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve():
                with contextlib.suppress(OSError):
                    line, _ = door.accept()
                    with line:
                        heard.append(line.recv(4096))
                        reply(line, over)

            threading.Thread(target=serve, daemon=True).start()
            return door.getsockname()[1]

        start.heard = heard
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield start
        over.set()


def trickle(line, over):
    while not over.wait(0.05):
        line.sendall(b"x")


def whole(url, total_s=5.0, silence_s=SILENT):
    end = time.monotonic() + total_s
    with asking.get(url, {}, silence_s, lambda: end - time.monotonic()) as response:
        return b"".join(asking.body(response, len(BODY)))


def test_a_certificate_that_is_trusted_is_the_systems(secured, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    assert whole(secured) == BODY


def test_a_certificate_that_proves_nothing_ends_the_download(
    secured, server, pin, place, monkeypatch
):
    monkeypatch.setattr(download, "objection", lambda *_: "")
    with pytest.raises(DownloadError, match="does not prove who it is"):
        get(pin(secured, BODY), place)
    assert server.seen == []


def test_a_handshake_that_trickles_ends_at_the_deadline(listener, clock):
    """A record of TLS whose bytes come one at a time."""
    port = listener(lambda line, over: (line.sendall(b"\x16\x03\x03\x40\x00"), trickle(line, over)))
    with pytest.raises(Exception) as error:
        whole(f"https://127.0.0.1:{port}/", total_s=0.5)
    assert isinstance(asking.cause(error.value), OSError) and clock() < 1.5


@pytest.mark.parametrize("form", ["http://user:word@127.0.0.1:{}", "user:word@127.0.0.1:{}"])
def test_the_environments_proxy_is_asked_and_may_not_trickle(listener, clock, monkeypatch, form):
    monkeypatch.setenv("https_proxy", form.format(listener(trickle)))
    with pytest.raises(Exception):  # noqa: B017 (whatever the hung-up connection is called)
        whole("https://zenodo.org/x", total_s=0.5)
    assert clock() < 1.5
    assert listener.heard[0].startswith(b"CONNECT zenodo.org:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dXNlcjp3b3Jk" in listener.heard[0]


def test_which_requests_go_through_a_proxy(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:1")
    monkeypatch.setenv("all_proxy", "socks5://proxy.example:2")
    monkeypatch.setenv("no_proxy", "::1,fd00::/8,huggingface.co")
    assert asking.proxy("https://zenodo.org/x") == "http://proxy.example:1"
    assert asking.proxy("https://huggingface.co/x") is None
    assert asking.proxy("http://127.0.0.1/x") is None
    monkeypatch.setenv("https_proxy", "socks5://user:word@proxy.example:2")
    with pytest.raises(InputError, match="speaks no HTTP") as error:
        asking.proxy("https://zenodo.org/x")
    assert "word" not in str(error.value)


def test_no_log_holds_what_a_url_hides(server, replies, caplog):
    caplog.set_level(logging.DEBUG)
    server.script["/file.csv"] = [replies.whole(BODY)]
    assert whole(server.url("/file.csv?token=hunter2")) == BODY
    assert "hunter2" not in caplog.text
