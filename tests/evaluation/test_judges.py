"""Judges of samples: what is right passes, each wrong is told by its own name, and the numbers
are those of other reckonings."""

import json

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import coo_array, csgraph

from stages.errors import DataError, InputError
from stages.sequences.evaluation import judges, maze, posteriors

NONE = np.zeros((1, 0), int)
ROOM = ["########", "#S     #", "#  #   #", "#     G#", "########"]


def grid(lines):
    return np.array([[" #SG.".index(sign) for sign in line] for line in lines])


def drawn(*rows, empty=ROOM):
    """ROOM with its inner rows 1.. replaced."""
    return grid([empty[0], *rows, empty[-1]])


def no_prompts(samples):
    return np.zeros((len(samples), 0), int)


def test_the_interval_is_wilsons_of_ninety_percent():
    for hits, n in ((0, 10), (10, 10), (3, 10), (250, 1000)):
        low, high = judges.wilson(hits, n)
        exact = stats.binomtest(hits, n).proportion_ci(0.9, "wilson")
        assert (low, high) == (
            pytest.approx(exact.low, abs=1e-12),
            pytest.approx(exact.high, abs=1e-12),
        )


def test_the_run_tests_z_is_divided_by_the_root():
    """Against the moments of the number of runs over all places of the ones; with the variance
    instead of its root p would differ."""
    sample = np.array([1] * 5 + [0] * 15)
    draw = np.random.default_rng(0)
    shuffled = draw.permuted(np.tile(sample, (40_000, 1)), axis=1)
    runs = 1 + (np.diff(shuffled, axis=1) != 0).sum(1)
    for one in shuffled[:20]:
        number = 1 + (np.diff(one) != 0).sum()
        assert judges.runs_p(one) == pytest.approx(
            2 * stats.norm.sf(abs(number - runs.mean()) / runs.std()), abs=0.02
        )
    assert judges.runs_p(np.zeros(20, int)) is None and judges.runs_p(np.array([0, 1])) is None
    assert judges.runs_p(np.array([0, 1] * 50)) < 1e-10


def test_products_are_valid_about_as_often_as_the_test_allows_and_blocks_are_not():
    draw, law = np.random.default_rng(1), {"share": 0.1, "length": 100}
    good = (draw.random((2000, 100)) < 0.1).astype(int)
    found = judges.judge("product", good, no_prompts(good), law)
    assert found["valid"]["value"] > 0.98 and found["untested"]["value"] < 0.01
    assert found["ones"]["low"] < 0.1 < found["ones"]["high"] and found["ones"]["n"] == 200_000
    assert found["nats"]["low"] < posteriors.entropy("product", law, 100) < found["nats"]["high"]
    blocks = np.sort(good, axis=1)
    assert judges.judge("product", blocks, no_prompts(blocks), law)["valid"]["value"] < 0.05
    strange = good[:4] + 2
    assert judges.judge("product", strange, no_prompts(strange), law)["valid"]["value"] == 0


