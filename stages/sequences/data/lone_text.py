"""One text by itself, in the tokens of a vocabulary that is known: what a trained cell is scored
on.

Shapes: N windows, T tokens.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.scores.lone import Asked
from stages.sequences.data import text

LEAST = 2  # windows, of which an interval can be told
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying by it forgets nothing


@dataclass(frozen=True)
class Lone:
    """A text's windows (N, T), int64, and all its tokens in a row; counts as the reader's, and how
    many tokens were left after the last whole window."""

    windows: np.ndarray
    stream: np.ndarray
    counts: dict[str, int]
    left: int


class KnownCharacters(text.Characters):
    """The characters of a prepared vocabulary."""

    def __init__(self, names: dict[str, Any]):
        self.names = names
        self.known = np.array([ord(one) for one in names["tokens"][1:]], np.uint32)


class KnownPieces(text.Pieces):
    """The pieces of a prepared tokenizer."""

    def __init__(self, names: dict[str, Any]):
        self.names = names
        self.model = text._library().Tokenizer.from_str(json.dumps(names["tokenizer"]))


def read(asked: Asked, meta: dict[str, Any]) -> Lone:
    """The file in the tokens of `meta` (sequences.json). InputError for what is no text, or too
    short."""
    if asked.file.suffix not in text.SUFFIXES:
        raise asked.refuse(
            "the file is none of the texts that are read",
            "a name ending in " + ", ".join(text.SUFFIXES),
            asked.file.name,
        )
    try:
        content = text.content(asked.file)
    except DataError as error:
        raise asked.refuse(error.what, error.expected or "a text", error.found) from None
    names, length = meta["names"], meta["length"]
    level = meta["law"]["level"]
    coder: Any = KnownPieces(names) if "tokenizer" in names else KnownCharacters(names)
    tokens = np.asarray(coder.encode(content)[0], np.int64)
    count = len(tokens) // length
    if count < LEAST:
        raise asked.refuse(
            "the text is too short",
            f"{LEAST * length} tokens or more, {LEAST} windows",
            f"{len(tokens)} tokens",
            "give a longer text",
        )
    counts = {
        "tokens": len(tokens),
        "characters": len(content),
        "words": len(content.split()),
        "unknown": int((tokens == 0).sum()) if level == "character" else 0,
    }
    windows = tokens[: count * length].reshape(count, length)
    return Lone(windows, tokens, counts, len(tokens) - count * length)


def trained_on(stream: np.ndarray, fitted: np.ndarray) -> int:
    """How many windows (N, T) that a cell was fitted to stand in a text's tokens (K,), wherever
    they begin."""
    length = fitted.shape[1]
    return int(np.isin(hashed(fitted, length)[:, 0], hashed(stream[None], length)).sum())


def hashed(rows: np.ndarray, length: int) -> np.ndarray:
    """A number, (R, K - length + 1) uint64, of every run of `length` tokens of some rows (R, K):
    the polynomial of its tokens in BASE modulo 2**64."""
    count = rows.shape[1] - length + 1
    found, tokens = np.zeros((len(rows), count), np.uint64), rows.astype(np.uint64) + np.uint64(1)
    for begin in range(length):
        found = found * BASE + tokens[:, begin : begin + count]
    return found
