"""What Python loads beside a project's sources: processes that load none of it, and the files that
would be loaded in place of others.

A process of an audit is isolated (`-I`: no variables of Python's, no site of a user's) and runs no
site module (`-S`: no .pth, sitecustomize or usercustomize); the libraries' folders are named to it.
An extension module or bytecode beside a source of the same name is loaded before it, and so is a
package; a module at the project's root is loaded before a library's. Of two files whose names
differ by case alone, many file systems hold but one.
"""

import importlib.machinery
import os
import posixpath
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from stages.code import PACKAGE

LIBRARIES = ("site-packages", "dist-packages")
KERNELS = (".nbi", ".nbc")  # what numba compiled, as pickles
PACKAGES = (PACKAGE, "flows", "tests")  # the modules at the root that are the project's own
# What makes a process load, trace or compile other files, and what would kill it on purpose.
LED = ("PYTHON", "NUMBA_", "LD_PRELOAD", "LD_AUDIT", "MATPLOTLIBRC", "FAULT")
KEPT = ("NUMBA_NUM_THREADS", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
BEGIN = (
    "import runpy, sys; folder, count = sys.argv[1], int(sys.argv[2]); "
    "sys.path[:0] = [folder]; sys.path += sys.argv[3:3 + count]; "
    "sys.argv = sys.argv[3 + count:]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def process(folder: Path, module: str, *words: str) -> list[str]:
    """The command that runs a module of the project in `folder`, and no other file of it."""
    return serving(folder, BEGIN, module, *words)


def serving(folder: Path, begin: str, *words: str) -> list[str]:
    """The command that runs the Python `begin` with a folder, the libraries' places, and words."""
    libraries = [path for path in sys.path if path.endswith(LIBRARIES)]
    first = [sys.executable, "-I", "-S", "-c", begin, str(folder.resolve())]
    return [*first, str(len(libraries)), *libraries, *words]


def environment() -> dict[str, str]:
    """This process' environment without what leads to other files."""
    return {
        key: value for key, value in os.environ.items() if key in KEPT or not key.startswith(LED)
    }


def compiled(path: str) -> bool:
    """Whether a file holds what was compiled of others, to be loaded in their place."""
    return "__pycache__" in path.split("/") or path.endswith((*KERNELS, ".pyc", ".pyo"))


def shadows(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path, why) of each of a project's files that Python would load in place of another, or
    that a file system may hold in its place."""
    modules: dict[str, list[str]] = defaultdict(list)
    spelt: dict[str, str] = {}
    for path in sorted(paths):
        twin = spelt.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if twin != path:
            yield path, f"it and {twin} are one file where names that differ by case are the same"
        home, _, name = path.rpartition("/")
        suffix = next((s for s in importlib.machinery.all_suffixes() if name.endswith(s)), None)
        if suffix is None or path.startswith("tests/"):
            continue
        if suffix != ".py" and path.startswith(tuple(f"{one}/" for one in PACKAGES)):
            yield path, "it is compiled: Python loads it before any source of that name"
        package = name == "__init__.py"
        module = home if package else posixpath.join(home, name.removesuffix(suffix))
        modules[module].append(path)
        if "/" not in module and module not in PACKAGES:
            yield path, "a module at the project's root is loaded before a library's"
    for files in modules.values():
        if len(files) > 1:
            yield files[1], f"it and {files[0]} are one module: Python loads but one of them"
