"""The machine code under `tiles`: attention by whole rows of scores, forward and backward, float32,
on one thread.

All products of matrices are made of one, `fold`, whose ROWS rows of LANES sums stay in the
processor's registers while terms are added. It, and the little that turns, joins or pairs whole
registers, is written in LLVM's own words: of loops its optimiser would keep the sums in memory, and
it would not know that two rows lie apart. Queries are rows and keys lanes of the scores; elsewhere
a head's columns are lanes, read and written where they lie, so that keys alone, and backward
values, must be turned over. Rows behind a table's last are the last once more. A row of scores is
whole, so its softmax needs no running maximum; backward makes the weights of TALL queries anew from
each row's greatest score and sum, as Dao et al. (2022) do, so that no matrix of queries by keys is
ever kept. Where attention is causal, scores end with the last of ROWS queries, and what a row of
them holds behind its own query weighs exactly nothing. `packed` is (B, T, H (2 P + E)): queries of
all heads | their keys | their values; what is read is (B, T, H E). P and E are whole LANES.
Shapes: B sequences, T tokens, H heads, P width of a head's queries and keys, E of its values.
"""

from functools import partial
from typing import Any, no_type_check

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from stages.layers.kernels import LANES, attention_code, machine_code
from stages.layers.kernels.attention_code import LEAST, ONE, ZERO, cut, exponential

compiled = partial(machine_code.compiled, beside=attention_code)

# of LANES sums: eight of the thirty-two registers that AVX-512 has, enough that no sum waits for
# the one before
ROWS = 8
TALL = 32  # queries of a tile of the backward pass
NUMBER, WIDE, PLACES = (
    ir.FloatType(),
    ir.VectorType(ir.FloatType(), LANES),
    ir.VectorType(ir.IntType(32), LANES),
)
FUSED = ("contract",)  # a product and a sum may be rounded once
LANE = np.uintp  # numba tests a signed place for counting from the end


class _Table:
    """A table of float32 in code that is being made."""

    def __init__(self, context, builder, kind, value):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data, self.steps = (
            builder,
            array.data,
            cgutils.unpack_tuple(builder, array.strides, 2),
        )
        self.last = builder.sub(
            cgutils.unpack_tuple(builder, array.shape, 2)[0], self.steps[0].type(1)
        )

    def at(self, i, j, more=0, of=WIDE):
        """Where row i + `more`, or the last one, has column j and what follows."""
        builder = self.builder
        if more:
            i = builder.add(i, i.type(more))
            i = builder.select(builder.icmp_signed("<", i, self.last), i, self.last)
        place = builder.add(builder.mul(i, self.steps[0]), builder.mul(j, self.steps[1]))
        return cgutils.pointer_add(builder, self.data, place, of.as_pointer())

    def load(self, i, j, more=0, of=WIDE):
        """What stands there: LANES columns, or one."""
        return self.builder.load(self.at(i, j, more, of), align=4)


def _tables(context, builder, signature, arguments, *places):
    """The tables among the arguments."""
    return [_Table(context, builder, signature.args[place], arguments[place]) for place in places]


def _spread(builder, number):
    """A number in all LANES."""
    alone = builder.insert_element(
        ir.Constant(ir.VectorType(number.type, LANES), None), number, ir.IntType(32)(0)
    )
    return builder.shuffle_vector(alone, alone, ir.Constant(PLACES, None))


def _picked(builder, one, other, places):
    """Lanes of two registers by number."""
    return builder.shuffle_vector(one, other, ir.Constant(PLACES, places))


def _reduced(builder, wide, part, join):
    """All lanes of part(0), part(LANES), ... up to `wide` joined to one number."""
    kept = cgutils.alloca_once_value(builder, part(wide.type(0)))
    with cgutils.for_range_slice(builder, wide.type(LANES), wide, wide.type(LANES), wide.type) as (
        lane,
        _,
    ):
        builder.store(join(builder.load(kept), part(lane)), kept)
    found = builder.load(kept)
    for step in (8, 4, 2, 1):
        found = join(found, _picked(builder, found, found, [lane ^ step for lane in range(LANES)]))
    return builder.extract_element(found, ir.IntType(32)(0))


@intrinsic
@no_type_check
def fold(
    _: Any,
    sums: Any,
    at: Any,
    lane: Any,
    weights: Any,
    row: Any,
    rows: Any,
    first: Any,
    last: Any,
    fresh: Any,
) -> Any:
    """sums[at + r, lane + l] = (that, or 0 where `fresh`) + sum over first <= c < last of
    weights[row + r, c] rows[c, lane + l], for ROWS r and LANES l."""

    def code(context, builder, signature, arguments):
        at, lane, row, first, last, fresh = (arguments[place] for place in (1, 2, 4, 6, 7, 8))
        to, by, of = _tables(context, builder, signature, arguments, 0, 3, 5)
        homes = [to.at(at, lane, r) for r in range(ROWS)]
        before = [
            builder.select(fresh, ir.Constant(WIDE, None), builder.load(home, align=4))
            for home in homes
        ]
        kept = [cgutils.alloca_once_value(builder, one) for one in before]
        with cgutils.for_range_slice(builder, first, last, first.type(1), first.type) as (c, _):
            line = of.load(c, lane)
            for r, one in enumerate(kept):
                term = builder.fmul(line, _spread(builder, by.load(row, c, r, NUMBER)), flags=FUSED)
                builder.store(builder.fadd(builder.load(one), term, flags=FUSED), one)
        for home, one in reversed(
            list(zip(homes, kept, strict=True))
        ):  # of rows in one place the first is right
            builder.store(builder.load(one), home, align=4)
        return context.get_dummy_value()

    return types.void(sums, at, lane, weights, row, rows, first, last, fresh), code


