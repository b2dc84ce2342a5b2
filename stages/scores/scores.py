"""Scores of a Gaussian forecast, one component at a time: log-likelihood, CRPS, coverage of a
central interval.

Closed form of the CRPS: Gneiting and Raftery (2007), J. Am. Stat. Assoc. 102, eq. 21; strictly
proper, in the unit of the quantity, and equal to the absolute error when the spread goes to zero.
Higher log-likelihood and lower CRPS are better.
Shapes: all arguments broadcast; mean, scale and measured share one unit; scale > 0.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from stages.errors import DataError


def checked(scale: np.ndarray) -> np.ndarray:
    """The scale as float64; DataError when one is not a positive finite number."""
    scale = np.asarray(scale, dtype=np.float64)
    bad = ~(np.isfinite(scale) & (scale > 0))
    if bad.any():
        raise DataError(
            "a predicted spread is not a positive number",
            expected="> 0, finite",
            found=f"{int(bad.sum())} of {bad.size} values, the first {scale[bad].flat[0]!r}",
            remedy="look at the model's training history: the head has diverged",
        )
    return scale


def log_likelihood(mean: np.ndarray, scale: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Natural logarithm of the normal density at `measured`; changes by log c when the unit
    changes by the factor c."""
    scale = checked(scale)
    z = (np.asarray(measured, np.float64) - mean) / scale
    return -0.5 * z * z - np.log(scale) - 0.5 * math.log(2 * math.pi)


def crps(mean: np.ndarray, scale: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score of N(mean, scale²) at `measured`, in their unit."""
    scale = checked(scale)
    z = (np.asarray(measured, np.float64) - mean) / scale
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))


def covered(
    mean: np.ndarray, scale: np.ndarray, measured: np.ndarray, level: float = 0.9
) -> np.ndarray:
    """1.0 where `measured` lies in the central interval of probability `level`, else 0.0; a
    calibrated model averages `level`."""
    half = ndtri(0.5 + level / 2) * checked(scale)
    return (np.abs(np.asarray(measured, np.float64) - mean) <= half).astype(np.float64)
