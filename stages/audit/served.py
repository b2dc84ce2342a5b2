"""Commands run where a project is laid out, in processes that have loaded the libraries once.

`verify --all` runs dozens of short commands, each of which would load the same libraries for a
second. A server is a process such as loading.py makes: isolated, of the laid folder's own sources.
It loads what many commands need, parameters too (params.reading keeps their text's data), and
forks for each, so that no command sees what another did. It loads nothing that starts threads
which a fork would lose (polars does). One server serves one thread; its parent's end ends it.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any

from stages.audit import loading

# What the forked process does: the module as loading.BEGIN runs it, its words on stderr in a file.
SERVE = """
import contextlib, gc, importlib, json, os, runpy, sys, traceback
folder, count = sys.argv[1], int(sys.argv[2])
sys.path[:0] = [folder]
sys.path += sys.argv[3:3 + count]
for name in sys.argv[3 + count:]:
    with contextlib.suppress(ImportError):  # whoever needs it says so
        importlib.import_module(name)
with contextlib.suppress(Exception):  # whoever needs them says so
    sys.modules['stages.params'].load()
gc.freeze()  # what is loaded stays; and figures are circles of objects, searched for seldom
gc.set_threshold(100_000, 50, 50)

def work(words, errors):
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(os.open(errors, os.O_WRONLY), 2)
    code, sys.argv = 0, words
    try:
        runpy.run_module(words[0], run_name='__main__', alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

answers = os.fdopen(os.dup(1), 'w')
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        work(*asked)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    answers.write(f'{code}\\n')
    answers.flush()
"""
LOADED = (
    "numpy",
    "scipy.spatial",
    "scipy.special",
    "matplotlib.pyplot",
    "pydantic",
    "ruamel.yaml",
    "jinja2",
    "safetensors.numpy",
    "stages.params",
    "stages.runner",
)


# For one chain: its stages in turn, of which the last two load torch. `stages` comes first, for it
# chooses the kernels of what is loaded after it.
CHAIN = ("stages", "numpy", "pydantic", "ruamel.yaml", "stages.params", "stages.runner")
TRAINED = (*CHAIN, "torch", "safetensors.torch")


class Servers:
    """The servers of one laid folder: as many as commands run in it at once. `loaded` are the
    libraries that each has loaded; None: those of tables, figures and pages."""

    def __init__(self, folder: Path, loaded: tuple[str, ...] | None = None):
        self.folder, self._lock = folder.resolve(), Lock()
        self._loaded = LOADED if loaded is None else loaded
        self._idle: list[subprocess.Popen[str]] = []
        self._all: list[subprocess.Popen[str]] = []

    def run(self, module: str, *words: str) -> tuple[int, str]:
        """(exit code, what was said on stderr) of a module of the folder."""
        with tempfile.NamedTemporaryFile("r", errors="replace") as errors:
            with self._lock:
                server = self._idle.pop() if self._idle else None
            server = server or self._begun()
            code = self._asked(server, [[module, *words], errors.name])
            if code is None:
                return 1, "the process that runs commands ended"
            with self._lock:
                self._idle.append(server)
            return code, errors.read()

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for server in self._all:
                server.kill()
            for server in self._all:
                server.communicate()

    def _begun(self) -> "subprocess.Popen[str]":
        command = loading.serving(self.folder, SERVE, *self._loaded)
        server = subprocess.Popen(
            command,
            cwd=self.folder,
            env=loading.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with self._lock:
            self._all.append(server)
        return server

    @staticmethod
    def _asked(server: "subprocess.Popen[str]", words: list[Any]) -> int | None:
        """A command's exit code; None where the server has ended."""
        assert server.stdin and server.stdout
        try:
            server.stdin.write(json.dumps(words) + "\n")
            server.stdin.flush()
            answer = server.stdout.readline()
        except OSError:
            return None
        return int(answer) if answer else None
