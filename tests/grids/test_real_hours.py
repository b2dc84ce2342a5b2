"""A month of real hours as tasks: the file is normalised or refused by name; no hour serves two
splits; the rivals against ones written otherwise."""

import numpy as np
import pytest
from hours_made import HOURS, LAT, LON, air, written
from scipy.stats import multivariate_normal

from stages.errors import DataError, InputError
from stages.fields.problems.functions.plans import Kept, Training
from stages.fields.problems.stale import month, rivals
from stages.fields.problems.stale.month import Lengths
from stages.fields.problems.stale.tasks import Month

LENGTHS = Lengths(30, 15, 20, 5, 6)


def made(lengths=LENGTHS, context=9, targets=20):
    """Of every split the tasks' process, of the same hours."""
    values = (air()[:, ::-1] - 280) / 2
    return {
        split: Month(values, runs, LAT[::-1], LON, 3, (2, 6), context, targets)
        for split, runs in month.runs(HOURS, lengths).items()
    }


def test_rows_from_the_north_and_longitudes_from_greenwich_give_the_same_fields(tmp_path):
    plain = month.read(written(tmp_path / "a", air()))
    assert plain.lat[0] == 55.75 and plain.values[3, 0, 2] == pytest.approx(air()[3, -1, 2])
    turned = month.read(written(tmp_path / "b", air()[:, ::-1], lon=LON + 360, lat=LAT[::-1]))
    for name in ("hour", "lat", "lon", "values"):
        np.testing.assert_allclose(getattr(turned, name), getattr(plain, name), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "what", "where"),
    [
        ({"hours": np.delete(np.arange(111), 7)}, "an hour is missing", "07:00"),
        ({"hours": np.arange(110) * 2}, "an hour is missing", "01:00"),
        ({"hours": np.arange(110) + 0.5 * (np.arange(110) == 9)}, "an hour is missing", "09:00"),
        ({"hours": np.maximum(np.arange(110), 1)}, "twice with different values", "one field"),
        ({"names": ("time", "y", "x")}, "no coordinate of lat", "latitude"),
        ({"lat": np.r_[LAT[:4], LAT[4:] - 0.25]}, "latitude is not evenly spaced", "positive"),
    ],
    ids=["missing", "every other", "half past", "a stale stamp", "other axes", "a row missing"],
)
def test_hours_that_are_not_whole_and_other_axes_are_refused(tmp_path, change, what, where):
    with pytest.raises(DataError, match=what) as error:
        month.read(written(tmp_path / "raw", air(), **change))
    assert where in error.value.expected or where in str(error.value)


def test_a_node_without_a_value_is_refused_with_its_hour_and_place(tmp_path):
    values = air()
    values[5, 2, 3] = np.nan
    with pytest.raises(DataError, match="no value") as error:
        month.read(written(tmp_path / "raw", values))
    for word in ("2019-03-01T05:00", "57.5 degrees north", "-3.25 east"):
        assert word in error.value.where


def test_no_file_two_files_and_one_cut_short_are_refused(tmp_path):
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError, match="not one weather file"):
        month.read(tmp_path / "raw")
    raw = written(tmp_path / "raw", air())
    whole = (raw / "hours.nc").read_bytes()
    (raw / "again.nc").write_bytes(whole)
    with pytest.raises(DataError, match="not one weather file") as error:
        month.read(raw)
    assert error.value.found == "again.nc, hours.nc"
    (raw / "again.nc").unlink()
    (raw / "hours.nc").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut short or damaged"):
        month.read(raw)


def test_a_grib_file_cut_short_is_refused(tmp_path):
    eccodes = pytest.importorskip("eccodes", reason="pip install 'tradewind[era5]'")
    parts = []
    for hour in range(3):
        handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib1")
        for key, value in {"shortName": "2t", "dataDate": 20190301, "dataTime": 100 * hour}.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, np.full(eccodes.codes_get_size(handle, "values"), 280.0))
        parts.append(eccodes.codes_get_message(handle))
        eccodes.codes_release(handle)
    (tmp_path / "month.grib").write_bytes(b"".join(parts))
    assert len(month.read(tmp_path).hour) == 3
    (tmp_path / "month.grib").write_bytes(b"".join(parts)[:-30])
    with pytest.raises(DataError, match="cut short"):
        month.read(tmp_path)


def test_no_hour_serves_two_splits_and_a_file_too_short_is_refused():
    runs = month.runs(200, LENGTHS)
    owner = np.full(200, -1)
    for place, several in enumerate(runs.values()):
        for first, end in several:
            assert end - first > LENGTHS.oldest and (owner[first:end] == -1).all()
            owner[first:end] = place
    changes = np.flatnonzero(np.diff(owner))
    assert all(-1 in owner[[place, place + 1]] for place in changes)  # a gap between any two
    assert {name: len(several) for name, several in runs.items()} == {
        "train": 3, "val": 2, "test": 2,
    }  # fmt: skip
    with pytest.raises(DataError, match="too short") as error:
        month.runs(50, LENGTHS)
    assert error.value.where == "test"


