"""Where the server keeps its data and its password, and what it says when its database is busy."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from flows import server


def test_databases_get_the_driver_that_prefect_needs(monkeypatch):
    for name in server.DATABASES:
        monkeypatch.delenv(name, raising=False)
    assert server.database(None) is None
    assert (
        server.database("postgresql://a:b@c:1/d")
        == "postgresql+asyncpg://a:b@c:1/d"
        == server.database("postgres://a:b@c:1/d")
    )
    monkeypatch.setenv(server.DATABASES[1], "sqlite+aiosqlite:///x.db")
    assert server.database(None) == "sqlite+aiosqlite:///x.db"


@pytest.mark.parametrize(
    ("busy", "patience_s", "told"), [(2, 60, (201, {"asked": 3})), (9, 0, (503, None))]
)
def test_a_server_whose_database_is_busy_is_asked_again(monkeypatch, busy, patience_s, told):
    """503 says that nothing was done: asked again it answers; when it stays busy too long its
    word is handed on."""
    asked = []

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(503 if len(asked) <= busy else 201)
            self.end_headers()
            self.wfile.write(json.dumps({"asked": len(asked)}).encode())

        def log_message(self, *_):
            """Nothing on the terminal."""

    monkeypatch.setattr(server, "BUSY_S", patience_s)
    with HTTPServer(("127.0.0.1", 0), Busy) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        assert (
            server.answer(f"http://127.0.0.1:{listener.server_port}/runs", "me:word", {"state": 1})
            == told
        )
        listener.shutdown()
    assert set(asked) == {b'{"state": 1}'} and (
        len(asked) == 3 if patience_s else len(asked) < busy
    )


@pytest.mark.fault("F20")
def test_no_password_is_told_from_the_servers_log():
    text = "cannot reach postgresql+asyncpg://me:hidden@host:1/base with word"
    assert (
        server.hidden(text, "word", None)
        == "cannot reach postgresql+asyncpg://***@host:1/base with ***"
    )
