"""Wind metrics against their definitions written out one point at a time, cases made by hand,
and laws they must obey."""

import math

import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from wind_points import values

from stages.units import KNOT_M_S
from stages.winds import metrics, tracks
from stages.winds.metrics import Points


def points(seed=0, n=240, slices=12, **more) -> Points:
    rng = np.random.default_rng(seed)
    measured = rng.normal((25, -8), (9, 6), (n, 2))
    return Points(
        np.sort(rng.integers(slices, size=n)) * 20 + 100,
        measured + rng.normal(0, 4, (n, 2)),
        measured,
        **more,
    )


def test_every_metric_is_its_definition_written_out():
    given = points()
    p, t, n = given.predicted, given.measured, len(given.slice)
    got = values(given)

    def rmse(rows):
        return math.sqrt(
            sum((p[k, i] - t[k, i]) ** 2 for k in rows for i in (0, 1)) / (2 * len(rows))
        )

    assert got["rmse_component_m_s"] == pytest.approx(rmse(range(n)))
    assert got["rmse_vector_m_s"] == pytest.approx(
        math.sqrt(sum(math.dist(p[k], t[k]) ** 2 for k in range(n)) / n)
    )
    assert got["rmse_vector_m_s"] == pytest.approx(math.sqrt(2) * got["rmse_component_m_s"])
    assert got["rmse_east_m_s"] == pytest.approx(
        math.sqrt(sum((p[k, 0] - t[k, 0]) ** 2 for k in range(n)) / n)
    )
    assert got["rmse_north_m_s"] == pytest.approx(
        math.sqrt(sum((p[k, 1] - t[k, 1]) ** 2 for k in range(n)) / n)
    )
    by_slice = [
        rmse([k for k in range(n) if given.slice[k] == s]) for s in sorted(set(given.slice))
    ]
    assert got["rmse_batch_mean_m_s"] == pytest.approx(sum(by_slice) / len(by_slice))
    assert got["norm_mae_m_s"] == pytest.approx(
        sum(abs(math.hypot(*p[k]) - math.hypot(*t[k])) for k in range(n)) / n
    )
    turned = [
        math.degrees(math.acos(min(1, p[k] @ t[k] / math.hypot(*p[k]) / math.hypot(*t[k]))))
        for k in range(n)
    ]
    assert got["angle_mae_deg"] == pytest.approx(sum(turned) / n)
    for i, axis in enumerate(("east", "north")):
        assert got[f"relative_bias_{axis}"] == pytest.approx(
            (sum(p[:, i]) - sum(t[:, i])) / sum(t[:, i])
        )
    assert got["rstd"] == pytest.approx(p.std() / t.std())
    assert got["nse"] == pytest.approx(1 - ((p - t) ** 2).mean() / ((t - t.mean(0)) ** 2).mean())


def test_knots_are_1852_metres_an_hour():
    got = values(
        points(scale=np.full((240, 2), 4.0), y_std=np.array([9.0, 6.0]), truth=np.zeros((240, 2)))
    )
    for name in (name for name in got if name.endswith("_m_s") and not name.startswith("log")):
        assert got[name.removesuffix("m_s") + "kn"] * 1852 / 3600 == pytest.approx(got[name])
    assert pytest.approx(0.514444, abs=1e-6) == metrics.KNOT_M_S


def test_the_mean_of_slices_is_another_number():
    given = points()
    given.predicted[given.slice == 100] += 30
    got = values(given)
    assert got["rmse_batch_mean_kn"] < 0.9 * got["rmse_component_kn"]


@pytest.mark.parametrize(
    ("a", "b", "degrees"),
    [
        ((1, 0), (1, 0), 0),
        ((1, 0), (0, 1), 90),
        ((1, 0), (-1, 0), 180),
        ((-1, 0.01), (-1, -0.01), 1.1459),
        ((0, -2), (0, 5), 180),
        ((1, 1), (-1, -0.999), 179.9713),
    ],
)
def test_angles_wrap(a, b, degrees):
    for first, second in ((a, b), (b, a)):
        assert metrics.turn(np.array([first], float), np.array([second], float))[
            0
        ] == pytest.approx(degrees, abs=1e-3)


