"""One field of the whole globe as tasks: what wraps, what lies at the poles, which nodes serve
which split; the grid and the rivals against ones written otherwise; what is refused by name."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_normal
from world_made import LAT, LON, STEP, air, filed

from stages import seeds
from stages.errors import DataError, InputError
from stages.fields.problems.functions.plans import Kept, Training
from stages.fields.problems.stale import rivals, world
from stages.fields.problems.stale.world import Field, World

STRIPS = ((-150.0, -60.0), (150.0, 200.0))
REAL = Path(os.environ.get("TRADEWIND_MIRROR") or "absent") / "era5" / "earthkit"


def field():
    """South to north, from the date line."""
    turned = np.roll(air()[0, ::-1], len(LON) // 2, 1)
    return Field(LAT[::-1].copy(), LON - 180.0, (turned - 270.0) / 10.0)


def made(strips=STRIPS, window=8, context=12, targets=20):
    whole = field()
    return World(whole.only(strips), world.cells(whole, 3), strips, 3, window, context, targets)


def angle(a, b):
    """Degrees between two places, by the spherical law of cosines."""
    (f, g), (p, q) = np.radians(a), np.radians(b)
    cosine = np.sin(f) * np.sin(p) + np.cos(f) * np.cos(p) * np.cos(g - q)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def value(lat, lon):
    """The field at a node of any longitude, straight from the file's order."""
    row, column = round((90 - lat) / STEP), round(lon % 360 / STEP) % 72
    return (air()[0, row, column] - 270.0) / 10.0


def test_rows_from_the_south_and_longitudes_from_the_date_line_give_the_same_field(tmp_path):
    plain = world.read(filed(tmp_path / "a"), 3)
    turned = np.roll(air()[:, ::-1], 36, 2)
    other = world.read(filed(tmp_path / "b", turned, lat=LAT[::-1], lon=LON - 180), 3)
    for one in (plain, other):
        np.testing.assert_array_equal(one.lat, np.arange(-90, 91, STEP))
        np.testing.assert_array_equal(one.lon, np.arange(-180, 180, STEP))
        np.testing.assert_allclose((one.values - 270) / 10, field().values, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "what", "told"),
    [
        ({"values": air()[:, 1:], "lat": LAT[1:]}, "not global", "-90 to 85"),
        ({"values": air()[:, :, :36], "lon": LON[:36]}, "not global", "by 5"),
        ({"values": air()[:, :, 1:], "lon": LON[1:]}, "not evenly|not global", ""),
        ({"values": air()[:, :-3], "lat": LAT[:-3]}, "not global", "-75 to 90"),
        ({"values": np.repeat(air(), 2, 0)}, "several times", "2"),
        ({"values": air()[:, ::2], "lat": LAT[::2], "block": 4}, "into blocks", "19 x 72"),
        ({"names": ("time", "y", "x")}, "no coordinate of lat", ""),
        ({"lat": np.r_[LAT[:4], LAT[4:] - 0.4]}, "no positions|not evenly", ""),
    ],
    ids=["no pole", "half", "a column missing", "cut", "two times", "blocks", "other axes", "rows"],
)  # fmt: skip
def test_a_field_that_is_not_one_of_the_whole_globe_is_refused(tmp_path, change, what, told):
    block = change.get("block", 3)
    kept = {name: one for name, one in change.items() if name != "block"}
    with pytest.raises(DataError, match=what) as error:
        world.read(filed(tmp_path / "raw", **kept), block)
    assert told in error.value.found


def test_a_node_without_a_value_and_a_file_cut_short_are_refused(tmp_path):
    values = air()
    values[0, 3, 1] = np.nan
    with pytest.raises(DataError, match="no value") as error:
        world.read(filed(tmp_path / "hole", values), 3)
    assert "75 degrees north, 5 east" in error.value.where
    whole = filed(tmp_path / "cut") / "hours.nc"
    whole.write_bytes(whole.read_bytes()[:-4000])
    with pytest.raises(DataError, match="cut short"):
        world.read(whole.parent, 3)


