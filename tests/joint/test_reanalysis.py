"""Winds on pressure levels: read whole or refused by name; between nodes what a straight line says;
strips that share no node."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from real_skies import DAY, LEVELS, field, message, messages, rough, told, wind

from stages.errors import DataError, ParamsError
from stages.fields.gridded import levels
from stages.winds.joint import real, reanalysis
from stages.winds.joint.reanalysis import DEGREE_KM, altitude_km, squares
from stages.winds.joint.tasks import kept, training

pytest.importorskip("eccodes", reason="pip install 'tradewind[era5]'")
REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "era5/cfgrib/ERA5_levels.grib"
TWO = ("u", "v")


@pytest.fixture(scope="module")
def parts():
    return messages()


def written(folder, parts):
    folder.mkdir(exist_ok=True)
    (folder / "levels.grib").write_bytes(b"".join(parts))
    return folder


def test_a_file_comes_south_to_north_in_metres_per_second_levels_by_height(tmp_path, parts):
    found = reanalysis.read(written(tmp_path / "raw", parts.values()), LEVELS, (0, 1))
    mine = field()
    for name in ("hour", "up", "lat", "lon"):
        np.testing.assert_allclose(getattr(found, name), getattr(mine, name))
    np.testing.assert_allclose(found.values, mine.values, atol=1e-4)
    # other messages do not matter, nor do the order of messages, levels and members
    more = [message("t", 0, 6, 500, np.full((23, 43), 250.0)), *reversed(parts.values())]
    again = reanalysis.read(written(tmp_path / "raw", more), (50, 1000, 500), (1, 0))
    np.testing.assert_array_equal(again.values[::-1], found.values)


@pytest.mark.parametrize(
    "lost,what,text",
    [
        (lambda key: key[3] == 500, "a level is missing", "500 hPa"),
        (lambda key: key[1] == 1, "a member is missing", "1"),
        (lambda key: key[0] == "v", "a component is missing", "v"),
        (lambda key: key == ("u", 1, 9, 50), "a field is missing", "u at 50 hPa, 2016-02-07T09:00"),
    ],
)
def test_a_level_a_member_a_component_or_a_single_field_that_is_missing_is_named(
    tmp_path, parts, lost, what, text
):
    raw = written(tmp_path / "raw", [one for key, one in parts.items() if not lost(key)])
    with pytest.raises(DataError, match=what) as error:
        reanalysis.read(raw, LEVELS, (0, 1))
    assert text in f"{error.value.expected} {error.value.found}"


def test_a_file_cut_short_a_hole_a_storm_that_cannot_be_and_a_field_twice_are_refused(
    tmp_path, parts
):
    def refused(content, what):
        raw = written(tmp_path / "raw", content)
        with pytest.raises(DataError, match=what) as error:
            reanalysis.read(raw, LEVELS, (0, 1))
        return error.value

    whole = [*parts.values()]
    refused([b"".join(whole)[:-40]], "cut short")
    refused([b"no weather"], "belong to no message")
    values = np.zeros((23, 43))
    values[4, 7] = np.nan
    key = ("v", 0, 18, 500)
    rest = [one for other, one in parts.items() if other != key]
    told_of = refused([*rest, message(*key, values=values)], "a node has no value: v at 500 hPa")
    assert "1 of 989" in told_of.found
    refused([*rest, message(*key, values=values * 0 + 400.0)], "no value|wind that cannot be")
    refused([*whole, parts[key]], "v at 500 hPa, 2016-02-07T18:00, member 0 is there twice")
    shifted = message(*key, jDirectionIncrementInDegrees=0.5, latitudeOfLastGridPointInDegrees=45.0)
    refused([*rest, shifted], "two of them")
    few = [one for other, one in parts.items() if other[2] == 6]
    refused(few, "no age")
    (tmp_path / "raw/again.grib").write_bytes(b"".join(whole))
    refused(whole, "not one weather file")


def test_pressure_altitudes_are_those_of_the_standard_atmosphere():
    # Doc 7488: 500 hPa 5,574 m, 226.32 hPa 11,000 m, 50 hPa 20,576 m, 1000 hPa 111 m
    found = [1000 * altitude_km(one) for one in (1000, 500, 226.32, 50)]
    assert found == pytest.approx([110.9, 5574.4, 11000.0, 20576.0], abs=1.0)


def test_between_nodes_and_hours_a_wind_is_what_a_straight_line_says():
    mine, rng = field(), np.random.default_rng(1)
    lat, lon = rng.uniform(34, 56, (3, 5)), rng.uniform(-12, 30, (3, 5))
    up, hour = rng.uniform(1, 15, (3, 5)), rng.uniform(6, 18, (3, 5))
    begun = (DAY - np.datetime64("1970-01-01")).astype(int) * 24
    for member in (0, 1):
        found = mine.at(member, begun + hour, lat, lon, up)
        for place, name in enumerate(TWO):
            by_hand = wind(name, member, hour, lat, lon, up)
            np.testing.assert_allclose(found[..., place], by_hand, atol=1e-9)


def sky(split="test", **others):
    made = told(**others)
    return real.sky(field(), made, split, np.array([10.0, -3.0]), 8.0), made


def test_places_are_east_and_north_of_the_middle_on_the_sphere():
    mine, _ = sky()
    where = np.array([[45.0, 8.0, 0.0]])
    x = np.array([[[0, DEGREE_KM], [DEGREE_KM * np.cos(np.radians(45)), 0], [-100, -100]]])
    lat, lon = mine.sphere(x, where)
    np.testing.assert_allclose(lat[0, :2], [46, 45])
    np.testing.assert_allclose(lon[0, :2], [8, 9])
    # the great-circle way of a short step is its length
    a, b = np.radians([45.0, 8.0]), np.radians([lat[0, 2], lon[0, 2]])
    cosine = np.sin(a[0]) * np.sin(b[0]) + np.cos(a[0]) * np.cos(b[0]) * np.cos(a[1] - b[1])
    assert 6371.0088 * np.arccos(cosine) == pytest.approx(np.hypot(100, 100), rel=0.01)


def test_tasks_read_the_wind_of_their_place_and_hour_and_cells_that_of_the_other_member():
    mine, made = sky(noise_m_s=1e-9)
    tasks, where = mine.placed(40, 9, kept(0, "test"))
    begun = (DAY - np.datetime64("1970-01-01")).astype(int) * 24

    def expected(x, hour, member):
        lat, lon = mine.sphere(x, where)
        found = [wind(name, member, hour - begun, lat, lon, x[..., 2]) for name in TWO]
        return (np.stack(found, -1) - mine.mean) / mine.sd

    hour = where[:, 2:] + tasks.target_x[..., 3] / 60
    np.testing.assert_allclose(tasks.target_true, expected(tasks.target_x, hour, 0), atol=1e-9)
    then = where[:, 2:] + tasks.context_x[..., 3] / 60
    mine_y = expected(tasks.context_x, then, 0) * tasks.real[..., None]
    np.testing.assert_allclose(tasks.context_y, mine_y, atol=1e-7)
    # straight lines stay what they are in a mean about a middle, but for meridians that converge
    plain, _ = sky(weather=made.weather.model_dump() | {"bias_m_s": 0.0, "noise_m_s": 1e-9})
    tasks, where = plain.placed(40, 9, kept(0, "test"))
    middles = np.stack(np.meshgrid(*(axis.middles for axis in made.axes), indexing="ij"), -1)
    middles = np.broadcast_to(middles.reshape(1, -1, 3), (40, 12, 3))
    there = expected(middles, where[:, 2:] - tasks.age[:, None], 1)
    np.testing.assert_allclose(tasks.grid_y, there, atol=0.02)
    biased = sky()[0].placed(300, 2, kept(0, "test"))
    off = sky()[0].cells(biased[0].age, biased[1]) - biased[0].grid_y
    assert off.mean(1).std() == pytest.approx(np.hypot(1.5, 0.5 / 12**0.5) / 8, rel=0.1)
    assert (off - off.mean(1, keepdims=True)).std() == pytest.approx(0.5 / 8, rel=0.05)


def test_every_task_stays_in_its_strip_and_in_the_hours_of_the_file():
    for split in ("train", "val", "test"):
        mine, made = sky(split)
        tasks, where = mine.placed(400, 6, training(0, 3))
        first, last = mine.field.hour[[0, -1]]
        assert (where[:, 2] - tasks.age >= first).all()
        assert (where[:, 2] + tasks.target_x[..., 3].max(1) / 60 <= last).all()
        nodes = np.stack(np.meshgrid(made.axes[0].nodes, made.axes[1].nodes), -1).reshape(1, -1, 2)
        for x in (nodes, tasks.target_x, tasks.context_x):
            lon = mine.sphere(x, where)[1]
            inside = [(lon >= west) & (lon <= east) for west, east in mine.strips]
            assert np.logical_or.reduce(inside).all()


def test_no_node_serves_two_splits(monkeypatch):
    """Whatever blows in the strips of others, what a split draws stays the same."""
    made, plain = told(), rough(field())
    for split, others in itertools.permutations(("train", "val", "test"), 2):
        changed = plain.values.copy()
        for west, east in getattr(made.strips_deg, others):
            changed[:, :, :, (plain.lon >= west) & (plain.lon <= east)] += 50.0
        other = reanalysis.Field(plain.hour, plain.up, plain.lat, plain.lon, changed)
        one, two = (
            real.sky(mine, made, split, np.zeros(2), 8.0).placed(50, 4, kept(0, split))[0]
            for mine in (plain, other)
        )
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(array, two.arrays()[name])
    # who leaves the strips is told, not clamped
    narrow = real.sky(plain, made, "test", np.zeros(2), 8.0)
    narrow = reanalysis.Sky(**{**vars(narrow), "field": plain.only(((5.0, 12.0),))})
    with pytest.raises(DataError, match="outside of its strips"):
        narrow.placed(50, 4, kept(0, "test"))


@pytest.mark.parametrize(
    "others,what",
    [
        ({"strips_deg": {"train": ((-12, 2),), "val": ((19, 30),), "test": ((2, 17),)}},
         "train -12 to 2 and test 2 to 17 are not a degree apart"),
        ({"strips_deg": {"train": ((-12, 0),), "val": ((19, 23),), "test": ((2, 17),)}},
         "strips_deg.val: 19 to 23 is narrower than a task"),
        ({"latitudes_deg": (51.0, 38.0)}, "latitudes_deg goes from 51 to 38"),
        ({"altitude_km": (3.0, 21.0)}, "altitude_km leaves the levels"),
        ({"lead_min": (120.0, 5.0)}, "lead_min goes from"),
    ],
)  # fmt: skip
def test_settings_that_leak_or_do_not_fit_are_told(others, what):
    if "strips_deg" in others:
        others = {"strips_deg": {split: tuple(tuple(map(float, one)) for one in own)
                                 for split, own in others["strips_deg"].items()}}  # fmt: skip
    with pytest.raises(ParamsError, match=what):
        told(**others)


@pytest.mark.parametrize(
    "others,what",
    [
        ({"latitudes_deg": (36.0, 51.0)}, "too few latitudes"),
        ({"strips_deg": {"train": ((-15.0, 0.0),), "val": ((19.0, 30.0),), "test": ((2.0, 17.0),)}},
         "too few longitudes"),
        ({"lead_min": (5.0, 480.0)}, "too few hours"),
    ],
)  # fmt: skip
def test_a_file_too_small_for_its_tasks_is_refused(others, what):
    with pytest.raises(DataError, match=what):
        sky("train", **others)


def test_middles_of_one_square_go_together():
    where = np.array([[45.0, 2.0, 0], [45.3, 2.4, 9], [45.0, 9.0, 0], [52.0, 2.0, 0]])
    found = squares(where, 300.0)
    assert found[0] == found[1] and len({*found}) == 3


@pytest.mark.skipif(
    not REAL.is_file(), reason="TRADEWIND_MIRROR names no mirror with ERA5_levels.grib"
)
def test_the_real_file_is_read_whole():
    found = levels.read(REAL, TWO, LEVELS, (0, 1))
    assert found.values["u"].shape == (4, 2, 3, 42, 73)
    assert [str(one)[:13] for one in found.time] == [
        f"2016-02-07T{hour:02d}" for hour in (6, 9, 18, 21)
    ]
    assert (found.lat[[0, -1]] == [33, 74]).all() and (found.lon[[0, -1]] == [-27, 45]).all()
    # data/README of the mirror: the least and most that its author read
    assert found.values["u"].min() == pytest.approx(-16.5, abs=0.05)
    assert found.values["u"].max() == pytest.approx(66.6, abs=0.05)
    assert found.values["v"].min() == pytest.approx(-40.0, abs=0.05)
    assert found.values["v"].max() == pytest.approx(40.3, abs=0.05)
