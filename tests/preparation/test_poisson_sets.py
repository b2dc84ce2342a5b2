"""Rooms become sets: the coding of heaters and border, whole files in one split, and damaged
folders refused by name."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError, InputError
from stages.fields import problem as sets
from stages.fields.problem import Counts
from stages.fields.problems.poisson import make as simulator
from stages.fields.problems.poisson import read as poisson
from stages.params import Poisson

REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "pde" / "poisson_inp"
ALL = Counts(64, 256)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rooms")
    simulator.make(Poisson(seed=1, files=12, layouts_per_file=4), folder)
    return folder


@pytest.fixture
def raw(made, tmp_path):
    return shutil.copytree(made, tmp_path / "raw")


def test_the_context_of_a_room_worked_out_by_hand():
    room = {"unnorm_boxes": [[0.2, 0.3, 0.4, 0.7, -0.25]], "exterior_temp": 0.6}
    x, y = poisson.context(room, 17)
    heater = {(a, b) for a in (0.2, 0.3, 0.4) for b in (0.3, 0.5, 0.7)}
    assert {tuple(np.round(place, 12)) for place in x[:9]} == heater and np.all(
        y[:9] == [0, -0.25, 1]
    )
    border = [(0, 0), (0.5, 0), (1, 0), (1, 0.5), (1, 1), (0.5, 1), (0, 1), (0, 0.5)]
    assert x[9:] == pytest.approx(np.array(border, float), abs=1e-15) and np.all(
        y[9:] == [0.6, 0, 0]
    )


@pytest.mark.parametrize("count", [4, 28, 37, 46, 55])
def test_border_points_are_equally_far_from_each_other_along_the_border(count):
    places = poisson.border(count)
    way = np.where(
        places[:, 1] == 0,
        places[:, 0],
        np.where(
            places[:, 0] == 1,
            1 + places[:, 1],
            np.where(places[:, 1] == 1, 3 - places[:, 0], 4 - places[:, 1]),
        ),
    )
    assert way == pytest.approx(4 * np.arange(count) / count, abs=1e-14)


def test_a_set_is_its_room(made):
    found = poisson.read(made, 0, ALL)
    sets.check(found, "here")
    assert (found.context_x.shape, found.context_y.shape) == ((384, 64, 2), (384, 64, 3))
    for s in range(0, 384, 29):
        k, r = found.files[found.source[s]][5:-5], found.record[s]
        room = json.loads((made / f"desc_{k}.json").read_text())[r]
        heaters = found.context_y[s, :, 2] == 1
        assert heaters.sum() == 9 * len(room["boxes"]) and np.all(
            found.context_y[s, ~heaters] == [room["exterior_temp"], 0, 0]
        )
        assert sorted(set(found.context_y[s, heaters, 1])) == sorted(
            box[4] for box in room["unnorm_boxes"]
        )
        x, y = np.load(made / f"{k}-X.npy")[r], np.load(made / f"{k}-y.npy")[r]
        order = np.lexsort(np.c_[x, y].T)
        back = np.lexsort(np.c_[found.target_x[s], found.target_y[s]].T)
        assert np.array_equal(x[order], found.target_x[s, back]) and np.array_equal(
            y[order], found.target_y[s, back]
        )


def test_targets_are_the_solution_at_their_places(made):
    found = poisson.read(made, 0, Counts(64, 100, 50))
    assert found.target_x.shape == (50, 100, 2)
    for s in range(0, 50, 7):
        room = json.loads((made / found.files[found.source[s]]).read_text())[found.record[s]]
        at = np.rint(100 * found.target_x[s]).astype(int)
        assert found.target_y[s, :, 0] == pytest.approx(
            simulator.temperatures([room])[0][at[:, 0], at[:, 1]], abs=1e-12
        )


def test_files_and_with_them_layouts_stand_in_one_split(made):
    found = poisson.read(made, 0, ALL)
    layouts = {}
    for s in range(384):
        room = json.loads((made / found.files[found.source[s]]).read_text())[found.record[s]]
        layouts.setdefault(json.dumps([box[:4] for box in room["boxes"]]), set()).add(
            int(found.split[s])
        )
    assert len(layouts) == 48 == found.facts["layouts"] and all(
        len(parts) == 1 for parts in layouts.values()
    )
    assert np.bincount(found.split).tolist() == [320, 32, 32]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(3, [1, 1, 1]), (12, [10, 1, 1]), (100, [80, 10, 10]), (250, [200, 25, 25])],
)
def test_a_tenth_of_the_files_is_for_validation_and_a_tenth_for_the_test(count, expected):
    assert np.bincount(poisson.parts(0, count)).tolist() == expected
    assert count < 10 or not np.array_equal(poisson.parts(0, count), poisson.parts(1, count))


def test_a_seed_draws_the_same_and_fewer_sets_are_some_of_all(made):
    one, two, other = (poisson.read(made, seed, Counts(64, 20, 100)) for seed in (0, 0, 1))
    assert np.array_equal(one.target_x, two.target_x) and not np.array_equal(
        one.record, other.record
    )
    whole = poisson.read(made, 0, Counts(64, 20))
    place = {(a, b): s for s, (a, b) in enumerate(zip(whole.source, whole.record, strict=True))}
    kept = [place[a, b] for a, b in zip(one.source, one.record, strict=True)]
    assert np.array_equal(whole.target_x[kept], one.target_x) and np.array_equal(
        whole.split[kept], one.split
    )


@pytest.mark.skipif(not REAL.is_dir(), reason="TRADEWIND_MIRROR is not set: no real rooms to read")
def test_the_real_rooms_are_read_and_no_layout_stands_in_two_files():
    found = poisson.read(REAL, 0, ALL)
    sets.check(found, "real")
    assert found.target_y.shape == (3200, 256, 1) and np.bincount(found.split).tolist() == [
        2560,
        320,
        320,
    ]
    assert found.facts == {"layouts": 100, "most_heaters": 4} and set(found.source.tolist()) == set(
        range(100)
    )
    heaters = (found.context_y[..., 2] == 1).sum(1) // 9
    assert np.bincount(heaters)[1:].tolist() == [832, 704, 672, 992]
    assert (found.target_y.min(), found.target_y.max()) == pytest.approx((-7.150, 7.378), abs=1e-3)
    assert (
        np.abs(found.context_y[..., 1]).max() <= 0.5 and np.abs(found.context_y[..., 0]).max() <= 1
    )


def array(name, change):
    def damage(raw):
        found = np.load(raw / name)
        np.save(raw / name, change(found))

    return damage


def place(values, value):
    values[3, 5, 0] = value
    return values


def text(name, change):
    def damage(raw):
        rooms = json.loads((raw / name).read_text())
        change(rooms)
        (raw / name).write_text(json.dumps(rooms))

    return damage


def cut(raw):
    (raw / "2-y.npy").write_bytes((raw / "2-y.npy").read_bytes()[:-8])


def twins(raw):
    """File 3 is all of file 2 again."""
    for name in ("{}-X.npy", "{}-y.npy", "desc_{}.json"):
        shutil.copy(raw / name.format(2), raw / name.format(3))


def shifted(raw):
    shutil.copy(raw / "3-y.npy", raw / "2-y.npy")


DAMAGE = {
    "a y cut short": (cut, "2-y.npy"),
    "no description": (lambda raw: (raw / "desc_7.json").unlink(), "description of number 7"),
    "no X": (lambda raw: (raw / "7-X.npy").unlink(), "X of number 7"),
    "y of another file": (shifted, "file 2"),
    "fewer points": (array("4-X.npy", lambda x: x[:, :100]), "4-X.npy"),
    "fewer rooms": (array("4-y.npy", lambda y: y[:31]), "4-y.npy"),
    "not a number": (array("5-y.npy", lambda y: place(y, np.nan)), "5-y.npy"),
    "infinite place": (array("5-X.npy", lambda x: place(x, np.inf)), "5-X"),
    "a place outside": (array("5-X.npy", lambda x: place(x, 1.5)), "0 to 1"),
    "whole numbers": (array("5-X.npy", lambda x: x.astype(int)), "5-X.npy"),
    "the same file twice": (twins, "desc_2.json and desc_3.json"),
    "no JSON": (lambda raw: (raw / "desc_1.json").write_text("["), "desc_1.json"),
    "no list": (lambda raw: (raw / "desc_1.json").write_text("{}"), "desc_1.json"),
    "NaN in JSON": (
        text("desc_1.json", lambda rooms: rooms[2].update(exterior_temp=float("nan"))),
        "desc_1.json",
    ),
    "a word for a heat": (
        text("desc_1.json", lambda rooms: rooms[2]["unnorm_boxes"][0].__setitem__(4, "hot")),
        "room 2",
    ),
    "a box inside out": (
        text("desc_1.json", lambda rooms: rooms[2]["unnorm_boxes"][0].__setitem__(2, 0.0)),
        "room 2",
    ),
    "no exterior": (text("desc_1.json", lambda rooms: rooms[2].pop("exterior_temp")), "room 2"),
    "no heaters": (text("desc_1.json", lambda rooms: rooms[2].update(unnorm_boxes=[])), "room 2"),
    "a room less": (text("desc_1.json", lambda rooms: rooms.pop()), "1-X.npy"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_folders_are_refused_and_the_message_names_the_place(raw, name):
    damage, told = DAMAGE[name]
    damage(raw)
    with pytest.raises(DataError) as error:
        poisson.read(raw, 0, ALL)
    assert told in str(error.value) and error.value.where


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_a_folder_without_rooms_is_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="too few files"):
        poisson.read(tmp_path / folder, 0, ALL)


@pytest.mark.parametrize(
    ("counts", "told"), [(Counts(39, 256), "40 or more"), (Counts(64, 257), "at most 256")]
)
def test_counts_that_rooms_cannot_give_are_the_users_mistake(made, counts, told):
    with pytest.raises(InputError, match=told):
        poisson.read(made, 0, counts)
