"""Infilling with perfect models of listed laws: what is given stays, what is drawn follows the
law given it, and the rates are the law's."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from stages import seeds
from stages.errors import DataError
from stages.sequences.evaluation import infill, maze
from stages.sequences.models import build

sys.path.insert(0, str(Path(__file__).parents[1] / "models/orders"))
import toy_laws

ROWS, COLUMNS = 5, 7
SIZE = ROWS * COLUMNS
STEPS = 12
FLIGHTS = {"steps": STEPS, "step_s": 30.0, "bin_ft": 100.0, "bins": 100}


@pytest.fixture(autouse=True)
def one_thread():
    """These tables are too small for more threads."""
    torch.set_num_threads(1)


def ring(start=(2, 1), goal=(2, 5)) -> tuple[np.ndarray, list[np.ndarray]]:
    """A maze (R, K) that is a ring around a block, and both ways through it, the upper one
    first."""
    empty = np.ones((ROWS, COLUMNS), np.int64)
    empty[1:4, 1:6] = 0
    empty[2, 2:5] = 1
    around = [(1, c) for c in range(1, 6)] + [(2, 5)] + [(3, c) for c in range(5, 0, -1)] + [(2, 1)]
    a, b = around.index(start), around.index(goal)
    first = around[a + 1 : b] if a < b else around[a + 1 :] + around[:b]
    second = [cell for cell in around if cell not in (*first, start, goal)]
    empty[start], empty[goal] = maze.START, maze.GOAL
    ways = []
    for cells in (first, second):
        way = empty.copy()
        way[tuple(np.array(cells).T)] = maze.PATH
        ways.append(way)
    return empty, ways


def sequences(given: np.ndarray, ways: list[np.ndarray]) -> np.ndarray:
    return np.stack([np.concatenate([given.ravel(), way.ravel()]) for way in ways])


def model_of(table: np.ndarray, weights, vocabulary: int) -> toy_laws.Table:
    return toy_laws.Table(
        torch.from_numpy(table), torch.tensor(weights, dtype=torch.float64), vocabulary
    )


def held(kind: str, tokens: np.ndarray, law: dict, prompt: int, group=None):
    """What infilling asks of an evaluation."""
    plan = SimpleNamespace(batch=64, bootstrap=200)
    return SimpleNamespace(
        meta={"kind": kind, "law": law, "prompt": prompt},
        tokens=tokens,
        group=np.arange(len(tokens)) if group is None else group,
        settings=SimpleNamespace(plan=plan),
        stream=lambda *names: seeds.torch_stream(0, *names),
        rng=lambda *names: seeds.stream(0, *names),
    )


def shown_mazes(table: np.ndarray, count: int):
    return held("maze", np.repeat(table[:1], count, 0), {"rows": ROWS, "columns": COLUMNS}, SIZE)


def test_one_sample_keeps_every_given_token_and_follows_the_law_given_them():
    law = toy_laws.correlated(4, 3, 0)
    given = np.tile([False, True, False, True], (20_000, 1))
    made = infill.drawn(
        law, np.tile([9, 2, 9, 1], (20_000, 1)), given, 5000, seeds.torch_stream(0, "given")
    )
    assert (made[:, [1, 3]] == [2, 1]).all()
    fits = ((law.sequences[:, 1] == 2) & (law.sequences[:, 3] == 1)).numpy()
    wanted = law.probabilities.numpy()[fits] / law.probabilities.numpy()[fits].sum()
    seen = [(made == one).all(1).mean() for one in law.sequences.numpy()[fits]]
    assert np.abs(np.array(seen) - wanted).sum() / 2 < 0.015


def test_a_network_gives_what_it_was_given_and_the_same_again():
    seeds.everything(0)
    model = build(
        "sigma_gpt",
        {"dropout": 0.0},
        {"width": 8, "keys": 4, "hidden": 16, "heads": 2, "blocks": 2},
        5,
        9,
    ).eval()
    rng = seeds.stream(0, "rows")
    tokens, given = rng.integers(5, size=(30, 9)), rng.random((30, 9)) < 0.4
    made, again = (
        infill.drawn(model, tokens, given, 7, seeds.torch_stream(0, "x")) for _ in range(2)
    )
    assert (made == tokens)[given].all() and (made != tokens).any() and (made == again).all()


def test_a_model_that_drops_what_was_given_is_refused(monkeypatch):
    monkeypatch.setattr(
        infill,
        "exact",
        lambda model, order, shown, generator, first: SimpleNamespace(
            tokens=torch.zeros_like(shown)
        ),
    )
    with pytest.raises(DataError, match="does not keep"):
        infill.drawn(
            None, np.ones((2, 3), np.int64), np.ones((2, 3), bool), 5, seeds.torch_stream(0)
        )


def test_a_perfect_model_passes_the_given_cell_and_goes_there_half_the_time_when_free():
    given, ways = ring()
    table = sequences(given, ways)
    entry, tensors = infill.infill_metrics(
        model_of(table, [1.0, 1.0], 5), shown_mazes(table, 400), np.arange(400), 3
    )
    off, on = entry["off"], entry["on"]
    assert (
        all(off[name]["value"] == 1 for name in ("correct", "optimal", "joined", "free_correct"))
        and off["joined"]["n"] == 400
    )
    assert off["free_joined_exact"]["value"] == on["free_joined_exact"]["value"] == 0.5
    assert off["free_joined_between"] == {"value": 400, "unit": "mazes", "n": 400}
    for task in (on, off):
        assert abs(task["free_joined"]["value"] - 0.5) < 4 * (0.25 / 400) ** 0.5
    assert tensors["infilled/off_tokens"].shape == (3, 2 * SIZE) and all(
        len(name.split("/")) == 2 for name in tensors
    )
    for row in range(3):
        np.testing.assert_array_equal(
            tensors["infilled/off_tokens"][row, SIZE:].reshape(ROWS, COLUMNS), ways[1]
        )
        np.testing.assert_array_equal(
            tensors["infilled/on_tokens"][row, SIZE:].reshape(ROWS, COLUMNS), ways[0]
        )
        (cell,) = np.argwhere(
            tensors["infilled/off_given"][row, SIZE:].reshape(ROWS, COLUMNS)
        ).tolist()
        assert cell == [3, 3]


def test_a_longer_way_can_be_asked_for_and_is_correct_but_not_the_shortest():
    given, ways = ring((1, 2), (1, 4))
    table = sequences(given, ways)
    entry, _ = infill.infill_metrics(
        model_of(table, [0.99, 0.01], 5), shown_mazes(table, 50), np.arange(50), 3
    )
    assert (
        entry["off"]["correct"]["value"] == entry["off"]["joined"]["value"] == 1
        and entry["off"]["optimal"]["value"] == 0
    )
    assert entry["off"]["free_joined_exact"]["value"] == 0  # the law draws shortest paths alone


def test_a_maze_with_one_way_has_no_other_to_ask_for():
    given, ways = ring()
    given[3, 3] = maze.WALL
    table = sequences(given, [np.where(given == maze.WALL, given, ways[0])])
    entry, tensors = infill.infill_metrics(
        model_of(table, [1.0], 5), shown_mazes(table, 5), np.arange(5), 3
    )
    assert (
        list(entry) == ["on"]
        and entry["on"]["joined"]["value"] == 1
        and not any("off" in name for name in tensors)
    )


def test_a_cell_beside_the_way_is_not_joined():
    given, (above, _) = ring()
    assert infill.joined(above, given, (1, 3)) and not infill.joined(above, given, (3, 3))
    stray = above.copy()
    stray[3, 3] = maze.PATH
    assert not infill.joined(stray, given, (3, 3))


def flights() -> np.ndarray:
    """Two flights (2, T) with one prompt: 30 and 10 hundred feet a step, the second twelve
    steps, the first level after nine."""
    fast, slow = np.minimum(3 * np.arange(STEPS), 27), np.arange(STEPS)
    return np.stack(
        [np.concatenate([[0], np.full(STEPS, 99), line]) for line in (fast, slow)]
    ).astype(np.int64)


def test_points_tell_a_perfect_model_which_flight_it_is_and_free_samples_err_as_the_law_says():
    table = flights()
    tokens = np.repeat(table, 100, 0)
    entry, tensors = infill.infill_metrics(
        model_of(table, [1.0, 1.0], 100),
        held("climb", tokens, FLIGHTS, 2 + STEPS, np.arange(200) % 40),
        np.arange(200),
        4,
    )
    points = entry["points"]
    assert points["rmse"]["value"] == points["rmse_mean"]["value"] == 0
    given = infill.points(
        tokens, FLIGHTS, np.full(200, 2 + STEPS), seeds.stream(0, "infill", "points")
    )
    asked = ~given[:, 1 + STEPS :]
    apart = 100.0 * (table[0] - table[1])[1 + STEPS :]
    square = (asked * apart**2).sum() / asked.sum()
    assert points["free_rmse"]["value"] == pytest.approx((square / 2) ** 0.5, rel=0.08)
    mean = square * (
        1 / 4 + 1 / (4 * infill.REPEATS)
    )  # bias and variance of the mean of fair coins
    assert points["free_rmse_mean"]["value"] == pytest.approx(mean**0.5, rel=0.08)
    assert (
        points["rmse"]["n"] == infill.REPEATS * asked.sum()
        and points["rmse_straight"]["n"] == asked.sum()
    )
    assert tensors["infilled/points_tokens"].shape == (4, infill.SHADED, 1 + 2 * STEPS)
    assert (tensors["infilled/points_tokens"] == tensors["infilled/points_truth"][:, None]).all()


def test_points_lie_one_in_each_third_after_the_prompt_and_never_beyond_the_flights_end():
    tokens = np.repeat(flights()[:1], 300, 0)
    tokens[150:, 1 + STEPS + 8 :] = 100  # ends after eight steps
    given = infill.points(tokens, FLIGHTS, np.full(300, 2 + STEPS), seeds.stream(0, "thirds"))
    altitudes = given[:, 1 + STEPS :]
    assert (
        altitudes[:, 0].all()
        and (altitudes.sum(1) == 1 + infill.POINTS).all()
        and given[:, : 1 + STEPS].all()
    )
    assert not altitudes[150:, 8:].any() and set(np.flatnonzero(altitudes[:150].any(0))) == set(
        range(STEPS)
    )
    steps = np.nonzero(altitudes[:150, 1:])[1].reshape(150, 3) + 1
    assert [(one.min(), one.max()) for one in steps.T] == [(1, 4), (5, 7), (8, 11)]
    short = tokens[:1].copy()
    short[:, 1 + STEPS + 4 :] = 100
    assert infill.points(short, FLIGHTS, np.array([2 + STEPS]), seeds.stream(0)).sum() == 2 + STEPS


def test_straight_lines_join_the_given_altitudes_and_stay_level_after_them():
    tokens = flights()[:1]
    given = np.zeros(tokens.shape, bool)
    given[0, : 1 + STEPS] = True
    given[0, 1 + STEPS + np.array([0, 4, 8])] = True
    tokens[0, 1 + STEPS + 8] = 4
    (line,) = infill.straight(tokens, given, FLIGHTS)
    np.testing.assert_allclose(line, np.interp(np.arange(STEPS), [0, 4, 8], [0, 1200, 400]))
    assert (line[8:] == 400).all()


def test_other_kinds_have_no_infilling():
    assert infill.infill_metrics(
        None, held("permutation", np.zeros((2, 4), np.int64), {}, 0), np.arange(2), 2
    ) == ({}, {})
