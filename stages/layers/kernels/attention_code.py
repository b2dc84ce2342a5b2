"""The machine code under attention.py: attention in tiles, forward and backward, float32, on one
thread.

A tile holds LANES queries side by side, one a lane, and KEYS keys one below the other: all that is
done to a tile is done to whole rows of lanes, whatever the width of a head, so that narrow heads
waste no lane. Heads are filled up with zeros to whole fours. The softmax is that of a running
maximum (Milakov and Gimelshein 2018); backward makes each tile's weights anew from the logarithm of
their sum, as Dao et al. (2022) do, so that no matrix of queries by keys is ever kept. Only
`multiply_rows` sums along lanes; the order of its sums follows the width of the processor's
registers, and so do the last digits. Queries come as (B, Q, A, H, P), of which the first of the A,
and a memory as (B, N, A, H, P), of which the last two, keys and values.
Shapes: B sets, Q queries, N keys, H heads, P a head's width, D = P filled up, M real keys filled up
to fours.
"""

from typing import no_type_check

import numpy as np

from stages.layers.kernels.machine_code import compiled

# queries and keys of a tile: two tiles and the rows they are made of fit a processor's nearest
# cache
LANES, KEYS = (128, 32)
LEAST = np.float32(-3e38)  # the score of a key that is none
# what is added to the latter keeps no fraction
LOG2_E, ROUNDING = np.float32(1.4426950408889634), np.float32(1.5 * 2**23)
# its first twelve bits, and the rest
LN_2 = (np.float32(0.693145751953125), np.float32(1.428606765330187e-06))
# exp(f) - 1 - f = f^2 (these, by rising powers of f): fitted for |f| <= ln(2) / 2, relative error
# of exp below 4e-9 before rounding
POWERS = tuple(
    np.float32(value) for value in (0.49999994, 0.16666521, 0.041668389, 0.0083687455, 0.0013814541)
)
ONE, ZERO, LOWEST, BIAS, MANTISSA = (
    np.float32(1),
    np.float32(0),
    np.float32(-87),
    np.int32(127),
    np.int32(23),
)


@compiled(fastmath={"contract"}, inline="always")
# here and below: numba compiles the function itself, not a type checker's wrapper around it
@no_type_check
def exponential(x):
    """exp of x <= 0 to a unit in the last place; of x < -87 as of -87, some 2e-38; of what is no
    number, no number."""
    x = LOWEST if x < LOWEST else x
    shifted = x * LOG2_E + ROUNDING
    whole = shifted - ROUNDING
    f = (x - whole * LN_2[0]) - whole * LN_2[1]
    series = ONE + f * (
        ONE + f * (POWERS[0] + f * (POWERS[1] + f * (POWERS[2] + f * (POWERS[3] + f * POWERS[4]))))
    )
    return series * np.int32((np.float32(shifted).view(np.int32) + BIAS) << MANTISSA).view(
        np.float32
    )


