"""The shapes problem (thesis B.2.4; slides): a sequence of numbers with two boxes and two
triangles; the answer has every shape at its place, as high as its kind is on the mean.

The public generator has two mistakes (reference-code N). Its test of the boxes repeats the
triangles' condition, so that two boxes may be nearly alike in height, where little is to be learnt:
here the heights of each kind differ by more than `APART`. And its log sums squared errors over
batches, so that it grows with the data: here errors are means. Noise of the answer is kept, for it
is the printed problem; its variance is the best possible mean squared error (`FLOOR`). Shapes: S
sequences, N = 100 places.
"""

import numpy as np

LENGTH = 100
NOISE = 0.15  # of the input and, apart, of the answer: uniform, to both sides
FLOOR = NOISE**2 / 3
APART = 4.0
CENTRE, HEIGHT, WIDTH = (5.5, LENGTH - 5.5), (1.0, 25.0), (5.0, 11.0)
Array = np.ndarray


def draw(count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """(inputs, answers, kinds), each (S, N): float32, float32, and which shape stands at a place
    (1, 2 triangles; 3, 4 boxes; 0 none), int8."""
    parts: list[tuple[Array, Array, Array]] = []
    while sum(len(part[0]) for part in parts) < count:
        parts.append(_drawn(2 * count + 64, rng))
    inputs, answers, kinds = (np.concatenate(one)[:count] for one in zip(*parts, strict=True))
    shaken = [one + rng.uniform(-NOISE, NOISE, one.shape) for one in (inputs, answers)]
    return shaken[0].astype(np.float32), shaken[1].astype(np.float32), kinds


def _drawn(tries: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Those of `tries` draws that neither collide nor are alike, without noise; shapes 0 and 1 are
    triangles, 2 and 3 boxes."""
    centre = rng.uniform(*CENTRE, (tries, 4))
    height, width = rng.uniform(*HEIGHT, (tries, 4)), rng.uniform(*WIDTH, (tries, 4))
    kept = accepted(centre, height, width)
    return rendered(centre[kept], height[kept], width[kept])


def accepted(centre: Array, height: Array, width: Array) -> Array:
    """Which draws (S, 4) have shapes apart, and heights of each kind apart."""
    free = np.ones(len(centre), dtype=bool)
    for one in range(4):
        for other in range(one):
            reach = (width[:, one] + width[:, other]) / 2
            free &= np.abs(centre[:, one] - centre[:, other]) > reach
    for first in (0, 2):
        free &= np.abs(height[:, first] - height[:, first + 1]) > APART
    return free


def rendered(centre: Array, height: Array, width: Array) -> tuple[Array, Array, Array]:
    """Inputs, answers and kinds (S, N) of shapes (S, 4), without noise."""
    mean = height.reshape(-1, 2, 2).mean(2).repeat(2, 1)
    away = np.abs(np.arange(LENGTH) - centre[..., None]) / (width[..., None] / 2)  # S 4 N
    form = np.where(np.arange(4)[:, None] < 2, np.maximum(1 - away, 0), away <= 1)
    kinds = ((form > 0) * np.arange(1, 5)[:, None]).sum(1).astype(np.int8)
    return (form * height[..., None]).sum(1), (form * mean[..., None]).sum(1), kinds