def test_calm_has_no_direction_and_is_left_out():
    given = Points(
        np.array([0, 1, 2]),
        np.array([[1.0, 0], [0, 0], [0, 1]]),
        np.array([[0.0, 1], [3, 0], [0, 2]]),
    )
    found, _ = metrics.summarise(*metrics.by_slice(metrics.columns(given), given.slice))
    assert found["angle_mae_deg"]["value"] == pytest.approx(45)
    assert found["angle_mae_deg"]["n"] == 2 and found["rmse_component_kn"]["n"] == 3


def test_a_perfect_forecast():
    measured = points().measured
    got = values(Points(points().slice, measured.copy(), measured))
    assert got["nse"] == got["rstd"] == 1
    assert all(got[name] == 0 for name in got if name not in ("nse", "rstd"))


def test_the_mean_as_forecast_has_no_skill():
    given = points()
    got = values(Points(given.slice, np.tile(given.measured.mean(0), (240, 1)), given.measured))
    assert got["nse"] == pytest.approx(0, abs=1e-9) and got["relative_bias_east"] == pytest.approx(
        0, abs=1e-12
    )


@settings(max_examples=25, deadline=None)
@given(degrees=st.floats(0, 360), seed=st.integers(0, 99))
def test_turning_both_fields_leaves_what_is_no_matter_of_axes(degrees, seed):
    a = math.radians(degrees)
    turn = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
    given = points(seed, track=np.tile([0.6, 0.8], (240, 1)))
    before = values(given)
    after = values(
        Points(
            given.slice,
            given.predicted @ turn.T,
            given.measured @ turn.T,
            track=given.track @ turn.T,
        )
    )
    for name in (
        "rmse_vector_kn",
        "rmse_component_m_s",
        "rmse_batch_mean_kn",
        "angle_mae_deg",
        "norm_mae_kn",
        "nse",
        "along_track_s_per_100nm",
    ):
        assert after[name] == pytest.approx(before[name], rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(factor=st.floats(0.1, 50), seed=st.integers(0, 99))
def test_a_longer_unit_of_speed(factor, seed):
    given = points(seed)
    before = values(given)
    after = values(Points(given.slice, given.predicted * factor, given.measured * factor))
    for name in ("rmse_component_kn", "rmse_batch_mean_m_s", "norm_mae_kn"):
        assert after[name] == pytest.approx(before[name] * factor, rel=1e-9)
    for name in ("angle_mae_deg", "relative_bias_east", "rstd", "nse"):
        assert after[name] == pytest.approx(before[name], rel=1e-6)


def test_order_of_points_and_padding_of_slices_do_not_matter():
    given = points()
    assert values(given.take(np.random.default_rng(1).permutation(240))) == pytest.approx(
        values(given), rel=1e-12
    )
    assert values(Points(given.slice * 7 - 3, given.predicted, given.measured)) == values(given)


def test_truth_and_noise_floor():
    rng = np.random.default_rng(0)
    truth = rng.normal(20, 8, (60_000, 2))
    truth[:6000] = np.nan  # not known everywhere
    measured = np.nan_to_num(truth, nan=5.0) + rng.normal(0, 2.0, truth.shape)
    predicted = np.nan_to_num(truth, nan=5.0) + rng.normal(0, 3.0, truth.shape)
    given = Points(np.repeat(np.arange(60), 1000), predicted, measured, truth=truth)
    found, _ = metrics.summarise(*metrics.by_slice(metrics.columns(given), given.slice))
    assert (
        found["noise_floor_component_m_s"]["value"] == pytest.approx(2.0, rel=0.01)
        and found["noise_floor_component_m_s"]["n"] == 54_000
    )
    assert found["rmse_truth_component_m_s"]["value"] == pytest.approx(3.0, rel=0.01)
    assert found["rmse_component_m_s"]["value"] == pytest.approx(
        math.sqrt(13), rel=0.01
    )  # independent errors add in squares


def test_what_is_not_known_is_absent():
    optional = {
        "crps_kn",
        "log_likelihood",
        "coverage_90",
        "noise_floor_component_kn",
        "along_track_s_per_100nm",
        "hull_share",
    }
    assert not optional & set(values(points()))
    assert "noise_floor_component_kn" not in values(points(truth=np.full((240, 2), np.nan)))


def test_gaussian_scores_in_all_units():
    rng = np.random.default_rng(0)
    given = points(scale=rng.uniform(2, 6, (240, 2)), y_std=np.array([9.0, 6.0]))
    got = values(given)
    assert got["crps_m_s"] == pytest.approx(
        scoringrules.crps_normal(given.measured, given.predicted, given.scale).mean()
    )

    def density(unit):
        return -scoringrules.logs_normal(
            given.measured / unit, given.predicted / unit, given.scale / unit
        ).mean()

    assert got["log_likelihood"] == pytest.approx(density(np.array([9.0, 6.0])))  # standardised
    assert got["log_likelihood_m_s"] == pytest.approx(density(1.0)) and got[
        "log_likelihood_kn"
    ] == pytest.approx(density(KNOT_M_S))
    inside = np.abs(given.measured - given.predicted) <= 1.6448536269514722 * given.scale
    assert got["coverage_90"] == pytest.approx(inside.mean())


def test_along_track_time_of_one_aircraft():
    """An aircraft flying east at 450 kn takes 800 s for 100 NM; 10 kn more tailwind than
    forecast is 10 kn of error."""
    given = Points(
        np.zeros(2, int),
        np.array([[10 * KNOT_M_S, 0], [0, 10 * KNOT_M_S]]),
        np.zeros((2, 2)),
        track=np.array([[1.0, 0], [1, 0]]),
    )
    columns = metrics.columns(given)
    assert columns["along"] == pytest.approx([800 - 3600 * 100 / 460, 0])
    given = Points(
        np.zeros(2, int),
        np.full((2, 2), 3.0),
        np.zeros((2, 2)),
        track=np.array([[np.nan, np.nan], [0, 1]]),
    )
    assert metrics.columns(given)["n_along"].tolist() == [0, 1]


def test_time_along_tracks_in_all_directions_is_the_mean_square_of_those_along_each():
    """Errors of one direction alone: a third of a degree's steps of track stand for all tracks."""
    angle = np.radians(np.arange(0, 360, 1 / 3))
    track = np.stack((np.sin(angle), np.cos(angle)), 1)
    error = np.full((len(angle), 2), (1.2, -0.4))
    each = metrics.along_track_seconds(error, track)
    rmse = math.sqrt((error**2).mean())
    assert tracks.any_track_seconds(rmse) == pytest.approx(math.sqrt((each**2).mean()), rel=1e-3)


def test_a_metric_without_a_denominator_is_named_not_printed():
    given = Points(np.array([0, 1]), np.array([[1.0, 2], [3, 4]]), np.array([[2.0, 1], [2, -1]]))
    found, undefined = metrics.summarise(*metrics.by_slice(metrics.columns(given), given.slice))
    assert "relative_bias_north" in undefined and "relative_bias_north" not in found
    assert all(
        math.isfinite(entry[part])
        for entry in found.values()
        for part in ("value", "low", "high")
        if part in entry
    )


def test_one_slice_has_a_value_and_no_interval():
    given = points(slices=1)
    found, _ = metrics.summarise(*metrics.by_slice(metrics.columns(given), given.slice))
    assert set(found["rmse_vector_kn"]) == {"value", "unit", "n"}


def test_the_interval_is_around_the_value_and_widens_with_unequal_slices():
    given = points()
    worse = Points(
        given.slice,
        given.predicted + np.where((given.slice < 180)[:, None], 25.0, 0),
        given.measured,
    )
    found, uneven = (
        metrics.summarise(*metrics.by_slice(metrics.columns(p), p.slice))[0] for p in (given, worse)
    )

    def width(m):
        return m["rmse_component_kn"]["high"] - m["rmse_component_kn"]["low"]

    assert (
        found["rmse_component_kn"]["low"]
        < found["rmse_component_kn"]["value"]
        < found["rmse_component_kn"]["high"]
    )
    assert width(uneven) > 3 * width(found)
