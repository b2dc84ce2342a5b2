"""Tables of sentences of others: from pinned files to pieces, splits and claims."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages import files, seeds
from stages.errors import DataError, InputError
from stages.params import checked, load
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.tokens import measure, parting, prepare, tables
from stages.tokens.layout import ABOUT, INPUTS, SPLIT, TARGETS
from stages.tokens.models import build
from stages.tokens.printed import Printed
from stages.tokens.sets import Sets
from stages.tokens.settings import Split, Tokens, tokens_of
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

tasks = pytest.importorskip("stages.tokens.tasks.wordpiece")
pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[2]
WORDS = ("unaffecting", "affected", "a", "film", "films", "filming", "good", "bad", "goodness")
SENTENCES = [" ".join(WORDS[(row + place) % len(WORDS)] for place in range(1 + row % 7))
             for row in range(400)]  # fmt: skip
DEV = ["what a goodness !", SENTENCES[3], "films , filmed", "bad bad", "good film"]


def split(every: int = 1, **other) -> Split:
    told = {"form": "sst2_text", "files": ("train.tsv", "dev.tsv"), "pieces": 120, "longest": 12}
    return checked(
        Split, {"train": 400, "val": 2, "every": every, "text": told | other}, "splits.sst2"
    )


@pytest.fixture
def raw(tmp_path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    for name, sentences in (("train.tsv", SENTENCES), ("dev.tsv", DEV)):
        rows = [f"{one}\t{place % 2}" for place, one in enumerate(sentences)]
        (folder / name).write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return folder


def prepared(raw: Path, told: Split) -> tuple[dict, dict[str, np.ndarray]]:
    folder = raw.parent / "prepared"
    folder.mkdir(exist_ok=True)
    prepare.write(raw, folder, None, told)
    arrays = {name: np.load(folder / name) for name in (INPUTS, TARGETS, SPLIT)}
    return files.read_json(folder / ABOUT), arrays


def test_a_row_is_its_pieces_and_spells_its_words(raw):
    about, arrays = prepared(raw, split())
    words = about["words"]
    assert words[:3] == ["[PAD]", "[UNK]", "[SEP]"] and len(words) == about["vocabulary"] <= 120
    spelt = " ".join(words[number] for number in arrays[INPUTS][0] if number).replace(" ##", "")
    assert spelt == SENTENCES[0] and arrays[TARGETS][:4].tolist() == [0, 1, 0, 1]
    assert about["rows"] == {"train": 400, "val": 1, "test": 3}
    assert about["dropped"] == {"trains": 1}, "a sentence that trains does not select"
    assert "1 that train, too, were left out" in tables.sentence(about)


def test_pieces_are_learnt_from_what_trains_alone_and_what_they_cannot_spell_is_unknown(raw):
    about, arrays = prepared(raw, split())
    assert "!" not in about["words"] and "," not in about["words"]
    assert (arrays[INPUTS][arrays[SPLIT] > 0] == 1).any()
    assert not (arrays[INPUTS][arrays[SPLIT] == 0] == 1).any()


def test_a_tenth_is_every_tenth_row_and_leaves_the_others_as_they_are(raw):
    _, whole = prepared(raw, split())
    about, tenth = prepared(raw, split(every=10))
    assert about["rows"] == {"train": 40, "val": 1, "test": 3}
    np.testing.assert_array_equal(tenth[TARGETS][:40], whole[TARGETS][:400:10])
    np.testing.assert_array_equal(tenth[TARGETS][40:], whole[TARGETS][400:])


def test_long_rows_are_cut_and_counted(raw):
    about, arrays = prepared(raw, split(longest=4))
    assert arrays[INPUTS].shape[1] == 4 and about["cut"] > 50


def test_a_pair_is_one_sequence_with_a_separator(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    lines = [f"{row}\twhat is {SENTENCES[row]}\t{SENTENCES[row + 1]}\t"
             f"{('entailment', 'not_entailment')[row % 2]}" for row in range(60)]  # fmt: skip
    text = "\n".join(["index\tquestion\tsentence\tlabel", *lines]) + "\n"
    (raw / "dev.tsv").write_text(text, encoding="utf-8")
    told = {"form": "qnli", "files": ("dev.tsv",), "pieces": 120, "longest": 64}
    one = checked(Split, {"train": 40, "val": 10, "text": told}, "splits.qnli")
    about, arrays = prepared(raw, one)
    spelt = " ".join(about["words"][k] for k in arrays[INPUTS][5] if k).replace(" ##", "")
    assert spelt == f"what is {SENTENCES[5]} [SEP] {SENTENCES[6]}"


def test_rows_that_share_a_question_or_a_sentence_stand_in_one_split(tmp_path):
    raw = tmp_path / "raw"
    raw.mkdir()
    lines = [f"{row}\twhat is {WORDS[row % 9]} {row % 90} ?\t{SENTENCES[row]} {row // 3}\t"
             f"{('entailment', 'not_entailment')[row // 90]}" for row in range(180)]  # fmt: skip
    text = "\n".join(["index\tquestion\tsentence\tlabel", *lines]) + "\n"
    (raw / "dev.tsv").write_text(text, encoding="utf-8")
    told = {"form": "qnli", "files": ("dev.tsv",), "pieces": 120, "longest": 64, "linked": True}
    one = checked(Split, {"train": 100, "val": 30, "text": told}, "splits.qnli")
    about, arrays = prepared(raw, one)
    words, parts = about["words"], {}
    for row, part in zip(arrays[INPUTS], arrays[SPLIT].tolist(), strict=True):
        spelt = " ".join(words[n] for n in row if n).replace(" ##", "")
        for place, text in enumerate(spelt.split(" [SEP] ")):
            parts.setdefault((place, text), set()).add(part)
    assert max(map(len, parts.values())) == 1 and len(arrays[SPLIT]) == 180
    assert about["rows"]["train"] >= 100 and about["rows"]["test"] >= 30
    assert sum(about["groups"].values()) == len(
        np.unique(np.load(tmp_path / "prepared/groups.npy"))
    )
    assert "stand in one split alone" in tables.sentence(about)


def test_a_chain_of_shared_texts_is_one_group_and_columns_are_told_apart():
    rows = [("a", "b"), ("c", "d"), ("a", "e"), ("f", "e"), ("b", "a"), ("c", "g")]
    assert parting.linked(rows).tolist() == [0, 1, 0, 0, 2, 1]


def test_the_same_sentences_give_the_same_pieces_in_another_process():
    found = tasks.Pieces.learnt(SENTENCES, 60).words
    program = (
        "import sys; from stages.tokens.tasks.wordpiece import Pieces\n"
        "print('|'.join(Pieces.learnt(sys.stdin.read().split('\\n'), 60).words))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program], input="\n".join(SENTENCES), capture_output=True,
            text=True, check=True, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.stdout.rstrip("\n").split("|") == found


def test_a_split_that_leaves_nothing_to_test_and_a_table_of_another_form_are_told(raw):
    few = split().model_copy(update={"val": 5})
    with pytest.raises(InputError, match=r"leaves nothing to test[\s\S]*below 405"):
        prepared(raw, few)
    with pytest.raises(DataError, match=r"lacks columns[\s\S]*no sentence"):
        prepared(raw, split(form="sst2"))


def test_without_the_library_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match="needs the tokenizers library"):
        tasks.Pieces.learnt(SENTENCES, 60)


@pytest.mark.parametrize("profile", ["sample"])
def test_every_text_of_a_profile_is_pinned_and_names_its_files(profile):
    parameters = load(ROOT / "params.yaml")
    told = {name: one.text for name, one in tokens_of(parameters, profile).splits.items()}
    texts = {name: one for name, one in told.items() if one}
    assert set(texts) == {"sst2", "sst2_tenth", "qnli_5463"}
    for name, one in texts.items():
        pinned = parameters.datasets[name].files
        assert set(one.files) == set(pinned) and all(source.sha256 for source in pinned.values())


@pytest.mark.parametrize("name", ["hypermixing", "fnet"])
def test_a_trained_mixer_of_a_text_has_a_row_beside_the_printed_number(name, raw, tmp_path):
    prepared(raw, split())
    sets = Sets.open(tmp_path / "prepared")
    seeds.everything(0)
    arguments = {"width": 16, "feed": 16, "layout": "post_norm"}
    model = build(name, arguments, sets.dimensions)
    settings = loop.Settings(10, 5, 9, 0.005, 4.0, 0, slices=8, schedule="cosine")
    history = loop.train(model, sets, settings, Checkpoints(tmp_path / "kept"))
    run = tmp_path / f"runs/{name}-tied-w-s0"
    run.mkdir(parents=True)
    metadata = {"model": name, "arm": "tied", "size": "w", "seed": 0, "arguments": arguments}
    weights = store.dump(model, metadata | sets.dimensions)
    (run / shell.WEIGHTS).write_bytes(weights)
    files.write_json(run / "history.json", history)
    told = Tokens(datasets=(), resamples=100)
    data = measure.Data.open(tmp_path / "prepared", None, told, 0, "cpu")
    found = measure.companions(data) | {run.name: measure.network(run, data, 1)}
    measure.write(found, data, tmp_path / "evaluated/sst2")
    content = files.read_json(tmp_path / "evaluated/sst2/metrics.json")
    cells = {f"sst2/{cell}": entry for cell, entry in content["cells"].items()}
    whole = {"cells": cells, "arms": over_seeds(cells), "about": {"sst2": content["about"]}}
    printed = {f"sst2/{name}-tied": Printed("thesis 2.3", 80.7, "sst2")}
    rows = tables.results(whole, "sst2", printed).rows
    assert [row[0] for row in rows] == [f"{name}-tied-w", "the most frequent class"]
    assert rows[0][2] == "80.7 (SST-2, thesis 2.3)" and rows[1][2] == "–"
