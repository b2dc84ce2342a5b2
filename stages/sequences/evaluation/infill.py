"""Infilling: samples that keep tokens given anywhere, of models trained in random order (thesis
4.2.3, 4.3.7, figures 4.2 and 4.3).

Given tokens stand first in the order, the others are drawn after them, so that nothing is trained
anew. Mazes: the maze and one cell of a path are given: `on`, the middle cell of the shown shortest
path; `off`, one that this path does not use but another way does, where the maze has another way.
Flights: what a prompt gives, and POINTS later altitudes, one from each third of the rest. Beside
them stand `free` samples of the same sequences, with the prompt alone; exact rates where a path's
chance is known (maze.density); and for flights straight lines between the given altitudes.
Shapes: N sequences, K samples of each, T tokens, S steps, R K rows and columns of a maze. Units:
ft. Intervals: 90 %.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stages.contracts import SequenceModel
from stages.errors import DataError
from stages.scores import groups
from stages.sequences.evaluation import judges, maze, vertical
from stages.sequences.sampling.exact import exact

if TYPE_CHECKING:
    from stages.sequences.evaluation.data import EvaluationData

TASKS = ("on", "off")  # of mazes
POINTS = 3  # altitudes given beside the first one
REPEATS = 8  # samples of a flight
SHADED = 32  # samples of a shown flight
Found = tuple[dict[str, Any], dict[str, np.ndarray]]


@torch.inference_mode()
def drawn(
    model: SequenceModel,
    tokens: np.ndarray,
    given: np.ndarray,
    batch: int,
    generator: torch.Generator,
) -> np.ndarray:
    """One sample (N, T) for each row of tokens (N, T) that keeps the given ones (N, T, bool) and
    sees no other, in random order.

    DataError for a model whose sample does not keep them.
    """
    place, parts = generator.device, []
    for start in range(0, len(tokens), batch):
        known = torch.tensor(given[start : start + batch], device=place)
        shown = torch.tensor(tokens[start : start + batch], device=place).masked_fill(~known, 0)
        chance = torch.rand(shown.shape, generator=generator, device=place)
        # the given ones from left to right, as prompts stand in training
        order = torch.where(
            known, torch.arange(shown.shape[1], device=place) - shown.shape[1], chance
        ).argsort(1)
        parts.append(exact(model, order, shown, generator, first=known.sum(1)).tokens.cpu().numpy())
    made = np.concatenate(parts)
    if (made != tokens)[given].any():
        raise DataError(
            "a sample does not keep what was given",
            found=f"{int((made != tokens)[given].sum())} changed tokens",
        )
    return made


# --- mazes


def another(given: np.ndarray, path: set[maze.Cell]) -> list[maze.Cell] | None:
    """The cells of the shortest way from start to goal of a sound maze (R, K) that leaves the
    path somewhere; None where there is none."""
    ways = maze.cells(given, maze.EMPTY, maze.START, maze.GOAL)
    (start,), (goal,) = maze.cells(given, maze.START), maze.cells(given, maze.GOAL)
    best: list[maze.Cell] | None = None
    for shut in sorted(path):
        steps = maze.distances(ways - {shut}, goal)
        if start not in steps or (best is not None and steps[start] - 1 >= len(best)):
            continue
        best, cell = [], start
        while steps[cell] > 1:
            cell = next(other for other in maze.beside(cell) if steps.get(other) == steps[cell] - 1)
            best.append(cell)
    return best


def middle(given: np.ndarray, made: np.ndarray, task: str) -> maze.Cell | None:
    """The cell to give of a maze (R, K) whose shown path is in `made` (R, K): in the middle of
    that path, or of where another way leaves it."""
    (goal,), path = maze.cells(given, maze.GOAL), maze.cells(made, maze.PATH)
    if task == "off":
        way = [cell for cell in another(given, path) or () if cell not in path]
    else:
        way = sorted(path, key=maze.distances(path | {goal}, goal).__getitem__)
    return way[len(way) // 2] if way else None


def joined(made: np.ndarray, given: np.ndarray, cell: maze.Cell) -> bool:
    """Whether the marked cells of a sample (R, K) join start, cell and goal of the maze (R, K)."""
    (start,), (goal,) = maze.cells(given, maze.START), maze.cells(given, maze.GOAL)
    reached = maze.distances(
        (maze.cells(made, maze.PATH) & maze.cells(given, maze.EMPTY)) | {start, goal}, start
    )
    return goal in reached and cell in reached


def mazes(
    model: SequenceModel, data: "EvaluationData", numbers: np.ndarray, shown: int, task: str
) -> Found:
    """Metrics and shown samples of one task of TASKS: shares `correct`, `optimal` and `joined`
    (start, the given cell and goal) of samples that keep the cell, the same of free ones
    (`free_`), `free_joined_exact`, the chance that a path drawn by the law passes the cell, and
    `free_joined_between`, of how many mazes it is neither 0 nor 1."""
    law, tokens = data.meta["law"], data.tokens[numbers]
    shape = (law["rows"], law["columns"])
    size = shape[0] * shape[1]
    cells = [middle(one[:size].reshape(shape), one[size:].reshape(shape), task) for one in tokens]
    kept = np.array([k for k, cell in enumerate(cells) if cell is not None], np.int64)
    if not len(kept):
        return {}, {}
    tokens, cells = tokens[kept], [cells[k] for k in kept]
    prompt = np.broadcast_to(np.arange(2 * size) < size, tokens.shape)
    given, asked = prompt.copy(), tokens.copy()
    for row, cell in enumerate(cells):
        place = size + cell[0] * shape[1] + cell[1]
        given[row, place], asked[row, place] = True, maze.PATH
    samples = {
        "": drawn(model, asked, given, data.settings.plan.batch, data.stream("infill", task)),
        "free_": drawn(
            model, tokens, prompt, data.settings.plan.batch, data.stream("infill", task, "free")
        ),
    }
    found, rooms = {}, tokens[:, :size].reshape(-1, *shape)
    for name, made in samples.items():
        judged = judges.judge("maze", made, tokens[:, :size], law)
        found |= {f"{name}{key}": judged[key] for key in ("correct", "optimal")}
        through = [
            joined(one.reshape(shape), room, cell)
            for one, room, cell in zip(made[:, size:], rooms, cells, strict=True)
        ]
        found[f"{name}joined"] = judges.share(np.array(through))
    blank = np.zeros(shape, bool)
    chances = np.array(
        [
            maze.density(room, room, blank)[cell][maze.PATH]
            for room, cell in zip(rooms, cells, strict=True)
        ]
    )
    found["free_joined_exact"] = {
        "value": float(chances.mean()),
        "unit": "share",
        "n": len(chances),
    }
    open_ones = float(maze.between(chances).sum())
    found["free_joined_between"] = {"value": open_ones, "unit": "mazes", "n": len(chances)}
    tensors = {"truth": tokens, "given": given, "tokens": samples[""], "free": samples["free_"]}
    return found, {
        f"{task}_{name}": array[:shown].astype(np.int32) for name, array in tensors.items()
    }


# --- flights


def points(
    tokens: np.ndarray, law: dict[str, Any], prompt: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Which tokens (N, T) of flights are given: the first `prompt` (N,), and a step from each third
    of the altitudes after them; none of a flight that is too short for that."""
    given = np.arange(tokens.shape[1]) < prompt[:, None]
    ends = vertical.feet(tokens, law)[1].sum(1)
    first = 1 + law["steps"]
    for row, (known, end, chance) in enumerate(
        zip(prompt - first, ends, rng.random((len(tokens), POINTS)), strict=True)
    ):
        edges = np.linspace(known, end, POINTS + 1).round().astype(np.int64)
        places = edges[:-1] + np.floor(chance * np.diff(edges)).astype(np.int64)
        if end - known >= 2 * POINTS:
            given[row, first + places] = True
    return given


