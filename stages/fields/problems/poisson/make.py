"""Rooms with heaters: the Poisson problem of the thesis (C.1.2, equation C.1), as Alet et al. 2019
made theirs.

-lap u = s in the unit square, u = the exterior temperature on its border, s = a heater's strength
inside its box and 0 elsewhere; where boxes overlap the later counts. Space is cut into 100 x 100
squares, each into two triangles by its rising diagonal; s is sampled at the triangles' corners and
edge middles, strictly inside a box, interpolated by quadratic polynomials and integrated against
linear elements, whose matrix is the five-point Laplacian. That is how the real files were made:
these functions give back all their 819,200 temperatures to 1e-12. Also theirs: 32 rooms a file,
which share their boxes (`layouts_per_file` 1) and differ in strengths and exterior, heaters' sides
0.05 to 0.25, strengths up to 768 / 2 (`boxes`), divided by 768 (`unnorm_boxes`), exteriors in steps
of 0.02.
Files: k-X.npy (R, 256, 2), k-y.npy (R, 256, 1), desc_k.json. Shapes: R rooms a file. Units: none;
the room's side is 1.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stages.fields import elliptic
from stages.files import atomic_file, write_json
from stages.params import Poisson
from stages.seeds import stream

CELLS = 100
ROOMS, POINTS = 32, 256  # of a file, of a room
STRENGTH = 768.0  # heat in `boxes` per heat in `unnorm_boxes`
SIDE = (5, 25)  # cells
# Half-lattice steps to the six neighbours along a triangle's edge, and to the edge middles opposite
# a node
NEAR = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
OPPOSITE = ((2, 1), (1, 2), (-1, 1), (-2, -1), (-1, -2), (1, -1))


def half_lattice() -> np.ndarray:
    """Where s is sampled along an axis (201,): nodes i/100 and the middles between them, as
    floating-point numbers of the real files."""
    places = np.empty(2 * CELLS + 1)
    places[::2] = np.arange(CELLS + 1) / CELLS
    places[1::2] = 0.5 * places[:-2:2] + 0.5 * places[2::2]
    return places


def sources(rooms: list[dict[str, Any]]) -> np.ndarray:
    """s of rooms, sampled on the half lattice: (R, 201, 201), x first. The later of overlapping
    boxes counts."""
    places, s = half_lattice(), np.zeros((len(rooms), 2 * CELLS + 1, 2 * CELLS + 1))
    for number, room in enumerate(rooms):
        for x0, y0, x1, y1, heat in room["boxes"]:
            s[number][np.ix_((places > x0) & (places < x1), (places > y0) & (places < y1))] = heat
    return s


def load(s: np.ndarray) -> np.ndarray:
    """Integrals of s' quadratic interpolant against the inner nodes' linear elements, over a cell's
    area: (R, 99, 99).

    A triangle gives a node 1/60 of its own sample, -1/120 of the other corners', 1/15 of each
    adjoining middle's and 1/30 of the opposite.
    """

    def at(i, j):
        return s[:, 2 + i : s.shape[1] - 2 + i : 2, 2 + j : s.shape[2] - 2 + j : 2]

    corners = 2.4 * at(0, 0) - 0.4 * sum(at(2 * i, 2 * j) for i, j in NEAR)
    return (
        corners + 3.2 * sum(at(i, j) for i, j in NEAR) + 0.8 * sum(at(i, j) for i, j in OPPOSITE)
    ) / 24.0


def temperatures(rooms: list[dict[str, Any]]) -> np.ndarray:
    """The temperature of rooms at all nodes, (R, 101, 101), x first. A room: `boxes` of (x0, y0,
    x1, y1, heat) and `exterior_temp`."""
    inner = elliptic.poisson(load(sources(rooms)))
    return (
        np.pad(inner, ((0, 0), (1, 1), (1, 1)))
        + np.array([room["exterior_temp"] for room in rooms])[:, None, None]
    )


def layout(rng: np.random.Generator) -> list[tuple[float, float, float, float]]:
    """One to four boxes (x0, y0, x1, y1) on the lattice, anywhere in the room; they may overlap."""
    boxes: Any = []
    for _ in range(rng.integers(1, 5)):
        sides = rng.integers(SIDE[0], SIDE[1] + 1, 2)
        low = rng.integers(0, CELLS - sides + 1)
        boxes.append(tuple(float(v) / CELLS for v in (*low, *(low + sides))))
    return boxes


def describe(rng: np.random.Generator, layouts: int) -> list[dict[str, Any]]:
    """The rooms of one file, in its words: `layouts` of boxes, each shared by rooms that follow
    each other."""
    boxes = [layout(rng) for _ in range(layouts)]
    rooms = []
    for number in range(ROOMS):
        own = boxes[number * layouts // ROOMS]
        heats = [
            round(float(heat), 2) for heat in rng.uniform(-STRENGTH / 2, STRENGTH / 2, len(own))
        ]
        rooms.append(
            {
                "boxes": [[*box, heat] for box, heat in zip(own, heats, strict=True)],
                "unnorm_boxes": [
                    [*box, heat / STRENGTH] for box, heat in zip(own, heats, strict=True)
                ],
                "exterior_temp": float(rng.integers(-50, 51)) / 50.0,
            }
        )
    return rooms


def make(config: Poisson, folder: Path) -> None:
    """Write config.files files of 32 rooms into `folder`, each with 256 places drawn from the
    lattice and the temperatures there."""
    for k in range(config.files):
        rng = stream(config.seed, "poisson", k)
        rooms = describe(rng, config.layouts_per_file)
        at = rng.integers(0, CELLS + 1, (ROOMS, POINTS, 2))
        u = temperatures(rooms)[np.arange(ROOMS)[:, None], at[..., 0], at[..., 1]]
        for name, array in ((f"{k}-X", at / CELLS), (f"{k}-y", u[..., None])):
            with atomic_file(folder / f"{name}.npy") as file:
                np.save(file, array.astype("<f8"), allow_pickle=False)
        write_json(folder / f"desc_{k}.json", rooms)
