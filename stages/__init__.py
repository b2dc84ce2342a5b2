"""Tradewind's one importable package: acquisition, validation, preparation, neighbours, models, training, evaluation, reporting."""

import os

# NumPy's and SciPy's OpenBLAS picks its kernels by the processor and its threads by the cores, and each way rounds differently: the same
# commit gave other last digits on another machine. It reads the choice when it is loaded, and this package is imported before either.
os.environ |= {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}  # its AVX2 kernels, which all x86-64 of today run
