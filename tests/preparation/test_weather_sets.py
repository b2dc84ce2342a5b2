"""The two-day problem's sets: 48 hours by the clock, nodes drawn once and never shared, no time in
two splits.

The oracle for values is the file itself, looked up by position and time through another path than
the reader's.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.io import netcdf_file

from stages import files
from stages.errors import DataError, InputError
from stages.fields import gridded
from stages.fields import problem as shared
from stages.fields.problem import Counts
from stages.fields.problems.weather import make as simulator
from stages.fields.problems.weather import read as weather
from stages.params import Weather

MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
YEAR = Path(MIRROR) / "era5" / "feedinlib" / "ERA5_example_data.nc"
CONFIG = Weather(
    seed=4,
    start="2001-01-01T00:00:00Z",
    days=130,
    step_h=12,
    grid_deg=10,
    degree_max=8,
    slope=4.0,
    memory_days=4.0,
    wind_sd_m_s=6.0,
    jet_m_s=14.0,
)
COUNTS = Counts(20, 30)
DAY = np.timedelta64(24, "h")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    simulator.make(CONFIG, folder)
    return folder


@pytest.fixture
def copy(raw, tmp_path):
    """A raw folder that may be spoiled."""
    return Path(shutil.copytree(raw, tmp_path / "copy"))


def spoil(path, change):
    """Rewrite a NetCDF-3 file's numbers in place; `change` gets its variables."""
    with netcdf_file(path, "a", mmap=False) as file:
        change(file.variables)


def hours(start, *spans):
    """Hourly times from `start`, each span (first day, last day)."""
    return np.concatenate(
        [
            np.datetime64(start, "ns") + np.arange(a * 24, b * 24) * np.timedelta64(3600, "s")
            for a, b in spans
        ]
    )


def test_values_are_those_of_the_file_at_the_position_and_48_hours_later(raw):
    made = weather.read(raw, 0, COUNTS)
    shared.check(made, "here")
    with netcdf_file(raw / "era5_simulated.nc", mmap=False, maskandscale=True) as file:
        lat, lon, time = (
            file.variables[name][:].astype(float) for name in ("latitude", "longitude", "time")
        )
        table = {name: file.variables[name][:] for name in weather.INPUTS}
    for s in range(0, len(made.split), 37):
        later = int(np.flatnonzero(time == time[made.record[s]] + 48)[0])
        for x, y, k, names in (
            (made.context_x, made.context_y, made.record[s], weather.INPUTS),
            (made.target_x, made.target_y, later, weather.OUTPUTS),
        ):
            column, row = (
                np.rint((x[s] + 1) / 2 * [36, 19]).astype(int).T
            )  # of the convention: from -180, from -90
            i = np.searchsorted(-lat, -(-90.0 + 10 * row))
            j = np.searchsorted(lon, (-180.0 + 10 * column) % 360)
            np.testing.assert_allclose(
                y[s], np.stack([table[name][k, i, j] for name in names], 1), rtol=1e-6, atol=1e-5
            )


def test_shapes_names_and_units_are_the_problem_s(raw):
    made = weather.read(raw, 0, COUNTS)
    n = len(made.split)
    assert (
        made.context_x.shape,
        made.context_y.shape,
        made.target_x.shape,
        made.target_y.shape,
    ) == ((n, 20, 2), (n, 20, 7), (n, 30, 2), (n, 30, 2))
    assert (
        made.names["o"] == ("u100", "v100")
        and made.units["i"] == ("m/s",) * 4 + ("Pa", "K", "1")
        and made.units["x"] == ("1", "1")
    )
    assert (made.loss, made.standardise, made.files) == ("rmse", True, ("era5_simulated.nc",))
    assert made.facts["pairs"] == n and made.facts["absent"] == [] and made.facts["lead_h"] == 48


def test_context_and_targets_of_a_set_share_no_node_and_repeat_none(raw):
    made = weather.read(raw, 0, COUNTS)
    for context, target in zip(made.context_x, made.target_x, strict=True):
        assert len({tuple(x) for x in np.concatenate([context, target])}) == 50
    assert len({tuple(map(tuple, x)) for x in made.context_x}) == len(
        made.split
    )  # each set has its own nodes


