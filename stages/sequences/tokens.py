"""Sequences of tokens: what every data set of the thesis' chapter 4 becomes (section 4.3.1,
appendix D).

A kind's file (data/) makes `Sequences` of raw bytes: read(raw, seed, config). Here they are checked
and written: `sequences.safetensors` (tokens, and where each sequence comes from) and
`sequences.json` (sizes, and the law that a sample is judged by). Every sequence stands in one
split, and what belongs together (a file of a simulator, an aircraft) in no two. A simulated kind's
raw files come from make(config, folder): a file a split and meta.json, which says by what law they
were drawn. A split has its own streams of random numbers: more training sequences leave those of
val and test as they are (but for kinds that refuse repeats).
Shapes: N sequences, T tokens of each, V tokens of the vocabulary. The first `prompt` tokens are
given to a model.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from stages import files
from stages.arrays import load
from stages.errors import DataError
from stages.params.sequences import Made
from stages.seeds import stream
from stages.splits import SPLITS

KINDS = ("product", "step", "permutation", "walk", "maze", "climb", "grammar", "text")


@dataclass(frozen=True)
class Sequences:
    """All sequences of one data set."""

    kind: str  # of KINDS: how a sample is judged
    tokens: np.ndarray  # N T, whole numbers 0 .. V-1
    split: np.ndarray  # N, 0 train, 1 val, 2 test
    source: np.ndarray  # N, which of `files`
    record: np.ndarray  # N, which record of that file
    files: tuple[str, ...]
    vocabulary: int  # V
    prompt: int = 0
    law: dict[str, Any] = field(
        default_factory=dict
    )  # what the kind needs to judge a sample: plain JSON
    names: dict[str, Any] = field(
        default_factory=dict
    )  # tokens in words, for the reports: plain JSON
    dropped: dict[str, int] = field(default_factory=dict)  # records that were left out, by reason
    group: np.ndarray | None = (
        None  # N, what belongs together: never in two splits; None: the source file
    )
    extra: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # N ..., what else a judge needs of each sequence


def check(made: Sequences, where: str) -> None:
    """DataError for what cannot be learned from or would leak: shapes, tokens out of range,
    empty splits, a group in two splits."""

    def refuse(
        what: str,
        expected: Any,
        found: Any,
        remedy: str = "look at the raw files, or at this kind's reader",
    ) -> None:
        raise DataError(what, where=where, expected=str(expected), found=str(found), remedy=remedy)

    if made.kind not in KINDS:
        refuse("unknown kind of sequences", ", ".join(KINDS), made.kind)
    tokens = made.tokens
    if tokens.ndim != 2 or 0 in tokens.shape or tokens.dtype.kind not in "iu":
        refuse(
            "tokens are no table of whole numbers",
            "(sequences, tokens)",
            f"{tokens.shape} of {tokens.dtype}",
        )
    count, length = tokens.shape
    if tokens.min() < 0 or tokens.max() >= made.vocabulary:
        wrong = (tokens < 0) | (tokens >= made.vocabulary)
        row, place = np.argwhere(wrong)[0].tolist()
        refuse(
            "a token is out of the vocabulary",
            f"0 to {made.vocabulary - 1}",
            f"{tokens[row, place]} at place {place} of sequence {row}",
        )
    if not 0 <= made.prompt < length:
        refuse("the prompt leaves nothing to produce", f"0 to {length - 1} tokens", made.prompt)
    per_sequence = {"split": made.split, "source": made.source, "record": made.record} | made.extra
    for name, array in per_sequence.items():
        if len(array) != count:
            refuse(f"{name} and tokens disagree", f"{count} sequences", len(array))
    if len(made.source) and not (made.source.min() >= 0 and made.source.max() < len(made.files)):
        refuse(
            "a sequence is of no file",
            f"0 to {len(made.files) - 1}",
            f"{made.source.min()} to {made.source.max()}",
        )
    numbers = [int((made.split == k).sum()) for k in range(len(SPLITS))]
    if min(numbers) == 0 or sum(numbers) != count:
        refuse(
            "a split is empty",
            "sequences in " + ", ".join(SPLITS),
            dict(zip(SPLITS, numbers, strict=True)),
            "give the data set more data",
        )
    placed: dict[int, int] = {}
    for one, part in set(zip(_group(made).tolist(), made.split.tolist(), strict=True)):
        if placed.setdefault(one, part) != part:
            refuse(
                "what belongs together stands in two splits",
                "one split",
                f"group {one} in {SPLITS[placed[one]]} and {SPLITS[part]}",
            )


def _group(made: Sequences) -> np.ndarray:
    return made.source if made.group is None else made.group


def write(made: Sequences, folder: Path, settings: dict[str, Any]) -> None:
    """sequences.safetensors and sequences.json of checked sequences; equal sequences give equal
    bytes."""
    arrays = {
        "tokens": made.tokens.astype(np.int32),
        "split": made.split.astype(np.int8),
        "source": made.source.astype(np.int32),
        "record": made.record.astype(np.int64),
        "group": _group(made).astype(np.int64),
    } | made.extra
    (folder / "sequences.safetensors").write_bytes(
        save({name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())})
    )
    counts = {name: int((made.split == k).sum()) for k, name in enumerate(SPLITS)}
    files.write_json(
        folder / "sequences.json",
        {
            "kind": made.kind,
            "vocabulary": made.vocabulary,
            "length": made.tokens.shape[1],
            "prompt": made.prompt,
            "law": made.law,
            "files": list(made.files),
            "names": made.names,
            "counts": counts,
            "dropped": made.dropped,
            "settings": settings,
        },
    )


def read_meta(raw: Path, kind: str, keys: dict[str, type]) -> dict[str, Any]:
    """meta.json of a simulated set, checked: its kind, numbers of the splits' sequences and the
    keys of that kind, each of its type.

    DataError names the key that is missing or of another type.
    """
    meta = files.read_json(raw / "meta.json")

    def is_a(value, form):
        return isinstance(value, form) and (form is bool or not isinstance(value, bool))

    wrong = (
        ["meta.json"]
        if not isinstance(meta, dict)
        else [
            key
            for key, form in ({"kind": str, "split": dict, "length": int} | keys).items()
            if not is_a(meta.get(key), form)
        ]
    )
    if not wrong:
        wrong = [] if meta["kind"] == kind else ["kind"]
        wrong += (
            []
            if set(meta["split"]) == set(SPLITS)
            and all(type(n) is int and n > 0 for n in meta["split"].values())
            else ["split"]
        )
        wrong += [] if meta["length"] > 0 else ["length"]
    if wrong:
        raise DataError(
            f"meta.json tells no usable {', '.join(wrong)}",
            where=str(raw / "meta.json"),
            found=repr(meta)[:160],
            expected=f"the description of a set of kind {kind}",
            remedy="acquire the data set again",
        )
    return meta


def kept(meta: dict[str, Any], most: int | None) -> dict[str, int]:
    """How many sequences of each split, in the order of SPLITS, are read: all, or (`most`) the
    first so many of the training sequences."""
    return {
        name: min(meta["split"][name], most or meta["split"][name])
        if name == "train"
        else meta["split"][name]
        for name in SPLITS
    }


def tables(raw: Path, meta: dict[str, Any], vocabulary: int, most: int | None) -> dict[str, Any]:
    """tokens, split, source and record of `train.npy`, `val.npy` and `test.npy` (each N_split x T,
    int16).

    DataError for a file that is missing, damaged, of another shape or with tokens that are not in
    the vocabulary.
    """
    parts = []
    for name, number in kept(meta, most).items():
        path = raw / f"{name}.npy"
        found = load(path, (meta["split"][name], meta["length"]), "int16")
        if not 0 <= found.min() <= found.max() < vocabulary:
            raise DataError(
                "a file holds tokens that are not in the vocabulary",
                where=str(path),
                remedy="acquire the data set again",
                expected=f"0 to {vocabulary - 1}",
                found=f"{found.min()} to {found.max()}",
            )
        parts.append(found[:number].astype(np.int32))
    return {"tokens": np.concatenate(parts)} | origins([len(part) for part in parts])


def origins(numbers: list[int]) -> dict[str, Any]:
    """split, source and record of sequences from three files, a file a split, in the order of
    SPLITS."""
    part = np.repeat(np.arange(len(SPLITS)), numbers)
    return {
        "split": part,
        "source": part,
        "record": np.concatenate([np.arange(n) for n in numbers]),
    }


def repeated(tokens: np.ndarray, split: np.ndarray) -> dict[str, int]:
    """How many sequences of val and test stand in the training sequences too: {split: number}."""
    rows = [row.tobytes() for row in np.ascontiguousarray(tokens)]
    held = {row for row, part in zip(rows, split.tolist(), strict=True) if part == 0}
    found = Counter(
        SPLITS[part] for row, part in zip(rows, split.tolist(), strict=True) if part and row in held
    )
    return {name: found[name] for name in SPLITS[1:]}


def make_each(
    config: Any,
    folder: Path,
    length: int,
    draw: Callable[[np.random.Generator, int], np.ndarray],
    law: dict[str, Any],
) -> None:
    """Write what `draw(generator, number)` draws (N, T) for each split, with `law` in meta.json
    beside sizes and seed."""
    for name in SPLITS:
        number = getattr(config, name)
        write_tokens(
            folder, name, draw(stream(config.seed, "sequences", config.kind, name), number)
        )
    describe(config, folder, length, law)


def write_tokens(folder: Path, split: str, tokens: np.ndarray) -> None:
    """One split's sequences (N, T) as SPLIT.npy, int16."""
    with files.atomic_file(folder / f"{split}.npy") as file:
        np.save(file, tokens.astype("<i2"), allow_pickle=False)


def describe(config: Made, folder: Path, length: int, law: dict[str, Any]) -> None:
    """meta.json: kind, sizes, seed and law of a simulated set."""
    files.write_json(
        folder / "meta.json",
        {
            "kind": config.kind,  # type: ignore[attr-defined]  # every kind has its word
            "length": length,
            "seed": config.seed,
            "split": {name: getattr(config, name) for name in SPLITS},
        }
        | law,
    )
