"""The generated tasks against laws of their own, and readers of tables against what people write
into them."""

import itertools

import numpy as np
import pytest

from stages import seeds
from stages.errors import DataError
from stages.tokens.tasks import glue, pairs, pictures, shapes

FORM = pictures.Form(4, 5, 3, 3)


def rng(name="tasks"):
    return seeds.stream(0, "tokens", name)


# --- sentence pairs


def venn(sentence: list[str], world: set[frozenset]) -> bool:
    """A sentence's truth in a world: which combinations of classes have a member."""
    one, other = (word for word in sentence if word in pairs.NOUNS)
    both = any({one, other} <= kind for kind in world)
    apart = any(one in kind and other not in kind for kind in world)
    if "not" in sentence:
        return apart
    return {"all": not apart, "no": not both, "some": both}[
        next(word for word in sentence if word in ("all", "no", "some"))
    ]


def judged(premise: str, hypothesis: str) -> str:
    """The label, from the words themselves: all worlds of the nouns that stand there."""
    sentences = [premise.split(), hypothesis.split()]
    nouns = sorted({word for one in sentences for word in one if word in pairs.NOUNS})
    kinds = [
        frozenset(kind)
        for size in range(len(nouns) + 1)
        for kind in itertools.combinations(nouns, size)
    ]
    told = set()
    for size in range(1, len(kinds) + 1):
        for world in itertools.combinations(kinds, size):
            full = all(any(noun in kind for kind in world) for noun in nouns)
            if full and venn(sentences[0], set(world)):
                told.add(venn(sentences[1], set(world)))
    return "neutral" if len(told) == 2 else "entailment" if told == {True} else "contradiction"


def test_every_label_follows_from_the_words():
    rows = pairs.draw(200, 5, 2, rng())
    assert [judged(premise, hypothesis) for premise, hypothesis, _ in rows] == [r[2] for r in rows]
    assert {row[2] for row in rows} == {"neutral", "entailment", "contradiction"}


@pytest.mark.parametrize(
    ("premise", "hypothesis", "case", "label"),
    [
        ("all", "some", "swapped", "entailment"),  # classes have members
        ("all", "all", "swapped", "neutral"),  # order matters
        ("all", "no", "same", "contradiction"),
        ("no", "no", "swapped", "entailment"),
        ("some_not", "all", "same", "contradiction"),
        ("some_not", "all", "swapped", "neutral"),
        ("all", "all", "other", "neutral"),
    ],
)
def test_labels_of_the_square_of_opposition(premise, hypothesis, case, label):
    assert pairs.label(premise, hypothesis, case) == label


def test_neither_sentence_alone_tells_the_label_beyond_what_is_frequent():
    rows = pairs.draw(6000, 4, 0, rng())
    for place in (0, 1):
        votes: dict[str, dict[str, int]] = {}
        for row in rows:
            mine = votes.setdefault(row[place], {})
            mine[row[2]] = mine.get(row[2], 0) + 1
        assert sum(max(mine.values()) for mine in votes.values()) / len(rows) < 0.6


def test_words_without_their_order_do_not_tell_the_label():
    rows = pairs.draw(20000, 4, 0, rng())
    bags: dict[tuple, dict[str, int]] = {}
    for premise, hypothesis, label in rows:
        bag = tuple(sorted(premise.split())), tuple(sorted(hypothesis.split()))
        mine = bags.setdefault(bag, {})
        mine[label] = mine.get(label, 0) + 1
    assert sum(max(mine.values()) for mine in bags.values()) / len(rows) < 0.95


# --- shapes


def test_answers_have_each_shape_at_its_place_as_high_as_its_kind_on_the_mean():
    centre, width = np.array([[10.0, 30.0, 50.0, 80.0]]), np.full((1, 4), 8.0)
    given, answer, kinds = shapes.rendered(centre, np.array([[2.0, 8.0, 5.0, 15.0]]), width)
    assert given[0, [10, 30, 50, 80]].tolist() == [2, 8, 5, 15]
    assert answer[0, [10, 30, 50, 80]].tolist() == [5, 5, 10, 10]
    assert given[0, [12, 32, 52, 54, 55]].tolist() == [1, 4, 5, 5, 0], "triangles fall, boxes stand"
    assert ((kinds > 0) == (given > 0)).all() and kinds[0, [10, 30, 50, 80]].tolist() == [
        1,
        2,
        3,
        4,
    ]


