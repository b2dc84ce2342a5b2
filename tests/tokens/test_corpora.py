"""The five tables of the thesis as `full` declares them: pinned archives and BERT's vocabulary, the
first file alone trains; a few real rows of each are read where they lie."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stages import files
from stages.errors import DataError, InputError, ParamsError
from stages.params import checked, load
from stages.tokens import prepare
from stages.tokens.layout import ABOUT, INPUTS, SPLIT, TARGETS
from stages.tokens.settings import Split, tokens_of
from stages.tokens.tasks import glue

wordpiece = pytest.importorskip("stages.tokens.tasks.wordpiece")
pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[2]
MIRROR = os.environ.get("TRADEWIND_MIRROR")
SAMPLES = Path(MIRROR or "absent") / "text/format-samples"
real = pytest.mark.skipif(
    not (MIRROR and SAMPLES.is_dir()), reason="TRADEWIND_MIRROR is not set: real rows are absent"
)
WORDS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "##s", "good", "bad", "##ly"]
# Rows that train, select and test (thesis table 2.2), the last two together but of SNLI.
ROWS = {
    "snli": (549_367, 9_842, 9_824),
    "mnli": (392_702, 9_815),
    "qqp": (363_846, 40_430),
    "qnli": (104_743, 5_463),
    "sst2_bert": (67_349, 872),
}


def declared() -> dict[str, Split]:
    """The splits of `full` whose pieces are BERT's."""
    splits = tokens_of(load(ROOT / "params.yaml"), "full").splits
    return {name: one for name, one in splits.items() if one.text and one.text.vocabulary}


def test_all_five_are_pinned_whole_and_three_of_them_to_a_tenth_too():
    found = declared()
    assert set(found) == {*ROWS, "snli_tenth", "mnli_tenth", "qqp_tenth"}
    datasets = load(ROOT / "params.yaml").datasets
    for name, one in found.items():
        assert one.text is not None and one.text.apart
        pinned = datasets[name].files
        assert one.text.vocabulary in pinned and len(pinned) == 2
        assert all(source.sha256 and source.bytes for source in pinned.values())
        train, held, *_ = ROWS[name.removesuffix("_tenth")]
        assert one.train == train and one.every == (10 if name.endswith("_tenth") else 1)
        assert one.val <= held


@real
@pytest.mark.parametrize("name", ["snli", "mnli", "qnli", "sst2_bert"])
def test_real_rows_are_read_as_declared(name, tmp_path):
    told = declared()[name].text
    assert told is not None
    package = {"sst2_bert": "sst2"}.get(name, name)
    with zipfile.ZipFile(SAMPLES / f"{package}.zip") as archive:
        archive.extractall(tmp_path)
    form = glue.FORMATS[told.form]
    for file in told.files:
        table = glue.read(tmp_path / "dummy_data" / file, form)
        assert len(table.labels) >= 1 and sum(table.dropped.values()) == 0
        assert all(len(one) == len(form.sentences) for one in table.sentences)


def test_a_row_of_snli_may_lack_the_labels_of_others_and_no_more(tmp_path):
    header = [*"abcdefg", "label1", "label2", "label3", "label4", "label5"]
    header[:3] = "gold_label", "sentence1", "sentence2"
    rows = [["neutral", "one", "two", *"0000", "neutral"], ["-", "one", "two", *"0000", *"-----"],
            ["neutral", "one", "two", *"0000"]]  # fmt: skip
    file = tmp_path / "train.txt"
    file.write_text("\n".join("\t".join(row) for row in (header, *rows)) + "\n")
    table = glue.read(file, glue.FORMATS["snli"])
    assert (table.labels, table.lines) == ([1], [2])
    assert table.dropped == {"fields": 1, "label": 1}


@pytest.fixture
def raw(tmp_path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    rows = {"train": [f"a film a{'s' * row}\t{row % 2}" for row in range(60)],
            "dev": [f"goodly films {row}\t1" for row in range(20)]}  # fmt: skip
    rows["train"][7] = "bad\t-1"
    for name, lines in rows.items():
        text = "\n".join(["sentence\tlabel", *lines]) + "\n"
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


def prepared(raw: Path, train: int, **other) -> tuple[dict, dict[str, np.ndarray]]:
    told = {"form": "sst2", "files": ("train.tsv", "dev.tsv"), "apart": True,
            "vocabulary": "vocab.txt", "longest": 12}  # fmt: skip
    split = checked(Split, {"train": train, "val": 5, "text": told | other}, "splits.sst2")
    folder = raw.parent / "prepared"
    folder.mkdir(exist_ok=True)
    prepare.write(raw, folder, None, split)
    arrays = {name: np.load(folder / name) for name in (INPUTS, TARGETS, SPLIT)}
    return files.read_json(folder / ABOUT), arrays


def test_the_first_file_alone_trains_whatever_rows_it_loses(raw):
    about, arrays = prepared(raw, 60)
    assert about["dropped"] == {"label": 1, "trains": 0}
    assert about["rows"] == {"train": 59, "val": 5, "test": 15}
    assert (arrays[TARGETS][arrays[SPLIT] > 0] == 1).all()


def test_rows_of_it_beyond_those_that_train_are_left_out(raw):
    about, arrays = prepared(raw, 40)
    assert about["rows"] == {"train": 40, "val": 5, "test": 15}
    assert len(arrays[SPLIT]) == 60


def test_a_second_file_that_selecting_rows_fill_leaves_nothing_to_test(raw):
    lines = (raw / "dev.tsv").read_text(encoding="utf-8").splitlines()[:6]
    (raw / "dev.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"leaves nothing to test[\s\S]*below 64"):
        prepared(raw, 60)


def test_pieces_are_those_of_the_vocabulary_in_its_order(raw):
    about, arrays = prepared(raw, 60)
    assert about["words"] == WORDS and about["vocabulary"] == len(WORDS)
    first = arrays[INPUTS][arrays[SPLIT] > 0][0]
    assert [WORDS[number] for number in first if number] == [
        "good", "##ly", "film", "##s", "[UNK]"
    ]  # fmt: skip


def test_a_piece_may_be_a_mark_that_parts_lines_elsewhere(raw):
    words = [*WORDS, "\u2028", "\x85"]
    (raw / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    assert wordpiece.Pieces.read(raw / "vocab.txt").words == words


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (WORDS[1:], "unused0"),
        ([*WORDS, "film"], "twice: .'film'."),
        ([one for one in WORDS if one != "[SEP]"], r"lacking: .'\[SEP\]'."),
    ],
    ids=["no padding first", "a piece twice", "no separator"],
)
def test_a_file_that_is_no_vocabulary_is_refused(raw, words, found):
    (raw / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"none of WordPiece[\\s\\S]*{found}"):
        prepared(raw, 60)


def test_pieces_are_learnt_or_read_not_both(raw):
    with pytest.raises(ParamsError, match="give one"):
        prepared(raw, 60, pieces=120)
    with pytest.raises(ParamsError, match="give one"):
        prepared(raw, 60, vocabulary=None)
