"""Exact densities: equal to those of every sequence listed, of the closed forms D.3 and D.4
(corrected), and refused where nothing fits."""

import itertools
import math

import numpy as np
import pytest

from stages.errors import DataError, InputError
from stages.sequences.evaluation import maze, posteriors

GRAMMAR = {
    "nouns": ["ox", "on"],
    "verbs": ["be"],
    "seeing": ["by"],
    "nested": 0.4,
    "plural": 0.3,
    "deepest": 1,
    "letters": " .abehnostxy",
}


def listed(kind, law, length):
    """Every sequence of a small law and its chance, by the words of the law alone."""
    if kind == "product":
        table = np.array(list(itertools.product((0, 1), repeat=length)))
        return table, np.where(table == 1, law["share"], 1 - law["share"]).prod(1)
    if kind == "step":
        table = np.array(
            [
                [int(begin <= t < begin + law["width"]) for t in range(length)]
                for begin in range(law["places"])
            ]
        )
        return table, np.full(len(table), 1 / len(table))
    if kind == "permutation":
        table = np.array(list(itertools.permutations(range(length))))
        return table, np.full(len(table), 1 / len(table))
    walks = [
        (start, *moves)
        for start in law["starts"]
        for moves in itertools.product((-1, 0, 1), repeat=length - 1)
    ]
    chance = [
        math.prod(
            [
                1 / len(law["starts"]),
                *(law["stay"] if move == 0 else (1 - law["stay"]) / 2 for move in walk[1:]),
            ]
        )
        for walk in walks
    ]
    return np.cumsum(walks, axis=1), np.array(chance)


LAWS = [
    ("product", {"share": 0.3}, 5),
    ("step", {"width": 3, "places": 6}, 8),
    ("step", {"width": 3, "places": 5}, 8),
    ("permutation", {}, 5),
    ("walk", {"starts": [5, 7, 8], "stay": 0.2, "vocabulary": 14}, 6),
    ("walk", {"starts": [5, 8], "stay": 0.0, "vocabulary": 14}, 6),
]


@pytest.mark.parametrize(("kind", "law", "length"), LAWS)
def test_every_conditional_is_that_of_the_listed_law(kind, law, length):
    table, chance = listed(kind, law, length)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    draw = np.random.default_rng(0)
    tokens = table[draw.choice(len(table), size=150, p=chance)]
    known = draw.random(tokens.shape) < draw.random((150, 1))
    known[0], known[1] = False, True
    vocabulary = law.get("vocabulary", length if kind == "permutation" else 2)
    found = posteriors.conditionals(kind, np.where(known, tokens, 0), known, law)
    for row in range(150):
        weight = chance * (table == tokens[row])[:, known[row]].all(1)
        expected = (weight[:, None, None] * (table[..., None] == np.arange(vocabulary))).sum(
            0
        ) / weight.sum()
        np.testing.assert_allclose(found[row], expected, atol=1e-12)
    np.testing.assert_allclose(
        posteriors.log_chance(kind, table[:200], law),
        np.log(np.maximum(chance[:200], 1e-300))
        if chance[:200].all()
        else np.where(
            chance[:200] > 0, np.log(np.where(chance[:200] > 0, chance[:200], 1)), -np.inf
        ),
        atol=1e-12,
    )
    positive = chance[chance > 0]
    assert posteriors.entropy(kind, law, length) == pytest.approx(
        -(positive * np.log(positive)).sum() / length, abs=1e-12
    )