@intrinsic
@no_type_check
def turn_over(_: Any, columns: Any, d: Any, i: Any, rows: Any) -> Any:
    """columns[d + l, i + r] = rows[i + r, d + l] for LANES r and l."""

    def code(context, builder, signature, arguments):
        to, of = _tables(context, builder, signature, arguments, 0, 3)
        _, d, i, _ = arguments
        lines = [of.load(i, d, r) for r in range(LANES)]
        for step in (8, 4, 2, 1):  # swap the squares beside the diagonal, ever smaller ones
            for r in (r for r in range(LANES) if not r & step):
                one, other = lines[r], lines[r + step]
                lines[r] = _picked(
                    builder,
                    one,
                    other,
                    [lane + LANES - step if lane & step else lane for lane in range(LANES)],
                )
                lines[r + step] = _picked(
                    builder,
                    one,
                    other,
                    [lane + LANES if lane & step else lane + step for lane in range(LANES)],
                )
        for lane, line in enumerate(lines):
            builder.store(line, to.at(d, i, lane), align=4)
        return context.get_dummy_value()

    return types.void(columns, d, i, rows), code


@intrinsic
@no_type_check
def greatest(_: Any, rows: Any, r: Any, count: Any, wide: Any) -> Any:
    """The greatest of the first `count` entries of a row, `wide` with what fills up LANES; one
    that is no number may be passed over."""

    def code(context, builder, signature, arguments):
        (of,), (_, r, count, wide) = _tables(context, builder, signature, arguments, 0), arguments
        least, numbers = _spread(builder, NUMBER(LEAST)), ir.Constant(PLACES, list(range(LANES)))

        def part(lane):
            left = builder.trunc(builder.sub(count, lane), PLACES.element)
            return builder.select(
                builder.icmp_signed("<", numbers, _spread(builder, left)), of.load(r, lane), least
            )

        return _reduced(
            builder,
            wide,
            part,
            lambda one, other: builder.select(builder.fcmp_ordered(">", one, other), one, other),
        )

    return types.float32(rows, r, count, wide), code


@intrinsic
@no_type_check
def dot(_: Any, rows: Any, r: Any, others: Any, s: Any, wide: Any) -> Any:
    """Sum of products of the first `wide` entries of two rows."""

    def code(context, builder, signature, arguments):
        one, other = _tables(context, builder, signature, arguments, 0, 2)
        _, r, _, s, wide = arguments
        return _reduced(
            builder,
            wide,
            lambda lane: builder.fmul(one.load(r, lane), other.load(s, lane)),
            builder.fadd,
        )

    return types.float32(rows, r, others, s, wide), code


@intrinsic
@no_type_check
def bend(_: Any, slopes: Any, weights: Any, r: Any, mean: Any, scale: Any, wide: Any) -> Any:
    """slopes = scale weights (slopes - mean) in the first `wide` entries of a row."""

    def code(context, builder, signature, arguments):
        to, by = _tables(context, builder, signature, arguments, 0, 1)
        _, _, r, mean, scale, wide = arguments
        mean, scale = _spread(builder, mean), _spread(builder, scale)
        with cgutils.for_range_slice(builder, wide.type(0), wide, wide.type(LANES), wide.type) as (
            lane,
            _,
        ):
            weight = builder.fmul(by.load(r, lane), scale)
            builder.store(
                builder.fmul(weight, builder.fsub(to.load(r, lane), mean)), to.at(r, lane), align=4
            )
        return context.get_dummy_value()

    return types.void(slopes, weights, r, mean, scale, wide), code


@compiled
@no_type_check
def multiply(
    sums: np.ndarray,
    at: int,
    weights: np.ndarray,
    row: int,
    rows: np.ndarray,
    first: int,
    last: int,
    wide: int,
    fresh: bool,
) -> None:
    """`fold` for `wide` lanes."""
    for lane in range(0, wide, LANES):
        fold(sums, at, lane, weights, row, rows, first, last, fresh)


@compiled
@no_type_check
def columns_of(rows: np.ndarray, columns: np.ndarray) -> None:
    """Rows (T, P) as columns (P, T and what fills up LANES)."""
    for i in range(0, len(rows), LANES):
        for d in range(0, len(columns), LANES):
            turn_over(columns, d, i, rows)


