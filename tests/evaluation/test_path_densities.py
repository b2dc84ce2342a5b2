"""Densities of mazes' paths: a copied maze without a path is as far off as can be, whatever the
maze, the law itself not at all, and all cells together would tell hardly anything."""

from pathlib import Path

import numpy as np
import pytest
from order_cells import PLAN

from stages.sequences import tokens as sequences
from stages.sequences.comparisons import CLOSE
from stages.sequences.data import maze as generator
from stages.sequences.evaluation import companions, densities, maze, measure, posteriors
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.tokens import Sequences

SHARES = {"0", "10", "50"}
SIZES = {"small": (7, 7, 4, 4), "long": (13, 21, 15, 10), "open": (9, 9, 0, 9)}
COUNT = 14


def held(folder: Path, size: str) -> EvaluationData:
    """Mazes of a size: rows, columns, walls, and how far the goal is. `open` has many paths."""
    rows, columns, walls, far = SIZES[size]
    rng = np.random.default_rng(0)
    drawn = [
        generator.with_ends(rng, generator.walled(rng, rows, columns, walls), far)
        for _ in range(COUNT)
    ]
    rooms = np.stack(drawn)
    both = np.concatenate([rooms, generator.with_paths(rng, rooms)], 1).reshape(COUNT, -1)
    law = {"rows": rows, "columns": columns, "walls": walls, "far": far}
    split = np.repeat([0, 1, 2], (2, 2, COUNT - 4))
    names, each = ("a", "b", "c"), np.arange(COUNT)
    made = Sequences("maze", both.astype(int), split, split, each, names, 5, rows * columns, law)
    folder.mkdir()
    sequences.write(made, folder, {})
    return EvaluationData.open(folder, Settings(PLAN, seed=0))


def copied(data: EvaluationData, path: float) -> densities.Density:
    """The prompt's maze again, every cell that was empty a path cell with one chance."""
    prompt = data.meta["prompt"]

    def answer(tokens: np.ndarray, known: np.ndarray) -> np.ndarray:
        found = np.eye(5)[np.concatenate([tokens[:, :prompt]] * 2, 1)]
        found[found[..., maze.EMPTY] == 1] = [1 - path, 0, 0, 0, path]
        return found

    return answer


def exact(data: EvaluationData) -> densities.Density:
    return lambda tokens, known: posteriors.conditionals("maze", tokens, known, data.meta["law"])


def values(found: dict, name: str) -> dict[str, float]:
    return {share: one["value"] for share, one in found[name].items()}


@pytest.mark.parametrize("size", SIZES)
def test_a_copied_maze_without_a_path_is_at_1_and_the_law_at_0(tmp_path, size):
    data = held(tmp_path / size, size)
    bare, law = (densities.densities(data, one) for one in (copied(data, 0.0), exact(data)))
    assert values(bare, "path_posteriors") == pytest.approx(dict.fromkeys(SHARES, 1.0))
    assert values(law, "path_posteriors") == dict.fromkeys(SHARES, 0.0)
    assert values(law, "posteriors") == dict.fromkeys(SHARES, 0.0)
    if size == "long":  # over all cells it would pass
        assert max(values(bare, "posteriors").values()) < CLOSE
    truth = data.tokens[data.split("test")][:, data.meta["prompt"] :] == maze.PATH
    one = bare["path_posteriors"]["0"]
    assert one["n"] == truth.sum() and one["low"] == pytest.approx(1) == one["high"]


@pytest.mark.parametrize("chance", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("size", SIZES)
def test_no_chance_that_all_empty_cells_share_passes(tmp_path, size, chance):
    data = held(tmp_path / size, size)
    found = densities.densities(data, copied(data, chance))
    assert min(values(found, "path_posteriors").values()) > 2 * CLOSE


def test_only_unknown_cells_that_were_empty_count(tmp_path):
    data = held(tmp_path / "small", "small")

    def wrong_elsewhere(tokens, known):
        found, law = np.full((*tokens.shape, 5), 0.2), exact(data)(tokens, known)
        asked = densities.untold(data, tokens, known)
        return np.where(asked[..., None], law, found)

    found = densities.densities(data, wrong_elsewhere)
    assert values(found, "path_posteriors") == dict.fromkeys(SHARES, 0.0)
    assert min(values(found, "posteriors").values()) > 0.3


def test_cells_whose_chance_the_law_leaves_open_are_counted(tmp_path):
    for size in ("small", "open"):
        data = held(tmp_path / size, size)
        prompt, tokens = data.meta["prompt"], data.tokens[data.split("test")]
        found = measure.known_of(data)["uncertain"]
        assert set(found) == SHARES
        assert found["0"]["cells"] == (tokens[:, :prompt] == maze.EMPTY).sum()
        open_ones = sum(
            int(
                maze.between(
                    maze.density(room, room, np.zeros(room.shape, bool))[..., maze.PATH]
                ).sum()
            )
            for room in tokens[:, :prompt].reshape(-1, *SIZES[size][:2])
        )
        assert found["0"]["between"] == open_ones
        assert size == "small" or open_ones > 100


def test_companions_have_both_numbers_and_other_kinds_one(tmp_path):
    data = held(tmp_path / "small", "small")
    found = {name: entry for name, entry, _ in companions.companions(data)}
    for entry in found.values():
        assert set(entry["path_posteriors"]) == SHARES == set(entry["posteriors"])
    assert found["marginals"]["path_posteriors"]["0"]["value"] > 5 * CLOSE
