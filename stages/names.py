"""One name, one module: `tradewind.X` is `stages.X`, from a clone and from a wheel alike.

The code calls itself `stages`, as its folder is called; a wheel installs that folder as
`tradewind`, and `flows` as `tradewind.flows`. Every module exists once, under its name in the code
(what checkpoints and pickles hold); the other name finds the same object.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType, ModuleType

HOME, PUBLIC, FLOWS = "stages", "tradewind", "flows"


class Same(importlib.abc.Loader):
    """Gives the module of another name, and leaves it as it is."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module by its name in the code."""
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Undo the import system's mark; the module ran when its own name was imported."""
        module.__spec__ = self.spec

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m` runs of a module by this name."""
        spec = importlib.util.find_spec(self.name)
        loader = spec.loader if spec else None
        return loader.get_code(self.name) if isinstance(loader, InspectLoader) else None


class Finder(importlib.abc.MetaPathFinder):
    """Finds `tradewind` and what lies in it, and, of a wheel, `flows` by its name in the code."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the same module; None for any other name."""
        if name == FLOWS:  # in a wheel inside the package; in a clone on the path, or beside it
            here = Path(__file__).parent
            found = importlib.machinery.PathFinder.find_spec
            if (here / FLOWS).is_dir():
                return found(name, [str(here)])
            return found(name) or found(name, [str(here.parent)])
        if name.partition(".")[0] != PUBLIC:
            return None
        rest = name.removeprefix(PUBLIC).removeprefix(".")
        own = rest if rest.partition(".")[0] == FLOWS else f"{HOME}.{rest}".removesuffix(".")
        return importlib.machinery.ModuleSpec(name, Same(own))


def imported(name: str) -> ModuleType:
    """A module by its name in the code. By a function, so that a stage's code (stages/code) does
    not hold what only the public face needs."""
    return importlib.import_module(name)


def share(package: ModuleType) -> None:
    """Let the package be found by both of its names."""
    sys.modules.setdefault(PUBLIC, package)
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
