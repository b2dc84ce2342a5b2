"""`compiled`: a function as machine code, kept on disk; every kernel here goes through it.

What numba keeps on disk it checks against a function's own file alone. Where functions of another
file go into it, an edit of that file would leave stale code in use: so `beside` names that file's
module, and its hash is made part of the function's name, by which numba finds what it keeps.
Where the kernels are turned off (stages/arithmetic: TRADEWIND_KERNELS), nothing is compiled.
"""

import hashlib
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numba

from stages import arithmetic


def compiled(
    function: Callable[..., Any] | None = None, *, beside: ModuleType | None = None, **options: Any
) -> Any:
    """The function as machine code (numba's `options`), kept on disk; where no folder can be
    written (NUMBA_CACHE_DIR names another), for this process only; where the kernels are off, the
    function as it is."""
    if function is None:
        return partial(compiled, beside=beside, **options)
    if not arithmetic.compiled():
        return function
    if beside is not None:
        function.__qualname__ += f"-{stamp(beside)}"
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(nogil=True, **options)(function)


def stamp(module: ModuleType) -> str:
    """A hash of a module's source."""
    return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:12]
