"""Mazes and their shortest paths (thesis 4.3.1: 13 x 21 cells, 15 walls), as the reference code
draws them: the maze is the prompt, the maze with its path is to be produced.

Around the maze runs a wall. Further walls are straight, stand on even lines, are 3 cells long to
half a side, and touch at most one cell of what stands: so no place is shut off. When ten times
`walls` attempts do not do, the maze is begun again. Start and goal are free cells at least `far`
steps apart in city blocks. The path is drawn step by step, uniform among the neighbours that are
one step nearer to the goal: always a shortest path, but not uniform among all of them (a path
through a broad place is less likely than one through a narrow one). No maze (walls, start and goal)
comes twice, in one split or two: its answer would be known beforehand. A file is a split
(train.npy, val.npy, test.npy: int16, N x 2 R K), with the sizes in meta.json.
Codes: 0 empty, 1 wall, 2 start, 3 goal, 4 path.
Shapes: N mazes, R rows, K columns; a sequence is the R K cells of the maze, then the same cells
with the path.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError, InputError
from stages.params.sequences import Maze, Reading
from stages.seeds import stream
from stages.sequences.tokens import (
    SPLITS,
    Sequences,
    describe,
    read_meta,
    repeated,
    tables,
    write_tokens,
)

EMPTY, WALL, START, GOAL, PATH = range(5)
CODES = ("empty", "wall", "start", "goal", "path")
SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))
BLOCK = 1000  # mazes solved at once
PLACE = "the maze section of params.yaml"


def make(config: Maze, folder: Path) -> None:
    """Write train.npy, val.npy, test.npy (N, 2 R K), int16, and meta.json. InputError when there
    are not as many different mazes."""
    seen: set[bytes] = set()
    for name in reversed(SPLITS):  # test first: more training mazes leave it as it is
        rng = stream(config.seed, "sequences", "maze", name)
        mazes = different(rng, config, getattr(config, name), seen)
        paths = np.concatenate(
            [with_paths(rng, mazes[begin : begin + BLOCK]) for begin in range(0, len(mazes), BLOCK)]
        )
        write_tokens(folder, name, np.concatenate([mazes, paths], axis=1).reshape(len(mazes), -1))
    describe(
        config,
        folder,
        2 * config.rows * config.columns,
        {"rows": config.rows, "columns": config.columns, "walls": config.walls, "far": config.far},
    )


def different(rng: np.random.Generator, config: Maze, number: int, seen: set[bytes]) -> np.ndarray:
    """`number` mazes (N, R, K) with start and goal that are not in `seen`, where they are noted."""
    found = []
    for _ in range(number):
        for _ in range(config.most_tries):
            maze = with_ends(
                rng,
                walled(rng, config.rows, config.columns, config.walls, config.most_tries),
                config.far,
            )
            if maze is not None and maze.tobytes() not in seen:
                break
        else:
            raise InputError(
                "no further maze was found",
                where=PLACE,
                remedy="ask for fewer mazes, larger ones, or a smaller `far`",
                expected=f"{config.total} different mazes",
                found=f"{len(seen)}, then none in {config.most_tries} tries",
            )
        seen.add(maze.tobytes())
        found.append(maze)
    return np.stack(found)


def walled(
    rng: np.random.Generator, rows: int, columns: int, walls: int, most_tries: int = 1000
) -> np.ndarray:
    """A maze (R, K), int8, without start and goal. InputError when `most_tries` mazes had no
    room for so many walls."""
    for _ in range(most_tries):
        maze = np.zeros((rows, columns), np.int8)
        maze[[0, -1]], maze[:, [0, -1]] = WALL, WALL
        left = walls
        for upright, one, two, across in rng.random((10 * walls, 4)).tolist():
            if not left:
                break
            lines = maze if upright <= 0.5 else maze.T
            begin, end = sorted(int(part * lines.shape[0]) & ~1 for part in (one, two))
            place = lines[begin : end + 1, int(across * lines.shape[1]) & ~1]
            if 1 < end - begin <= lines.shape[0] / 2 and place.sum() <= 1:
                place[:] = WALL
                left -= 1
        if not left:
            return maze
    raise InputError(
        "there is no room for so many walls",
        where=PLACE,
        expected=f"{walls} walls in {rows} x {columns} cells",
        found=f"none in {most_tries} tries",
        remedy="ask for fewer walls",
    )


def with_ends(rng: np.random.Generator, maze: np.ndarray, far: int) -> np.ndarray | None:
    """The maze with a start and a goal, uniform among the ordered pairs of free cells that are
    `far` apart; None where there are none."""
    free = np.argwhere(maze == EMPTY)
    apart = np.abs(free[:, None] - free).sum(-1) >= far
    pairs = np.flatnonzero(apart)
    if not len(pairs):
        return None
    start, goal = divmod(int(pairs[rng.integers(len(pairs))]), len(free))
    maze[tuple(free[start])], maze[tuple(free[goal])] = START, GOAL
    return maze


def distances(mazes: np.ndarray) -> np.ndarray:
    """Steps from each cell to the goal (N, R, K); a number above all for walls."""
    most = mazes[0].size
    steps = np.where(mazes == GOAL, 0, most)
    while True:
        near = np.full_like(steps, most)
        upright = np.minimum(steps[:, :-2, 1:-1], steps[:, 2:, 1:-1])
        near[:, 1:-1, 1:-1] = 1 + np.minimum(
            upright, np.minimum(steps[:, 1:-1, :-2], steps[:, 1:-1, 2:])
        )
        new = np.where(mazes == WALL, most, np.minimum(steps, near))
        if (new == steps).all():
            return steps
        steps = new


def with_paths(rng: np.random.Generator, mazes: np.ndarray) -> np.ndarray:
    """The mazes (N, R, K) with a shortest path each, drawn step by step."""
    steps, paths, row = distances(mazes), mazes.copy(), np.arange(len(mazes))
    at = np.stack(np.nonzero(mazes == START)[1:], axis=1)
    while True:
        left = steps[row, at[:, 0], at[:, 1]]
        row, at, left = row[left > 1], at[left > 1], left[left > 1]
        if not len(row):
            return paths
        beside = at[:, None] + np.array(SIDES)
        nearer = steps[row[:, None], beside[..., 0], beside[..., 1]] == left[:, None] - 1
        chosen = np.where(nearer, rng.random(nearer.shape), -1).argmax(1)
        at = beside[np.arange(len(row)), chosen]
        paths[row, at[:, 0], at[:, 1]] = PATH


def read(raw: Path, seed: int, config: Reading) -> Sequences:
    """All mazes, or the first `config.train` of the training ones. Nothing is drawn: `seed` is not
    used.

    DataError for files that are damaged or disagree with meta.json, and for a maze of the training
    file in another one.
    """
    meta = read_meta(raw, "maze", {"rows": int, "columns": int, "walls": int, "far": int})
    cells = meta["rows"] * meta["columns"]
    if min(meta["rows"], meta["columns"]) < 3 or meta["length"] != 2 * cells:
        raise DataError(
            "meta.json tells of no mazes",
            where=str(raw / "meta.json"),
            expected="twice rows x columns tokens",
            remedy="acquire the data set again",
            found=f"{meta['length']} tokens, {meta['rows']} x {meta['columns']}",
        )
    found: dict[str, Any] = tables(raw, meta, len(CODES), config.train)
    twice = repeated(found["tokens"][:, :cells], found["split"])
    if any(twice.values()):
        raise DataError(
            "mazes stand in the training file and in another",
            where=str(raw),
            expected="none",
            found=repr(twice),
            remedy="acquire the data set again",
        )
    return Sequences(
        kind="maze",
        **found,
        files=("train.npy", "val.npy", "test.npy"),
        vocabulary=len(CODES),
        prompt=cells,
        law={key: meta[key] for key in ("rows", "columns", "walls", "far")},
        names={"tokens": list(CODES)},
    )