def test_cells_are_means_over_blocks_from_the_north_pole_and_no_other_row_is_left_out():
    process = made()
    north, east = process.axes
    assert (len(north), len(east)) == (12, 24)
    found = process.cells.reshape(12, 24)
    for row, column in product(range(12), range(24)):
        places = product((-STEP, 0.0, STEP), repeat=2)
        mean = np.mean([value(north[row] + up, east[column] + right) for up, right in places])
        assert found[row, column] == pytest.approx(mean)
    assert north[-1] + STEP == 90.0 and north[0] - STEP == -85.0
    gaps = np.diff(np.r_[east, east[0] + 360])
    np.testing.assert_allclose(gaps, 15.0)


def test_no_node_of_a_task_lies_outside_of_its_strips_and_windows_cross_the_date_line():
    process, crossed = made(), False
    for step in range(40):
        tasks = process.drawn(6, Training(0, step))
        x = np.concatenate((tasks.context_x, tasks.target_x), 1)
        assert world.inside(x[..., 1], STRIPS).all()
        assert (np.ptp(x, 1) <= 7 * STEP).all()  # one window, also where it crosses
        assert all(len({*map(tuple, one)}) == len(one) for one in x)
        y = np.concatenate((tasks.context_y, tasks.target_y), 1)
        told = [[value(*place) for place in one] for one in x]
        np.testing.assert_allclose(y[..., 0], told, atol=1e-9)
        crossed |= bool(((x[..., 1].min(1) < 180) & (x[..., 1].max(1) >= 180)).any())
    assert crossed
    assert np.isnan(process.field.values[:, ~world.inside(process.field.lon, STRIPS)]).all()


def test_nodes_are_drawn_one_by_one_by_the_cosine_of_their_latitude_and_never_at_a_pole():
    process = made()
    row = np.concatenate([process.drawn(8, Kept(k, "val")).target_x[..., 0] for k in range(120)])
    assert np.abs(row).max() < 90
    weight = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    chosen = world.drawn_by(np.tile(weight, (20_000, 1)), 2, seeds.stream(0, "clocks"))
    counts, by = np.zeros((5, 5)), weight / weight.sum()
    np.add.at(counts, (chosen[:, 0], chosen[:, 1]), 1)
    expected = by[:, None] * by / (1 - by[:, None])
    np.fill_diagonal(expected, 0)
    some = expected > 0
    assert not counts[~some].any()
    assert chisquare(counts[some], 20_000 * expected[some]).pvalue > 1e-3


def test_the_moments_are_those_over_area_of_the_strips_that_train():
    total, weight = [], []
    for lat, lon in product(field().lat, field().lon):
        if any(west <= lon + turn <= east for west, east in STRIPS for turn in (0, 360)):
            total.append(value(lat, lon))
            weight.append(np.cos(np.radians(lat)))
    mean = np.average(total, weights=weight)
    sd = np.sqrt(np.average((np.array(total) - mean) ** 2, weights=weight))
    assert field().only(STRIPS).moments() == pytest.approx((mean, sd))


def test_the_grid_is_linear_across_the_date_line_and_stays_beyond_the_last_middles():
    process = made()
    north, east = process.axes
    cells = process.cells.reshape(12, 24)
    rng = seeds.stream(0, "places")
    x = np.stack((rng.uniform(-90, 90, 300), rng.uniform(-400, 400, 300)), -1)
    x[:4] = [[3.0, 179.9], [3.0, -179.9], [3.0, 180.1], [3.0, 0.0]]
    found = rivals.interpolated(process.cells[None], process.axes, x[None], True)[0]
    around = np.concatenate((cells, cells, cells, cells), 1)  # four turns, one line
    line = np.concatenate([east + 360 * turn for turn in (-2, -1, 0, 1)])
    for place, ours in zip(x, found, strict=True):
        columns = [np.interp(place[0], north, around[:, k]) for k in range(len(line))]
        assert ours == pytest.approx(np.interp(place[1], line, columns))
    assert found[1] == pytest.approx(found[2])


