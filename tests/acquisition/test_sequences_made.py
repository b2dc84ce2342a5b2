"""Simulated sequences obey their laws: counts against exact chances, mazes against a solver of
other make, grammar against its rules."""

import json
import re

import numpy as np
import pydantic
import pytest
from scipy import stats
from scipy.sparse import coo_array, csgraph

from stages.errors import InputError
from stages.params import sequences as params
from stages.sequences.data import grammar, laws, maze, walk

SIZES = dict(seed=3, train=3000, val=200, test=200)


def made(module, section, folder):
    folder.mkdir(exist_ok=True)
    module.make(section, folder)
    tokens = {name: np.load(folder / f"{name}.npy") for name in ("train", "val", "test")}
    return tokens, json.loads((folder / "meta.json").read_text())


def test_a_product_is_of_independent_tokens_of_the_given_share(tmp_path):
    tokens, meta = made(laws, params.Product(**SIZES), tmp_path)
    train = tokens["train"]
    assert (
        train.shape == (3000, 100)
        and train.dtype == "<i2"
        and meta["share"] == 0.1
        and meta["length"] == 100
    )
    assert stats.binomtest(int(train.sum()), train.size, 0.1).pvalue > 1e-4
    assert (
        stats.kstest(
            stats.binom.cdf(train.sum(1), 100, 0.1)
            - np.random.default_rng(0).random(3000) * stats.binom.pmf(train.sum(1), 100, 0.1),
            "uniform",
        ).pvalue
        > 1e-4
    )
    assert abs(np.corrcoef(train[:, :-1].ravel(), train[:, 1:].ravel())[0, 1]) < 5 / train.size**0.5


@pytest.mark.parametrize(("last", "places"), [(True, 91), (False, 90)])
def test_a_step_begins_anywhere_equally_often(tmp_path, last, places):
    tokens, meta = made(laws, params.Step(**SIZES, last=last), tmp_path)
    train = tokens["train"]
    assert (
        meta["places"] == places
        and (train.sum(1) == 10).all()
        and (np.abs(np.diff(train, axis=1, prepend=0, append=0)).sum(1) == 2).all()
    )
    counted = np.bincount(train.argmax(1), minlength=places)
    assert len(counted) == places and stats.chisquare(counted).pvalue > 1e-4
    edge = train[:, 0].mean()
    assert edge == pytest.approx(1 / places, abs=5 * (0.011 / 3000) ** 0.5)  # not the 0.1 of D.2.3


def test_permutations_are_uniform(tmp_path):
    tokens, _ = made(laws, params.Permutation(**SIZES | dict(length=4)), tmp_path)
    forms, counted = np.unique(tokens["train"], axis=0, return_counts=True)
    assert (
        len(forms) == 24
        and (np.sort(forms, axis=1) == np.arange(4)).all()
        and stats.chisquare(counted).pvalue > 1e-4
    )


def test_a_walk_begins_and_steps_as_d1_says(tmp_path):
    tokens, meta = made(walk, params.Walk(**SIZES), tmp_path)
    train = tokens["train"].astype(int)
    assert (
        train.shape == (3000, 100)
        and meta["vocabulary"] == 239
        and meta["lowest"] == 1
        and train.min() >= 0
        and train.max() <= 238
    )
    starts, counted = np.unique(train[:, 0] + meta["lowest"], return_counts=True)
    assert starts.tolist() == [100, 120, 130, 140] and stats.chisquare(counted).pvalue > 1e-4
    moves, counted = np.unique(np.diff(train, axis=1), return_counts=True)
    assert (
        moves.tolist() == [-1, 0, 1]
        and stats.chisquare(counted, np.array([0.4, 0.2, 0.4]) * 3000 * 99).pvalue > 1e-4
    )
    assert (train[:, -1] - train[:, 0]).var() == pytest.approx(
        0.8 * 99, rel=0.15
    )  # E of a squared step is 0.8


