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
def masked(row, kept):
    """No logit of a key that is not real."""
    for j in range(len(row)):
        row[j] = row[j] if kept[0, j] > ZERO else FAR


@compiled
@no_type_check
def weighed(row, kept, keys, peak, by):
    """Masked logits become weights, `by` exp(logit - peak), of real keys."""
    weigh(row, peak, by, ONE, keys, len(row))
    for j in range(len(row)):
        row[j] *= kept[0, j]


@compiled
@no_type_check
def settled(rows, kept, ones, keys, sums):
    """Rows (T, W) of logits become weights of the softmax; of each (T, 2) the greatest, and one
    over the sum of weights by it."""
    wide = rows.shape[1]
    for r in range(len(rows)):
        masked(rows[r], kept)
        peak = greatest(rows, r, keys, wide)
        weighed(rows[r], kept, keys, peak, ONE)
        mass = dot(rows, r, ones, 0, wide)
        by = ONE / mass if mass > ZERO else ZERO
        scale_row(rows[r], by, wide)
        sums[r, 0], sums[r, 1] = peak, by


@compiled
@no_type_check
def forward(query, packed, real, query_x, key_x, parameters, heads, hidden, turned, read, sums,
            scratch, begin, end):  # fmt: skip
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
            network(mine[:count], turned_keys, query_x[b, i : i + count], key_x[b], turned, told,
                    inputs, first, second, logits)  # fmt: skip
            for head in range(heads):
                rows, low, high = logits[head].reshape(count, wide), head * deep, (head + 1) * deep
                settled(rows, kept, ones, keys, sums[b, head, i : i + count])
                for r in range(0, count, tiles_code.ROWS):
                    multiply(found[:count, low:high], r, rows, r, values[:, low:high], 0, keys,
                             deep, True)  # fmt: skip
            emptied(found[:count], heads, ONE, read[b, i : i + count])


@compiled
@no_type_check
def bent_by(weights, slopes, kept, keys, sums, theirs, turned_values, by_values, fresh):
    """Of logits (A, L) weights again, of what is read (T, A D) their slopes (A, L), and what they
    add to the gradients of values (N, A D)."""
    heads, count, wide = len(weights), len(theirs), turned_values.shape[1]
    deep = theirs.shape[1] // heads
    for head in range(heads):
        rows, bent = weights[head].reshape(count, wide), slopes[head].reshape(count, wide)
        low, high = head * deep, head * deep + deep
        for r in range(0, count, tiles_code.ROWS):
            multiply(bent, r, theirs, r, turned_values, low, high, wide, True)
        for r in range(count):
            masked(rows[r], kept)
            weighed(rows[r], kept, keys, sums[head, r, 0], sums[head, r, 1])
            bend(bent, rows, r, dot(rows, r, bent, r, wide), ONE, wide)
        for j in range(0, keys, tiles_code.ROWS):
            multiply(by_values[:, low:high], j, rows.T, j, theirs[:, low:high], 0, count, deep,
                     fresh)  # fmt: skip


@compiled
@no_type_check
def back_through(slopes, inputs, first, second, one, other, ones, told, by_told, by_first):
    """The MLP's gradients from the slopes of its logits (A, L), which become those of the dot
    products."""
    learned(slopes, second, ones, by_told[4], by_told[5])
    descended(told[4], slopes, one)
    passed(one, second)
    learned(one, first, ones, by_told[2], by_told[3])
    descended(told[2], one, other)
    passed(other, first)
    learned(other, inputs, ones, by_first, by_told[1])
    descended(told[0], other, slopes)


@compiled
@no_type_check
def gathered(slopes, mine, padded, by_mine, by_keys, fresh):
    """The gradients of a tile's queries (T, A D), and what they add to those of keys (N, A D), from
    the slopes of the dot products (A, L)."""
    heads, count, keys = len(slopes), len(mine), len(padded)
    deep, wide = mine.shape[1] // heads, slopes.shape[1] // count
    for head in range(heads):
        rows, low, high = slopes[head].reshape(count, wide), head * deep, (head + 1) * deep
        for r in range(0, count, tiles_code.ROWS):
            multiply(by_mine[:, low:high], r, rows, r, padded[:, low:high], 0, keys, deep, True)
        for j in range(0, keys, tiles_code.ROWS):
            multiply(by_keys[:, low:high], j, rows.T, j, mine[:, low:high], 0, count, deep, fresh)


@compiled
@no_type_check
def backward(query, packed, real, query_x, key_x, parameters, heads, hidden, turned, sums, slope,
             by_query, by_packed, by_parameters, scratch, begin, end):  # fmt: skip
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
        by_first[:], by_parameters[b] = ZERO, ZERO
        by_told = parted(by_parameters[b], heads, axes, hidden)
        for i in range(0, asked, tall):
            part = slice(i, min(i + tall, asked))
            count = part.stop - i
            asking, answers = mine[:count], theirs[:count]
            inputs, place = cut(rest, 0, heads + axes, count * wide)
            first, place = cut(rest, place, hidden, count * wide)
            second, place = cut(rest, place, hidden, count * wide)
            weights, place = cut(rest, place, heads, count * wide)
            slopes, place = cut(rest, place, heads, count * wide)
            one, place = cut(rest, place, hidden, count * wide)
            other, place = cut(rest, place, hidden, count * wide)
            filled(query[b, part], heads, scale, asking)
            filled(slope[b, part], heads, ONE, answers)
            network(asking, turned_keys, query_x[b, part], key_x[b], turned, told, inputs, first,
                    second, weights)  # fmt: skip
            bent_by(weights, slopes, kept, keys, sums[b, :, part], answers, turned_values,
                    by_values, i == 0)  # fmt: skip
            back_through(slopes, inputs, first, second, one, other, ones, told, by_told, by_first)
            gathered(slopes, asking, padded, by_mine[:count], by_keys, i == 0)
            emptied(by_mine[:count], heads, scale, by_query[b, part])
        emptied(by_keys, heads, ONE, by_packed[b, :, :features])
        emptied(by_values, heads, ONE, by_packed[b, :, features:])
        by_told[0][:] = by_first[:, : heads + axes]


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
