"""What tests is known from no row that trains: pairs whatever their fillers, pictures, prompts."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from stages import files
from stages.params import checked
from stages.tokens import acquire, agree, parting, prepare, tables
from stages.tokens.layout import ABOUT, INPUTS, SPLIT, TARGETS
from stages.tokens.settings import Made, Split
from stages.tokens.tasks import pictures
from stages.tokens.tasks.pairs import FILLERS

MADE = {
    "pairs": {"seed": 0, "task": "pairs", "rows": 600, "nouns": 4, "fillers": 1},
    "shapes": {"seed": 0, "task": "shapes", "rows": 400},
    "pictures": {"seed": 0, "task": "pictures", "rows": 400, "high": 3, "wide": 3, "points": 2,
                 "statements": 2},
}  # fmt: skip
each = pytest.mark.parametrize("name", MADE)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """raw/NAME and prepared/NAME of each set."""
    folder = tmp_path_factory.mktemp("parted")
    for name, one in MADE.items():
        for layer in ("raw", "prepared"):
            (folder / layer / name).mkdir(parents=True)
        made = checked(Made, one, f"datasets.{name}.made")
        acquire.make(made, folder / "raw" / name)
        split = Split(train=200, val=60)
        prepare.write(folder / "raw" / name, folder / "prepared" / name, made, split)
    return folder


def test_a_pair_without_its_fillers_stands_in_one_split_and_every_word_trains(place):
    folder = place / "prepared/pairs"
    inputs, split, targets = (np.load(folder / name) for name in (INPUTS, SPLIT, TARGETS))
    about = files.read_json(folder / ABOUT)
    words = about["words"]
    plain = [" ".join(words[n] for n in row if n and words[n] not in FILLERS) for row in inputs]
    parts = {}
    for one, part in zip(plain, split.tolist(), strict=True):
        parts.setdefault(one, set()).add(part)
    assert max(map(len, parts.values())) == 1, "a table of pairs knows none that tests"
    counts = {name: sum(found == {part} for found in parts.values())
              for part, name in enumerate(("train", "val", "test"))}  # fmt: skip
    assert counts == about["groups"] and min(counts.values()) > 5
    assert {*np.unique(inputs[split == 0])} == {*np.unique(inputs)}
    shares = [np.bincount(targets[split == part], minlength=3) / (split == part).sum()
              for part in (0, 2)]  # fmt: skip
    np.testing.assert_allclose(*shares, atol=0.06)


def test_a_picture_that_trains_with_its_statements_neither_selects_nor_tests(place):
    folder = place / "prepared/pictures"
    inputs, split = np.load(folder / INPUTS), np.load(folder / SPLIT)
    about = files.read_json(folder / ABOUT)
    said = about["said"]
    keys = [(frozenset(pictures.parsed(row[:said].tolist())), row[said:].tobytes())
            for row in inputs]  # fmt: skip
    train = {key for key, part in zip(keys, split, strict=True) if part == 0}
    assert not any(key in train for key, part in zip(keys, split, strict=True) if part)
    assert about["dropped"]["trains"] == 400 - len(inputs) > 0
    known = {one for one, _ in train}
    tests = [one in known for (one, _), part in zip(keys, split, strict=True) if part == 2]
    assert about["prompts_that_train"] == sum(tests) > 0


def test_pictures_are_drawn_for_statements_that_do_not_train_where_there_are_enough(place):
    folder = place / "prepared/pictures"
    inputs, split = np.load(folder / INPUTS), np.load(folder / SPLIT)
    about = files.read_json(folder / ABOUT)
    fresh = about["rows"]["test"] - about["prompts_that_train"]
    rows, known = parting.asked(inputs, split, about["said"], fresh)
    assert known == 0 and len(rows) == fresh and (split[rows] == 2).all()
    trains = {
        frozenset(pictures.parsed(row.tolist())) for row in inputs[split == 0, : about["said"]]
    }
    assert not any(frozenset(pictures.parsed(inputs[row, : about["said"]].tolist())) in trains
                   for row in rows)  # fmt: skip
    rows, known = parting.asked(inputs, split, about["said"], fresh + 1)
    np.testing.assert_array_equal(rows, np.flatnonzero(split == 2)[: fresh + 1])
    assert 0 < known <= fresh + 1
    told = about | {"drawn": {"rows": len(rows), "prompts_that_train": known}}
    assert f"of which {known} train, too" in tables.sentence(told)


@each
def test_the_audit_finds_prepared_rows_to_be_the_raw_ones(name, place):
    assert [*agree.prepared(place / "prepared" / name)] == []


def test_the_audit_finds_a_pair_that_trains_with_another_filler(place, tmp_path):
    for layer in ("raw", "prepared"):
        shutil.copytree(place / layer / "pairs", tmp_path / layer / "pairs")
    folder = tmp_path / "prepared/pairs"
    inputs, split = np.load(folder / INPUTS), np.load(folder / SPLIT)
    fills = [files.read_json(folder / ABOUT)["words"].index(word) for word in FILLERS]
    row = next(one for one in inputs[split == 2] if not np.isin(one, fills).any() and not one[-1])
    inputs[0] = [fills[0], *row[:-1]]
    np.save(folder / INPUTS, inputs)
    told = " ".join(text for _, text in agree.prepared(folder))
    assert "pairs of val or test train with other fillers" in told