@compiled(fastmath={"contract"})
@no_type_check
def add_rows(sums, weights, rows, height, depth, place, source, fresh):
    """sums[r, place + lane] += sum_c weights[r, c] rows[c, source + lane] for `height` r and
    `depth` c; from 0 where `fresh`. In fours."""
    for r in range(0, height, 4):
        to0, to1 = sums[r, place : place + LANES], sums[r + 1, place : place + LANES]
        to2, to3 = sums[r + 2, place : place + LANES], sums[r + 3, place : place + LANES]
        for c in range(0, depth, 4):
            of0, of1 = rows[c, source : source + LANES], rows[c + 1, source : source + LANES]
            of2, of3 = rows[c + 2, source : source + LANES], rows[c + 3, source : source + LANES]
            w00 = weights[r, c]
            w01 = weights[r, c + 1]
            w02 = weights[r, c + 2]
            w03 = weights[r, c + 3]
            w10 = weights[r + 1, c]
            w11 = weights[r + 1, c + 1]
            w12 = weights[r + 1, c + 2]
            w13 = weights[r + 1, c + 3]
            w20 = weights[r + 2, c]
            w21 = weights[r + 2, c + 1]
            w22 = weights[r + 2, c + 2]
            w23 = weights[r + 2, c + 3]
            w30 = weights[r + 3, c]
            w31 = weights[r + 3, c + 1]
            w32 = weights[r + 3, c + 2]
            w33 = weights[r + 3, c + 3]
            if fresh and not c:
                for lane in range(LANES):
                    x0, x1, x2, x3 = of0[lane], of1[lane], of2[lane], of3[lane]
                    to0[lane] = ((x0 * w00 + x1 * w01) + x2 * w02) + x3 * w03
                    to1[lane] = ((x0 * w10 + x1 * w11) + x2 * w12) + x3 * w13
                    to2[lane] = ((x0 * w20 + x1 * w21) + x2 * w22) + x3 * w23
                    to3[lane] = ((x0 * w30 + x1 * w31) + x2 * w32) + x3 * w33
            else:
                for lane in range(LANES):
                    x0, x1, x2, x3 = of0[lane], of1[lane], of2[lane], of3[lane]
                    to0[lane] = (((to0[lane] + x0 * w00) + x1 * w01) + x2 * w02) + x3 * w03
                    to1[lane] = (((to1[lane] + x0 * w10) + x1 * w11) + x2 * w12) + x3 * w13
                    to2[lane] = (((to2[lane] + x0 * w20) + x1 * w21) + x2 * w22) + x3 * w23
                    to3[lane] = (((to3[lane] + x0 * w30) + x1 * w31) + x2 * w32) + x3 * w33


@compiled(fastmath={"contract", "reassoc"})
@no_type_check
def multiply_rows(products, rows, others, height, depth, source):
    """products[r, c] += sum_l rows[r, lane] others[c, source + lane] for `height` r and `depth`
    c. In fours."""
    for r in range(0, height, 4):
        a0, a1, a2, a3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        for c in range(0, depth, 4):
            b0, b1 = others[c, source : source + LANES], others[c + 1, source : source + LANES]
            b2, b3 = others[c + 2, source : source + LANES], others[c + 3, source : source + LANES]
            s00, s01, s02, s03 = ZERO, ZERO, ZERO, ZERO
            s10, s11, s12, s13 = ZERO, ZERO, ZERO, ZERO
            s20, s21, s22, s23 = ZERO, ZERO, ZERO, ZERO
            s30, s31, s32, s33 = ZERO, ZERO, ZERO, ZERO
            for lane in range(LANES):
                x0 = a0[lane]
                x1 = a1[lane]
                x2 = a2[lane]
                x3 = a3[lane]
                y0 = b0[lane]
                y1 = b1[lane]
                y2 = b2[lane]
                y3 = b3[lane]
                s00 += x0 * y0
                s01 += x0 * y1
                s02 += x0 * y2
                s03 += x0 * y3
                s10 += x1 * y0
                s11 += x1 * y1
                s12 += x1 * y2
                s13 += x1 * y3
                s20 += x2 * y0
                s21 += x2 * y1
                s22 += x2 * y2
                s23 += x2 * y3
                s30 += x3 * y0
                s31 += x3 * y1
                s32 += x3 * y2
                s33 += x3 * y3
            for i, sums in enumerate(
                (
                    (s00, s01, s02, s03),
                    (s10, s11, s12, s13),
                    (s20, s21, s22, s23),
                    (s30, s31, s32, s33),
                )
            ):
                for j in range(4):
                    products[r + i, c + j] += sums[j]


@compiled(fastmath={"contract"})
@no_type_check
def lift(scores, peak, rise, height):
    """Raise each lane's `peak` to its greatest of `height` scores; `rise` is what sums under the
    old peak are to be multiplied by."""
    rise[:] = peak
    for r in range(0, height, 4):
        s0, s1, s2, s3 = scores[r], scores[r + 1], scores[r + 2], scores[r + 3]
        for lane in range(LANES):
            peak[lane] = max(peak[lane], max(max(s0[lane], s1[lane]), max(s2[lane], s3[lane])))
    for lane in range(LANES):
        rise[lane] = exponential(rise[lane] - peak[lane])


