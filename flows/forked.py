"""A stage's command in a fork of a process that has loaded torch and other libraries.

Loading torch takes hundreds of stages one or two seconds of a core each, as Great Expectations
takes those that validate; what checks parameters and SciPy take half a second. The server of
flows/served.py loads them before it forks for DVC, and DVC's process forks for the stage, where DVC
would execute `python -m MODULE ...`. The stage finds what a fresh interpreter would: its arguments,
environment and folder, none of the project's modules, and no torch until it asks for it (a record
tells whether it was loaded). A command of another form, an environment in which libraries would
load otherwise, and a process with threads, which a fork would lose, are DVC's own affair as ever.
"""

import atexit
import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import os
import re
import runpy
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

COMMAND = re.compile(r"exec python -m (stages(?:\.\w+)+)((?: [\w./@=+-]+)*)")
OURS = {"stages", "tradewind", "flows"}
TORCH = {"torch", "torchgen", "functorch"}
# what many stages load besides: none of it starts a thread, as polars does
OTHERS = (
    "pydantic",
    "ruamel.yaml",
    "scipy.special",
    "scipy.spatial",
    "scipy.stats",
    "great_expectations",
)
# ... nor does pandas, which it loads, where pyarrow's memory is cleared by who uses it
ARROW = "JE_ARROW_MALLOC_CONF"
# what an interpreter, torch, NumPy and the libraries below them read when they are loaded
READ = re.compile(
    r"(ATEN|CUDA|GOMP|KMP|LD|MALLOC|MKL|NPY|NUMPY|NVIDIA|OMP|ONEDNN|DNNL|OPENBLAS|PYTHON|PYTORCH"
    r"|TORCH|TRADEWIND_ARITHMETIC|TRADEWIND_KERNELS)(_\w+)?"
)
UNSAID = 120  # an interpreter's exit code when what was said could not be written
SHELF = "<torch, loaded before>"  # its entry in sys.path


def read(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that decides how libraries are loaded."""
    return {name: value for name, value in environment.items() if READ.fullmatch(name)}


def _take(packages: set[str]) -> dict[str, ModuleType]:
    """Take the modules of these packages out of those that are loaded."""
    found = [name for name in sys.modules if name.partition(".")[0] in packages]
    return {name: sys.modules.pop(name) for name in found}


class Shelf(importlib.abc.PathEntryFinder, importlib.abc.Loader):
    """Torch, loaded and put aside until somebody imports it."""

    def __init__(self) -> None:
        """Load it under the arithmetic that the environment asks for. ImportError, SystemExit as
        they come."""
        self.environment = read(os.environ)
        finders = list(sys.meta_path)
        importlib.import_module("stages")  # settles what the libraries read
        sys.meta_path[:] = finders  # that which mends torch belongs to each stage
        _take({"stages", "tradewind"})
        importlib.import_module("torch")
        self.modules = _take(TORCH)
        self.spec = self.modules["torch"].__spec__
        given = os.environ.get(ARROW)
        os.environ[ARROW] = "background_thread:false"
        for name in OTHERS:
            with contextlib.suppress(ImportError):  # a stage that needs it will say why
                importlib.import_module(name)
        del os.environ[ARROW]
        os.environ.update({} if given is None else {ARROW: given})
        if "pydantic" in sys.modules:  # its first model loads the most of it
            sys.modules["pydantic"].create_model("Loaded", value=(int, 0))
        gc.freeze()

    def offer(self) -> None:
        """Have `import torch` find it here."""
        sys.path_hooks.insert(0, self._hook)
        sys.path.insert(1, SHELF)

    def _hook(self, entry: str) -> "Shelf":
        if entry != SHELF:
            raise ImportError(entry)
        return self

    def find_spec(
        self, fullname: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Torch's own spec, loaded by this; None for every other module."""
        if fullname != "torch" or self.spec is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=self.spec.origin)
        spec.submodule_search_locations = self.spec.submodule_search_locations
        return spec

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module that was put aside."""
        return self.modules["torch"]

    def exec_module(self, module: ModuleType) -> None:
        """Put its submodules back, too; the shelf is empty then."""
        sys.modules.update(self.modules)
        module.__spec__ = self.spec
        sys.path.remove(SHELF)
        sys.path_hooks.remove(self._hook)


def shelf() -> Shelf | None:
    """Torch put aside; None where it cannot be loaded (a stage that needs it will say why)."""
    try:
        return Shelf()
    except (ImportError, OSError, SystemExit):
        return None


def instead(original: Callable[..., None], torch: Shelf, failed: type[Exception]) -> Any:
    """What DVC calls to run a command in place of `original(executable, command, **popen)`;
    failed(command, code) is raised where it ends with another code than 0."""

    def run(executable: str | None, command: str, **popen: Any) -> None:
        words = asked(command, popen["env"], torch)
        if words is None:
            original(executable, command, **popen)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        parent, before = os.getpid(), signal.getsignal(signal.SIGINT)
        child = os.fork()
        if not child:
            _become(words, popen["env"], popen["cwd"], torch, parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as DVC does: the stage's end is told here
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            raise failed(command, code)

    return run


def asked(command: str, environment: Mapping[str, str], torch: Shelf) -> list[str] | None:
    """The module and its arguments, where the command may run in a fork; else None."""
    found = COMMAND.fullmatch(command)
    python = shutil.which("python", path=environment.get("PATH"))
    if (
        not found
        or not python
        or Path(python).absolute() != Path(sys.executable).absolute().with_name("python")
        or read(environment) != torch.environment
        or len(os.listdir("/proc/self/task")) > 1
    ):
        return None
    return [found[1], *found[2].split()]


def _become(
    words: list[str], environment: Mapping[str, str], folder: str, torch: Shelf, parent: int
) -> NoReturn:
    """Be the stage's process from here to its end, which comes for certain: whatever is raised,
    nothing of DVC's goes on here."""
    code = 1
    try:
        from flows.process import die_with

        die_with(parent)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        atexit._clear()  # what DVC's process would do at its end
        _take(OURS)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[0] = str(folder)
        torch.offer()
        code = _ended(words)
        vars(threading)["_shutdown"]()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        code = code or UNSAID
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(code)


def _ended(words: list[str]) -> int:
    """Run the module; the exit code, and what an interpreter says of an end by an exception."""
    sys.argv[:] = words
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