@compiled(fastmath={"contract"})
@no_type_check
def weigh(row: np.ndarray, peak: float, by: float, scale: float, count: int, wide: int) -> None:
    """The first `count` scores become weights, `by` exp(scale (score - peak)), the others 0."""
    for block in range(0, wide, LANES):
        part, left = row[block : block + LANES], np.int32(count - block)
        for lane in range(LANES):
            weight = by * exponential((part[lane] - peak) * scale)
            part[lane] = weight if np.int32(lane) < left else ZERO


@compiled
@no_type_check
def scale_row(row: np.ndarray, by: float, wide: int) -> None:
    """row *= by."""
    for lane in range(LANE(wide)):
        row[lane] *= by


@compiled
@no_type_check
def parts_of(
    packed: np.ndarray, heads: int, task: int, width: int, deep: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A head's queries, keys (T, P) and values (T, E)."""
    b, head = task // heads, task % heads
    query, key, value = head * width, (heads + head) * width, 2 * heads * width + head * deep
    return (
        packed[b, :, query : query + width],
        packed[b, :, key : key + width],
        packed[b, :, value : value + deep],
    )


@compiled
@no_type_check
def forward(
    packed: np.ndarray,
    heads: int,
    width: int,
    causal: bool,
    read: np.ndarray,
    sums: np.ndarray,
    scratch: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Heads `begin` to `end` of B H: what they read, and of each row of scores (B H, T, 2) the
    greatest and one over the sum of weights by it. Needs a scratch of `room`."""
    tokens, deep, scale = packed.shape[1], read.shape[2] // heads, np.float32(width**-0.5)
    across = -(-tokens // LANES) * LANES
    columns, place = cut(scratch, 0, width, across)
    scores, place = cut(scratch, place, ROWS, across)
    ones, place = cut(scratch, place, 1, across)
    ones[:] = 1
    for task in range(begin, end):
        query, key, value = parts_of(packed, heads, task, width, deep)
        found = read[task // heads, :, task % heads * deep : (task % heads + 1) * deep]
        columns_of(key, columns)
        for i in range(0, tokens, ROWS):
            seen = min(i + ROWS, tokens) if causal else tokens
            wide = -(-seen // LANES) * LANES
            multiply(scores, 0, query, i, columns, 0, width, wide, True)
            for r in range(min(ROWS, tokens - i)):
                count = i + r + 1 if causal else tokens
                peak = greatest(scores, r, count, wide)
                weigh(scores[r], peak, ONE, scale, count, wide)
                by = ONE / dot(scores, r, ones, 0, wide)
                scale_row(scores[r], by, wide)
                sums[task, i + r, 0], sums[task, i + r, 1] = peak, by
            multiply(found, i, scores, 0, value, 0, seen, deep, True)


@compiled
@no_type_check
def backward(
    packed: np.ndarray,
    heads: int,
    width: int,
    causal: bool,
    read: np.ndarray,
    sums: np.ndarray,
    slope: np.ndarray,
    by_packed: np.ndarray,
    scratch: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Heads `begin` to `end` of B H: gradients by what is packed, from the gradient `slope` (B, T,
    H E) by what was read. Needs a scratch of `room`."""
    tokens, deep, scale = packed.shape[1], read.shape[2] // heads, np.float32(width**-0.5)
    across = -(-tokens // LANES) * LANES
    columns, place = cut(scratch, 0, width, across)
    valued, place = cut(scratch, place, deep, across)
    weights, place = cut(scratch, place, TALL, across)
    bent, place = cut(scratch, place, TALL, across)
    for task in range(begin, end):
        b, mine = task // heads, task % heads * deep
        query, key, value = parts_of(packed, heads, task, width, deep)
        by_query, by_key, by_value = parts_of(by_packed, heads, task, width, deep)
        found, slopes = read[b, :, mine : mine + deep], slope[b, :, mine : mine + deep]
        columns_of(key, columns)
        columns_of(value, valued)
        for top in range(0, tokens, TALL):
            high = min(TALL, tokens - top)
            for i in range(top, top + high, ROWS):
                seen = min(i + ROWS, tokens) if causal else tokens
                wide = -(-seen // LANES) * LANES
                multiply(weights, i - top, query, i, columns, 0, width, wide, True)
                multiply(bent, i - top, slopes, i, valued, 0, deep, wide, True)
                for k in range(i, min(i + ROWS, tokens)):
                    weigh(
                        weights[k - top],
                        sums[task, k, 0],
                        sums[task, k, 1],
                        scale,
                        k + 1 if causal else tokens,
                        wide,
                    )
                    bend(bent, weights, k - top, dot(slopes, k, found, k, deep), scale, wide)
                multiply(by_query, i, bent, i - top, key, 0, seen, width, True)
            for j in range(0, top + high if causal else tokens, ROWS):
                first, fresh = (max(0, j - top), j >= top) if causal else (0, top == 0)
                multiply(by_value, j, weights.T, j, slopes[top:], first, high, deep, fresh)
                multiply(by_key, j, bent.T, j, query[top:], first, high, width, fresh)


def room(tokens: int, width: int, deep: int, back: bool) -> int:
    """float32 numbers that a call of forward, or of backward, needs as scratch."""
    return -(-tokens // LANES) * LANES * (width + deep + 2 * TALL if back else width + ROWS + 1)