def graph_steps(grid):
    """Steps from the start to every cell, and to the goal, by scipy."""
    cells = [tuple(cell) for cell in np.argwhere(grid != 1).tolist()]
    number = {cell: k for k, cell in enumerate(cells)}
    ends = np.array(
        [
            (k, number[other])
            for (row, column), k in number.items()
            for other in (
                (row + 1, column),
                (row - 1, column),
                (row, column + 1),
                (row, column - 1),
            )
            if other in number
        ]
    )
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(len(cells),) * 2)
    exact = csgraph.shortest_path(
        graph, unweighted=True, indices=number[tuple(np.argwhere(grid == 2)[0].tolist())]
    )
    return exact, exact[number[tuple(np.argwhere(grid == 3)[0].tolist())]]


@pytest.mark.parametrize(
    "size", [dict(rows=7, columns=9, walls=3, far=4), dict(rows=13, columns=21, walls=15, far=10)]
)
def test_mazes_are_whole_and_their_paths_shortest(tmp_path, size):
    tokens, meta = made(maze, params.Maze(seed=1, train=120, val=20, test=20, **size), tmp_path)
    found = tokens["train"].reshape(120, 2, size["rows"], size["columns"])
    assert {key: meta[key] for key in size} == size
    for grid, solved in found:
        assert np.isin(grid, (0, 1, 2, 3)).all() and (grid == 2).sum() == (grid == 3).sum() == 1
        assert (grid[[0, -1]] == 1).all() and (grid[:, [0, -1]] == 1).all()
        exact, shortest = graph_steps(grid)
        assert np.isfinite(exact).all()  # no place is shut off
        assert np.abs(np.argwhere(grid == 2) - np.argwhere(grid == 3)).sum() >= size["far"]
        assert (np.where(solved == 4, 0, solved) == grid).all() and (
            solved == 4
        ).sum() == shortest - 1
        way = np.argwhere(np.isin(solved, (2, 3, 4)))
        assert (
            np.abs(way[:, None] - way).sum(-1) == 1
        ).sum() == 2 * shortest  # a line of cells, touching only in turn


def test_inner_walls_stand_on_even_lines_and_are_as_many_as_asked_for():
    draw = np.random.default_rng(0)
    for _ in range(50):
        grid = maze.walled(draw, 13, 21, 6)
        inner = np.argwhere(grid[1:-1, 1:-1] == 1) + 1
        assert ((inner[:, 0] % 2 == 0) | (inner[:, 1] % 2 == 0)).all() and 6 * 2 <= len(
            inner
        ) <= 6 * 11
    assert maze.walled(draw, 7, 9, 0)[1:-1, 1:-1].sum() == 0


def test_each_step_of_a_path_is_uniform_among_the_neighbours_nearer_to_the_goal():
    """An empty room: all paths of 2 x 2 steps; the straight ones at an edge are forced to turn,
    so paths are not equally likely."""
    grid = maze.walled(np.random.default_rng(0), 5, 7, 0)
    grid[1, 1], grid[3, 3] = 2, 3
    drawn = maze.with_paths(np.random.default_rng(1), np.tile(grid, (8000, 1, 1)))
    forms, counted = np.unique(drawn.reshape(8000, -1), axis=0, return_counts=True)
    chance = [0.25 if not form.reshape(5, 7)[2, 2] else 0.125 for form in forms]
    assert len(forms) == 6 and stats.chisquare(counted, np.array(chance) * 8000).pvalue > 1e-4


def test_no_maze_comes_twice_and_test_mazes_stay_when_training_ones_are_added(tmp_path):
    size = dict(seed=1, rows=5, columns=7, walls=1, far=3, val=40, test=40)
    tokens, _ = made(maze, params.Maze(**size, train=200), tmp_path / "a")
    every = np.concatenate(list(tokens.values()))[:, :35]
    assert len(np.unique(every, axis=0)) == 280
    more, _ = made(maze, params.Maze(**size, train=400), tmp_path / "b")
    assert (more["test"] == tokens["test"]).all() and (more["val"] == tokens["val"]).all()
    with pytest.raises(InputError, match="no further maze"):
        made(maze, params.Maze(**size | dict(walls=0), train=1000, most_tries=50), tmp_path / "c")
    with pytest.raises(InputError, match="no room"):
        made(maze, params.Maze(**size | dict(walls=40), train=10, most_tries=5), tmp_path / "d")


