"""A headless Chromium driven through the DevTools protocol, for tests of the pages: no driver but a
websocket.

`browser()` starts one with a profile of its own and ends it, `Tab.open` loads a file and waits
until it has loaded, `Tab.ask` evaluates an expression and returns its value. Everything that the
page logs, throws or requests is kept in `logged`, `thrown` and `requested`.
"""

import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

PROGRAM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
WAIT = 60  # s: of anything that a browser on a busy machine may take


class Tab:
    """One page of a browser."""

    def __init__(self, address: str):
        from websockets.sync.client import connect

        self.socket = connect(address, max_size=None, open_timeout=WAIT, compression=None)
        self.front = False  # whether the front page is open
        self.number, self.events, self.logged, self.thrown, self.requested = 0, [], [], [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")

    def call(self, method: str, **params) -> dict:
        """Send a command and return its result; what happens meanwhile is kept. AssertionError
        for a command that fails."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(WAIT))
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.keep(message)

    def keep(self, message: dict) -> None:
        """Remember an event, and sort out what the page logged, threw or asked of the network."""
        name, told = message.get("method", ""), message.get("params", {})
        self.events.append(name)
        if name == "Runtime.exceptionThrown":
            self.thrown.append(str(told["exceptionDetails"]))
        elif (
            name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert")
        ) or name == "Log.entryAdded":
            self.logged.append(str(told))
        elif name == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"][:100])

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file anew and wait for its load event."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        end = time.monotonic() + WAIT
        while self.ask("location.protocol + document.readyState") != "file:complete":
            assert time.monotonic() < end, f"{path} does not load"
            time.sleep(0.02)

    def ask(self, expression: str):
        """The value of an expression; AssertionError where it throws."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def size(self, width: int, height: int = 900) -> None:
        """The window's size, pixels; narrow ones are a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def scheme(self, name: str) -> None:
        """What the system prefers: dark or light."""
        self.call(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}]
        )

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key, by its name and its number."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if kind == "keyDown" and text else {}),
            )


@contextlib.contextmanager
def browser() -> Iterator[Tab]:
    """A browser with one empty page, ended with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        running = subprocess.Popen(
            [
                PROGRAM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--disable-extensions",
                "--hide-scrollbars",
                f"--user-data-dir={home}",
                "--remote-debugging-port=0",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port, end = Path(home, "DevToolsActivePort"), time.monotonic() + WAIT
            while not (port.exists() and port.read_text().count("\n")):
                assert running.poll() is None and time.monotonic() < end, "Chromium does not start"
                time.sleep(0.05)
            with urllib.request.urlopen(
                f"http://127.0.0.1:{port.read_text().split()[0]}/json/list", timeout=WAIT
            ) as answer:
                page = next(one for one in json.load(answer) if one["type"] == "page")
            tab = Tab(page["webSocketDebuggerUrl"])
            yield tab
            tab.socket.close()
        finally:
            running.terminate()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