def test_steps_must_be_one_whole_run_where_one_can_be():
    law = {"width": 3, "places": 5}
    samples = np.array(
        [
            [1, 1, 1, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 1, 1, 1, 0],
            [0, 0, 0, 0, 0, 1, 1, 1],
            [0, 1, 1, 0, 0, 0, 0, 0],
            [1, 1, 1, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [1, 1, 1, 1, 0, 0, 0, 0],
        ]
    )
    found = judges.judge("step", samples, no_prompts(samples), law)
    assert (
        found["valid"]["value"] == pytest.approx(2 / 7) and "begins" not in found
    )  # the third begins where none may
    every = np.array([[int(b <= t < b + 3) for t in range(8)] for b in range(5)])
    assert judges.judge("step", np.tile(every, (10, 1)), np.zeros((50, 0), int), law)["begins"][
        "value"
    ] == pytest.approx(1)
    assert (
        judges.judge("step", np.tile(every[:1], (50, 1)), np.zeros((50, 0), int), law)["begins"][
            "value"
        ]
        < 1e-10
    )


def test_permutations_hold_each_token_once():
    samples = np.array([[2, 0, 1, 3], [2, 0, 1, 1], [3, 3, 3, 3], [3, 2, 1, 0]])
    found = judges.judge("permutation", samples, np.array([[2], [0], [3], [3]]), {"length": 4})
    assert found["valid"]["value"] == 0.5 and found["different"]["value"] == pytest.approx(
        (1 + 0.75 + 0.25 + 1) / 4
    )
    assert found["prompt_kept"]["value"] == 0.75


def test_walks_start_and_step_as_their_law_allows():
    law = {"starts": [5, 8], "stay": 0.2, "vocabulary": 14, "length": 6}
    draw = np.random.default_rng(2)
    good = np.cumsum(
        np.concatenate(
            [draw.choice([5, 8], (500, 1)), draw.choice([-1, 0, 1], (500, 5), p=(0.4, 0.2, 0.4))], 1
        ),
        1,
    )
    found = judges.judge("walk", good, no_prompts(good), law)
    assert found["valid"]["value"] == 1 and found["stays"]["low"] < 0.2 < found["stays"]["high"]
    assert found["nats"]["low"] < posteriors.entropy("walk", law, 6) < found["nats"]["high"]
    bad = good.copy()
    bad[:100, 0], bad[100:200, 3] = 2, bad[100:200, 2] + 2
    found = judges.judge("walk", bad, no_prompts(bad), law)
    assert (
        found["valid"]["value"] == 0.6
        and found["starts"]["value"] == 0.8
        and found["nats"]["n"] == 300
        and found["steps"]["value"] < 1
    )


PATHS = [  # rows of the path, then copied, connected, unbranched, shortest
    (("#S.....#", "#  #  .#", "#     G#"), (True, True, True, True)),
    (("#S     #", "#. #   #", "#.....G#"), (True, True, True, True)),
    (("#S ....#", "#..#  .#", "#     G#"), (True, False, False, False)),
    (("#S.....#", "#. #  .#", "#     G#"), (True, True, False, False)),
    (("#S..   #", "#  #   #", "#    .G#"), (True, False, False, False)),
    (("#S.....#", "#  #. .#", "#     G#"), (True, True, False, False)),
    (("#S.....#", "#     .#", "#     G#"), (False, True, True, True)),
    (("#S.....#", "#  #  .#", "#     .#"), (False, True, True, True)),
    (("#S.....#", "#  .  .#", "#     G#"), (False, True, False, False)),
    (("#S     #", "#  #   #", "#     G#"), (True, False, False, False)),
]


@pytest.mark.parametrize(("rows", "expected"), PATHS)
def test_each_way_to_be_wrong_in_a_maze_has_its_name(rows, expected):
    verdict = maze.judge(drawn(*rows), grid(ROOM))
    assert (verdict.copied, verdict.connected, verdict.unbranched) == expected[:3]
    assert verdict.correct == all(expected[:3]) and verdict.optimal == (
        verdict.correct and expected[3]
    )


def test_a_detour_is_correct_and_not_optimal():
    wide = ["#########", "#S      #", "#       #", "#      G#", "#       #", "#########"]
    straight = grid(["#########", "#S......#", "#      .#", "#      G#", "#       #", "#########"])
    assert maze.judge(straight, grid(wide)).optimal
    around = grid(["#########", "#S      #", "#.      #", "#.     G#", "#.......#", "#########"])
    verdict = maze.judge(around, grid(wide))
    assert verdict.correct and not verdict.optimal
    ring = grid(["#########", "#S......#", "#      .#", "# ..   G#", "# ..    #", "#########"])
    assert not maze.judge(
        ring, grid(wide)
    ).correct  # a ring of four far from the path has two neighbours each


def test_the_solver_agrees_with_scipys_graph_on_random_mazes():
    draw = np.random.default_rng(4)
    for _ in range(50):
        free = draw.random((9, 11)) < 0.7
        cells = [tuple(cell) for cell in np.argwhere(free).tolist()]
        number = {cell: k for k, cell in enumerate(cells)}
        ends = np.array(
            [
                (number[cell], number[other])
                for cell in cells
                for other in maze.beside(cell)
                if other in number
            ]
        ).reshape(-1, 2)
        graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(cells), len(cells)))
        exact = csgraph.shortest_path(graph, unweighted=True, indices=0)
        steps = maze.distances(set(cells), cells[0])
        assert [steps.get(cell, np.inf) for cell in cells] == exact.tolist()


