"""Tradewind's one importable package: acquisition, validation, preparation, neighbours, models,
training, evaluation, reporting."""

import os
import sys

from stages import arithmetic

try:
    arithmetic.settle(os.environ)  # before any library that computes is loaded
except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
