"""Tradewind's one importable package: acquisition, validation, preparation, neighbours, models,
training, evaluation, reporting.

`import tradewind` offers `load`, `fit`, `decode`, `neighbours` and `__version__` (api.py, which is
imported when one of them is asked for).
"""

import os
import sys
from typing import Any

_self = sys.modules[__name__]
__name__ = "stages"  # also where a wheel calls this package `tradewind` (names.py)
if (_other := sys.modules.setdefault(__name__, _self)) is not _self:
    raise ImportError(f"another package called {__name__} is loaded: {_other}")

from stages import arithmetic, names  # noqa: E402 (under the name settled above)

names.share(_self)
try:
    arithmetic.settle(os.environ)  # before any library that computes is loaded
except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None

PUBLIC = ("decode", "fit", "load", "neighbours")


def __getattr__(name: str) -> Any:
    """What is public, when it is asked for first."""
    if name == "__version__":
        from importlib import metadata

        return metadata.version("tradewind")
    if name == "neighbours":  # the package, which can be called
        return names.imported("stages.neighbours")
    if name in PUBLIC:
        return getattr(names.imported("stages.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC, "__version__"})