@compiled(fastmath={"contract"})
@no_type_check
def soften(scores, peak, total, height):
    """Scores become weights exp(score - peak), which are added to each lane's total."""
    for r in range(height):
        row = scores[r]
        for lane in range(LANES):
            weight = exponential(row[lane] - peak[lane])
            row[lane] = weight
            total[lane] += weight


@compiled(fastmath={"contract"})
@no_type_check
def scale_rows(rows, by, height):
    """rows[r, lane] *= by[lane]."""
    for r in range(height):
        row = rows[r]
        for lane in range(LANES):
            row[lane] *= by[lane]


@compiled(fastmath={"contract"})
@no_type_check
def turn(scores, slopes, logs, means, height, place):
    """Scores become weights exp(score - log of their sum); slopes by weights become slopes by
    scores, weight (slope - mean)."""
    log, mean = logs[place : place + LANES], means[place : place + LANES]
    for r in range(height):
        row, slope = scores[r], slopes[r]
        for lane in range(LANES):
            weight = exponential(row[lane] - log[lane])
            row[lane] = weight
            slope[lane] = weight * (slope[lane] - mean[lane])


@compiled()
@no_type_check
def cut(scratch, place, height, width):
    """A table (height, width) of the scratch from `place` on, and where the next one begins."""
    return scratch[place : place + height * width].reshape(height, width), place + height * width


