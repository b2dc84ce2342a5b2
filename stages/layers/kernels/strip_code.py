"""The machine code under `Strip` and `windowed`: attention to a memory that lies along the order,
and which drafts a pass has settled.

Steps are told by their rows and places, in any number of each row. Columns of heads are filled up
with zeros to whole fours, places to whole LANES. No sum is ordered by how many steps a pass holds
or by who else is in it: a row's answer does not depend on its batch.
Shapes: N steps of a pass, R rows, H heads, L lanes, D = L filled up, T length, M = T filled up to
sixteens.
"""

from functools import partial
from typing import no_type_check

import numpy as np

from stages.layers.kernels import LANES, attention_code, machine_code
from stages.layers.kernels.attention_code import LEAST, ONE, ZERO, exponential

compiled = partial(machine_code.compiled, beside=attention_code)


@compiled(fastmath={"contract"})
# here and below: numba compiles the function itself, not a type checker's wrapper around it
@no_type_check
def read(
    parts: np.ndarray, steps: np.ndarray, memory: np.ndarray, scale: float, mixed: np.ndarray
) -> None:
    """Put down every step's key and value at its place of the memory (R, H, 2, D, M); then mixed
    (N, H, L) is what each query reads at places up to its own. `parts` (N, 3, H, L): queries,
    keys and values. float32; what lies in the memory must be finite."""
    count, _, heads, lanes = parts.shape
    rows, places = steps[0], steps[1]
    for n in range(count):
        for head in range(heads):
            kept = memory[rows[n], head]
            for lane in range(lanes):
                kept[0, lane, places[n]], kept[1, lane, places[n]] = (
                    parts[n, 1, head, lane],
                    parts[n, 2, head, lane],
                )
    weights = np.empty(memory.shape[4], np.float32)
    query = np.zeros(memory.shape[3], np.float32)
    found = np.empty(memory.shape[3], np.float32)
    for n in range(count):
        for head in range(heads):
            for lane in range(lanes):
                query[lane] = parts[n, 0, head, lane] * scale
            kept, seen = memory[rows[n], head], places[n] + 1
            span = -(-seen // LANES) * LANES
            score(query, kept[0], weights, span)
            for place in range(seen, span):
                weights[place] = LEAST
            soften(weights, highest(weights, span), span)
            for place in range(seen, span):
                weights[place] = ZERO  # the least score's is not quite
            gather(weights, kept[1], found, span)
            for lane in range(lanes):
                mixed[n, head, lane] = found[lane]


@compiled(fastmath={"contract"})
@no_type_check
def score(query: np.ndarray, keys: np.ndarray, scores: np.ndarray, span: int) -> None:
    """A query's (D,) products with the keys (D, M) of the first places."""
    for d in range(0, len(query), 4):
        q0, q1, q2, q3 = query[d], query[d + 1], query[d + 2], query[d + 3]
        k0, k1, k2, k3 = keys[d], keys[d + 1], keys[d + 2], keys[d + 3]
        if d:
            for s in range(span):
                scores[s] = (((scores[s] + q0 * k0[s]) + q1 * k1[s]) + q2 * k2[s]) + q3 * k3[s]
        else:
            for s in range(span):
                scores[s] = ((q0 * k0[s] + q1 * k1[s]) + q2 * k2[s]) + q3 * k3[s]


@compiled(fastmath={"nnan", "nsz"})
@no_type_check
def highest(scores: np.ndarray, span: int) -> float:
    """The greatest; where one is no number, any: `soften` makes none of it either."""
    peak = scores[0]
    for s in range(span):
        peak = max(peak, scores[s])
    return peak


@compiled(fastmath={"contract", "reassoc"})
@no_type_check
def soften(scores: np.ndarray, peak: float, span: int) -> None:
    """Softmax of scores with this greatest one, in place."""
    total = ZERO
    for s in range(span):
        weight = exponential(scores[s] - peak)
        scores[s] = weight
        total += weight
    share = ONE / total
    for s in range(span):
        scores[s] *= share


@compiled(fastmath={"contract", "reassoc"})
@no_type_check
def gather(weights: np.ndarray, values: np.ndarray, found: np.ndarray, span: int) -> None:
    """The sums (D,) of values (D, M) by the weights of the first places."""
    for d in range(0, len(found), 4):
        v0, v1, v2, v3 = values[d], values[d + 1], values[d + 2], values[d + 3]
        sum0, sum1, sum2, sum3 = ZERO, ZERO, ZERO, ZERO
        for s in range(span):
            w = weights[s]
            sum0 += w * v0[s]
            sum1 += w * v1[s]
            sum2 += w * v2[s]
            sum3 += w * v3[s]
        found[d], found[d + 1], found[d + 2], found[d + 3] = sum0, sum1, sum2, sum3


@compiled
@no_type_check
def spans(begin: np.ndarray, end: np.ndarray, length: int) -> np.ndarray:
    """All steps from begin (R,) to end (R,), row by row: rows, places and row * length + place,
    (3, N)."""
    count = 0
    for row in range(len(begin)):
        count += max(end[row] - begin[row], 0)
    steps, count = np.empty((3, count), np.int64), 0
    for row in range(len(begin)):
        for place in range(begin[row], end[row]):
            steps[0, count], steps[1, count], steps[2, count] = row, place, row * length + place
            count += 1
    return steps


@compiled
@no_type_check
def settle(
    truth: np.ndarray,
    steps: np.ndarray,
    along: np.ndarray,
    known: np.ndarray,
    when: np.ndarray,
    passes: np.ndarray,
    positions: np.ndarray,
    window: int,
) -> np.ndarray:
    """Take `truth` (N,), what a pass answered at `steps`, each row's one after the other from
    `known` on, for the tokens after them, along (R, T + 1). Up to and with a row's first that is
    not its draft they are right for good: `known` (R,) grows by as many, and `when` (R, T) notes
    the pass. The steps (3, N) of the next pass, at most `window` a row."""
    n, length = 0, when.shape[1]
    while n < len(truth):
        row, right = steps[0, n], True
        passes[row] += 1
        while n < len(truth) and steps[0, n] == row:
            place, positions[row] = steps[1, n], positions[row] + 1
            if right:
                known[row], when[row, place] = place + 1, passes[row]
                right = along[row, place + 1] == truth[n]
            along[row, place + 1] = truth[n]
            n += 1
    return spans(known, np.minimum(known + window, length), length)
