"""A set prepared alike for every model: data/P/raw/D to data/P/prepared/D.

Writes inputs.npy (S, N), word numbers (0 is padding) or standardised numbers; targets.npy, (S,)
classes or (S, N); split.npy (S,), 0 trains, 1 selects, 2 tests; of shapes kinds.npy (S, N); where
rows belong together groups.npy (S,); and about.json. Of pinned tables words are pieces of
WordPiece, learnt from what trains or of a given vocabulary. A row that also trains neither selects
nor tests: it is left out and counted, or its whole group trains (parting.py).
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages import files, records, runner
from stages.errors import DataError, InputError
from stages.tokens.layout import ABOUT, GROUPS, INPUTS, KINDS, PAIRS, ROWS, SPLIT, TARGETS
from stages.tokens.parting import (
    UNUSED,
    counted,
    dealt,
    in_order,
    linked,
    parts_of,
    trained_prompts,
    unseen,
)
from stages.tokens.settings import TASKS, Made, Split, Text, made_of, tokens_of
from stages.tokens.tasks import glue, pictures, shapes, wordpiece
from stages.tokens.tasks.pairs import bare

MODULE = "stages.tokens.prepare"
SEPARATOR = "<sep>"
Arrays = dict[str, np.ndarray]


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family, and for
    splits that leave nothing to test."""
    profile, dataset = asked["profile"], asked["dataset"]
    told = tokens_of(asked.parameters, profile)
    runner.known("set of tokens", dataset, told.datasets)
    made, split = made_of(asked.parameters, dataset), told.splits[dataset]
    where = f"profiles.{profile}.families.tokens.splits.{dataset}"
    if (made is None) != (split.text is not None):
        raise InputError(
            "how the set is read does not fit how it comes here",
            where=f"{where}.text",
            expected="`text` for a set of kind files or archive, none for one that is made here",
            found="none" if split.text is None else "`text`, but the set is made here",
        )
    if made is not None:
        leaves(split, made.rows, where)
    raw, final = asked.data("raw"), asked.data("prepared")

    def do() -> dict[str, Path]:
        with files.atomic_folder(final) as folder:
            write(raw, folder, made, split)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=[MODULE],
        params={"split": split.model_dump()},
    )


def leaves(split: Split, rows: int, where: str) -> None:
    """InputError for a split that leaves nothing to test of so many rows."""
    if split.train + split.val >= rows:
        raise InputError(
            "the split leaves nothing to test",
            where=where,
            expected=f"train and val below {rows}, the number of rows, together",
            found=f"{split.train} and {split.val}",
            remedy="lower them, or make more rows",
        )


def write(raw: Path, folder: Path, made: Made | None, split: Split) -> None:
    """Fill the prepared folder. DataError for raw files that are not what they should be,
    InputError for a split that leaves nothing to test of pinned tables."""
    if made is None:
        assert split.text is not None
        arrays, about = text(raw, split.text, split)
        told = split.text.model_dump(mode="json", exclude_defaults=True)
        about |= {"text": told, "task": TASKS["text"]}
    else:
        prepared = {"pairs": pairs, "shapes": numbers, "pictures": sequences}[made.task]
        arrays, about = prepared(raw, made, split)
        about |= {"made": made.model_dump(mode="json"), "task": TASKS[made.task]}
    used = arrays[SPLIT] != UNUSED
    arrays = {name: array[used] for name, array in arrays.items()}
    about |= {"every": split.every, "longest": arrays[INPUTS].shape[1]}
    parts = np.bincount(arrays[SPLIT], minlength=3).tolist()
    about["rows"] = dict(zip(("train", "val", "test"), parts, strict=True))
    for name, array in arrays.items():
        with files.atomic_file(folder / name) as stream:
            np.save(stream, array)
    files.write_json(folder / ABOUT, about)


def pairs(raw: Path, made: Made, split: Split) -> tuple[Arrays, dict[str, Any]]:
    """Words as numbers in the order of the alphabet; a pair is one sequence with a separator. A
    pair stands in one split alone, whatever its fillers; each label is split alike."""
    form = glue.FORMATS["pairs"]
    table = glue.read(raw / PAIRS, form)
    plain = [SEPARATOR.join(map(bare, one)) for one in table.sentences]
    group, labels = np.unique(plain, return_inverse=True)[1], np.array(table.labels, dtype=np.int64)
    parts = dealt(group, labels, split)
    kept = in_order(parts)
    texts = [f" {SEPARATOR} ".join(table.sentences[place]).split() for place in kept]
    words = sorted({word for text in texts for word in text})
    number = {word: place for place, word in enumerate(words, 1)}
    longest = max(map(len, texts))
    inputs = np.zeros((len(texts), longest), dtype=np.int32)
    for row, text in zip(inputs, texts, strict=True):
        row[: len(text)] = [number[word] for word in text]
    about = {"words": ["", *words], "classes": list(form.labels), "dropped": table.dropped,
             "groups": counted(group, parts), "vocabulary": len(words) + 1,
             "outputs": len(form.labels), "bound": {"accuracy": 1.0}}  # fmt: skip
    arrays: Arrays = {
        INPUTS: inputs,
        TARGETS: labels[kept],
        SPLIT: parts[kept],
        GROUPS: group[kept],
    }
    return arrays, about


