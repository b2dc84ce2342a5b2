"""The machine code under pairs.py: attention whose logits an MLP makes of every pair's dot products
and difference, forward and backward, float32, on one thread.

The pairs of some queries with all keys lie side by side, a pair a lane, so that each layer of the
MLP is a product of its few weights with long rows; keys are filled up to whole LANES. What a tile
of pairs needs is made again on the way back from each query's greatest logit and sum (as in Dao et
al. 2022), so that nothing of queries by keys is ever kept. Heads of queries, keys and values are
filled up to whole LANES, for `fold` to read and write them as rows. Parameters are one row:
W1 (U, A + E) | b1 | W2 (U, U) | b2 | W3 (A, U) | b3. What a key that is not real weighs is exactly
nothing; a set without keys reads zeros.
Shapes: B sets, Q queries, N keys, X axes, E = X or 1, A heads, h numbers a head, D = h filled up, U
hidden numbers, W keys filled up, L = T W lanes of a tile of T queries.
"""

from typing import Any, no_type_check

import numpy as np

from stages.layers.kernels import LANES, attention_code, machine_code, pairs_rows_code, tiles_code
from stages.layers.kernels.attention_code import ONE, ZERO, cut
from stages.layers.kernels.pairs_rows_code import (
    descended,
    differences,
    emptied,
    filled,
    known,
    lanes,
    learned,
    linear,
    parted,
    passed,
)
from stages.layers.kernels.tiles_code import (
    bend,
    columns_of,
    dot,
    greatest,
    multiply,
    scale_row,
    weigh,
)

FAR = np.float32(-1e30)  # the logit of a key that is not real
PAIRS = 512  # lanes of a tile: its rows fit a processor's second cache


def compiled(function: Any) -> Any:
    """The function as machine code, anew where any file changes whose functions go into it."""
    function.__qualname__ += (
        f"-{machine_code.stamp(attention_code)}-{machine_code.stamp(tiles_code)}"
    )
    return machine_code.compiled(function, beside=pairs_rows_code)


