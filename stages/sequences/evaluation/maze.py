"""Mazes solved, paths checked, and the exact density of the path (thesis 4.3.1, figures 4.2 and
4.3). No code of the generator.

A produced maze is correct when it copies the maze it was given (walls, start, goal, and nothing
else but path on empty cells), its path connects start and goal, and it has no side branch: start
and goal touch one marked cell, path cells two. A correct one is optimal when no path is shorter.
The density is that of the drawn paths (each step uniform among the neighbours one step nearer to
the goal): the path visits one cell at each distance from the goal, so a forward and a backward sum
over distances give it, whatever cells are known.
Codes: 0 empty, 1 wall, 2 start, 3 goal, 4 path. Shapes: N mazes, R rows, K columns.
"""

from collections import deque
from typing import NamedTuple

import numpy as np

EMPTY, WALL, START, GOAL, PATH = range(5)
ROUNDING = 1e-9  # of a chance
Cell = tuple[int, int]


def between(chances: np.ndarray) -> np.ndarray:
    """Which chances are neither 0 nor 1, but for rounding."""
    return (chances > ROUNDING) & (chances < 1 - ROUNDING)


class Verdict(NamedTuple):
    """What a produced maze is."""

    copied: bool  # walls, start and goal stand where they were, path only where it was empty
    connected: bool  # start and goal, over path cells
    unbranched: bool  # no path cell but those of one way from start to goal
    shortest: bool  # as many path cells as the shortest path has

    @property
    def correct(self) -> bool:
        """Copied, connected and without side branch."""
        return self.copied and self.connected and self.unbranched

    @property
    def optimal(self) -> bool:
        """Correct, and no path is shorter."""
        return self.correct and self.shortest


def beside(cell: Cell) -> tuple[Cell, ...]:
    """The four neighbours of a cell."""
    row, column = cell
    return (row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)


def distances(ways: set[Cell], origin: Cell) -> dict[Cell, int]:
    """Steps from `origin` to each cell of `ways` that it can reach, by breadth first."""
    steps, waiting = {origin: 0}, deque([origin])
    while waiting:
        cell = waiting.popleft()
        for other in beside(cell):
            if other in ways and other not in steps:
                steps[other] = steps[cell] + 1
                waiting.append(other)
    return steps


def cells(maze: np.ndarray, *codes: int) -> set[Cell]:
    """The cells with one of the codes."""
    return {(int(row), int(column)) for row, column in np.argwhere(np.isin(maze, codes))}


def sound(maze: np.ndarray) -> bool:
    """Whether (R, K) is a maze: codes 0 to 3, a wall all around, one start, one goal, and a way
    between them."""
    edge = np.concatenate([maze[0], maze[-1], maze[:, 0], maze[:, -1]])
    start, goal = cells(maze, START), cells(maze, GOAL)
    if not (
        np.isin(maze, (EMPTY, WALL, START, GOAL)).all()
        and (edge == WALL).all()
        and len(start) == len(goal) == 1
    ):
        return False
    return min(start) in distances(cells(maze, EMPTY, START, GOAL), min(goal))


def judge(made: np.ndarray, maze: np.ndarray) -> Verdict:
    """The verdict on what was produced (R, K) for a sound maze (R, K)."""
    copied = bool(np.where(made == PATH, maze == EMPTY, made == maze).all())
    (start,), (goal,) = cells(maze, START), cells(maze, GOAL)
    marked = cells(made, PATH) | {start, goal}
    connected = goal in distances(marked, start)
    touching = {cell: sum(other in marked for other in beside(cell)) for cell in marked}
    unbranched = (
        connected
        and all(touching[cell] == (1 if cell in (start, goal) else 2) for cell in marked)
        and len(distances(marked, start)) == len(marked)
    )
    shortest = distances(cells(maze, EMPTY, START, GOAL), goal)[start]
    return Verdict(copied, connected, unbranched, len(marked) - 1 == shortest)


def density(maze: np.ndarray, made: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """The chance of each code at each cell of the maze with its path, given the cells `known` of
    `made` (all R, K): R, K, 5.

    None where the known cells have no chance: the maze not copied, path cells on no shortest path.
    """
    (start,), (goal,) = cells(maze, START), cells(maze, GOAL)
    steps = distances(cells(maze, EMPTY, START, GOAL), goal)
    far = steps[start]
    if not np.where(made == PATH, maze == EMPTY, made == maze)[known].all():
        return None
    must = set(cells(np.where(known, made, EMPTY), PATH))
    if any(not 0 < steps.get(cell, 0) < far for cell in must):
        return None
    held = {steps[cell]: cell for cell in must}
    shut = cells(known & (made == EMPTY), True)
    ahead, chance = {start: 1.0}, {start: 1.0}  # of being here, with all that is known so far

    def nearer(cell: Cell) -> list[Cell]:
        return [other for other in beside(cell) if steps.get(other) == steps[cell] - 1]

    for left in range(far - 1, -1, -1):
        new: dict[Cell, float] = {}
        for cell, value in ahead.items():
            for other in nearer(cell):
                if other not in shut and held.get(left, other) == other:
                    new[other] = new.get(other, 0.0) + value / len(nearer(cell))
        ahead = new
        chance |= new
    if len(must) != len(held) or not chance.get(goal):
        return None
    after = {goal: 1.0}
    for cell in sorted(chance, key=steps.__getitem__):
        if cell != goal:
            after[cell] = sum(after[other] for other in nearer(cell) if other in chance) / len(
                nearer(cell)
            )
    found = (maze[..., None] == np.arange(5)).astype(np.float64)
    for cell in set(chance) - {start, goal}:
        share = min(chance[cell] * after[cell] / chance[goal], 1.0)
        found[cell][[EMPTY, PATH]] = 1 - share, share
    return found