def test_mazes_are_judged_against_their_prompt():
    room = grid(ROOM)
    size = room.size

    def whole(rows):
        return np.concatenate([room.ravel(), drawn(*rows).ravel()])

    samples = np.stack([whole(rows) for rows, _ in PATHS])
    prompts = np.tile(grid(ROOM).ravel(), (len(PATHS), 1))
    law = {"rows": 5, "columns": 8}
    found = judges.judge("maze", samples, prompts, law)
    assert (
        found["correct"]["value"] == 0.2
        and found["optimal"]["value"] == 0.2
        and found["prompt_kept"]["value"] == 1
    )
    assert found["correct"]["n"] == 10 and found["correct"]["low"] < 0.2 < found["correct"]["high"]
    changed = samples.copy()
    changed[0, 9] = 0  # the prompt's half is not the prompt
    assert judges.judge("maze", changed, prompts, law)["correct"]["value"] == 0.1
    assert (
        judges.judge("maze", changed, no_prompts(changed), law)["correct"]["value"] == 0.1
    )  # no start: no maze
    with pytest.raises(DataError, match="no mazes of this law"):
        judges.judge("maze", samples[:, :size], prompts, law)


def test_the_grammar_tells_the_first_wrong_letter_and_a_verb_that_disagrees():
    law = {
        "nouns": ["cat", "dog"],
        "verbs": ["run"],
        "seeing": ["see"],
        "nested": 0.5,
        "plural": 0.5,
        "deepest": 1,
        "letters": " .acdeghnorstu",
    }
    texts = [
        "the cats that the dog sees run.",
        "the cats that the dog see run. ",
        "the cat that the dogs see runs.",
        "the cat runs. the dogs run. the",
        "the cat that the dog that the d",
    ]
    samples = np.array([[law["letters"].index(letter) for letter in text] for text in texts])
    found = judges.judge("grammar", samples, no_prompts(samples), law)
    assert found["valid"]["value"] == 0.6 and found["nats"]["n"] == 3
    legal = [31, len("the cats that the dog see"), 31, 31, len("the cat that the dog t") - 1]
    assert found["legal"]["value"] == pytest.approx(np.mean(legal) / 31)


@pytest.mark.parametrize(
    ("kind", "samples", "prompts", "error"),
    [
        ("text", np.zeros((2, 3), int), np.zeros((2, 0), int), InputError),
        ("product", np.zeros((2, 3)), np.zeros((2, 0), int), DataError),
        ("product", np.zeros((0, 3), int), np.zeros((0, 0), int), DataError),
        ("product", np.zeros((2, 3), int), NONE, DataError),
        ("product", np.zeros((2, 3), int), np.zeros((2, 4), int), DataError),
    ],
)
def test_what_cannot_be_judged_is_refused(kind, samples, prompts, error):
    with pytest.raises(error):
        judges.judge(kind, samples, prompts, {"share": 0.1})


def test_metrics_are_strict_json_even_when_nothing_is_valid():
    bad = np.full((3, 6), 13)
    laws = {
        "product": {"share": 0.1},
        "step": {"width": 2, "places": 5},
        "permutation": {},
        "walk": {"starts": [6], "stay": 0.2, "vocabulary": 14},
        "maze": {"rows": 1, "columns": 3},
    }
    for kind, law in laws.items():
        found = judges.judge(kind, bad, no_prompts(bad), law)
        json.dumps(found, allow_nan=False)
        assert all(
            set(metric) == {"value", "unit", "n", "low", "high"} for metric in found.values()
        )
        assert found["correct" if kind == "maze" else "valid"]["value"] == 0
