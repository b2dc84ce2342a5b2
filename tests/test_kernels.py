"""A number's last digits do not depend on the kernels and threads that OpenBLAS would choose for the processor at hand."""

import os
import platform
import subprocess
import sys

import pytest

DECOMPOSED = """
import numpy
found = numpy.linalg.svd(numpy.random.default_rng(0).normal(size=(300, 200)))
print(b"".join(part.tobytes() for part in found).hex())
"""


def computed(kernels: str, threads: str, first: str = "") -> str:
    """A decomposition, to the last bit, in a process whose OpenBLAS is told to take `kernels` and `threads`."""
    done = subprocess.run([sys.executable, "-c", f"{first}\n{DECOMPOSED}"], capture_output=True, text=True, check=True,
                          env={**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": threads})
    return done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64" or (os.cpu_count() or 1) < 2, reason="kernels of x86-64, two cores")
def test_stages_compute_the_same_bits_whatever_kernels_and_threads_the_machine_would_give():
    expected = computed("Haswell", "1")
    assert computed("Sandybridge", "1") != expected and computed("Haswell", "2") != expected  # the digits do depend on both
    assert computed("Sandybridge", "2", "import stages") == expected