def test_shapes_neither_touch_nor_are_alike_in_either_kind():
    draws = rng()
    centre = draws.uniform(*shapes.CENTRE, (4000, 4))
    height, width = (
        draws.uniform(*shapes.HEIGHT, (4000, 4)),
        draws.uniform(*shapes.WIDTH, (4000, 4)),
    )
    kept = shapes.accepted(centre, height, width)
    for one, other in itertools.combinations(range(4), 2):
        gap = abs(centre[kept, one] - centre[kept, other])
        assert (gap > (width[kept, one] + width[kept, other]) / 2).all()
    for first in (0, 2):
        assert (abs(height[kept, first] - height[kept, first + 1]) > 4).all(), "boxes, too: mended"
    boxes = height.copy()
    boxes[:, 3] = boxes[:, 2] + 1
    assert not shapes.accepted(centre, boxes, width).any()


def test_noise_is_uniform_and_its_variance_the_floor():
    given, answer, kinds = shapes.draw(300, rng())
    empty = kinds == 0
    for one in (given, answer):
        assert np.abs(one[empty]).max() <= 0.15 + 1e-6
        assert one[empty].var() == pytest.approx(shapes.FLOOR, rel=0.03)
    assert np.corrcoef(given[empty], answer[empty])[0, 1] == pytest.approx(0, abs=0.02)


# --- pictures


def picture(*lines: str) -> np.ndarray:
    letters = {"w": "white", "r": "red", "g": "green", "b": "blue"}
    return np.array([[pictures.NUMBER[letters[one]] for one in line] for line in lines])


@pytest.mark.parametrize(
    ("statement", "met"),
    [
        ("there is red", True), ("there is blue", False), ("red top", True), ("red left", True),
        ("green bottom", True), ("green left", False), ("green right", False),
        ("red left_of green", True), ("red above green", True), ("green below red", True),
        ("green left_of red", False), ("red above blue", False),
    ],
)  # fmt: skip
def test_a_picture_is_read_as_people_would(statement, met):
    shown = picture("rwwww", "wwwww", "wwwww", "wwgww")  # green stands in the middle column
    assert pictures.met(tuple(statement.split()), shown) == met


def test_of_a_colour_that_stands_twice_one_point_is_enough():
    shown = picture("rwwwg", "wwwww", "wwwww", "wwwwr")
    for statement in ("red left", "red right", "red top", "red bottom", "green right_of red"):
        assert pictures.met(tuple(statement.split()), shown), statement


def test_every_drawn_sequence_says_what_its_picture_meets():
    found = pictures.draw(300, FORM, rng())
    assert min(pictures.share(one, one[FORM.said :], FORM) for one in found) == 1
    other = [pictures.share(one, two[FORM.said :], FORM)
             for one, two in itertools.pairwise(found)]  # fmt: skip
    assert np.mean(other) < 0.33


def test_true_statements_are_those_that_the_parser_finds_true():
    for one in pictures.draw(60, FORM, rng()):
        shaped = one[FORM.said :].reshape(FORM.rows, FORM.columns)
        colours = [place for place, word in enumerate(pictures.COLOURS)
                   if (shaped == pictures.NUMBER[word]).any()]  # fmt: skip
        expected = {one for one in pictures.every() if pictures.met(one, shaped)}
        assert set(pictures.true(shaped, colours)) == expected


def test_what_is_no_statement_is_refused():
    with pytest.raises(ValueError, match="not a statement: 'red above'"):
        pictures.parsed([pictures.NUMBER["red"], pictures.NUMBER["above"]])


# --- tables


def table(tmp_path, *lines: str, form="sst2") -> glue.Table:
    file = tmp_path / "train.tsv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return glue.read(file, glue.FORMATS[form])


def test_rows_that_cannot_be_used_are_counted_by_reason_and_quotes_are_letters(tmp_path):
    found = table(
        tmp_path, "sentence\tlabel", 'an "odd quote\t1', "a tab\tmore\t1", "no label\t",
        "other label\t2", "\t1", "word " * 10_000 + "\t0", "fine\t0",
    )  # fmt: skip
    assert found.sentences == [('an "odd quote',), ("fine",)]
    assert found.labels == [1, 0] and found.lines == [2, 8]
    assert found.dropped == {"empty": 1, "fields": 1, "label": 2, "long": 1}


def test_columns_are_found_by_name_and_their_lack_is_told(tmp_path):
    found = table(
        tmp_path, "index\tsentence2\tsentence1\tgold_label", "0\tb\ta\tneutral", form="mnli"
    )
    assert found.sentences == [("a", "b")] and found.labels == [1]
    with pytest.raises(DataError, match=r"line 1[\s\S]*no label"):
        table(tmp_path, "sentence\tclass", "a\t1")


def test_a_table_without_a_row_and_one_that_is_not_text_are_told(tmp_path):
    with pytest.raises(DataError, match="no row to use"):
        table(tmp_path, "sentence\tlabel", "a\t7")
    (tmp_path / "bad.tsv").write_bytes(b"sentence\tlabel\nna\xefve\t1\n")
    with pytest.raises(DataError, match="byte 17"):
        glue.read(tmp_path / "bad.tsv", glue.FORMATS["sst2"])