@compiled()
@no_type_check
def gather(key, value, real, index, keys, values):
    """Put the real tokens' keys (N, P) one after the other into rows (M, D), and their values so
    too; note their places. How many they are."""
    count = 0
    for j in range(len(key)):
        if real[j]:
            index[count] = j
            for d in range(key.shape[1]):
                keys[count, d], values[count, d] = key[j, d], value[j, d]
            count += 1
    for j in range(count, -(-count // 4) * 4):
        keys[j], values[j] = 0, 0
    return count


@compiled()
@no_type_check
def part_of(count, parts, part, grain):
    """Where a part of `count` begins and ends, in whole grains but for the end."""
    size = -(-count // (parts * grain)) * grain
    return min(part * size, count), min((part + 1) * size, count)


@compiled()
@no_type_check
def forward(query, memory, real, scale, read, logs, scratch, index, begin, end, parts):
    """Tasks `begin` to `end`: what a head's queries, in so many parts, read (B, Q, H, P), and the
    logarithms (B, H, Q) of their sums of weights; both are left as they are where no key is
    real. Needs a scratch of `room`."""
    queries, (tokens, kinds, heads, width) = query.shape[1], memory.shape[1:]
    deep, length = -(-width // 4) * 4, -(-tokens // 4) * 4
    scratch[:] = 0
    keys, place = cut(scratch, 0, length, deep)
    values, place = cut(scratch, place, length, deep)
    columns, place = cut(scratch, place, deep, length)
    asked, place = cut(scratch, place, deep, LANES)
    sums, place = cut(scratch, place, deep, LANES)
    scores, place = cut(scratch, place, KEYS, LANES)
    lanes, place = cut(scratch, place, 3, LANES)
    peak, rise, total = lanes[0], lanes[1], lanes[2]
    for task in range(begin, end):
        b, head = task // parts // heads, task // parts % heads
        key, value = memory[b, :, kinds - 2, head], memory[b, :, kinds - 1, head]
        count = gather(key, value, real[b], index, keys, values)
        columns[:] = values.T
        first, last = part_of(queries, parts, task % parts, LANES)
        for i in range(first, last if count else first, LANES):
            wide = min(LANES, last - i)
            asked[:], sums[:], peak[:], total[:] = 0, 0, LEAST, 0
            for lane in range(wide):
                for d in range(width):
                    asked[d, lane] = query[b, i + lane, 0, head, d] * scale
            for j in range(0, count, KEYS):
                height = min(KEYS, -(-(count - j) // 4) * 4)
                add_rows(scores, keys[j:], asked, height, deep, 0, 0, True)
                scores[count - j : height] = LEAST
                lift(scores, peak, rise, height)
                scale_rows(sums, rise, deep)
                for lane in range(LANES):
                    total[lane] *= rise[lane]
                soften(scores, peak, total, height)
                add_rows(sums, columns[:, j:], scores, deep, height, 0, 0, False)
            for lane in range(wide):
                logs[b, head, i + lane] = peak[lane] + np.log(total[lane])
                for d in range(width):
                    read[b, i + lane, head, d] = sums[d, lane] / total[lane]


@compiled()
@no_type_check
def lay(query, slope, read, scale, asked, slopes, means):
    """Lay a head's queries and slopes (Q, P) out as lanes; means of slopes under their weights."""
    for lane in range(len(query)):
        means[lane] = 0
        for d in range(query.shape[1]):
            asked[d, lane], slopes[d, lane] = query[lane, d] * scale, slope[lane, d]
            means[lane] += slope[lane, d] * read[lane, d]


@compiled()
@no_type_check
def backward(
    query,
    memory,
    real,
    scale,
    read,
    logs,
    slope,
    by_query,
    by_memory,
    scratch,
    index,
    begin,
    end,
    parts,
):
    """Tasks `begin` to `end`: gradients by a head's keys and values, in so many parts, and each
    part's share (parts, B, Q, H, P) of that by the queries, from the gradient `slope` (B, Q, H,
    P) by what was read. Needs a scratch of `room`."""
    queries, (tokens, kinds, heads, width) = query.shape[1], memory.shape[1:]
    deep, length, lanes = -(-width // 4) * 4, -(-tokens // 4) * 4, -(-queries // LANES) * LANES
    scratch[:] = 0
    keys, place = cut(scratch, 0, length, deep)
    values, place = cut(scratch, place, length, deep)
    columns, place = cut(scratch, place, deep, length)
    asked, place = cut(scratch, place, deep, lanes)
    slopes, place = cut(scratch, place, deep, lanes)
    turned, place = cut(scratch, place, deep, lanes)
    weights, place = cut(scratch, place, KEYS, LANES)
    bent, place = cut(scratch, place, KEYS, LANES)
    of_keys, place = cut(scratch, place, KEYS, deep)
    of_values, place = cut(scratch, place, KEYS, deep)
    log, mean = scratch[place : place + lanes], scratch[place + lanes : place + 2 * lanes]
    for task in range(begin, end):
        b, head, part = task // parts // heads, task // parts % heads, task % parts
        key, value = memory[b, :, kinds - 2, head], memory[b, :, kinds - 1, head]
        count = gather(key, value, real[b], index, keys, values)
        columns[:] = keys.T
        log[:queries] = logs[b, head]
        lay(query[b, :, 0, head], slope[b, :, head], read[b, :, head], scale, asked, slopes, mean)
        turned[:] = 0
        first, last = part_of(count, parts, part, KEYS)
        for j in range(first, last, KEYS):
            height = min(KEYS, -(-(last - j) // 4) * 4)
            of_keys[:], of_values[:] = 0, 0
            for i in range(0, lanes, LANES):
                add_rows(weights, keys[j:], asked, height, deep, 0, i, True)
                weights[last - j : height] = LEAST
                add_rows(bent, values[j:], slopes, height, deep, 0, i, True)
                turn(weights, bent, log, mean, height, i)
                add_rows(turned, columns[:, j:], bent, deep, height, i, 0, False)
                multiply_rows(of_values, weights, slopes, height, deep, i)
                multiply_rows(of_keys, bent, asked, height, deep, i)
            for r in range(min(height, last - j)):
                to = by_memory[b, index[j + r]]
                for d in range(width):
                    to[kinds - 2, head, d], to[kinds - 1, head, d] = of_keys[r, d], of_values[r, d]
        for lane in range(queries):
            for d in range(width):
                by_query[part, b, lane, head, d] = turned[d, lane] * scale


def room(queries: int, tokens: int, width: int, back: bool) -> int:
    """float32 numbers that a call of forward, or of backward, needs as scratch."""
    deep, length, lanes = -(-width // 4) * 4, -(-tokens // 4) * 4, -(-queries // LANES) * LANES
    if back:
        return 3 * length * deep + (3 * deep + 2) * lanes + 2 * KEYS * (LANES + deep)
    return 3 * length * deep + (2 * deep + KEYS + 3) * LANES
