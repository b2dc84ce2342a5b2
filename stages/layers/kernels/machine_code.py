"""`compiled` for machine code into which functions of stages/layers/kernels/attention_code.py go.

What numba keeps on disk it checks against a function's own file alone: after an edit of the other
file it would run what was compiled before. So that file's hash is made part of the function's name,
by which numba finds what it keeps.
"""

import hashlib
import inspect
from functools import partial

from stages.layers.kernels import attention_code as fused_kernels
from stages.layers.kernels import search_code as kernels

STAMP = hashlib.sha256(inspect.getsource(fused_kernels).encode()).hexdigest()[:12]


def compiled(function=None, **options):
    """As `kernels.compiled`."""
    if function is None:
        return partial(compiled, **options)
    function.__qualname__ += f"-{STAMP}"
    return kernels.compiled(function, **options)
