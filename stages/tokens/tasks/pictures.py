"""PicoCLVR: small pictures of coloured points and statements that are true of them (slides), as one
sequence of tokens: statements, <img>, the picture row by row.

A statement is one of: "there is red"; "red top", "red bottom", "red left", "red right" (a half of
the picture); "red left_of blue", "right_of", "above", "below". `met` parses statements again and
says which a picture meets; where a colour stands several times, one point (or pair of points) that
meets the statement is enough. Points of one picture have different colours; a picture has 1 to
`points` of them. Shapes: S pictures, R rows, C columns, L words of statements.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

COLOURS = ("red", "green", "blue", "yellow", "black")
GROUND = "white"
SIDES = ("top", "bottom", "left", "right")
RELATIONS = ("left_of", "right_of", "above", "below")
PAD, SEPARATOR, PICTURE = "<pad>", "<sep>", "<img>"
WORDS = (PAD, SEPARATOR, PICTURE, "there", "is", *SIDES, *RELATIONS, GROUND, *COLOURS)
NUMBER = {word: place for place, word in enumerate(WORDS)}
Point = tuple[int, int]
Statement = tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """A picture's rows and columns, its most points, the most statements about it."""

    rows: int
    columns: int
    points: int
    statements: int

    @property
    def said(self) -> int:
        """Tokens before the picture: statements, what parts them, <img>."""
        return 4 * self.statements

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return self.said + self.rows * self.columns


def draw(count: int, form: Form, rng: np.random.Generator) -> np.ndarray:
    """Sequences (S, N) of token numbers; statements are filled up with padding behind them."""
    found = np.zeros((count, form.length), dtype=np.uint8)
    cells = form.rows * form.columns
    for sequence in found:
        chosen = rng.integers(1, form.points + 1)
        places = rng.choice(cells, chosen, replace=False)
        colours = rng.choice(len(COLOURS), chosen, replace=False)
        picture = np.full(cells, NUMBER[GROUND], dtype=np.uint8)
        picture[places] = [NUMBER[COLOURS[colour]] for colour in colours]
        known = true(picture.reshape(form.rows, form.columns), np.sort(colours).tolist())
        most = min(len(known), int(rng.integers(1, form.statements + 1)))
        told = rng.choice(len(known), most, replace=False)
        sequence[:] = encoded([known[place] for place in told], picture, form)
    return found


def encoded(statements: Sequence[Statement], picture: np.ndarray, form: Form) -> np.ndarray:
    """One sequence (N,) of statements and a picture (R * C,)."""
    words: list[str] = []
    for statement in statements:
        words += [*([SEPARATOR] if words else []), *statement]
    numbers = [NUMBER[word] for word in words] + [0] * (form.said - 1 - len(words))
    return np.array([*numbers, NUMBER[PICTURE], *picture], dtype=np.uint8)


def true(picture: np.ndarray, colours: Sequence[int]) -> list[Statement]:
    """All statements about these colours that a picture (R, C) of token numbers meets, each colour
    standing once, in a fixed order."""
    where = {COLOURS[one]: points(COLOURS[one], picture)[0] for one in colours}
    found: list[Statement] = [("there", "is", colour) for colour in where]
    for colour, point in where.items():
        found += [(colour, side) for side in SIDES if _side(side, point, picture)]
    for (one, here), (other, there) in itertools.permutations(where.items(), 2):
        found += [(one, word, other) for word in RELATIONS if _related(word, here, there)]
    return found


def every() -> list[Statement]:
    """All statements there are."""
    relations = itertools.product(COLOURS, RELATIONS, COLOURS)
    return [
        *(("there", "is", colour) for colour in COLOURS),
        *itertools.product(COLOURS, SIDES),
        *(one for one in relations if one[0] != one[2]),
    ]


def parsed(numbers: Sequence[int]) -> list[Statement]:
    """The statements of token numbers. ValueError for what is none."""
    words = [WORDS[number] for number in numbers]
    found, known = [], set(every())
    for part, group in itertools.groupby(words, lambda word: word in (PAD, SEPARATOR, PICTURE)):
        if not part:
            statement = tuple(group)
            if statement not in known:
                raise ValueError(f"not a statement: {' '.join(statement)!r}")
            found.append(statement)
    return found


def prompt(said: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """The statements of token numbers (L,), whose order says nothing, in one order."""
    words = itertools.groupby(said.tolist(), lambda one: one > NUMBER[PICTURE])
    return tuple(sorted(tuple(group) for stated, group in words if stated))


def met(statement: Statement, picture: np.ndarray) -> bool:
    """Whether a picture (R, C) of token numbers meets a statement."""
    if statement[:2] == ("there", "is"):
        return bool(points(statement[2], picture))
    if len(statement) == 2:
        return any(_side(statement[1], point, picture) for point in points(statement[0], picture))
    pairs = itertools.product(points(statement[0], picture), points(statement[2], picture))
    return any(_related(statement[1], *pair) for pair in pairs)


def points(colour: str, picture: np.ndarray) -> list[Point]:
    """Where a colour stands: (row, column)."""
    rows, columns = np.nonzero(picture == NUMBER[colour])
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def _side(side: str, point: Point, picture: np.ndarray) -> bool:
    place = point[side in ("left", "right")]
    middle = picture.shape[side in ("left", "right")] - 1
    return 2 * place < middle if side in ("top", "left") else 2 * place > middle


def _related(relation: str, one: Point, other: Point) -> bool:
    axis = relation in ("left_of", "right_of")
    return one[axis] < other[axis] if relation in ("left_of", "above") else one[axis] > other[axis]


def share(said: np.ndarray, picture: np.ndarray, form: Form) -> float:
    """The share of a sequence's statements (its first tokens) that a picture (R * C,) meets."""
    shaped = picture.reshape(form.rows, form.columns)
    found = [met(one, shaped) for one in parsed(said[: form.said].tolist())]
    return sum(found) / len(found)