def sentences(length):
    """Every text of the grammar, cut at `length` letters, with its chance: by derivation, not
    letter by letter."""

    def phrase(plural, depth):
        for noun in GRAMMAR["nouns"]:
            said = f"the {noun}{'s' * plural}"
            closed = 0.5 * ((1 - GRAMMAR["nested"]) if depth < GRAMMAR["deepest"] else 1.0)
            yield said, closed
            if depth < GRAMMAR["deepest"]:
                for other, chance in ((False, 0.7), (True, 0.3)):
                    for inner, weight in phrase(other, depth + 1):
                        yield (
                            f"{said} that {inner} by{'s' * (not other)}",
                            0.5 * GRAMMAR["nested"] * chance * weight,
                        )

    whole = [
        (f"{said} be{'s' * (not plural)}. ", chance * weight)
        for plural, chance in ((False, 0.7), (True, 0.3))
        for said, weight in phrase(plural, 0)
    ]
    texts = {"": 1.0}
    while any(len(text) < length for text in texts):
        new = {}
        for text, chance in texts.items():
            for more, weight in whole if len(text) < length else [("", 1.0)]:
                joined = (text + more)[:length]
                new[joined] = new.get(joined, 0.0) + chance * weight
        texts = new
    return texts


def test_the_grammars_densities_are_those_of_all_its_texts():
    texts = sentences(40)
    table = np.array([[GRAMMAR["letters"].index(letter) for letter in text] for text in texts])
    chance = np.array(list(texts.values()))
    assert chance.sum() == pytest.approx(1, abs=1e-12) and len(table) > 300
    np.testing.assert_allclose(
        posteriors.log_chance("grammar", table, GRAMMAR), np.log(chance), atol=1e-10
    )
    assert posteriors.entropy("grammar", GRAMMAR, 40) == pytest.approx(
        -(chance * np.log(chance)).sum() / 40, abs=1e-12
    )
    draw = np.random.default_rng(1)
    for row in draw.choice(len(table), size=30, p=chance):
        known = draw.random(40) < draw.random() / 2
        weight = chance * (table[:, known] == table[row, known]).all(1)
        expected = (weight[:, None, None] * (table[..., None] == np.arange(12))).sum(
            0
        ) / weight.sum()
        np.testing.assert_allclose(
            posteriors.conditionals("grammar", table[row : row + 1], known[None], GRAMMAR)[0],
            expected,
            atol=1e-10,
        )


@pytest.mark.parametrize("stay", [0.2, 0.0, 0.7])
def test_d3_and_d4_are_the_forward_and_backward_laws_of_the_listed_walks(stay):
    starts = [4, 6, 7]
    table, chance = listed("walk", {"starts": starts, "stay": stay}, 7)
    for steps in range(7):
        for by in range(-8, 9):
            assert float(posteriors.moved(by, steps, stay)) == pytest.approx(
                chance[table[:, steps] - table[:, 0] == by].sum(), abs=1e-12
            )
    x = np.arange(-3, 15)
    for first, second, later in ((0, 6, 5), (2, 3, 7), (1, 5, 4), (3, 6, 9)):
        there = chance * (table[:, second] == later)
        expected = [(there * (table[:, first] == place)).sum() / there.sum() for place in x]
        np.testing.assert_allclose(
            posteriors.backwards(x, later, first, second, starts, stay), expected, atol=1e-12
        )


def test_d3_at_the_documents_size_is_a_law_with_variance_of_four_fifths_a_step():
    by = np.arange(-99, 100)
    for steps in (1, 10, 99):
        chance = posteriors.moved(by, steps, 0.2)
        assert chance.sum() == pytest.approx(1, abs=1e-12) and chance @ by**2 == pytest.approx(
            0.8 * steps, rel=1e-12
        )


def test_the_documents_walk_backwards_by_d4_is_the_chains_density():
    law = {"starts": [99, 119, 129, 139], "stay": 0.2, "vocabulary": 239}
    tokens, known = np.zeros((1, 100), int), np.zeros((1, 100), bool)
    tokens[0, 60], known[0, 60] = 124, True
    found = posteriors.conditionals("walk", tokens, known, law)
    np.testing.assert_allclose(
        found[0, 10],
        posteriors.backwards(np.arange(239), 124, 10, 60, law["starts"], 0.2),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        found[0, 90], posteriors.moved(np.arange(239) - 124, 30, 0.2), atol=1e-12
    )