def text(raw: Path, told: Text, split: Split) -> tuple[Arrays, dict[str, Any]]:
    """Pieces as numbers, a pair as one sequence with a separator, rows cut at the longest."""
    form = glue.FORMATS[told.form]
    tables = [glue.read(raw / name, form) for name in told.files]
    sentences = [one for table in tables for one in table.sentences]
    labels = [one for table in tables for one in table.labels]
    apart = len(tables[0].labels) if told.apart else None
    leaves(split if apart is None else split.model_copy(update={"train": apart}), len(labels),
           str(raw))  # fmt: skip
    group = linked(sentences) if told.linked else np.arange(len(labels))
    if told.linked:
        parts = dealt(group, np.zeros(len(labels)), split)
        kept = in_order(parts)
    else:
        parts = parts_of(len(labels), split, apart)
        kept = unseen(sentences, parts)
    learnt = [one for place in kept if parts[place] == 0 for one in sentences[place]]
    pieces = (
        wordpiece.Pieces.learnt(learnt, told.pieces) if told.pieces
        else wordpiece.Pieces.read(raw / str(told.vocabulary))
    )  # fmt: skip
    rows: list[list[int]] = [[] for _ in kept]
    for column in range(len(form.sentences)):
        given = pieces.encode([sentences[place][column] for place in kept])
        for row, found in zip(rows, given, strict=True):
            row += [pieces.words.index(wordpiece.SEPARATOR), *found] if column else found
    longest = min(told.longest, max(map(len, rows)))
    inputs = np.zeros((len(rows), longest), dtype=np.int32)
    for line, row in zip(inputs, rows, strict=True):
        line[: len(row)] = row[:longest]
    dropped = sum((Counter(table.dropped) for table in tables), Counter())
    dropped["trains"] = len(labels) - len(kept)
    about = {"words": pieces.words, "classes": list(form.labels), "dropped": dict(dropped),
             "cut": sum(len(row) > longest for row in rows), "vocabulary": len(pieces.words),
             "outputs": len(form.labels), "bound": {}}  # fmt: skip
    targets = np.array([labels[place] for place in kept], dtype=np.int64)
    arrays: Arrays = {INPUTS: inputs, TARGETS: targets, SPLIT: parts[kept]}
    if told.linked:
        arrays[GROUPS], about["groups"] = group[kept], counted(group, parts)
    return arrays, about


def loaded(raw: Path, names: Sequence[str], count: int) -> Arrays:
    """Arrays of rows.npz. DataError where one is missing, not finite, or has other rows."""
    with np.load(raw / ROWS, allow_pickle=False) as found:
        arrays = {name: found[name] for name in names if name in found}
    for name in names:
        one = arrays.get(name)
        if one is None or len(one) != count or not np.isfinite(one).all():
            raise DataError(
                "the raw rows are not those that were made",
                where=f"{raw / ROWS}, {name}",
                expected=f"{count} rows of finite numbers",
                found="none" if one is None else f"{len(one)} rows",
                remedy="acquire the set again",
            )
    return arrays


def numbers(raw: Path, made: Made, split: Split) -> tuple[Arrays, dict[str, Any]]:
    """Shapes: inputs standardised by what trains, answers as they are."""
    found = loaded(raw, ("inputs", "answers", "kinds"), made.rows)
    inputs, answers = found["inputs"], found["answers"]
    parts = parts_of(len(inputs), split)
    train, asked = (one[parts == 0].astype(np.float64) for one in (inputs, answers))
    mean, scale, spread = float(train.mean()), float(train.std()), float(asked.std())
    about = {"mean": mean, "sd": scale, "answer_sd": spread, "dropped": {}, "vocabulary": 1,
             "outputs": 1, "bound": {"mse": shapes.FLOOR}}  # fmt: skip
    arrays = {
        INPUTS: ((inputs - mean) / scale).astype(np.float32),
        TARGETS: answers,
        SPLIT: parts,
        KINDS: found["kinds"],
    }
    return arrays, about


def sequences(raw: Path, made: Made, split: Split) -> tuple[Arrays, dict[str, Any]]:
    """Pictures: the sequence is its own target. A picture that does not meet what is said of it is
    a DataError."""
    found, form = loaded(raw, ("sequences",), made.rows)["sequences"], made.form()
    checked = found[:: max(1, len(found) // 200)]
    kept = [pictures.share(one, one[form.said :], form) for one in checked]
    if min(kept) < 1:
        raise DataError("a picture does not meet its statements", where=str(raw / ROWS))
    parts = parts_of(len(found), split)
    content = [(pictures.prompt(one[: form.said]), one[form.said :].tobytes()) for one in found]
    used = unseen(content, parts)
    lost, found, parts = len(found) - len(used), found[used], parts[used]
    about = {"words": list(pictures.WORDS), "dropped": {"trains": lost},
             "vocabulary": len(pictures.WORDS), "outputs": len(pictures.WORDS),
             "bound": {"satisfied": 1.0}, "said": form.said,
             "prompts_that_train": int(trained_prompts(found, parts, form.said).sum())}  # fmt: skip
    return {INPUTS: found.astype(np.int32), TARGETS: found.astype(np.int64), SPLIT: parts}, about


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare a set of tokens: numbers of words, splits."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
