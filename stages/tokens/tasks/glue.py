"""Tables of sentences with a label, as GLUE has them: tab-separated, without quoting, a header
(schema of MNLI, SNLI, QQP, QNLI, SST-2; thesis 2.5.1). Rows of SNLI that one person labelled end
before the labels of four others.

A quotation mark is a character like any other, balanced or not. A row that cannot be used is left
out and counted, by reason: `fields` (a tab too many or too few), `label` (none, or outside the
set), `empty` (a sentence without a word), `long` (more than LONGEST words).
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from stages.errors import DataError

LONGEST = 2000  # words a sentence
NLI = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Format:
    """The columns that a table is known by, those of its sentences, its label's, the labels, and
    how many columns at its end a row may lack."""

    columns: tuple[str, ...]
    sentences: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    spare: int = 0


FORMATS = {
    "pairs": Format(("sentence1", "sentence2", "label"), ("sentence1", "sentence2"), "label", NLI),
    "mnli": Format(
        ("sentence1", "sentence2", "gold_label"), ("sentence1", "sentence2"), "gold_label", NLI
    ),
    "snli": Format(
        ("gold_label", "sentence1", "sentence2", "label5"), ("sentence1", "sentence2"),
        "gold_label", NLI, spare=4,
    ),
    "qqp": Format(
        ("question1", "question2", "is_duplicate"), ("question1", "question2"), "is_duplicate",
        ("0", "1"),
    ),
    "qnli": Format(
        ("question", "sentence", "label"), ("question", "sentence"), "label",
        ("entailment", "not_entailment"),
    ),
    "sst2": Format(("sentence", "label"), ("sentence",), "label", ("0", "1")),
    # a public copy of SST-2 with a header of its own
    "sst2_text": Format(("text", "label"), ("text",), "label", ("0", "1")),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Sentences and label of each kept row, the number of its line (from 1), what was left out."""

    sentences: list[tuple[str, ...]]
    labels: list[int]
    lines: list[int]
    dropped: dict[str, int]


def read(path: Path, form: Format) -> Table:
    """The rows of a table. DataError for text that is not UTF-8, a header without the columns, or a
    table without a row."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            "a table is not UTF-8 text",
            where=f"{path}, byte {error.start}",
            remedy="acquire it again",
        ) from None
    header, *rows = text.removesuffix("\n").split("\n")
    names = header.rstrip("\r").split("\t")
    if missing := [name for name in form.columns if name not in names]:
        raise DataError(
            "a table lacks columns",
            where=f"{path}, line 1",
            expected=", ".join(form.columns),
            found=f"no {', '.join(missing)}",
        )
    places = [names.index(name) for name in form.sentences]
    label, known = names.index(form.label), {one: number for number, one in enumerate(form.labels)}
    table, dropped = Table([], [], [], {}), Counter[str]()
    for line, row in enumerate(rows, 2):
        fields = row.rstrip("\r").split("\t")
        sentences = tuple(fields[place].strip() for place in places if place < len(fields))
        if reason := amiss(fields, len(names), form.spare, label, known, sentences):
            dropped[reason] += 1
            continue
        table.sentences.append(sentences)
        table.labels.append(known[fields[label].strip()])
        table.lines.append(line)
    if not table.labels:
        raise DataError("a table has no row to use", where=str(path), found=str(dict(dropped)))
    table.dropped.update(sorted(dropped.items()))
    return table


def amiss(
    fields: list[str],
    count: int,
    spare: int,
    label: int,
    known: dict[str, int],
    sentences: tuple[str, ...],
) -> str:
    """Why a row cannot be used, '' where it can."""
    if not count - spare <= len(fields) <= count:
        return "fields"
    if fields[label].strip() not in known:
        return "label"
    if not all(sentences):
        return "empty"
    return "long" if any(len(one.split()) > LONGEST for one in sentences) else ""