@compiled
@no_type_check
def tile(queries: int, keys: int) -> int:
    """Queries of a tile."""
    return min(queries, max(1, PAIRS // lanes(keys)))


@compiled
@no_type_check
def network(query, turned_keys, query_x, key_x, turned, told, inputs, first, second, logits):
    """The logits (A, L) of a tile: of padded queries (T, A D) and keys' columns (A D, W), with what
    the MLP makes on the way."""
    heads, queries = len(logits), len(query)
    deep, wide = query.shape[1] // heads, turned_keys.shape[1]
    for head in range(heads):
        dots = inputs[head].reshape(queries, wide)
        for i in range(0, queries, tiles_code.ROWS):
            multiply(dots, i, query, i, turned_keys, head * deep, head * deep + deep, wide, True)
    differences(query_x, key_x, turned, inputs[heads:])
    linear(told[0], told[1], inputs, first, True)
    linear(told[2], told[3], first, second, True)
    linear(told[4], told[5], second, logits, False)


@compiled
@no_type_check
def forward(
    query: np.ndarray,
    packed: np.ndarray,
    real: np.ndarray,
    query_x: np.ndarray,
    key_x: np.ndarray,
    parameters: np.ndarray,
    heads: int,
    hidden: int,
    turned: bool,
    read: np.ndarray,
    sums: np.ndarray,
    scratch: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Sets `begin` to `end`: what queries (B, Q, A h) read of keys and values (B, N, 2 A h), and of
    each row of logits (B, A, Q, 2) the greatest and one over the sum of weights by it. Needs a
    scratch of `room`."""
    asked, keys, features = query.shape[1], packed.shape[1], query.shape[2]
    width, axes = features // heads, 1 if turned else query_x.shape[2]
    deep, wide, tall = lanes(width), lanes(keys), tile(asked, keys)
    told, scale = parted(parameters, heads, axes, hidden), np.float32(width**-0.5)
    turned_keys, place = cut(scratch, 0, heads * deep, wide)
    values, place = cut(scratch, place, keys, heads * deep)
    mine, place = cut(scratch, place, tall, heads * deep)
    found, place = cut(scratch, place, tall, heads * deep)
    kept, place = cut(scratch, place, 1, wide)
    ones, place = cut(scratch, place, 1, wide)
    rest = scratch[place:]
    ones[:] = ONE
    for b in range(begin, end):
        filled(packed[b, :, :features], heads, ONE, values)
        columns_of(values, turned_keys)
        filled(packed[b, :, features:], heads, ONE, values)
        known(real[b], kept)
        for i in range(0, asked, tall):
            count = min(tall, asked - i)
            inputs, place = cut(rest, 0, heads + axes, count * wide)
            first, place = cut(rest, place, hidden, count * wide)
            second, place = cut(rest, place, hidden, count * wide)
            logits, place = cut(rest, place, heads, count * wide)
            filled(query[b, i : i + count], heads, scale, mine[:count])
            network(
                mine[:count], turned_keys, query_x[b, i : i + count], key_x[b], turned, told,
                inputs, first, second, logits,
            )  # fmt: skip
            for head in range(heads):
                rows = logits[head].reshape(count, wide)
                for r in range(count):
                    row = rows[r]
                    for j in range(wide):
                        row[j] = row[j] if kept[0, j] > ZERO else FAR
                    peak = greatest(rows, r, keys, wide)
                    weigh(row, peak, ONE, ONE, keys, wide)
                    for j in range(wide):
                        row[j] *= kept[0, j]
                    mass = dot(rows, r, ones, 0, wide)
                    by = ONE / mass if mass > ZERO else ZERO
                    scale_row(row, by, wide)
                    sums[b, head, i + r, 0], sums[b, head, i + r, 1] = peak, by
                theirs = slice(head * deep, head * deep + deep)
                for r in range(0, count, tiles_code.ROWS):
                    multiply(
                        found[:count, theirs], r, rows, r, values[:, theirs], 0, keys, deep, True
                    )
            emptied(found[:count], heads, ONE, read[b, i : i + count])


@compiled
@no_type_check
def backward(
    query: np.ndarray,
    packed: np.ndarray,
    real: np.ndarray,
    query_x: np.ndarray,
    key_x: np.ndarray,
    parameters: np.ndarray,
    heads: int,
    hidden: int,
    turned: bool,
    sums: np.ndarray,
    slope: np.ndarray,
    by_query: np.ndarray,
    by_packed: np.ndarray,
    by_parameters: np.ndarray,
    scratch: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Sets `begin` to `end`: gradients by queries, by keys and values, and by a set's parameters
    (B, P), from the gradient `slope` by what was read. Needs a scratch of `room`."""
    asked, keys, features = query.shape[1], packed.shape[1], query.shape[2]
    width, axes = features // heads, 1 if turned else query_x.shape[2]
    deep, wide, tall = lanes(width), lanes(keys), tile(asked, keys)
    told, scale = parted(parameters, heads, axes, hidden), np.float32(width**-0.5)
    turned_keys, place = cut(scratch, 0, heads * deep, wide)
    turned_values, place = cut(scratch, place, heads * deep, wide)
    padded, place = cut(scratch, place, keys, heads * deep)
    by_keys, place = cut(scratch, place, keys, heads * deep)
    by_values, place = cut(scratch, place, keys, heads * deep)
    mine, place = cut(scratch, place, tall, heads * deep)
    theirs, place = cut(scratch, place, tall, heads * deep)
    by_mine, place = cut(scratch, place, tall, heads * deep)
    kept, place = cut(scratch, place, 1, wide)
    ones, place = cut(scratch, place, 1, tall * wide)
    by_first, place = cut(scratch, place, hidden, lanes(heads + axes))
    rest = scratch[place:]
    ones[:] = ONE
    for b in range(begin, end):
        filled(packed[b, :, features:], heads, ONE, padded)
        columns_of(padded, turned_values)
        filled(packed[b, :, :features], heads, ONE, padded)
        columns_of(padded, turned_keys)
        known(real[b], kept)
        by_first[:] = ZERO
        by_parameters[b] = ZERO
        by_told = parted(by_parameters[b], heads, axes, hidden)
        for i in range(0, asked, tall):
            count = min(tall, asked - i)
            inputs, place = cut(rest, 0, heads + axes, count * wide)
            first, place = cut(rest, place, hidden, count * wide)
            second, place = cut(rest, place, hidden, count * wide)
            weights, place = cut(rest, place, heads, count * wide)
            slopes, place = cut(rest, place, heads, count * wide)
            one, place = cut(rest, place, hidden, count * wide)
            other, place = cut(rest, place, hidden, count * wide)
            filled(query[b, i : i + count], heads, scale, mine[:count])
            filled(slope[b, i : i + count], heads, ONE, theirs[:count])
            network(
                mine[:count], turned_keys, query_x[b, i : i + count], key_x[b], turned, told,
                inputs, first, second, weights,
            )  # fmt: skip
            for head in range(heads):
                rows, bent = weights[head].reshape(count, wide), slopes[head].reshape(count, wide)
                low, high = head * deep, head * deep + deep
                for r in range(0, count, tiles_code.ROWS):
                    multiply(bent, r, theirs[:count], r, turned_values, low, high, wide, True)
                for r in range(count):
                    row = rows[r]
                    for j in range(wide):
                        row[j] = row[j] if kept[0, j] > ZERO else FAR
                    weigh(row, sums[b, head, i + r, 0], sums[b, head, i + r, 1], ONE, keys, wide)
                    for j in range(wide):
                        row[j] *= kept[0, j]
                    bend(bent, rows, r, dot(rows, r, bent, r, wide), ONE, wide)
                for j in range(0, keys, tiles_code.ROWS):
                    multiply(
                        by_values[:, low:high], j, rows.T, j, theirs[:count, low:high], 0, count,
                        deep, i == 0,
                    )  # fmt: skip
            learned(slopes, second, ones, by_told[4], by_told[5])
            descended(told[4], slopes, one)
            passed(one, second)
            learned(one, first, ones, by_told[2], by_told[3])
            descended(told[2], one, other)
            passed(other, first)
            learned(other, inputs, ones, by_first, by_told[1])
            descended(told[0], other, slopes)
            for head in range(heads):
                rows, low, high = slopes[head].reshape(count, wide), head * deep, (head + 1) * deep
                for r in range(0, count, tiles_code.ROWS):
                    multiply(
                        by_mine[:count, low:high], r, rows, r, padded[:, low:high], 0, keys, deep,
                        True,
                    )  # fmt: skip
                for j in range(0, keys, tiles_code.ROWS):
                    multiply(
                        by_keys[:, low:high], j, rows.T, j, mine[:count, low:high], 0, count, deep,
                        i == 0,
                    )  # fmt: skip
            emptied(by_mine[:count], heads, scale, by_query[b, i : i + count])
        emptied(by_keys, heads, ONE, by_packed[b, :, :features])
        emptied(by_values, heads, ONE, by_packed[b, :, features:])
        for r in range(hidden):
            for c in range(heads + axes):
                by_told[0][r, c] = by_first[r, c]


def room(
    queries: int, keys: int, heads: int, width: int, axes: int, hidden: int, back: bool
) -> int:
    """float32 numbers that a call of forward, or of backward, needs as scratch."""
    deep, wide, tall = (
        -(-width // LANES) * LANES,
        -(-keys // LANES) * LANES,
        min(queries, max(1, PAIRS // (-(-keys // LANES) * LANES))),
    )
    full, inputs = heads * deep, heads + axes
    above = -(-inputs // LANES) * LANES
    if not back:
        fixed = full * (wide + keys + 2 * tall) + 2 * wide
        return fixed + tall * wide * (inputs + 2 * hidden + heads)
    fixed = full * (2 * wide + 3 * keys + 3 * tall) + wide + tall * wide + hidden * above
    return fixed + tall * wide * (inputs + 4 * hidden + 2 * heads)
