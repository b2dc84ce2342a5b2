"""Texts to windows: planted texts whose every token is known, vocabularies of the training part
alone, splits that share nothing, real texts."""

import importlib.util
import io
import itertools
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages.errors import DataError, InputError
from stages.params.sequences import Text
from stages.sequences.data import text
from stages.sequences.tokens import check

MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
REAL = Path(MIRROR or "absent") / "text"
real = pytest.mark.skipif(
    not (MIRROR and REAL.is_dir()), reason="TRADEWIND_MIRROR is not set: the real texts are absent"
)
pieces = pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is None, reason="tokenizers is not installed"
)
LINES = "".join(f"line {k} of the text, and so on\n" for k in range(100))


def written(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.txt").write_bytes(content.encode())
    return folder


def config(**changed):
    return Text(**({"length": 8} | changed))


def test_characters_are_numbered_by_code_point_after_unknown_and_the_training_part_alone_is_asked(
    tmp_path,
):
    made = text.read(
        written(tmp_path, train="bab\nbab\n", valid="abz\nabz\n", test="éa\nbbbbb\n"), 0, config()
    )
    check(made, "planted")
    assert made.names == {"tokens": ["<unk>", "\n", "a", "b"]} and made.vocabulary == 4
    by_split = {int(s): row.tolist() for s, row in zip(made.split, made.tokens, strict=True)}
    assert by_split == {
        0: [3, 2, 3, 1, 3, 2, 3, 1],
        1: [2, 3, 0, 1, 2, 3, 0, 1],
        2: [0, 2, 1, 3, 3, 3, 3, 3],
    }
    assert made.law["split_by"] == "files" and made.law["per"]["val"] == {
        "tokens": 8,
        "characters": 8,
        "words": 2,
        "unknown": 2,
    }
    assert made.files == ("test.txt", "train.txt", "valid.txt") and made.dropped == {
        "tokens after the last whole window of a part": 1
    }


def test_one_file_is_cut_at_line_ends_and_no_window_crosses_a_cut(tmp_path):
    made = text.read(written(tmp_path, input=LINES), 0, config())
    check(made, "planted")
    assert made.law["split_by"] == "contiguous parts" and (np.diff(made.split) >= 0).all()
    spans = [(int(r), int(r) + 8) for r in made.record]
    assert all(
        LINES[a:b] == text.decode(row, made.names)
        for (a, b), row in zip(spans, made.tokens, strict=True)
    )
    for part in (1, 2):
        begin = made.record[made.split == part].min()
        before = made.record[made.split == part - 1].max() + 8
        assert LINES[begin - 1] == "\n" and before <= begin
    assert all(b <= a for (_, b), (a, _) in itertools.pairwise(spans))
    share = np.bincount(made.split) / len(made.split)
    assert np.allclose(share, (0.8, 0.1, 0.1), atol=0.02)


def test_what_is_counted_of_a_part_adds_up_to_the_text(tmp_path):
    made = text.read(written(tmp_path, input=LINES), 0, config())
    per = made.law["per"].values()
    assert (
        sum(part["characters"] for part in per) == len(LINES) == sum(part["tokens"] for part in per)
    )
    assert sum(part["words"] for part in per) == len(LINES.split())
    assert made.tokens.size + made.dropped["tokens after the last whole window of a part"] == len(
        LINES
    )


def test_a_table_is_read_as_a_text_and_its_name_says_its_split(tmp_path):
    for name in ("train", "validation", "test"):
        pl.DataFrame({"text": ["ab\n", "", "abba", None, "ab"]}).write_parquet(
            tmp_path / f"{name}-00000-of-00001.parquet"
        )
    made = text.read(tmp_path, 0, config())
    assert [text.decode(row, made.names) for row in made.tokens] == ["ab\n\nabba"] * 3 and made.law[
        "split_by"
    ] == "files"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "no text"),
        ({"input": "one line\n"}, "too short to be cut"),
        ({"train": LINES, "valid": LINES, "test": LINES, "more": LINES}, "does not say"),
        ({"train": LINES, "valid": "a\n", "test": LINES}, "whole window"),
        ({"input": "  \n"}, "empty"),
        ({"test": LINES}, "would be trained on"),
        ({"train": LINES, "test": LINES}, "would be trained on"),
        ({"plays": LINES, "corpus-valid": LINES}, "would be trained on"),
    ],
)
def test_what_makes_no_three_splits_is_told(tmp_path, files, told):
    with pytest.raises(DataError, match=told):
        text.read(written(tmp_path, **files), 0, config())


