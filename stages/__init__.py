"""Tradewind's one importable package: acquisition, validation, preparation, neighbours, models, training, evaluation, reporting."""

import os

# NumPy's and SciPy's OpenBLAS picks its kernels by the processor, and each rounds its own way: the same commit gave other last digits on
# another machine. It reads the choice when it is loaded, and this package is imported before either; its AVX2 kernels run on all x86-64.
os.environ["OPENBLAS_CORETYPE"] = "Haswell"
