"""Readers of simulated sequences: tokens as made, splits by file, and every damage to a raw file
told by name."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from stages import files
from stages.errors import DataError
from stages.params import sequences as params
from stages.params.orders import PlainReading
from stages.sequences import prepare as stage
from stages.sequences import tokens as sequences

SIZES = dict(seed=0, train=30, val=10, test=12)
SECTIONS = {
    "product": params.Product(**SIZES, length=20),
    "step": params.Step(**SIZES, length=12, width=3, last=False),
    "permutation": params.Permutation(**SIZES, length=9),
    "walk": params.Walk(**SIZES, length=8, starts=(100, 105)),
    "maze": params.Maze(**SIZES, rows=7, columns=9, walls=2, far=4),
    "grammar": params.Grammar(**SIZES, length=40),
}


def module(kind):
    return "laws" if kind in ("product", "step", "permutation") else kind


def reader(kind):
    return import_module(f"stages.sequences.data.{module(kind)}").read


@pytest.fixture(params=SECTIONS)
def kind(request):
    return request.param


@pytest.fixture
def raw(kind, tmp_path):
    folder = tmp_path / "data" / "mini" / "raw" / kind
    folder.mkdir(parents=True)
    import_module(f"stages.sequences.data.{module(kind)}").make(SECTIONS[kind], folder)
    return folder


def plain(raw, kind):
    """Tokens of the raw files in the order of the splits, read here."""
    if kind != "grammar":
        return np.concatenate([np.load(raw / f"{name}.npy") for name in ("train", "val", "test")])
    lines = "".join(
        (raw / f"{name}.txt").read_text() for name in ("train", "val", "test")
    ).splitlines()
    return np.array([[ord(letter) for letter in line] for line in lines])


def test_tokens_splits_and_places_are_those_of_the_files(raw, kind):
    found = reader(kind)(raw, 0, params.Reading(seed=0))
    sequences.check(found, "here")
    assert np.bincount(found.split).tolist() == [30, 10, 12] and (found.source == found.split).all()
    assert found.record.tolist() == [*range(30), *range(10), *range(12)]
    expected = plain(raw, kind)
    tokens = (
        found.tokens
        if kind != "grammar"
        else np.array([ord(letter) for letter in found.names["tokens"]])[found.tokens]
    )
    assert (tokens == expected).all() and found.tokens.dtype == np.int32
    assert (found.kind, found.prompt) == (kind, 63 if kind == "maze" else 0)
    assert (
        found.vocabulary
        == {
            "product": 2,
            "step": 2,
            "permutation": 9,
            "walk": 20,
            "maze": 5,
            "grammar": len(set(found.names["tokens"])),
        }[kind]
    )
    json.dumps([found.law, found.names], allow_nan=False)
    assert len(found.names["tokens"]) == found.vocabulary


def test_fewer_training_sequences_are_the_first_ones_and_the_others_stay(raw, kind):
    whole, few = (reader(kind)(raw, 0, params.Reading(seed=0, train=most)) for most in (None, 7))
    assert np.bincount(few.split).tolist() == [7, 10, 12]
    assert (few.tokens == np.concatenate([whole.tokens[:7], whole.tokens[30:]])).all() and (
        few.record == np.concatenate([whole.record[:7], whole.record[30:]])
    ).all()


def test_the_prepared_folder_is_what_the_contract_says(raw, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.write_json(raw / "manifest.json", {"files": {}})
    folder = tmp_path / "data" / "mini" / "prepared" / kind
    contents = []
    for _ in range(2):
        stage.prepare(raw, folder, PlainReading(seed=0, reader=module(kind)))
        contents.append(
            [(folder / name).read_bytes() for name in ("sequences.safetensors", "sequences.json")]
        )
    assert contents[0] == contents[1]
    arrays, told = load_file(folder / "sequences.safetensors"), json.loads(contents[0][1])
    assert {name: str(array.dtype) for name, array in arrays.items()} == {
        "tokens": "int32",
        "split": "int8",
        "source": "int32",
        "record": "int64",
        "group": "int64",
    }
    assert {"kind", "vocabulary", "length", "prompt", "law", "files", "names"} <= set(told)
    assert (
        told["kind"] == kind
        and told["length"] == arrays["tokens"].shape[1]
        and told["counts"] == {"train": 30, "val": 10, "test": 12}
    )


def test_meta_without_a_key_or_of_another_kind_is_told(raw, kind):
    meta = json.loads((raw / "meta.json").read_text())
    law = {
        "product": "share",
        "step": "width",
        "permutation": "split",
        "walk": "starts",
        "maze": "rows",
        "grammar": "nouns",
    }[kind]
    for changed, told in (
        ({key: meta[key] for key in meta if key != law}, law),
        (meta | {law: "three"}, law),
        (meta | {"kind": "text"}, "kind|law"),
        ([], "law|meta.json"),
        (meta | {"split": {"train": 30, "val": 0, "test": 12}}, "split"),
        (meta | {"length": 0}, "length"),
    ):
        files.write_json(raw / "meta.json", changed)
        with pytest.raises(DataError, match=told):
            reader(kind)(raw, 0, params.Reading(seed=0))


def test_a_raw_file_that_is_missing_short_or_strange_is_told(raw, kind):
    suffix = "txt" if kind == "grammar" else "npy"
    good = (raw / f"val.{suffix}").read_bytes()
    damages = [None, good[:-20], good + good, b""]
    if suffix == "txt":
        damages += [good.replace(b"t", b"X"), good.replace(b"\n", b""), b"\xff" + good[1:]]
    for damage in damages:
        (raw / f"val.{suffix}").unlink(missing_ok=True)
        if damage is not None:
            (raw / f"val.{suffix}").write_bytes(damage)
        with pytest.raises(DataError, match=rf"val\.{suffix}"):
            reader(kind)(raw, 0, params.Reading(seed=0))
    if suffix == "npy":
        (raw / "val.npy").write_bytes(good)
        array = np.load(raw / "val.npy")
        for wrong in (array + 300, -1 - array, array.astype("<i4"), array[:, 1:]):
            np.save(raw / "val.npy", wrong)
            with pytest.raises(DataError, match=r"val\.npy"):
                reader(kind)(raw, 0, params.Reading(seed=0))


@pytest.mark.parametrize("kind", ["maze"])
def test_a_maze_in_two_files_is_refused_whatever_its_path(raw, kind):
    train, test = np.load(raw / "train.npy"), np.load(raw / "test.npy")
    test[4, :63] = train[20, :63]
    np.save(raw / "test.npy", test)
    with pytest.raises(DataError, match="'test': 1"):
        reader(kind)(raw, 0, params.Reading(seed=0))


@pytest.mark.parametrize("kind", ["walk"])
def test_a_walk_that_could_leave_the_vocabulary_is_refused(raw, kind):
    meta = json.loads((raw / "meta.json").read_text())
    for starts in ([3], [17], [], ["7"]):
        files.write_json(raw / "meta.json", meta | {"starts": starts})
        with pytest.raises(DataError, match="no lazy walk"):
            reader(kind)(raw, 0, params.Reading(seed=0))


GOOD = dict(
    kind="product",
    tokens=np.zeros((6, 4), np.int32),
    split=np.array([0, 0, 0, 0, 1, 2]),
    source=np.array([0, 0, 0, 0, 1, 2]),
    record=np.arange(6),
    files=("a", "b", "c"),
    vocabulary=2,
)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (dict(kind="poem"), "unknown kind"),
        (dict(tokens=np.zeros((6, 4))), "whole numbers"),
        (dict(tokens=np.zeros((6, 0), int)), "whole numbers"),
        (dict(tokens=np.full((6, 4), 2)), "out of the vocabulary"),
        (dict(tokens=np.full((6, 4), -1)), "out of the vocabulary"),
        (dict(prompt=4), "leaves nothing"),
        (dict(prompt=-1), "leaves nothing"),
        (dict(split=np.zeros(6, int), source=np.zeros(6, int)), "a split is empty"),
        (dict(record=np.arange(5)), "record and tokens"),
        (dict(source=np.array([0, 0, 0, 1, 1, 2])), "two splits"),
        (dict(source=np.array([0, 0, 0, 0, 1, 3])), "of no file"),
        (dict(group=np.array([9, 9, 8, 8, 7, 8])), "group 8 in"),
        (dict(extra={"weight": np.zeros(2)}), "weight and tokens"),
    ],
)
def test_sequences_that_cannot_be_learned_from_or_leak_are_refused(changes, told):
    sequences.check(sequences.Sequences(**GOOD), "here")
    with pytest.raises(DataError, match=told):
        sequences.check(sequences.Sequences(**GOOD | changes), "here")


def test_a_raw_folder_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="raw data set is missing"):
        stage.prepare(Path("raw"), Path("prepared"), PlainReading(seed=0, reader="laws"))