SEEING = "|".join(grammar.SEEING)
NOUN = "|".join(grammar.NOUNS)


def test_every_sentence_reduces_to_a_noun_and_a_verb_that_agree(tmp_path):
    """Clauses are taken out from the inside, each checked for agreement; a plain sentence is
    left."""
    section = params.Grammar(seed=2, train=300, val=5, test=5, length=200)
    grammar.make(section, tmp_path)
    lines = (tmp_path / "train.txt").read_text().splitlines()
    assert len(lines) == 300 and {len(line) for line in lines} == {200}
    depths, nested, plural, nouns = set(), 0, 0, 0
    for sentence in (sentence for line in lines for sentence in line.split(". ")[:-1]):
        depth, first = 0, re.match(rf"the ({NOUN})(s?) ", sentence)
        nested, plural, nouns = nested + (" that " in sentence), plural + bool(first[2]), nouns + 1
        while " that " in sentence:
            inner = re.compile(rf" that the ({NOUN})(s?) ({SEEING})(s?)(?= )")
            match = inner.search(sentence)
            assert match and bool(match[2]) != bool(match[4]), sentence
            sentence, depth = sentence[: match.start()] + sentence[match.end() :], depth + 1
        match = re.fullmatch(rf"the ({NOUN})(s?) ({'|'.join(grammar.VERBS)})(s?)", sentence)
        assert match and bool(match[2]) != bool(match[4]), sentence
        depths.add(depth)
    assert (
        depths == {0, 1, 2} and 0.15 < nested / nouns < 0.33
    )  # the last sentence of a line is cut, more often one with a clause
    assert abs(plural / nouns - 0.4) < 0.07


@pytest.mark.parametrize(
    ("module", "section"),
    [
        (laws, params.Product(seed=0, train=50, val=20, test=20)),
        (walk, params.Walk(seed=0, train=50, val=20, test=20, length=10, starts=(3,))),
        (maze, params.Maze(seed=0, train=50, val=20, test=20, rows=7, columns=9, walls=2, far=3)),
    ],
    ids=["product", "walk", "maze"],
)
def test_a_seed_gives_the_same_bytes_and_another_does_not(tmp_path, module, section):
    for name, one in (
        ("a", section),
        ("b", section),
        ("c", section.model_copy(update={"seed": 1})),
    ):
        made(module, one, tmp_path / name)
    files = ("train.npy", "val.npy", "test.npy", "meta.json")
    content = {name: [(tmp_path / name / file).read_bytes() for file in files] for name in "abc"}
    assert content["a"] == content["b"] and all(
        one != other for one, other in zip(content["a"], content["c"], strict=True)
    )
    tokens = np.load(tmp_path / "a" / "val.npy")
    assert not (tokens[:20] == np.load(tmp_path / "a" / "test.npy")).all()


@pytest.mark.parametrize(
    ("section", "changes", "told"),
    [
        (params.Product, dict(share=0.0), "share"),
        (params.Product, dict(share=1.0), "share"),
        (params.Product, dict(length=4096, train=100_000), "tokens"),
        (params.Step, dict(width=101), "no place"),
        (params.Step, dict(width=100, last=False), "no place"),
        (params.Walk, dict(starts=(5, 3)), "rising"),
        (params.Walk, dict(starts=(5, 5)), "rising"),
        (params.Walk, dict(stay=1.0), "stay"),
        (params.Walk, dict(starts=(0, 5000)), "4096"),
        (params.Maze, dict(rows=8), "odd"),
        (params.Maze, dict(rows=7, columns=9, far=11), "far is 11"),
        (params.Grammar, dict(nested=1.0), "nested"),
        (params.Permutation, dict(length=1), "length"),
        (params.Maze, dict(rowz=3), "rowz"),
    ],
)
def test_what_the_schema_refuses(section, changes, told):
    with pytest.raises(pydantic.ValidationError, match=told):
        section(**SIZES | changes)
