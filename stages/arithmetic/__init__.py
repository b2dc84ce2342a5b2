"""One arithmetic for all x86-64 processors with AVX2: the same bits from the same commit, whoever
made the processor.

torch's products, its `exp`, `log` and roots come from MKL, which picks kernels by the processor's
maker; oneDNN, numba and NumPy pick by its instructions, OpenBLAS by its model. Each reads its
choice when it is loaded, so `settle` runs before any of them is (stages/__init__.py), and child
processes inherit it. What a setting cannot make alike is replaced when torch is loaded
(kernels.py). TRADEWIND_ARITHMETIC=native leaves torch and numba their own kernels: other last
digits on another processor, judged by a tolerance. TRADEWIND_KERNELS=off turns our own compiled
kernels off (stages/layers/kernels): torch's answer then.
"""

import importlib.abc
import importlib.machinery
import os
import platform
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE, COMMON, NATIVE = "TRADEWIND_ARITHMETIC", "common", "native"
KERNELS, ON, OFF = "TRADEWIND_KERNELS", "on", "off"
NEEDED = frozenset({"avx2", "fma"})  # of the processor

# NumPy and OpenBLAS make data as well as predictions: they compute alike under either name.
ALWAYS = {
    "OPENBLAS_CORETYPE": "Haswell",  # its AVX2 kernels
    "OPENBLAS_NUM_THREADS": "1",  # sums are parted by threads
    # NumPy's other logarithms, powers and angles
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
CHOSEN = {
    "MKL_CBWR": "COMPATIBLE",  # the one setting that MKL keeps on every maker's processor
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NUMBA_CPU_NAME": "haswell",  # sums along a register's lanes follow its width
    "NUMBA_CPU_FEATURES": "+avx2,+fma",
}


def asked(environ: MutableMapping[str, str]) -> str:
    """The arithmetic that the environment names: common where it names none. ValueError for an
    unknown one."""
    name = environ.get(VARIABLE) or COMMON
    if name not in (COMMON, NATIVE):
        raise ValueError(
            f"unknown arithmetic: found {VARIABLE}={name!r}, expected {COMMON!r} or {NATIVE!r}; "
            f"unset it for {COMMON!r}"
        )
    return name


def compiled(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether our own compiled kernels compute: they do, but where TRADEWIND_KERNELS is off. The
    one place that reads it. ValueError for an unknown word."""
    word = environ.get(KERNELS) or ON
    if word not in (ON, OFF):
        raise ValueError(
            f"unknown choice of kernels: found {KERNELS}={word!r}, expected {ON!r} or {OFF!r}; "
            f"unset it for {ON!r}"
        )
    return word == ON


def able(machine: str | None = None, flags: frozenset[str] | None = None) -> bool:
    """Whether this processor can compute in the common arithmetic; `flags` are its instructions."""
    flags = processor()["flags"] if flags is None else flags
    return (machine or platform.machine()) in ("x86_64", "AMD64") and flags >= NEEDED


def processor() -> dict[Any, Any]:
    """The processor's model and instructions, as Linux tells them; empty where it does not."""
    try:
        lines = (
            Path("/proc/cpuinfo")
            .read_text(encoding="utf-8", errors="replace")
            .split("\n\n", 1)[0]
            .splitlines()
        )
    except OSError:
        lines = []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {"model": said.get("model name", ""), "flags": frozenset(said.get("flags", "").split())}


def settle(environ: MutableMapping[str, str]) -> None:
    """Set the kernels of every library in the environment, and have torch mended when it is
    loaded."""
    compiled(environ)  # an unknown word is told before any work starts
    environ.update(ALWAYS)
    if asked(environ) == COMMON and able():
        environ.update(CHOSEN)
        if "torch" in sys.modules:
            _mend()
        elif not any(isinstance(finder, _Loaded) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Loaded())
    else:  # what a parent process in the common arithmetic has set
        for name, value in CHOSEN.items():
            if environ.get(name) == value:
                del environ[name]


def name() -> str:
    """The arithmetic of this process: common, or native, as asked for or for want of a processor
    that can do better."""
    return (
        COMMON
        if all(os.environ.get(key) == value for key, value in (ALWAYS | CHOSEN).items())
        else NATIVE
    )


def _mend() -> None:
    """Replace torch's kernels: kernels.py does so at its end.

    It may itself be what asked for torch, and then is not yet whole here."""
    import stages.arithmetic.kernels  # noqa: F401 (its import mends)


class _Loaded(importlib.abc.MetaPathFinder):
    """Stands before the other finders until torch is loaded, and mends it then.

    It stays when torch is only looked for (`importlib.util.find_spec`): that loads nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Torch's own spec, its loader followed by `_mend`; None for every other module."""
        if fullname != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _mend()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