def test_distances_are_great_circles_by_another_formula_and_zero_around_a_pole():
    rng = seeds.stream(0, "distances")
    a, b = (np.stack((rng.uniform(-90, 90, (1, 9)), rng.uniform(-400, 400, (1, 9))), -1)
            for _ in range(2))  # fmt: skip
    found = rivals.apart(a, b, True)[0]
    for (row, one), (column, other) in product(enumerate(a[0]), enumerate(b[0])):
        assert found[row, column] == pytest.approx(angle(one, other), abs=1e-5)
    poles = np.array([[[90.0, 0.0], [90.0, 170.0], [-90.0, 3.0], [0.0, 180.0], [0.0, -180.0]]])
    gap = rivals.apart(poles, poles, True)[0]
    assert gap[0, 1] == pytest.approx(0, abs=1e-6) and gap[0, 2] == pytest.approx(180)
    assert gap[3, 4] == pytest.approx(0, abs=1e-6) and gap[0, 3] == pytest.approx(90)


def test_inverse_distance_and_kriging_are_those_of_one_target_after_the_other():
    process = made()
    tasks = process.drawn(4, Kept(0, "val"))
    known = rivals.increments_of(process, tasks)
    shift = rivals.Shift(0.2, 0.3, 9.0, 0.05)
    mean, sd = shift.at_targets(tasks, known, True)
    weighed = rivals.weighed(process, tasks) - rivals.between(process, tasks, tasks.target_x)
    for row, column in product((0, 3), (0, 7)):
        real = tasks.real[row]
        x = [tasks.target_x[row, column], *tasks.context_x[row, real]]
        gaps = np.array([[angle(one, other) for other in x] for one in x])
        gaps[np.diag_indices(len(x))] = 0
        rest = known[row, real]
        by = 1 / (gaps[0, 1:] ** 2 + rivals.NEAR)
        assert weighed[row, column] == pytest.approx(by @ rest / by.sum(), rel=1e-4)
        whole = 0.04 + 0.09 * np.exp(-gaps / 9.0) + 0.0025 * np.eye(len(x))
        both = multivariate_normal(np.zeros(len(x)), whole).logpdf(np.r_[0.1, rest])
        alone = multivariate_normal(np.zeros(len(rest)), whole[1:, 1:]).logpdf(rest)
        ours = multivariate_normal(mean[row, column], sd[row, column] ** 2).logpdf(0.1)
        assert ours == pytest.approx(both - alone, abs=1e-4)


def test_blocks_of_latitude_part_every_strip_and_settings_that_do_not_fit_are_refused():
    places = np.array([[-90.0, 160.0], [-60.0, 160.0], [89.0, -165.0], [90.0, -100.0], [0.0, 0.0]])
    assert world.blocks(places, STRIPS, 30.0).tolist() == [6, 7, 11, 5, -1]
    near = {"train": STRIPS, "test": ((-159.9, -150.5),)}
    assert len(world.apart(near)) == 2 and "train 150 to 200" in world.apart(near)[1]
    assert world.apart({"train": STRIPS, "test": ((-50.0, 20.0),)}) == []
    with pytest.raises(InputError, match="fewer nodes"):
        made(window=4, context=9, targets=9)
    with pytest.raises(InputError, match="no strip is as wide"):
        made(window=20)


@pytest.mark.skipif(
    not (REAL / "era5.grib").is_file(), reason="TRADEWIND_MIRROR names no mirror with era5.grib"
)
def test_the_real_field_has_its_poles_and_blocks():
    pytest.importorskip("eccodes")
    found = world.read(REAL, 24)
    assert found.values.shape == (721, 1440) and found.lon[0] == -180.0
    assert 217.8 < found.values.min() < found.values.max() < 308.7  # K
    for pole in (0, -1):  # one value all around
        assert np.ptp(found.values[pole]) == 0
    assert np.argmin(found.values.mean(1)) < 60  # the Antarctic in October
    north, east = world.axes(found.lat, found.lon, 24)
    assert (len(north), len(east)) == (30, 60) and world.cells(found, 24).shape == (1800,)
    assert north[-1] == 87.125 and north[0] == -86.875
