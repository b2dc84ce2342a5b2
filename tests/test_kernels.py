"""A number's last digits do not depend on the kernels that OpenBLAS would choose for the processor at hand."""

import os
import platform
import subprocess
import sys

import pytest

PRODUCT = "import numpy\nnumbers = numpy.random.default_rng(0).normal(size=(300, 200))\nprint((numbers @ numbers.T).tobytes().hex()[:100000])"


def computed(kernels: str, first: str) -> str:
    """A product of matrices, to the last bit, in a process whose OpenBLAS is told to take `kernels`."""
    done = subprocess.run([sys.executable, "-c", f"{first}\n{PRODUCT}"], capture_output=True, text=True, check=True,
                          env={**os.environ, "OPENBLAS_CORETYPE": kernels})
    return done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of x86-64")
def test_stages_compute_the_same_bits_whatever_kernels_the_processor_would_get():
    assert computed("Sandybridge", "") != computed("Haswell", "")  # the digits do depend on it
    assert computed("Sandybridge", "import stages") == computed("Haswell", "")
