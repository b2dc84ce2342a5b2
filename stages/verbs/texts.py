"""Texts, as `tradewind init` sees them: JSON and JSON lines, rows of whole numbers, prose.

JSON: lists of whole numbers are sequences, objects with one value a name are a table, one object
of lists is arrays. Prose is a set of letters; a text whose every line holds whole numbers alone is
none.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.errors import InputError
from stages.verbs.containers import SETS
from stages.verbs.seen import Column, Look, column
from stages.winds.decoding import tables

# whole numbers of at most 18 digits, which 64 bits hold: longer runs of digits are no tokens
NUMBERS = re.compile(r"[+-]?\d{1,18}(?:[\s,;]+[+-]?\d{1,18})*[\s,;]*")
FRAME = re.compile(rb"(?i)(?<![0-9a-z])(?:[0-9a-f]{12})?([0-9a-f]{28}|[0-9a-f]{14})(?![0-9a-z])")


def spelled(first: bytes) -> bool:
    """Whether some frame of a file's beginning has a letter among its digits. The decimals of
    tables of numbers have as many digits as frames, and none."""
    return any(re.search(rb"(?i)[a-f]", found[1]) for found in FRAME.finditer(first))


def held(path: Path, text: str) -> Any:
    """What a file of JSON or of JSON lines holds by its first letters, None for another text.
    InputError for a file that is named as JSON and is damaged, or too large."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return tables.from_json(path)
    except InputError:
        if path.name.lower().removesuffix(".gz").endswith(tables.JSON_SUFFIXES):
            raise
        return None


def from_json(value: Any) -> Look | pl.DataFrame:
    """What JSON holds: a look at it, or a table of objects."""
    if isinstance(value, Mapping):
        lists = {str(name): _array(one) for name, one in value.items() if isinstance(one, list)}
        arrays = {name: one for name, one in lists.items() if one is not None}
        columns = tuple(column(name, one) for name, one in arrays.items())
        if set(SETS) <= set(arrays):
            return Look("sets", len(arrays[SETS[0]]), columns, notes=("JSON",))
        names = ", ".join(map(str, list(value)[:12]))
        return Look("JSON", len(value), columns, notes=(f"an object with {names}",))
    rows = value if isinstance(value, list) else [value]
    if rows and all(isinstance(row, Mapping) for row in rows):
        return tables.of_objects(rows)
    if rows and all(type(row) is int for row in rows):
        rows = [rows]
    if rows and all(isinstance(row, list) and all(type(v) is int for v in row) for row in rows):
        return sequences(rows, "JSON")
    return Look("JSON", len(rows), notes=("a list that is neither of sequences nor of objects",))


def _array(value: list[Any]) -> Any:
    """Nested lists as an array, None where they are ragged or hold no numbers."""
    try:
        made = np.array(value)
    except ValueError:
        return None
    return made if made.dtype.kind in "iuf" else None


def sequences(rows: Sequence[Sequence[int]], form: str) -> Look:
    """Rows of whole numbers as sequences."""
    lengths = [len(row) for row in rows]
    values = [value for row in rows for value in row]
    ends = (str(min(values)), str(max(values))) if values else ("", "")
    span = (
        f"{min(lengths)}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    )
    notes = [f"{form}: looks like sequences of {span} whole numbers"]
    if min(lengths) != max(lengths):
        notes.append("their lengths differ; a model takes one length: cut or fill them up")
    return Look("sequences", len(rows), (Column("whole number", "", *ends),), notes=tuple(notes))


def prose(path: Path) -> Look:
    """A text: rows of whole numbers, or letters."""
    text = tables.unpacked(path)
    lines = [line.strip() for line in text.splitlines()]
    filled = [line for line in lines if line]
    if filled and all(NUMBERS.fullmatch(line) for line in filled):
        rows = [[int(one) for one in re.findall(r"[+-]?\d+", line)] for line in filled]
        return sequences(rows, "no prose, a text of numbers")
    return Look("text", len(lines), notes=(f"{len(set(text))} letters differ",))
