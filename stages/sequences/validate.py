"""Rules on sequences of tokens (thesis chapter 4): raw files as acquired, splits that share
nothing, sequences that their kind allows.

Judged are the raw folder and the prepared sequences. A sequence in two splits would be an answer
known beforehand: a maze (walls, start and goal, whatever its path) in none but one; of a language
and of climbs a hundredth at most. Small laws (step, product, walk, permutation) repeat themselves
by nature: of them it is the law that is checked.
Shapes: N sequences, T tokens. Maze codes: 0 empty, 1 wall, 2 start, 3 goal, 4 path.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stages import files, runner
from stages.errors import DataError
from stages.splits import SPLITS
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired, both

LAWS = ("product", "step", "permutation", "walk")
DAMAGED = "prepared sequences are not those of their description: look at this kind's reader"

RULES = [
    *MANIFEST,
    Rule(
        "sequences.splits",
        "splits",
        "split",
        "critical",
        "a split has no sequences: give the data set more data",
        allowed=SPLITS,
    ),
    Rule("sequences.length", "splits", "length_off", "critical", DAMAGED, low=0, high=0),
    Rule(
        "sequences.range",
        "splits",
        "out_of_range",
        "critical",
        "tokens out of the vocabulary: " + DAMAGED,
        high=0,
    ),
    Rule(
        "sequences.group",
        "splits",
        "shared_groups",
        "critical",
        "what belongs together (a file, an aircraft) stands in two splits",
        high=0,
    ),
    *both(
        "sequences.unseen",
        "distinct",
        "unseen",
        "tokens that no training sequence has: give it more data, or a smaller vocabulary",
        warn=0.0,
        stop=0.05,
    ),
    *both(
        "sequences.leak",
        "distinct",
        "elsewhere",
        "sequences that stand in another split too: split the raw files otherwise",
        warn=0.0,
        stop=0.01,
    ),
    *both(
        "sequences.repeated",
        "distinct",
        "repeated",
        "sequences that stand twice in a split: look at the raw files",
        warn=0.0,
        stop=0.5,
    ),
    Rule(
        "mazes.leak",
        "mazes",
        "elsewhere",
        "critical",
        "mazes that stand in another split too: acquire the data set again",
        high=0,
    ),
    Rule(
        "mazes.broken",
        "mazes",
        "broken",
        "critical",
        "no mazes: a wall all around, one start, one goal, codes 0 to 3",
        high=0,
    ),
    Rule(
        "mazes.paths",
        "mazes",
        "unsolved",
        "critical",
        "paths that do not lead from start to goal through their own maze alone",
        high=0,
    ),
    Rule(
        "mazes.detours",
        "mazes",
        "detours",
        "critical",
        "paths that are not shortest: a model would learn them",
        high=0,
    ),
    Rule(
        "laws.unlawful",
        "laws",
        "unlawful",
        "critical",
        "sequences that their law cannot draw: acquire the data set again",
        high=0,
    ),
    *both(
        "laws.deviation",
        "laws",
        "deviation",
        "a count is far from what the law says (in its standard deviations): look at the seeds",
        warn=4.0,
        stop=8.0,
    ),
]


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    where = f"profiles.{asked['profile']}.sequences"
    runner.known("data set of sequences", asked["dataset"], asked.profile.sequences, where)
    return stage.work(asked, "stages.sequences.validate", "prepared", gather, {})


def gather(
    raw: Path, prepared: Path, judged: dict[str, str]
) -> tuple[dict[str, Table], list[Rule]]:
    """The summaries of a data set and the rules on them."""
    return tables(raw, prepared, judged), RULES


def tables(raw: Path, prepared: Path, judged: dict[str, str]) -> dict[str, Table]:
    """Summaries of the raw folder and of each split. `judged` is the SHA-256 of each file by
    path, taken from disk."""
    manifest = files.read_json(raw / "manifest.json")
    told = files.read_json(prepared / "sequences.json")
    try:
        found = load_file(prepared / "sequences.safetensors")
        tokens, split, group = found["tokens"], found["split"], found.get("group", found["source"])
        kind, vocabulary, length, law = (
            told[key] for key in ("kind", "vocabulary", "length", "law")
        )
    except (SafetensorError, KeyError, OSError) as error:
        raise DataError(
            "prepared sequences cannot be read",
            where=str(prepared),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    if tokens.ndim != 2 or not len(tokens) == len(split) == len(group):
        raise DataError(
            "prepared sequences are no table",
            where=str(prepared),
            expected="(sequences, tokens), and a split and group of each",
            found=f"{tokens.shape}, {split.shape}, {group.shape}",
            remedy="run `dvc repro`",
        )
    here = {name: split == k for k, name in enumerate(SPLITS) if (split == k).any()}
    made = {
        **acquired(raw, manifest, judged),
        "splits": Table(general(tokens, group, here, vocabulary, length), "split"),
    }
    if tokens.shape[1] != length:
        return made  # nothing more can be said of them
    if kind == "maze":
        made["mazes"] = Table(mazes(tokens, here, law), "split")
    elif kind in LAWS:
        made["laws"] = Table(
            [{"split": name} | lawful(kind, tokens[rows], law) for name, rows in here.items()],
            "split",
        )
    else:
        made["distinct"] = Table(distinct(tokens, here), "split")
    return made


def general(
    tokens: np.ndarray, group: np.ndarray, here: dict[str, np.ndarray], vocabulary: int, length: int
) -> list[dict[str, Any]]:
    """A row a split: what every kind must keep."""
    told = []
    for name, rows in here.items():
        others = np.unique(
            np.concatenate(
                [group[other] for place, other in here.items() if place != name] or [group[:0]]
            )
        )
        told.append(
            {
                "split": name,
                "sequences": int(rows.sum()),
                "length_off": abs(tokens.shape[1] - length),
                "out_of_range": int(((tokens[rows] < 0) | (tokens[rows] >= vocabulary)).sum()),
                "shared_groups": len(np.intersect1d(group[rows], others)),
            }
        )
    return told


def distinct(tokens: np.ndarray, here: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """A row a split: the shares of its sequences that stand in another split too, that repeat
    one in it, and of its new tokens."""
    seen = np.unique(tokens[here["train"]]) if "train" in here else np.zeros(0, np.int32)
    held = {
        name: [row.tobytes() for row in np.ascontiguousarray(tokens[rows])]
        for name, rows in here.items()
    }
    told = []
    for name, mine in held.items():
        others = set().union(*(rows for place, rows in held.items() if place != name))
        told.append(
            {
                "split": name,
                "elsewhere": float(np.mean([row in others for row in mine])),
                "repeated": 1 - len(set(mine)) / len(mine),
                "unseen": float((~np.isin(tokens[here[name]], seen)).mean()),
            }
        )
    return told


def mazes(
    tokens: np.ndarray, here: dict[str, np.ndarray], law: dict[str, Any]
) -> list[dict[str, Any]]:
    """A row a split: counts of mazes in two splits, of ones that are none, of paths that are
    none or not the shortest."""
    shape = (law["rows"], law["columns"])
    size = shape[0] * shape[1]
    if tokens.shape[1] != 2 * size:
        return [
            {"split": name, "elsewhere": 0, "broken": int(rows.sum()), "unsolved": 0, "detours": 0}
            for name, rows in here.items()
        ]
    leaks = distinct(tokens[:, :size], here)
    told = []
    for leak, rows in zip(leaks, here.values(), strict=True):
        maze, path = (
            tokens[rows][:, half].reshape(-1, *shape) for half in (slice(size), slice(size, None))
        )
        edge = np.concatenate([maze[:, 0], maze[:, -1], maze[:, :, 0], maze[:, :, -1]], axis=1)
        ends = [(maze == code).sum((1, 2)) == 1 for code in (2, 3)]
        sound = np.isin(maze, (0, 1, 2, 3)).all((1, 2)) & (edge == 1).all(1) & ends[0] & ends[1]
        maze, path = maze[sound], path[sound]
        marked = (path == 4) | (maze == 2) | (maze == 3)
        sides = beside(marked.astype(np.int8))
        chain = np.where(path == 4, sides == 2, ~marked | (sides == 1)).all((1, 2))
        reach, within = steps(maze, marked)
        solved = (
            np.where(path == 4, maze == 0, path == maze).all((1, 2))
            & chain
            & (within == marked.sum((1, 2)))
            & (reach > 0)
        )
        shortest, _ = steps(maze, maze != 1)
        told.append(
            {
                "split": leak["split"],
                "elsewhere": round(leak["elsewhere"] * int(rows.sum())),
                "broken": int((~sound).sum()),
                "unsolved": int((~solved).sum()),
                "detours": int((solved & (reach != shortest)).sum()),
            }
        )
    return told


def beside(field: np.ndarray) -> np.ndarray:
    """The sum of the four neighbours of each cell (N, R, K); none beyond the edge."""
    wide = np.pad(field, ((0, 0), (1, 1), (1, 1)))
    return wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]


def steps(maze: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps from start to goal through the `free` cells, -1 where there is no way, and how many
    of them the start reaches: (N,), (N,)."""
    reached, found, number = maze == 2, np.full(len(maze), -1), 0
    while True:
        new = reached | (free & (beside(reached.astype(np.int8)) > 0))
        number += 1
        found[(new & (maze == 3)).any((1, 2)) & (found < 0)] = number
        if (new == reached).all():
            return found, reached.sum((1, 2))
        reached = new


