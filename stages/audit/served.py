"""Commands run where a project is laid out, by a process that has loaded the libraries once.

`verify --all` runs dozens of short commands, each of which would load the same libraries for a
second. A server is a process such as loading.py makes: isolated, of the laid folder's own sources.
It loads what many commands need, parameters too (params.reading keeps their text's data), and
forks for each, so that no command sees what another did and many run at once. Of polars a fork
loses two threads that its stages do without (jemalloc's, and the one that clears what is spilled to
disk); its own pool begins with its first query, after the fork. Its parent's end ends it.
"""

import json
import subprocess
import tempfile
from concurrent.futures import Future
from pathlib import Path
from threading import Lock, Thread

from stages.audit import loading
from stages.code import PACKAGE

# What the forked process does: the module as loading.BEGIN runs it, its words on stderr in a file.
# The ends of forked processes are answered as they come, by the one loop that begins them: a signal
# only wakes it, for a handler that writes may itself be interrupted by the next end.
SERVE = """
import contextlib, gc, importlib, json, os, runpy, select, signal, sys, traceback
folder, count = sys.argv[1], int(sys.argv[2])
sys.path[:0] = [folder]
sys.path += sys.argv[3:3 + count]
script, *names = sys.argv[3 + count:]
for name in names:
    with contextlib.suppress(ImportError):  # whoever needs it says so
        importlib.import_module(name)
with contextlib.suppress(Exception):  # whoever needs them says so
    sys.modules['stages.params'].load()
with contextlib.suppress(Exception):  # without it figures are drawn as ever
    runpy.run_path(os.path.join(folder, script))['begin']() if script else None
gc.freeze()  # what is loaded stays; and figures are circles of objects, searched for seldom
gc.set_threshold(100_000, 50, 50)

def work(folder, words, errors):
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(os.open(errors, os.O_WRONLY), 2)
    os.chdir(folder)
    code, sys.path[0], sys.argv = 0, folder, words
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

answers, running, text = os.dup(1), {}, b''
woken, waker = os.pipe()
os.set_blocking(waker, False)
signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
signal.signal(signal.SIGCHLD, lambda *_: None)
while True:
    ready = select.select([0, woken], [], [])[0]
    if woken in ready:
        os.read(woken, 65536)
        while running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            code = os.waitstatus_to_exitcode(status)
            os.write(answers, f'{running.pop(child)} {code}\\n'.encode())
    if 0 in ready:
        more = os.read(0, 65536)
        if not more:
            break
        *lines, text = (text + more).split(b'\\n')
        for line in lines:
            number, *asked = json.loads(line)
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(answers)
                work(*asked)
            running[child] = number
for child in running:
    os.kill(child, signal.SIGKILL)
"""
# Freed memory is kept for the next array or figure, where it else goes back to the system and is
# asked for again, filled with zeros.
KEEPING = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(1 << 28))
Answer = Future[int | None]
QUICKER = f"{PACKAGE}/audit/quicker.py"
LOADED = (
    "statistics",
    "numpy",
    "polars",
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


class Server:
    """The server of laid folders of one commit, whose sources `folder` holds. `loaded` are the
    libraries that it has loaded; None: those of tables, figures and pages, drawn quicker."""

    def __init__(self, folder: Path, loaded: tuple[str, ...] | None = None):
        self.folder, self._lock = folder.resolve(), Lock()
        self._words = ("", *loaded) if loaded is not None else (QUICKER, *LOADED)
        self._process: subprocess.Popen[str] | None = None
        self._asked: dict[int, Answer] = {}
        self._count = 0

    def begin(self) -> None:
        """Let it load what it loads, before anything is asked of it."""
        with self._lock:
            self._living()

    def run(self, module: str, *words: str, folder: Path | None = None) -> tuple[int, str]:
        """(exit code, what was said on stderr) of a module, run in `folder` (None: the server's
        own)."""
        with tempfile.NamedTemporaryFile("r", errors="replace") as errors:
            place = str(folder.resolve() if folder else self.folder)
            code = self._ask([place, [module, *words], errors.name]).result()
            if code is None:
                return 1, "the process that runs commands ended"
            return code, errors.read()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        with self._lock:
            process, self._process = self._process, None
        if process:
            process.kill()
            process.wait()

    def _ask(self, words: list[object]) -> Answer:
        """What a command's exit code will be; None where the server has ended."""
        answer: Answer = Future()
        with self._lock:
            process = self._living()
            self._count += 1
            self._asked[self._count] = answer
            try:
                assert process.stdin
                process.stdin.write(json.dumps([self._count, *words]) + "\n")
                process.stdin.flush()
            except OSError:
                self._asked.pop(self._count, answer).set_result(None)
        return answer

    def _living(self) -> "subprocess.Popen[str]":
        """The process, begun where none lives."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._begun()
        return self._process

    def _begun(self) -> "subprocess.Popen[str]":
        server = subprocess.Popen(
            loading.serving(self.folder, SERVE, *self._words),
            cwd=self.folder,
            env=loading.environment() | KEEPING,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._asked = {}
        Thread(target=self._listen, args=(server, self._asked), daemon=True).start()
        return server

    def _listen(self, server: "subprocess.Popen[str]", asked: dict[int, Answer]) -> None:
        """Hand on a server's answers; its end answers what is left."""
        assert server.stdout
        try:
            for line in server.stdout:
                number, code = map(int, line.split())
                asked.pop(number).set_result(code)
        finally:
            server.kill()  # a dying process may close its answers before it takes no more
            server.wait()
            with self._lock:
                left = [asked.pop(number) for number in [*asked]]
            for answer in left:
                answer.set_result(None)
