"""What a check is given and what it returns, and the cutting of secrets out of every text.

`Place` runs other programs for the checks, each once and with a limit on its time (s), telemetry
off. A secret is the user information or the query of a URL, or the value of an environment variable
whose name says that it holds one or that holds such a URL.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OK, WARN, FAIL = "ok", "warn", "fail"
SECRET_NAME = re.compile(r"(?i)passw|secret|token|credential|_key$|^key_|apikey|auth_string")
LEAST_SECRET = 4  # characters: a shorter value cannot be cut out without cutting innocent text
TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: its state (ok, warn, fail), what was found, what mends it."""

    name: str
    state: str
    found: str
    remedy: str = ""


@dataclass
class Place:
    """The project's folder and the environment, with the answers of programs that were asked
    already."""

    root: Path
    environ: Mapping[str, str]
    answers: dict[tuple[str, ...], subprocess.CompletedProcess[Any]] = field(default_factory=dict)

    def ask(self, *command: str) -> subprocess.CompletedProcess[Any]:
        """Run a program in the project's folder. One that is missing or too slow answers with
        status 127 or 124 and a sentence."""
        if command not in self.answers:
            quiet = {
                "DVC_NO_ANALYTICS": "1",
                "DO_NOT_TRACK": "1",
                "GIT_OPTIONAL_LOCKS": "0",
                "LC_ALL": "C",
            }
            try:
                done = subprocess.run(
                    command,
                    cwd=self.root,
                    env={**self.environ, **quiet},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=TIMEOUT_S,
                    check=False,
                )
            except OSError as error:
                done = subprocess.CompletedProcess(command, 127, "", str(error))
            except subprocess.TimeoutExpired:
                done = subprocess.CompletedProcess(
                    command, 124, "", f"no answer within {TIMEOUT_S:g} s"
                )
            self.answers[command] = done
        return self.answers[command]

    def dvc(self, *arguments: str) -> subprocess.CompletedProcess[Any]:
        """Ask the dvc of this interpreter."""
        return self.ask(sys.executable, "-m", "dvc", *arguments)

    def settings(self) -> dict[str, str]:
        """DVC's configuration of all levels (`dvc config --list`): section.name -> value."""
        lines = self.dvc("config", "--list").stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def cache(self) -> Path:
        """DVC's cache folder; a relative one is relative to .dvc."""
        return self.root / ".dvc" / self.settings().get("cache.dir", "cache")


def safe(text: str, environ: Mapping[str, str]) -> str:
    """The text without user information, queries and fragments of URLs, and without the secret
    values of the environment."""
    for name, value in environ.items():
        hidden = (
            [value] if SECRET_NAME.search(name) else re.findall(r"://[^/\s:@]*:([^/\s]+)@", value)
        )
        for secret in hidden:
            if len(secret) >= LEAST_SECRET:
                text = text.replace(secret, "(hidden)")
    text = re.sub(r"([a-z0-9+.-]+://)[^/\s'\"]*@", r"\1(hidden)@", text, flags=re.IGNORECASE)
    return re.sub(
        r"([a-z0-9+.-]+://[^\s'\"?#]*)[?#][^\s'\"]+", r"\1?(hidden)", text, flags=re.IGNORECASE
    )


def alive(pid: int) -> bool:
    """Whether a process of that number is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def words_of(pid: int) -> list[str]:
    """A process' command line; [] for one that is gone or not ours to read."""
    try:
        return [
            word.decode(errors="replace")
            for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if word
        ]
    except OSError:
        return []


def called(pid: int) -> str:
    """A process by number and the first words of its command line (later ones may hold what
    nobody should read)."""
    words = words_of(pid)
    return f"process {pid}" + (
        f" ({' '.join([Path(words[0]).name, *words[1:3]])})" if words else ""
    )