def straight(tokens: np.ndarray, given: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Altitudes (N, S) in ft on straight lines between the given ones, level after the last."""
    altitude, _ = vertical.feet(tokens, law)
    steps = np.arange(law["steps"])
    known = given[:, 1 + law["steps"] :]
    return np.stack(
        [
            np.interp(steps, steps[mask], line[mask])
            for line, mask in zip(altitude, known, strict=True)
        ]
    )


def flights(model: SequenceModel, data: "EvaluationData", numbers: np.ndarray, shown: int) -> Found:
    """RMSE in ft over the flown altitudes that are not given: of single samples (`rmse`), of the
    mean of REPEATS samples (`rmse_mean`), of straight lines (`rmse_straight`); `free_` of
    samples and means with the prompt alone. Intervals: aircraft drawn with replacement."""
    law, tokens = data.meta["law"], data.tokens[numbers]
    prompt = np.maximum(vertical.given(tokens, law, "0"), data.meta["prompt"])
    given = points(tokens, law, prompt, data.rng("infill", "points"))
    kept = given.sum(1) > prompt
    if not kept.any():
        return {}, {}
    tokens, given, prompt, group = (
        tokens[kept],
        given[kept],
        prompt[kept],
        data.group[numbers][kept],
    )
    free = np.arange(tokens.shape[1]) < prompt[:, None]
    altitude, flown = vertical.feet(tokens, law)
    asked, plan = flown & ~given[:, 1 + law["steps"] :], data.settings.plan

    def repeated(rows: slice, mask: np.ndarray, count: int, *names: str) -> np.ndarray:
        wide: Any = (np.repeat(part[rows], count, 0) for part in (tokens, mask))
        return drawn(model, *wide, plan.batch, data.stream("infill", *names)).reshape(
            -1, count, tokens.shape[1]
        )

    def rmse(error: np.ndarray) -> dict[str, Any]:
        squares = (error**2 * asked[:, None]).sum((1, 2))
        one = groups.mean_of(
            squares,
            group,
            "ft",
            plan.bootstrap,
            data.rng("bootstrap"),
            asked.sum(1) * error.shape[1],
        )
        return one | {
            key: float(np.sqrt(one[key])) for key in ("value", "low", "high") if key in one
        }

    found = {}
    for name, mask in (("", given), ("free_", free)):
        made = vertical.feet(repeated(slice(None), mask, REPEATS, "points", name or "given"), law)[
            0
        ]
        found |= {
            f"{name}rmse": rmse(made - altitude[:, None]),
            f"{name}rmse_mean": rmse(made.mean(1, keepdims=True) - altitude[:, None]),
        }
    found["rmse_straight"] = rmse((straight(tokens, given, law) - altitude)[:, None])
    some = slice(0, shown)
    tensors = {
        "truth": tokens[some],
        "given": given[some],
        "tokens": repeated(some, given, SHADED, "shown"),
        "free": repeated(some, free, SHADED, "shown", "free"),
    }
    return found, {f"points_{name}": array.astype(np.int32) for name, array in tensors.items()}


def infill_metrics(
    model: SequenceModel, data: "EvaluationData", numbers: np.ndarray, shown: int
) -> Found:
    """Of sequences `numbers` (N,): task -> {metric: {value, unit, n, low, high}}, and of the first
    `shown` of each task by infilled/TASK_{truth,given,tokens,free}.
    Nothing of other kinds, or of a task that no sequence allows.
    """
    kind = data.meta["kind"]
    tasks: dict[str, Callable[[], Found]] = {}
    if kind == "maze":
        tasks = {task: lambda task=task: mazes(model, data, numbers, shown, task) for task in TASKS}
    elif kind == "climb":
        tasks = {"points": lambda: flights(model, data, numbers, shown)}
    entry, tensors = {}, {}
    for task, run in tasks.items():
        metrics, kept = run()
        if metrics:
            entry[task] = {
                name: {key: value for key, value in one.items() if value is not None}
                for name, one in metrics.items()
            }
            tensors |= {f"infilled/{name}": array for name, array in kept.items()}
    return entry, tensors
