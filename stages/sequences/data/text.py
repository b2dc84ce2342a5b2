"""Texts as sequences (thesis 4.3.1): windows of T tokens without overlap, of characters or of
pieces found by byte-pair encoding.

Files are .txt, .raw, .tokens (UTF-8), .parquet (column `text`) or .xz (a packed tar of .txt
documents, as OpenWebText's). Where names say train, valid (val, validation) and test, and all three
are there, these are the splits; a lone validation or test file is refused unless the settings name
it (`cut`); else every file is cut, by weight and at a line's end, into its
beginning for training, then val, then test. No window crosses a file or a cut. Vocabularies come
from the training part alone: characters in the order of their code points after <unk> = 0; pieces
by the `tokenizers` library over all bytes, so that nothing is unknown, trained line by line and
kept whole in `names`. Shapes: N windows, T tokens. A record is the character of its file where a
window begins.
"""

import json
import lzma
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.errors import DataError, InputError
from stages.params.sequences import Text
from stages.sequences.tokens import Sequences
from stages.splits import SPLITS

SUFFIXES = (".txt", ".raw", ".tokens", ".parquet", ".xz")
MILLION = 10**6
WORDS = {"train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2}
NAMED = re.compile(
    r"(?:^|[._-])(" + "|".join(sorted(WORDS, key=len, reverse=True)) + r")(?=[._-]|$)"
)
UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Part:
    """A stretch of one file that stands in one split; `begin` is its first character's place in
    the file."""

    text: str
    source: int
    split: int
    begin: int


def content(path: Path) -> str:
    """The text of one file, as it is. DataError for bytes that are not UTF-8, a table without
    `text`, or nothing."""
    try:
        if path.suffix == ".parquet":
            rows = (
                pl.read_parquet(path, columns=["text"])["text"]
                .fill_null("")
                .cast(pl.String)
                .to_list()
            )
            text = "".join(row if row.endswith("\n") else row + "\n" for row in rows)
        else:
            text = (
                "\n".join(documents(path))
                if path.suffix == ".xz"
                else path.read_bytes().decode("utf-8")
            )
    except (
        UnicodeDecodeError,
        OSError,
        EOFError,
        lzma.LZMAError,
        tarfile.TarError,
        pl.exceptions.PolarsError,
    ) as error:
        raise DataError(
            "a text cannot be read",
            where=path.name,
            expected="UTF-8, a tar.xz of it, or a table with a column `text`",
            found=str(error).split("\n")[0],
            remedy="acquire it again",
        ) from None
    if not text.strip():
        raise DataError("a text is empty", where=path.name, remedy="acquire it again")
    return text


def documents(path: Path) -> Iterator[str]:
    """The .txt members of a tar.xz, in the order they come; nothing is unpacked to the disk."""
    tar: Any
    with lzma.open(path, "rb") as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for member in tar:
            tar.members.clear()  # a stream never goes back; the list would only grow
            if member.isfile() and member.name.endswith(".txt"):
                yield tar.extractfile(member).read().decode("utf-8")


def contents(paths: list[Path], most: int | None) -> Iterator[str]:
    """The texts of the first files, `most` characters in all at most: whole ones, but for a
    first one that is longer."""
    left = most
    for number, path in enumerate(paths):
        text = content(path)
        if left is not None:
            if len(text) > left and number:
                return
            text, left = text[:left], max(left - len(text), 0)
        yield text


def cuts(text: str, weights: tuple[int, int, int]) -> list[int]:
    """Where the three parts of a text begin and end (4,), each but the last at a line's end."""
    ends = [0]
    for share in (weights[0], weights[0] + weights[1]):
        goal = len(text) * share // sum(weights)
        line = text.find("\n", max(goal - 1, ends[-1]))
        ends.append(line + 1 if line >= 0 else len(text))
    return [*ends, len(text)]


def parts(raw: Path, config: Text) -> tuple[list[Part], list[Path], str]:
    """All parts, the files that were read in order, and how they were split. DataError where a
    split has no text, or a file's name does not say which."""
    paths = sorted(path for path in raw.rglob("*") if path.suffix in SUFFIXES)
    if not paths:
        raise DataError(
            "there is no text", where=str(raw), expected="files ending in " + ", ".join(SUFFIXES)
        )
    most = config.most_mb and config.most_mb * MILLION
    told = [
        WORDS[found[1]] if (found := NAMED.search(path.stem.lower())) else None for path in paths
    ]
    if set(told) >= {0, 1, 2}:
        if None in told:
            raise DataError(
                "a file's name does not say its split",
                where=paths[told.index(None)].name,
                expected=", ".join(WORDS),
            )
        if most is not None:
            raise InputError(
                "files that are splits are read whole",
                where="most_mb of the data set's reading",
                expected="null",
                found=str(config.most_mb),
            )
        return [Part(content(path), k, told[k], 0) for k, path in enumerate(paths)], paths, "files"
    refuse_named(paths, told, config)
    made = []
    for k, text in enumerate(contents(paths, most)):
        ends = cuts(text, (config.train, config.val, config.test))
        if min(np.diff(ends)) == 0:
            raise DataError(
                "a text is too short to be cut in three",
                where=paths[k].name,
                expected="a line or more for train, val and test each",
                found=f"{len(text)} characters in {text.count(chr(10))} lines",
            )
        made += [Part(text[ends[s] : ends[s + 1]], k, s, ends[s]) for s in range(3)]
    return made, paths[: k + 1], "contiguous parts"


def refuse_named(paths: list[Path], told: list[int | None], config: Text) -> None:
    """DataError for a file whose name says that it selects or tests, which a cut would train on."""
    held = [
        path.name
        for path, split in zip(paths, told, strict=True)
        if split in (1, 2) and path.name not in config.cut
    ]
    if held:
        raise DataError(
            "a text that its name keeps for validation or test would be trained on",
            where=", ".join(held),
            expected="files of all three splits, or of none: " + ", ".join(WORDS),
            found=", ".join(path.name for path in paths),
            remedy="add what is missing, or name the file under `cut` of the data set in "
            "stages/params/budgets/PROFILE/sequences.yaml",
        )


def codes(text: str) -> np.ndarray:
    """Code points of a text (characters,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class Characters:
    """Every character of the training part, by code point, after <unk>."""

    def __init__(self, training: list[str]):
        self.known = np.unique(np.concatenate([np.unique(codes(text)) for text in training]))
        self.names = {"tokens": [UNKNOWN, *map(chr, self.known.tolist())]}

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens, and the character where each begins."""
        point = codes(text)
        at = np.minimum(np.searchsorted(self.known, point), len(self.known) - 1)
        return np.where(self.known[at] == point, at + 1, 0), np.arange(len(point))


class Pieces:
    """Byte-pair encoding: all 256 bytes, and the merges that the training part teaches,
    `vocabulary` pieces in all."""

    def __init__(self, training: list[str], vocabulary: int):
        self.model = _library().Tokenizer(_library().models.BPE())
        self.model.pre_tokenizer = _library().pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.model.decoder = _library().decoders.ByteLevel()
        trainer = _library().trainers.BpeTrainer(
            vocab_size=vocabulary,
            show_progress=False,
            initial_alphabet=sorted(_library().pre_tokenizers.ByteLevel.alphabet()),
        )
        self.model.train_from_iterator(
            (line for text in training for line in text.splitlines(keepends=True)), trainer
        )
        pieces = [self.model.decode([k]) for k in range(self.model.get_vocab_size())]
        self.names = {"tokens": pieces, "tokenizer": json.loads(self.model.to_str())}

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Tokens, and the character where each begins; lines are encoded one by one."""
        lines, tokens, begins, start = text.splitlines(keepends=True), [], [], 0
        for line, found in zip(lines, self.model.encode_batch(lines), strict=True):
            tokens.append(np.array(found.ids, np.int64))
            begins.append(np.array([begin for begin, _ in found.offsets], np.int64) + start)
            start += len(line)
        return np.concatenate(tokens), np.concatenate(begins)


def _library() -> Any:
    """The tokenizers library. InputError where it is not installed."""
    try:
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise InputError(
            "byte-pair encoding needs the tokenizers library",
            found="it is not installed",
            remedy="`pip install -c constraints.txt -e '.[text]'`, or `level: character` of the "
            "data set in stages/params/budgets/PROFILE/sequences.yaml",
        ) from None
    return tokenizers


def decode(tokens: np.ndarray, names: dict[str, Any]) -> str:
    """The text of tokens (T,), by the `names` of sequences.json."""
    if "tokenizer" in names:
        return (
            _library()
            .Tokenizer.from_str(json.dumps(names["tokenizer"]))
            .decode([int(k) for k in tokens])
        )
    return "".join(names["tokens"][int(k)] for k in tokens)


def read(raw: Path, seed: int, config: Text) -> Sequences:
    """All windows of the texts in `raw`; nothing is drawn, `seed` is every reader's. DataError
    for a split without a whole window."""
    texts, paths, way = parts(raw, config)
    training = [part.text for part in texts if part.split == 0]
    coder = (
        Characters(training) if config.level == "character" else Pieces(training, config.vocabulary)
    )
    tokens, origin, left = [], [], 0
    per = {name: {"tokens": 0, "characters": 0, "words": 0, "unknown": 0} for name in SPLITS}
    for part in texts:
        found, begins = coder.encode(part.text)
        count = len(found) // config.length
        tokens.append(found[: count * config.length].reshape(count, config.length))
        origin += [
            (part.split, part.source, part.begin + int(at))
            for at in begins[: count * config.length : config.length]
        ]
        left += len(found) - count * config.length
        unknown = int((found == 0).sum()) if config.level == "character" else 0
        counts = {
            "tokens": len(found),
            "characters": len(part.text),
            "words": len(part.text.split()),
            "unknown": unknown,
        }
        for name, number in counts.items():
            per[SPLITS[part.split]][name] += number
    split, source, record = np.array(origin, np.int64).reshape(-1, 3).T
    if len(np.unique(split)) < 3:
        missing = [name for k, name in enumerate(SPLITS) if k not in split]
        raise DataError(
            "a split has no whole window",
            where=str(raw),
            expected=f"{config.length} tokens or more in each",
            found=", ".join(missing),
            remedy="shorten `length`, or give the data set more text",
        )
    return Sequences(
        kind="text",
        tokens=np.concatenate(tokens).astype(np.int32),
        split=split.astype(np.int8),
        source=source.astype(np.int32),
        record=record,
        files=tuple(path.relative_to(raw).as_posix() for path in paths),
        vocabulary=len(coder.names["tokens"]),
        law={"level": config.level, "split_by": way, "per": per},
        names=coder.names,
        group=source * 3 + split,
        dropped={"tokens after the last whole window of a part": left} if left else {},
    )
