"""What the models write, to be read: the beginnings of some samples of texts and grammars (thesis
4.3.4).

Beside a grammar's, which is ours, stand true sequences. Of texts, which are others', none: these
tables are kept in git.

Samples are those that evaluation kept (samples.safetensors: truth and CELL/SAMPLER/prompt/tokens
(S, T)); `names` of sequences.json tells what a token stands for. Characters are joined as they are.
Pieces of byte-pair encoding stand for bytes, and a character may be split among several: the bytes
of all pieces are joined before they are read as UTF-8, what is none shows as U+FFFD. What is not
printable is escaped as Python does, a backslash doubled. Shapes: S shown samples, T tokens. Length
is in characters.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages.errors import DataError
from stages.files import read_json
from stages.sequences import comparisons
from stages.sequences.reporting.arms import Cells, called, first, rank_of, ranked
from stages.tables.table import Table, arm_of

KINDS = ("text", "grammar")
TITLE = "What the models write"
SAMPLES, LENGTH = 2, 160
WORDS = (
    f"The first {SAMPLES} samples of each, {LENGTH} characters of them at most, of a grammar after "
    "true test sequences; not chosen. What is not printable is escaped: \\n is a line's end"
)


def alphabet() -> dict[str, int]:
    """What each character of a byte-level piece stands for: printable bytes for themselves,
    others in order for U+0100 and what follows."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {
        chr(256 + place): byte for place, byte in enumerate(rest)
    }


def decode(tokens: np.ndarray, names: dict[str, Any]) -> str:
    """The text of tokens (T,). DataError for a token that has no name."""
    if "tokenizer" not in names:
        if np.max(tokens, initial=0) >= len(names.get("tokens", ())):
            raise DataError(
                "a token has no name",
                expected=f"0 to {len(names.get('tokens', ())) - 1}",
                found=str(np.max(tokens)),
                remedy="run `dvc repro`",
            )
        return "".join(names["tokens"][int(k)] for k in tokens)
    pieces = {place: piece for piece, place in names["tokenizer"]["model"]["vocab"].items()}
    byte = alphabet()
    try:
        return bytes(byte[sign] for k in tokens for sign in pieces[int(k)]).decode(
            "utf-8", "replace"
        )
    except KeyError as error:
        raise DataError(
            "a token is no piece of bytes",
            expected="byte-level byte-pair encoding",
            found=str(error),
            remedy="run `dvc repro`",
        ) from None


def escaped(text: str) -> str:
    """One line of printable characters."""
    return "".join(
        sign
        if sign.isprintable() and sign != "\\"
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def shown_samplers(cells: Cells, dataset: str, arm: str) -> list[str]:
    """The samplers of an arm that are read: its own one, and bursts of the thesis' number of
    orders."""
    samplers = first(cells, dataset, arm).get("samplers", {})
    one = comparisons.stands(arm, samplers)
    return [*([one] if one else []), *(name for name in (comparisons.TRIED,) if name in samplers)]


def written(
    tensors: dict[str, np.ndarray], names: dict[str, Any], cells: Cells, dataset: str
) -> list[list[str]]:
    """[who, escaped text] of the first samples: true ones, then of each arm's first cell; plain
    JSON, for metrics.json."""

    def lines(who: str, tokens: Iterable[np.ndarray]) -> list[list[str]]:
        return [[who, escaped(decode(row, names)[:LENGTH])] for row in list(tokens)[:SAMPLES]]

    found = lines("true", tensors["truth"]) if "truth" in tensors else []
    for arm in ranked(cells, dataset):
        cell = next(
            (
                name.partition("/")[2]
                for name in sorted(cells)
                if arm_of(name) == f"{dataset}/{arm}"
            ),
            None,
        )
        for sampler in sorted(shown_samplers(cells, dataset, arm), key=rank_of):
            tokens = tensors.get(f"{cell}/{sampler}/{comparisons.prompt_of('text')}/tokens")
            who = called(arm) + ("" if sampler == arm else f", {sampler}")
            found += lines(who, tokens) if tokens is not None else []
    return found


def gathered(
    home: Path, prepared: Path, cells: Cells, about: dict[str, Any]
) -> dict[str, list[list[str]]]:
    """What is written of every data set of texts or a grammar whose tokens have names and whose
    samples were kept; `home` of an experiment and profile."""
    found = {}
    for name, file in (
        (name, home / "evaluated" / name / "samples.safetensors")
        for name, one in about.items()
        if one["kind"] in KINDS
    ):
        names = (
            read_json(prepared / name / "sequences.json").get("names") if file.exists() else None
        )
        if names:
            tensors = {
                key: one
                for key, one in load_file(file).items()
                if key != "truth" or about[name]["kind"] == "grammar"
            }
            found[name] = written(tensors, names, cells, name)
    return found


def table(texts: list[list[str]], dataset: str) -> list[tuple[str, Table, str]]:
    """The section for the page, whose templates escape HTML; none without texts. Spaces in a row
    are kept apart, as a page joins them."""
    rows = tuple((who, text.replace("  ", " \u00a0")) for who, text in texts)
    return (
        [
            (
                TITLE,
                Table(f"texts on {dataset}", ("sequences", "text"), rows, frozenset({0, 1})),
                WORDS,
            )
        ]
        if rows
        else []
    )


def markdown(texts: list[list[str]]) -> list[str]:
    """The lines of the section: a block that Markdown leaves as it is, since no line of it
    begins with a sample."""
    if not texts:
        return []
    wide = max(len(who) for who, _ in texts)
    return [
        f"{TITLE}:",
        "",
        "```text",
        *(f"{who:{wide}} | {text}" for who, text in texts),
        "```",
        "",
        f"{WORDS}.",
        "",
    ]