def lawful(kind: str, tokens: np.ndarray, law: dict[str, Any]) -> dict[str, Any]:
    """How many sequences their law cannot have drawn, and how far a count lies from its
    expectation, in standard deviations."""
    count, length = tokens.shape
    if kind == "permutation":  # tokens that stand where they began: 1 in the mean, variance 1
        fixed = (tokens == np.arange(length)).sum()
        return {
            "unlawful": int((np.sort(tokens, axis=1) != np.arange(length)).any(1).sum()),
            "deviation": abs(int(fixed) - count) / count**0.5,
        }
    if kind == "product":
        return {
            "unlawful": int((~np.isin(tokens, (0, 1))).any(1).sum()),
            "deviation": binomial(tokens == 1, law["share"]),
        }
    if kind == "step":
        begin = tokens.argmax(1)
        since = np.arange(length) - begin[:, None]
        good = (tokens == ((since >= 0) & (since < law["width"]))).all(1) & (begin < law["places"])
        return {
            "unlawful": int((~good).sum()),
            "deviation": binomial(
                begin[good] < law["places"] // 2, law["places"] // 2 / law["places"]
            ),
        }
    moves = np.diff(tokens, axis=1)
    good = np.isin(tokens[:, 0], law["starts"]) & (np.abs(moves) <= 1).all(1)
    return {"unlawful": int((~good).sum()), "deviation": binomial(moves[good] == 0, law["stay"])}


def binomial(hits: np.ndarray, chance: float) -> float:
    """How far a number of independent hits lies from its mean, in standard deviations; 0 where
    nothing is left to chance."""
    spread = (hits.size * chance * (1 - chance)) ** 0.5
    return abs(float(hits.sum()) - hits.size * chance) / spread if spread else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge the prepared sequences of a data set."
    return runner.command("stages.sequences.validate", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