def test_a_lone_test_file_is_cut_where_it_is_asked_for_by_name(tmp_path):
    asked = config().model_copy(update={"cut": ("test.txt",)})
    made = text.read(written(tmp_path, test=LINES), 0, asked)
    assert made.files == ("test.txt",) and set(made.split.tolist()) == {0, 1, 2}
    assert asked.model_dump(mode="json")["cut"] == ["test.txt"]
    assert "cut" not in config().model_dump(mode="json")  # as settings always were


def test_bytes_that_are_no_text_and_a_table_without_text_are_told(tmp_path):
    (tmp_path / "input.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DataError, match="UTF-8"):
        text.read(tmp_path, 0, config())
    (tmp_path / "input.txt").unlink()
    pl.DataFrame({"words": ["a"]}).write_parquet(tmp_path / "input.parquet")
    with pytest.raises(DataError, match="column `text`"):
        text.read(tmp_path, 0, config())


def test_pieces_without_their_library_are_told_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match=r"pip install .*\[text\]"):
        text.read(written(tmp_path, input=LINES), 0, config(level="bpe"))


@pieces
def test_pieces_give_the_text_back_with_bytes_the_training_part_never_had(tmp_path):
    made = text.read(
        written(tmp_path, train=LINES, valid="zebra é 漢字 ~ and so on\n" * 5, test=LINES[-900:]),
        0,
        config(level="bpe", vocabulary=300),
    )
    check(made, "planted")
    assert made.vocabulary == len(made.names["tokens"]) <= 300
    val = np.concatenate(made.tokens[made.split == 1])
    assert ("zebra é 漢字 ~ and so on\n" * 5).startswith(
        text.decode(val, made.names).rstrip("\ufffd")
    )
    assert made.law["per"]["test"]["tokens"] < 0.4 * made.law["per"]["test"]["characters"]
    starts = [LINES[int(r) : int(r) + 3] for r in made.record[made.split == 0]]
    assert starts == [text.decode(row, made.names)[:3] for row in made.tokens[made.split == 0]]


@pieces
def test_pieces_are_learned_from_the_training_part_alone_and_twice_alike(tmp_path):
    one, two = (
        written(tmp_path / name, train=LINES, valid=later, test=later)
        for name, later in (("one", LINES), ("two", "quixotic zephyr\n" * 50))
        if not (tmp_path / name).mkdir()
    )
    first, again, other = (
        text.read(folder, 0, config(level="bpe", vocabulary=320)) for folder in (one, one, two)
    )
    assert first.names == again.names == other.names and (first.tokens == again.tokens).all()


@real
def test_tiny_shakespeare_has_65_characters_and_comes_back_letter_by_letter(tmp_path):
    (tmp_path / "input.txt").symlink_to(REAL / "tinyshakespeare" / "input.txt")
    made = text.read(tmp_path, 0, Text(length=256))
    check(made, "real")
    assert made.vocabulary == 66 and np.bincount(made.split).tolist() == [3485, 435, 435]
    assert sum(part["unknown"] for part in made.law["per"].values()) == 0
    whole = (tmp_path / "input.txt").read_text()
    for row in (0, 2000, 4000, 4354):
        assert (
            text.decode(made.tokens[row], made.names)
            == whole[made.record[row] : made.record[row] + 256]
        )


