"""A real threaded HTTP server on loopback whose every reply is scripted, and pins for what it
serves."""

import hashlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stages.params import Source


class Server(ThreadingHTTPServer):
    """`script[path]` is a list of replies, one a request, the last one repeated; `seen` are the
    requests' (path, headers)."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.seen, self.over = {}, [], threading.Event()
        self.lock = threading.Lock()

    def handle_error(self, request, address):
        """A client that hangs up is what half of the tests are about."""

    def url(self, path="/file.csv"):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def ranges(self):
        return [headers.get("Range") for _, headers in self.seen]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        with self.server.lock:
            self.server.seen.append((self.path, dict(self.headers)))
            replies = self.server.script[path]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
        self.close_connection = True
        reply(self)

    def log_message(self, *_):
        pass

    def head(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


def whole(body, etag='"v1"', honest=True, stop=None, **headers):
    """A well-behaved file server (ranges, If-Range); `stop` ends the body after so many bytes of
    it; `honest=False` ignores If-Range."""

    def reply(handler):
        tag = {"ETag": etag} if etag else {}
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        same = handler.headers.get("If-Range", etag) == etag or not honest
        at = int(asked[1]) if asked and same else 0
        if at:
            handler.head(
                206,
                Content_Length=len(body) - at,
                Content_Range=f"bytes {at}-{len(body) - 1}/{len(body)}",
                **tag,
                **headers,
            )
        else:
            handler.head(200, Content_Length=len(body), **tag, **headers)
        handler.wfile.write(body[at:stop])

    return reply


def status(code, **headers):
    return lambda handler: handler.head(code, Content_Length=0, **headers)


def page(handler):
    text = b"<!DOCTYPE html><html><body>Please log in</body></html>"
    handler.head(200, Content_Type="text/html; charset=utf-8", Content_Length=len(text))
    handler.wfile.write(text)


def stall(handler):
    handler.head(200, Content_Length=1000)
    handler.server.over.wait(20)


def trickle(seconds, length=1000):
    """One byte at a time."""

    def reply(handler):
        handler.head(200, Content_Length=length)
        while not handler.server.over.wait(seconds):
            handler.wfile.write(b"x")

    return reply


def slow_header(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not handler.server.over.wait(0.05):
        handler.wfile.write(b"x")


def endless(handler):
    handler.head(200)
    while not handler.server.over.is_set():
        handler.wfile.write(b"y" * 4096)


def redirect(target, code=302):
    return lambda handler: handler.head(code, Location=target, Content_Length=0)


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.over.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def replies():
    """The kinds of reply, by name."""
    import types

    return types.SimpleNamespace(
        whole=whole,
        status=status,
        page=page,
        stall=stall,
        trickle=trickle,
        slow_header=slow_header,
        endless=endless,
        redirect=redirect,
    )


@pytest.fixture
def pin():
    """A source as params.yaml would hold it, but with a URL that its schema refuses (http,
    loopback)."""

    def make(url, body, **changes):
        values = {
            "url": url,
            "licence": "test",
            "sha256": hashlib.sha256(body).hexdigest(),
            "md5": None,
            "bytes": len(body),
            "bytes_max": None,
        }
        return Source.model_construct(**(values | changes))

    return make


@pytest.fixture
def clock():
    """Seconds since the last call."""
    last = [time.monotonic()]

    def lap():
        now = time.monotonic()
        lasted, last[0] = now - last[0], now
        return lasted

    return lap


@pytest.fixture
def watched(tmp_path):
    """A folder with files an archive would like to reach; after the test nothing but `work/` may
    have changed."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside.txt").write_text("untouched")
    (tmp_path / "yard").mkdir()
    (tmp_path / "yard" / "inside.txt").write_text("untouched")

    def look():
        return {
            path.relative_to(tmp_path): (
                path.lstat().st_mode,
                path.lstat().st_mtime_ns,
                path.read_bytes() if path.is_file() else None,
            )
            for path in tmp_path.rglob("*")
            if path != tmp_path / "work" and tmp_path / "work" not in path.parents
        }

    before = look()
    yield tmp_path
    assert look() == before


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "in" / "file.csv"