def test_nodes_are_taken_from_everywhere_alike(raw):
    made = weather.read(raw, 0, Counts(300, 300))
    count = np.histogram2d(
        *np.concatenate([made.context_x, made.target_x], 1).reshape(-1, 2).T,
        bins=4,
        range=[[-1, 1]] * 2,
    )[0]
    share = count / count.sum() / (np.outer([9] * 4, [5, 5, 5, 4]) / (36 * 19))
    assert np.abs(share - 1).max() < 0.05


def test_a_pair_s_nodes_do_not_depend_on_which_other_pairs_are_drawn(raw):
    whole, part = weather.read(raw, 0, COUNTS), weather.read(raw, 0, Counts(20, 30, 40))
    assert len(part.split) == 40
    at = {record: s for s, record in enumerate(whole.record.tolist())}
    for s, record in enumerate(part.record.tolist()):
        np.testing.assert_array_equal(part.target_y[s], whole.target_y[at[record]])
    assert (weather.read(raw, 1, COUNTS).context_x != whole.context_x).any()


@pytest.mark.parametrize(
    "time",
    [
        hours("2017-01-01", (0, 365)),
        hours("2017-01-01", (0, 60)),
        hours("2017-01-01", (0, 31))[::6],
        hours("2000-02-27", (0, 100)),
        hours("2017-01-01", (0, 20), (23, 90), (100, 200)),
    ],
    ids=["year", "cycle", "month", "leap", "gaps"],
)
def test_no_time_serves_two_splits_and_splits_lie_48_hours_apart(time):
    context, target, split, run = weather.pairs(time)
    assert (time[target] - time[context] == 2 * DAY).all() and set(split.tolist()) == {0, 1, 2}
    used = {
        k: np.unique(np.concatenate([time[context[split == k]], time[target[split == k]]]))
        for k in range(3)
    }
    for a in range(3):
        for b in range(a):
            assert np.abs(used[a][:, None] - used[b][None]).min() >= 2 * DAY
    assert all(len(set(split[run == r].tolist())) == 1 for r in set(run.tolist()))
    assert (split == 0).sum() > 3 * max((split == 1).sum(), (split == 2).sum())


def test_a_year_is_used_to_the_stated_share():
    _context, _, split, _ = weather.pairs(hours("2017-01-01", (0, 360)))
    assert np.bincount(split).tolist() == [6 * 36 * 24, 6 * 6 * 24, 6 * 6 * 24]


def test_the_documents_months_train_on_2000_select_on_january_and_test_on_september():
    time = np.concatenate(
        [hours("2000-01-01", (0, 366)), hours("2010-01-01", (0, 31)), hours("2010-09-01", (0, 30))]
    )
    context, _, split, _ = weather.pairs(time)
    assert np.bincount(split).tolist() == [(366 - 2) * 24, 29 * 24, 28 * 24]
    assert {str(time[k])[:7] for k in context[split == 1]} == {"2010-01"} and {
        str(time[k])[:7] for k in context[split == 2]
    } == {"2010-09"}
    assert {str(time[k])[:4] for k in context[split == 0]} == {"2000"}


def test_a_missing_time_costs_its_pairs_and_shifts_no_other():
    time = np.delete(hours("2017-01-01", (0, 30)), 100)
    context, target, *_ = weather.pairs(time)
    assert (time[target] - time[context] == 2 * DAY).all() and 100 * np.timedelta64(
        3600, "s"
    ) not in (time[context] - time[0]).tolist()


def test_a_node_without_one_variable_is_no_context_but_may_be_a_target(copy):
    def hole(variables):
        variables["t2m"].data[
            :, :, 3:
        ] = -32767  # only the first three meridians keep a temperature

    spoil(copy / "era5_simulated.nc", hole)
    made = weather.read(copy, 0, COUNTS)
    assert np.isfinite(made.context_y).all() and set(
        np.unique(np.round(made.context_x[..., 0], 9))
    ) <= {0.0, round(2 / 36, 9), round(4 / 36, 9)}
    assert len(np.unique(made.target_x[..., 0])) == 36 and made.facts["pairs_with_gaps"] == 0