def room():
    maze = np.ones((6, 7), int)
    maze[1:5, 1:6] = 0
    maze[2, 3], maze[1, 1], maze[4, 5] = 1, 2, 3
    return maze


def drawn_paths(grid):
    """Every shortest path of a maze by walking, with its chance: each step uniform among the
    neighbours nearer to the goal."""
    goal = tuple(np.argwhere(grid == 3)[0])
    table = {goal: 0}
    for _ in range(grid.size):
        for row, column in np.argwhere(grid != 1):
            near = [table[cell] for cell in maze.beside((row, column)) if cell in table]
            if near:
                table[row, column] = min(table.get((row, column), 99), min(near) + 1)
    waiting, ended = [((tuple(np.argwhere(grid == 2)[0]),), 1.0)], []
    while waiting:
        path, chance = waiting.pop()
        if path[-1] == goal:
            drawn = grid.copy()
            for cell in path[1:-1]:
                drawn[cell] = 4
            ended.append((drawn, chance))
            continue
        nearer = [cell for cell in maze.beside(path[-1]) if table.get(cell) == table[path[-1]] - 1]
        waiting += [((*path, cell), chance / len(nearer)) for cell in nearer]
    return np.array([drawn for drawn, _ in ended]), np.array([chance for _, chance in ended])


def test_the_density_of_a_path_is_that_of_all_paths_whatever_cells_are_known():
    grid = room()
    table, chance = drawn_paths(grid)
    assert chance.sum() == pytest.approx(1) and len(table) > 10 and chance.min() < chance.max()
    draw, law = np.random.default_rng(2), {"rows": 6, "columns": 7}
    for trial in range(60):
        drawn = table[draw.choice(len(table), p=chance)]
        known = draw.random(grid.shape) < (0.0 if trial == 0 else 0.4 * draw.random())
        weight = chance * (table == drawn)[:, known].all(1)
        expected = (weight[:, None, None, None] * (table[..., None] == np.arange(5))).sum(
            0
        ) / weight.sum()
        tokens = np.concatenate([grid.ravel(), drawn.ravel()])[None]
        given = np.concatenate([np.ones(42, bool), known.ravel()])[None]
        found = posteriors.conditionals("maze", tokens, given, law)
        np.testing.assert_allclose(found[0, 42:].reshape(6, 7, 5), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "law", "tokens"),
    [
        ("permutation", {}, [1, 1, 0]),
        ("step", {"width": 2, "places": 3}, [1, 0, 1, 0]),
        ("walk", {"starts": [3], "stay": 0.2, "vocabulary": 7}, [3, 5, 5, 5]),
        ("permutation", {}, [3, 1, 0]),
        ("product", {"share": 0.5}, [0, 2, 0]),
        (
            "maze",
            {"rows": 6, "columns": 7},
            [*room().ravel(), *np.where(room() == 0, 4, room()).ravel()],
        ),
    ],
)
def test_known_tokens_that_cannot_be_are_refused(kind, law, tokens):
    with pytest.raises(DataError, match="no chance under the law"):
        posteriors.conditionals(kind, np.array([tokens]), np.ones((1, len(tokens)), bool), law)


def test_what_has_no_exact_density_is_refused():
    with pytest.raises(InputError, match="text"):
        posteriors.conditionals("text", np.zeros((1, 3), int), np.zeros((1, 3), bool), {})
    with pytest.raises(DataError, match="disagree"):
        posteriors.conditionals(
            "product", np.zeros((1, 3), int), np.zeros((1, 2), bool), {"share": 0.5}
        )
    with pytest.raises(InputError, match="whole maze"):
        posteriors.conditionals(
            "maze", np.zeros((1, 84), int), np.zeros((1, 84), bool), {"rows": 6, "columns": 7}
        )
    with pytest.raises(InputError, match="maze"):
        posteriors.entropy("maze", {}, 84)
    with pytest.raises(DataError, match="cannot be there"):
        posteriors.backwards(np.arange(9), 9, 1, 2, [3], 0.2)
