"""Compiled kernels: machine code for what torch's own does slower at our shapes, or not at all.

README.md tells what each computes, what holds it to its definition and what it gains. `X.py` is
what torch code calls, `X_code.py` the machine code under it, imported where it is first needed.
TRADEWIND_KERNELS=off turns all of them off (stages/arithmetic): torch's own answers.
"""

LANES = 16  # float32 numbers of a 512-bit register: heads and places are kept in whole ones