def test_nodes_that_are_passed_over_for_want_of_a_value_are_counted(copy, raw):
    """A context takes the first nodes of its order that have all values; those before its last one
    that have not are told."""

    def hole(variables):
        variables["t2m"].data[:, :, 3:] = -32767

    spoil(copy / "era5_simulated.nc", hole)
    made, archive, passed = weather.read(copy, 0, COUNTS), weather.open_archive(copy), 0
    nodes = archive.shape[0] * archive.shape[1]
    for k in made.record.tolist():
        ranked = weather.order(0, archive.time[k], "context", nodes)
        # the file's meridians begin at 0 degrees, the archive's at -180
        good = np.flatnonzero(np.isin(ranked % archive.shape[1], (18, 19, 20)))[: COUNTS.context]
        passed += int(good[-1]) + 1 - COUNTS.context
    assert made.facts["nodes_without_values"] == passed > 100 * len(made.record)
    assert "nodes_without_values" not in weather.read(raw, 0, COUNTS).facts


def test_a_pair_with_too_few_values_is_left_out_and_counted(copy, raw):
    def hole(variables):
        variables["u100"].data[6] = -32767

    spoil(copy / "era5_simulated.nc", hole)
    made, whole = weather.read(copy, 0, COUNTS), weather.read(raw, 0, COUNTS)
    assert (
        set(whole.record.tolist()) - set(made.record.tolist()) == {6, 2}
        and made.facts["pairs_with_gaps"] == 2
    )


def test_more_nodes_than_the_grid_has_are_the_user_s_mistake(raw):
    with pytest.raises(InputError, match="more nodes") as error:
        weather.read(raw, 0, Counts(600, 100))
    assert "684" in error.value.expected


def test_files_of_one_archive_may_be_many_but_share_no_time_and_one_grid(copy):
    first = copy / "era5_simulated.nc"
    shutil.copy(first, copy / "again.nc")
    with pytest.raises(DataError, match="same time") as error:
        weather.read(copy, 0, COUNTS)
    assert "again.nc" in error.value.where and "era5_simulated.nc" in error.value.where

    def later(variables):
        variables["time"].data[:] += 130 * 24

    spoil(copy / "again.nc", later)
    made = weather.read(copy, 0, COUNTS)
    assert set(made.source.tolist()) == {0, 1} and made.facts["times"] == 520

    def moved(variables):
        variables["longitude"].data[:] += 5

    spoil(copy / "again.nc", moved)
    with pytest.raises(DataError, match="differ in grid"):
        weather.read(copy, 0, COUNTS)


def test_what_the_manifest_promises_must_be_there(copy):
    entry = {"variables": ["u100", "v100", "skt"]}
    files.write_json(copy / "manifest.json", {"files": {"era5_simulated.nc": entry}})
    with pytest.raises(DataError, match="variable is missing") as error:
        weather.read(copy, 0, COUNTS)
    assert error.value.expected == "skt"


def test_an_empty_folder_and_a_week_of_weather_are_refused(tmp_path):
    with pytest.raises(DataError, match="no weather file"):
        weather.read(tmp_path, 0, COUNTS)
    simulator.make(CONFIG.model_copy(update={"days": 2}), tmp_path)
    with pytest.raises(DataError, match="48 h apart"):
        weather.read(tmp_path, 0, COUNTS)


@pytest.mark.skipif(
    not (MIRROR and YEAR.is_file()),
    reason="TRADEWIND_MIRROR is not set: the real ERA5 year is absent",
)
def test_the_real_year_gives_six_nodes_six_variables_and_every_hour(tmp_path):
    shutil.copy(YEAR, tmp_path / "year.nc")
    made = weather.read(tmp_path, 0, Counts(3, 3, 500))
    shared.check(made, "here")
    assert (
        made.facts["pairs"] == 5256 + 864 + 864
        and made.facts["absent"] == ["tcc"]
        and made.names["i"] == ("u10", "v10", "u100", "v100", "sp", "t2m")
    )
    assert made.context_x.shape == (500, 3, 2) and made.context_y.shape == (500, 3, 6)
    source = gridded.open_grid(YEAR)
    for s in range(0, 500, 50):
        column, row = np.rint((made.target_x[s] + 1) / 2 * [3, 2]).astype(int).T
        expected = [
            source.field(name, int(made.record[s]) + 48)[row, column] for name in weather.OUTPUTS
        ]
        np.testing.assert_array_equal(made.target_y[s], np.stack(expected, 1))