def test_tasks_read_the_declared_ages_of_their_own_run_and_ask_no_context_node():
    for split, process in made().items():
        for source in (Training(0, 3), Kept(0, split)):
            asked = process.asked(40, source)
            age = asked.now - asked.then
            assert age.min() >= 2 and age.max() <= 6 and len(np.unique(age)) == 5
            for now, then in zip(asked.now, asked.then, strict=True):
                assert any(first <= then < now < end for first, end in process.runs)
            both = np.concatenate((asked.context, asked.targets), 1)
            assert all(len(np.unique(row)) == both.shape[1] for row in both)
    kept = made()["test"].asked(40, Kept(0, "test"))
    assert set(kept.now.tolist()) == set(range(61, 75))  # every hour with a grid of every age


def test_the_coarse_grid_is_the_mean_of_whole_blocks_and_values_are_the_nodes():
    process = made()["train"]
    tasks, asked = process.drawn(5, Training(0, 1)), process.asked(5, Training(0, 1))
    assert [len(axis) for axis in process.axes] == [3, 4]
    cell = process.values[asked.then[2], 3:6, 6:9].mean()
    assert tasks.grid_y[2, 1 * 4 + 2] == pytest.approx(cell)
    assert process.axes[0][1] == pytest.approx(process.lines[0][4])
    row, column = divmod(int(asked.targets[3, 4]), 12)
    assert tasks.target_y[3, 4, 0] == process.values[asked.now[3], row, column]
    np.testing.assert_allclose(
        tasks.target_x[3, 4], (process.lines[0][row], process.lines[1][column])
    )


def test_too_many_nodes_and_too_large_blocks_are_refused():
    with pytest.raises(InputError, match="more nodes"):
        made(context=100, targets=21)
    process = made()["train"]
    with pytest.raises(InputError, match="fewer than two cells"):
        Month(process.values, process.runs, process.lat, process.lon, 6, (2, 6), 3, 3)


def test_the_grid_is_interpolated_linearly_and_stays_beyond_its_middles():
    process = made()["train"]
    north, east = np.meshgrid(*process.axes, indexing="ij")
    plane = (2 * north - 3 * east + 1).reshape(1, -1)
    middle = np.array([process.axes[0].mean() + 0.1, process.axes[1].mean() - 0.05])
    far = np.array([99.0, process.axes[1][2]])
    found = rivals.interpolated(plane, process.axes, np.stack((middle, far))[None])
    assert found[0, 0] == pytest.approx(2 * middle[0] - 3 * middle[1] + 1)
    assert found[0, 1] == pytest.approx(plane.reshape(3, 4)[-1, 2])


def test_kriging_is_the_conditional_law_and_answers_exactly_what_is_known():
    process = made()["val"]
    tasks = process.drawn(6, Kept(0, "val"))
    known = rivals.increments_of(process, tasks)
    law = rivals.Shift(0.9, 0.6, 0.8, 0.2)
    mean, sd = law.at_targets(tasks, known)
    for row in (0, 5):
        real = tasks.real[row]
        x = np.concatenate((tasks.target_x[row, :1], tasks.context_x[row, real]))
        gaps = np.linalg.norm(x[:, None] - x[None], axis=2)
        whole = 0.81 + 0.36 * np.exp(-gaps / 0.8) + 0.04 * np.eye(len(x))
        value, rest = 0.3, known[row, real]
        both = multivariate_normal(np.zeros(len(x)), whole).logpdf(np.r_[value, rest])
        alone = multivariate_normal(np.zeros(len(rest)), whole[1:, 1:]).logpdf(rest)
        ours = multivariate_normal(mean[row, 0], sd[row, 0] ** 2).logpdf(value)
        assert ours == pytest.approx(both - alone, abs=1e-8)


def test_rivals_that_read_points_are_better_than_the_grid_and_climate_knows_the_day():
    parts, hour = made(), np.arange(HOURS)
    train = parts["train"]
    first, end = train.runs[0]
    learned = rivals.fitted(
        Month(train.values[first:end], np.array([[0, end - first]]), train.lat, train.lon, 3,
              (2, 6), 9, 20), hour[first:end], 0,
    )  # fmt: skip
    asked = parts["test"].asked(40, Kept(0, "test"))
    y = parts["test"].tasks_of(asked).target_y[..., 0]
    found = rivals.laws(parts["test"], asked, hour, learned)
    error = {name: np.sqrt(np.square(mean - y).mean()) for name, (mean, _) in found.items()}
    assert tuple(found) == rivals.RIVALS
    assert error["kriging"] < error["persistence"] > error["inverse_distance"]
    assert all((sd > 0).all() for _, sd in found.values())
    node = int(asked.targets[0, 0])
    same = hour[first:end] % 24 == asked.now[0] % 24
    flat = train.values[first:end].reshape(end - first, -1)
    assert found["climatology"][0][0, 0] == pytest.approx(flat[same, node].mean())
