"""What the kernels of this process answer: a hash an operation, over inputs of fixed bits.

`line` is the arithmetic in a word, which stands in every run record: its name, and a digest over
NumPy's and, where torch is loaded, torch's operations. Two processes with one line have one
arithmetic, as far as these operations tell; another line is another one, and numbers are then
judged by the tolerance. `tradewind doctor --arithmetic` prints every operation's hash. The hashes
of the common arithmetic lie in reference.json. Where a library's new version changes one, `python
-m stages.arithmetic.probe > stages/arithmetic/reference.json` writes them anew. Inputs come from
NumPy's PCG64 as uniform doubles, which are the same everywhere.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stages import arithmetic

DIGITS = 8  # of a hash
REFERENCE = Path(__file__).with_name("reference.json")
SHAPES = (
    (1400, 24, 96),
    (24, 1400, 96),
    (64, 64, 64),
    (33, 65, 17),
    (256, 256, 256),
)  # m, k, n of products m x k times k x n


def _digest(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:DIGITS]


def _drawn(
    *shape: int, low: float = -2.0, high: float = 2.0, kind: type = np.float32
) -> np.ndarray:
    return (low + (high - low) * np.random.default_rng(sum(shape)).random(shape)).astype(kind)


def numpy_operations() -> dict[str, str]:
    """Operation -> hash, of NumPy and its OpenBLAS."""
    x, positive = _drawn(1003, kind=np.float64), _drawn(1003, low=1e-3, kind=np.float64)
    found = {f"numpy {f.__name__}": _digest(f(x)) for f in (np.exp, np.sin, np.arctan, np.tanh)}
    found |= {f"numpy {f.__name__}": _digest(f(positive)) for f in (np.log, np.log1p, np.sqrt)}
    for kind in (np.float32, np.float64):
        found[f"numpy sum {kind.__name__}"] = _digest(_drawn(10007, kind=kind).sum())
        for m, k, n in SHAPES:
            found[f"numpy {m}x{k}x{n} {kind.__name__}"] = _digest(
                _drawn(m, k, kind=kind) @ _drawn(k, n, kind=kind)
            )
    square = _drawn(60, 60, kind=np.float64)
    found["numpy cholesky"] = _digest(np.linalg.cholesky(square @ square.T + 60 * np.eye(60)))
    return found


def torch_operations() -> dict[str, str]:
    """Operation -> hash, of torch on the processor, float32, in one thread: small products follow
    the number of threads, and that is no matter of the processor."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            return _of_torch(torch)
    finally:
        torch.set_num_threads(threads)


def _of_torch(torch: Any) -> dict[str, str]:
    from torch.nn import functional

    def hashed(*tensors: Any) -> str:
        return _digest(*(tensor.detach().numpy() for tensor in tensors))

    def tensor(*shape: int, **more: Any) -> Any:
        return torch.from_numpy(_drawn(*shape, **more))

    x, positive, rows = tensor(1003), tensor(1003, low=1e-3), tensor(200, 33)
    found = {
        f"torch {name}": hashed(getattr(torch, name)(x))
        for name in ("exp", "tanh", "erf", "sigmoid", "sin")
    }
    found |= {
        f"torch {name}": hashed(getattr(torch, name)(positive))
        for name in ("sqrt", "log", "rsqrt", "atan")
    }
    found["torch log float64"] = hashed(positive.double().log())
    functions: dict[str, Callable[..., Any]] = {
        "softmax": lambda y: functional.softmax(y, -1),
        "gelu": functional.gelu,
        "softplus": functional.softplus,
        "layer_norm": lambda y: functional.layer_norm(y, (33,)),
        "sum": lambda y: y.sum(0),
        "norm": torch.linalg.vector_norm,
    }
    found |= {f"torch {name}": hashed(function(rows)) for name, function in functions.items()}
    for m, k, n in SHAPES:
        found[f"torch {m}x{k}x{n}"] = hashed(tensor(m, k) @ tensor(k, n))
        found[f"torch linear {m}x{k}x{n}"] = hashed(
            functional.linear(tensor(m, k), tensor(n, k), tensor(n))
        )
    found["torch bmm"] = hashed(torch.bmm(tensor(5, 40, 30), tensor(5, 30, 50)))
    found["torch conv1d"] = hashed(functional.conv1d(tensor(2, 8, 50), tensor(16, 8, 3)))
    found["torch rfft2"] = hashed(torch.view_as_real(torch.fft.rfft2(tensor(3, 32, 32))))
    heads = tensor(2, 4, 50, 16)
    found["torch attention"] = hashed(functional.scaled_dot_product_attention(heads, heads, heads))
    found["torch normal"] = hashed(torch.randn(1000, generator=torch.Generator().manual_seed(0)))
    return found


@cache
def _short(library: str) -> str:
    operations = numpy_operations() if library == "numpy" else torch_operations()
    return _digest(
        np.frombuffer(
            "".join(f"{key}={value};" for key, value in sorted(operations.items())).encode(),
            np.uint8,
        )
    )


def line() -> str:
    """The arithmetic of this process in a word: `common numpy:1a2b3c4d torch:5e6f7a8b
    numba:haswell`, each library where it is loaded; numba is off where our kernels are."""
    parts = [
        f"{library}:{_short(library)}" for library in ("numpy", "torch") if library in sys.modules
    ]
    if not arithmetic.compiled():
        parts.append(f"numba:{arithmetic.OFF}")
    elif "numba" in sys.modules:
        parts.append(f"numba:{target()}")
    return " ".join([arithmetic.name(), *parts])


def target() -> str:
    """The processor that numba compiles for."""
    from llvmlite import binding

    return os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()


def reference() -> dict[str, str]:
    """Operation -> hash, as the common arithmetic answers with the pinned libraries."""
    return json.loads(REFERENCE.read_text(encoding="utf-8"))


def main() -> int:
    """Print operation -> hash of this process as JSON."""
    text = "Operation -> hash of this process' arithmetic, as JSON: what reference.json holds."
    argparse.ArgumentParser(prog="python -m stages.arithmetic.probe", description=text).parse_args()
    print(json.dumps(numpy_operations() | torch_operations(), indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