@real
@pieces
def test_wikitext_2_in_pieces_has_fewer_tokens_than_characters_and_knows_everything(tmp_path):
    (tmp_path / "valid.txt").symlink_to(REAL / "wikitext-2" / "valid.txt")
    config = Text(level="bpe", vocabulary=512, length=256, cut=("valid.txt",))
    made = text.read(tmp_path, 0, config)
    check(made, "real")
    test = made.law["per"]["test"]
    assert (
        made.vocabulary == 512
        and test["unknown"] == 0
        and 1.5 < test["characters"] / test["tokens"] < 3
    )
    whole, row = (tmp_path / "valid.txt").read_text(), 700
    told = text.decode(made.tokens[row], made.names)
    assert whole[made.record[row] : made.record[row] + len(told)] == told


def packed(path, documents):
    """A tar.xz of documents {name: text}, as OpenWebText's parts are."""
    with tarfile.open(path, "w:xz") as tar:
        for name, body in documents.items():
            info = tarfile.TarInfo(name)
            info.size = len(body.encode())
            tar.addfile(info, io.BytesIO(body.encode()))
    return path


def test_documents_in_a_tar_xz_are_one_text_in_their_order(tmp_path):
    bodies = {f"{k:07d}.txt": f"document {k}\n" + "words\n" * (k + 3) for k in range(6)}
    packed(tmp_path / "urlsf_subset00-1_data.xz", bodies | {"notes.json": "{}"})
    assert text.content(tmp_path / "urlsf_subset00-1_data.xz") == "\n".join(bodies.values())
    made = text.read(tmp_path, 0, Text(length=4))
    assert (
        made.files == ("urlsf_subset00-1_data.xz",) and made.law["split_by"] == "contiguous parts"
    )


@pytest.mark.parametrize("body", [b"\xfd7zXZ\x00 cut", b"no archive at all"])
def test_a_broken_tar_xz_is_refused_by_name(tmp_path, body):
    (tmp_path / "urlsf_subset00-1_data.xz").write_bytes(body)
    with pytest.raises(DataError, match="urlsf_subset00-1_data.xz"):
        text.read(tmp_path, 0, Text(length=4))


@pytest.mark.parametrize(
    "sizes, most, read",
    [
        ((600_000, 600_000, 600_000), 1, [600_000]),
        ((1_500_000, 600_000), 1, [1_000_000]),
        ((400_000, 500_000, 200_000), 1, [400_000, 500_000]),
        ((400_000, 500_000), None, [400_000, 500_000]),
    ],
)
def test_no_more_text_is_read_than_asked_for_and_files_stay_whole_where_they_can(
    tmp_path, sizes, most, read
):
    for k, size in enumerate(sizes):
        (tmp_path / f"part{k}.txt").write_text("a line of\n" * (size // 10))
    made = text.read(tmp_path, 0, Text(length=100, most_mb=most))
    lengths = np.bincount(made.source, minlength=len(read)) * 100
    assert len(made.files) == len(read) and (abs(lengths - read) < 300).all()


def test_files_that_are_splits_cannot_be_shortened(tmp_path):
    with pytest.raises(InputError, match="most_mb"):
        text.read(
            written(tmp_path, train=LINES, valid=LINES, test=LINES), 0, Text(length=4, most_mb=1)
        )


@real
def test_wikitext_103s_archive_is_read_by_its_own_splits(tmp_path):
    with zipfile.ZipFile(REAL / "format-samples" / "wikitext-103-raw-v1.zip") as package:
        package.extractall(tmp_path)
    made = text.read(tmp_path, 0, Text(length=16))
    check(made, "real")
    assert made.law["split_by"] == "files" and [Path(name).name for name in made.files] == [
        "wiki.test.raw",
        "wiki.train.raw",
        "wiki.valid.raw",
    ]
    for row in range(0, len(made.tokens), 20):
        whole = (tmp_path / made.files[made.source[row]]).read_text()
        assert (
            made.split[row] != 0
            or text.decode(made.tokens[row], made.names)
            == whole[made.record[row] : made.record[row] + 16]
        )
