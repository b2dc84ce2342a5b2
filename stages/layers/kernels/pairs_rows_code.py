"""What pairs_code.py does to rows of pairs: heads filled up, differences of places, a layer of the
MLP forward and backward, its gradients.

Shapes: T queries of a tile, N keys, X axes, E = X or 1, A heads, h numbers a head, D = h filled up,
U hidden numbers, W keys filled up, L = T W lanes.
"""

from typing import Any, no_type_check

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from stages.layers.kernels import LANES, attention_code, machine_code, tiles_code
from stages.layers.kernels.attention_code import ONE, ZERO, cut
from stages.layers.kernels.tiles_code import FUSED, NUMBER, WIDE, _picked, _tables, dot, multiply

BLOCK = 4  # rows by rows of `cross`: sixteen sums, half of the registers that AVX-512 has


def compiled(function: Any) -> Any:
    """The function as machine code, anew where any file changes whose functions go into it."""
    function.__qualname__ += f"-{machine_code.stamp(attention_code)}"
    return machine_code.compiled(function, beside=tiles_code)


@compiled
@no_type_check
def filled(rows: np.ndarray, heads: int, by: float, padded: np.ndarray) -> None:
    """`by` times rows (T, A h), each head filled up with zeros: (T, A D)."""
    width, deep = rows.shape[1] // heads, padded.shape[1] // heads
    padded[:] = ZERO
    for i in range(len(rows)):
        for head in range(heads):
            for d in range(width):
                padded[i, head * deep + d] = by * rows[i, head * width + d]


@compiled
@no_type_check
def emptied(padded: np.ndarray, heads: int, by: float, rows: np.ndarray) -> None:
    """rows (T, A h) are `by` times the heads that `filled` filled up."""
    width, deep = rows.shape[1] // heads, padded.shape[1] // heads
    for i in range(len(rows)):
        for head in range(heads):
            for d in range(width):
                rows[i, head * width + d] = by * padded[i, head * deep + d]


@compiled
@no_type_check
def known(real: np.ndarray, kept: np.ndarray) -> None:
    """1 where a key is real, else 0; 0 behind the last."""
    kept[:] = ZERO
    for j in range(len(real)):
        if real[j]:
            kept[0, j] = ONE


@compiled
@no_type_check
def differences(query_x: np.ndarray, key_x: np.ndarray, turned: bool, rows: np.ndarray) -> None:
    """rows (E, T W): what a query's place is more than a key's, an axis a row, or its length."""
    queries, keys = len(query_x), len(key_x)
    wide = rows.shape[1] // queries
    rows[:] = ZERO
    for axis in range(query_x.shape[1]):
        row = rows[0 if turned else axis]
        for i in range(queries):
            part, place = row[i * wide : i * wide + wide], query_x[i, axis]
            for j in range(keys):
                far = place - key_x[j, axis]
                part[j] = part[j] + far * far if turned else far
    if turned:
        row = rows[0]
        for lane in range(len(row)):
            row[lane] = np.sqrt(row[lane])


@compiled
@no_type_check
def linear(
    weights: np.ndarray, bias: np.ndarray, rows: np.ndarray, found: np.ndarray, bent: bool
) -> None:
    """found = weights rows + bias, nothing below zero where `bent`."""
    height, wide = found.shape
    for r in range(height):
        found[r] = bias[r]
    for r in range(0, height, tiles_code.ROWS):
        multiply(found, r, weights, r, rows, 0, len(rows), wide, False)
    if bent:
        for r in range(height):
            row = found[r]
            for lane in range(wide):
                row[lane] = ZERO if row[lane] < ZERO else row[lane]


@compiled
@no_type_check
def passed(slopes: np.ndarray, rows: np.ndarray) -> None:
    """No slope where a row was bent to zero."""
    for r in range(len(rows)):
        slope, row = slopes[r], rows[r]
        for lane in range(len(row)):
            slope[lane] = slope[lane] if row[lane] > ZERO else ZERO


@intrinsic
@no_type_check
def cross(_: Any, sums: Any, r: Any, c: Any, rows: Any, others: Any, wide: Any) -> Any:
    """sums[r + i, c + k] += sum of products of the first `wide` entries of rows[r + i] and
    others[c + k], for i and k below BLOCK; of rows behind a table's last nothing is kept."""

    def code(context, builder, signature, arguments):
        to, one, other = _tables(context, builder, signature, arguments, 0, 3, 4)
        _, r, c, _, _, wide = arguments
        places = [(i, k) for i in range(BLOCK) for k in range(BLOCK)]
        kept = [cgutils.alloca_once_value(builder, ir.Constant(WIDE, None)) for _ in places]
        step = wide.type(LANES)
        with cgutils.for_range_slice(builder, wide.type(0), wide, step, wide.type) as (lane, _):
            left = [one.load(r, lane, i) for i in range(BLOCK)]
            right = [other.load(c, lane, k) for k in range(BLOCK)]
            for (i, k), total in zip(places, kept, strict=True):
                term = builder.fmul(left[i], right[k], flags=FUSED)
                builder.store(builder.fadd(builder.load(total), term, flags=FUSED), total)
        homes = [to.at(r, builder.add(c, c.type(k)), i, NUMBER) for i, k in places]
        found = []
        for home, total in zip(homes, kept, strict=True):
            all_lanes = builder.load(total)
            for half in (8, 4, 2, 1):
                swapped = _picked(
                    builder, all_lanes, all_lanes, [lane ^ half for lane in range(LANES)]
                )
                all_lanes = builder.fadd(all_lanes, swapped)
            alone = builder.extract_element(all_lanes, ir.IntType(32)(0))
            found.append(builder.fadd(builder.load(home, align=4), alone))
        for home, one_sum in reversed(list(zip(homes, found, strict=True))):
            builder.store(one_sum, home, align=4)  # of rows in one place the first is right
        return context.get_dummy_value()

    return types.void(sums, r, c, rows, others, wide), code


@compiled
@no_type_check
def learned(slopes, inputs, ones, by_weights, by_bias) -> None:
    """What a layer's slopes (R, L) and inputs add to the gradients of its weights, in whole BLOCKs
    of columns, and of its bias."""
    wide = slopes.shape[1]
    for r in range(0, len(slopes), BLOCK):
        for c in range(0, len(inputs), BLOCK):
            cross(by_weights, r, c, slopes, inputs, wide)
    for r in range(len(slopes)):
        by_bias[r] += dot(slopes, r, ones, 0, wide)


@compiled
@no_type_check
def descended(weights: np.ndarray, slopes: np.ndarray, found: np.ndarray) -> None:
    """found = weights^T slopes, as many rows as it has."""
    for r in range(0, len(found), tiles_code.ROWS):
        multiply(found, r, weights.T, r, slopes, 0, len(slopes), slopes.shape[1], True)


@compiled
@no_type_check
def parted(row: np.ndarray, heads: int, axes: int, hidden: int):
    """The parameters in a row, or what is of their shapes: W1, b1, W2, b2, W3, b3."""
    first, place = cut(row, 0, hidden, heads + axes)
    one, place = cut(row, place, 1, hidden)
    second, place = cut(row, place, hidden, hidden)
    two, place = cut(row, place, 1, hidden)
    third, place = cut(row, place, heads, hidden)
    three, place = cut(row, place, 1, heads)
    return first, one[0], second, two[0], third, three[0]


@compiled
@no_type_check
def lanes(count: int) -> int:
    """Filled up to whole LANES."""
    return (count + LANES - 1) // LANES * LANES
