"""The nowcast a controller asks for: it is the evaluated forecast, told in words and units one
can fly by, or a refusal."""

import math
import re
import shutil

import numpy as np
import polars as pl
import pytest
import torch
from nowcasts import ASKED, ask

from stages import files
from stages.batches import single
from stages.errors import InputError
from stages.units import KNOT_M_S
from stages.winds import forecasts as field
from stages.winds import measure
from stages.winds.contexts.given import Contexts
from stages.winds.nowcast import nowcast
from stages.winds.nowcast.answers import Wind, render
from stages.winds.nowcast.points import Point, parse_time
from stages.winds.nowcast.refusals import iso
from stages.winds.pairs import Pairs

START = 1_768_456_800.0  # of the fixture


def minute(airspace, wanted=2):
    """A test minute: its pair, its rows within the area, and what to ask for them."""
    pairs = Pairs.open(airspace / "data/mini/prepared/toy")
    pair = pairs.pair(pairs.targets("test")[wanted])
    rows = pl.read_parquet(airspace / "data/mini/prepared/toy/rows.parquet")[pair.target_rows]
    box = pairs.meta["area"]
    inside = [
        i
        for i, r in enumerate(rows.iter_rows(named=True))
        if all(box[n][0] <= r[n] <= box[n][1] for n in nowcast.PLACE)
    ]
    assert len(inside) > 10
    return (
        pairs,
        pair,
        inside,
        [",".join(repr(rows[name][i]) for name in (*nowcast.PLACE, "t_s")) for i in inside],
    )


@pytest.mark.parametrize(
    "cell", ["knn", "kernel", "hour_average", "day_average", "gka-swept-none-s0", "kriging"]
)
def test_it_is_the_evaluated_forecast(airspace, settings, runs, cell):
    """Asked at a test minute's own targets it gives what evaluation gives for them."""
    pairs, _, inside, asked = minute(airspace)
    given = field.forecasts(
        measure.load(runs / cell),
        Contexts(pairs, settings.contexts),
        {600.0: [pairs.targets("test")[2]]},
    )[600.0]
    got = ask(airspace, settings, *asked, model=runs / cell)
    assert np.array([[w.u_m_s, w.v_m_s] for w in got]) == pytest.approx(
        given.mean[inside], abs=2e-4
    )


def test_targets_that_attend_to_each_other_are_asked_one_by_one(airspace, settings, runs):
    """MSA's answer is that of the point among the context's own places, and the same whatever
    else is asked."""
    pairs, pair, inside, asked = minute(airspace)
    net = measure.load(runs / "msa-gaussian-5k-s0")
    tensors = [torch.from_numpy(a) for a in (pair.context_x, pair.context_y, pair.target_x)]
    with torch.no_grad():
        answers = [
            net(single(*tensors[:2], torch.cat((tensors[0], tensors[2][i : i + 1]))))
            for i in inside
        ]
    mean, std = (np.array(pairs.meta["scaler"][name]) for name in ("y_mean", "y_std"))
    got = ask(airspace, settings, *asked)
    expected = np.array(
        [[*(a.mean[0, -1].numpy() * std + mean), *(a.scale[0, -1].numpy() * std)] for a in answers]
    )
    assert np.array([[w.u_m_s, w.v_m_s, *w.spread_m_s] for w in got]) == pytest.approx(
        expected, abs=1e-3
    )
    (alone,) = ask(airspace, settings, asked[3])
    assert (alone.u_m_s, alone.v_m_s, *alone.spread_m_s) == pytest.approx(
        (got[3].u_m_s, got[3].v_m_s, *got[3].spread_m_s), abs=1e-4
    )


def test_the_context_is_the_slice_one_lead_before(airspace, settings):
    (wind,) = ask(airspace, settings, "46.5,7.0,25000,2026-01-15T07:08:59Z")
    begin, end, count = wind.context
    assert (iso(begin), iso(end)) == ("2026-01-15T06:57:00Z", "2026-01-15T06:58:00Z")
    rows = pl.read_parquet(airspace / "winds.parquet")
    assert count == len(rows.filter((pl.col("ts_s") >= begin) & (pl.col("ts_s") < end))) > 0


@pytest.mark.parametrize(
    ("u", "v", "degrees"), [(0, -10, 0), (-10, 0, 90), (0, 10, 180), (10, 0, 270), (7, -7, 315)]
)
def test_direction_is_where_it_comes_from(u, v, degrees):
    wind = Wind(Point(46, 7, 30000, START), u, v, None, "", 1.0, (0, 60, 5), "m", 600)
    assert wind.from_deg == pytest.approx(degrees) and wind.speed_m_s == pytest.approx(
        math.hypot(u, v)
    )


def test_render_tells_knots_from_and_spread():
    wind = Wind(
        Point(46.5, 7.25, 34000, START),
        50 * KNOT_M_S,
        0.04,
        (4.0, 3.0),
        "the model's own",
        12.3,
        (START - 660, START - 600, 231),
        "cell",
        600,
    )
    text = render([wind])
    row = text.splitlines()[-1]
    assert (
        "270°" in row
        and "50.0 kn" in row
        and "25.7 m/s" in row
        and "7.8, 5.8" in row
        and "4.0, 3.0" in row
        and "12 km" in row
    )
    assert "231" in text and "comes FROM" in text and "2026-01-15T06:00:00Z" in row
    north = Wind(wind.point, 0.0, -20.0, None, "not known", 1.0, wind.context, "cell", 600)
    assert "360°" in render([north]) and "not known" in render([north])
    calm = Wind(wind.point, 0.1, 0.0, None, "", 1.0, wind.context, "cell", 600)
    assert "000°" in render([calm])


def test_points_of_many_minutes_come_back_in_the_order_asked(airspace, settings, tmp_path):
    times = [
        "2026-01-15T07:09:10Z",
        "2026-01-15T07:05:00Z",
        "2026-01-15T07:09:50Z",
        str(START + 3900),
    ]
    lines = "".join(f"{t},{20000 + 500 * i},46.{i},7\n" for i, t in enumerate(times))
    (tmp_path / "points.csv").write_text("time,alt_ft,lat_deg,lon_deg\n" + lines)
    got = ask(airspace, settings, points=tmp_path / "points.csv")
    assert [w.point.alt_ft for w in got] == [20000, 20500, 21000, 21500]
    for wind in got:
        p = wind.point
        (alone,) = ask(airspace, settings, f"{p.lat_deg},{p.lon_deg},{p.alt_ft},{p.ts_s}")
        assert (alone.u_m_s, alone.v_m_s) == pytest.approx(
            (wind.u_m_s, wind.v_m_s), abs=1e-4
        ) and alone.context == wind.context


@pytest.mark.parametrize(
    "text", ["2026-01-15T06:00:00Z", "2026-01-15T07:00:00+01:00", "2026-01-15 06:00", "1768456800"]
)
def test_times(text):
    assert parse_time(text) == START


@pytest.mark.parametrize("text", ["20260115", " 20260115 ", "2026-01-15", "1768435200.0"])
def test_eight_digits_are_a_date(text):
    assert parse_time(text) == START - 6 * 3600


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("46.5,7.0,25000", "not a point"),
        ("46.5,7.0,high,2026-01-15T07:08:00Z", "not a number"),
        ("96,7,25000,2026-01-15T07:08:00Z", "no such place"),
        ("46.5,7,nan,2026-01-15T07:08:00Z", "not a number"),
        ("46.5,7.0,25000,half past", "not a time"),
        ("46.5,7.0,25000,inf", "cannot be"),
        ("46.5,7.0,25000,20261315", "not a time"),
    ],
)
def test_what_is_no_point_is_refused(airspace, settings, text, says):
    with pytest.raises(InputError, match=says) as caught:
        ask(airspace, settings, text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("30,7,25000,2026-01-15T07:08:00Z", "lat_deg 30"),
        ("46.5,7,55000,2026-01-15T07:08:00Z", "alt_ft 55000"),
        ("46.5,-20,25000,2026-01-15T07:08:00Z", "lon_deg -20"),
    ],
)
def test_outside_the_area_is_refused(airspace, settings, text, says):
    with pytest.raises(InputError, match="nothing of that place") as caught:
        ask(airspace, settings, ASKED, text)
    assert f"{says} of point 2" in str(caught.value) and "lat_deg 4" in str(caught.value)


def test_beyond_the_horizon_is_refused_with_what_can_be_asked(airspace, settings):
    with pytest.raises(InputError, match="10 minutes before 2026-01-15T09:00:00Z") as caught:
        ask(airspace, settings, "46.5,7.0,25000,2026-01-15T09:00:00Z")
    assert (
        "from 2026-01-15T06:11:00Z to 2026-01-15T07:26:00Z" in str(caught.value)
        and caught.value.exit_code == 2
    )
    assert ask(airspace, settings, "46.5,7.0,25000,2026-01-15T07:25:59Z") and ask(
        airspace, settings, "46.5,7.0,25000,2026-01-15T06:11:00Z"
    )
    for text in (
        "2026-01-15T07:26:00Z",
        "2026-01-15T06:10:59Z",
        "2026-01-15T07:01:30Z",
    ):  # after, before, in the capture's gap
        with pytest.raises(InputError, match="holds no wind"):
            ask(airspace, settings, f"46.5,7.0,25000,{text}")


@pytest.mark.parametrize("cell", ["gka-swept-none-s0", "kriging", "hour_average", "day_average"])
def test_what_is_beyond_the_lead_is_refused_whatever_a_model_reads(airspace, settings, runs, cell):
    """A model that reads all past winds, an hour or a day of them is no wiser beyond its lead."""
    for text in ("2026-01-15T07:26:00Z", "2026-01-15T09:00:00Z", "2099-01-15T07:00:00Z"):
        with pytest.raises(InputError, match="10 minutes before") as caught:
            ask(airspace, settings, ASKED, f"46.5,7.0,25000,{text}", model=runs / cell)
        told = str(caught.value)
        assert "to 2026-01-15T07:14:" in told and "to 2026-01-15T07:26:00Z" in told
        assert re.search(r"11\.\d minutes after its newest wind", told)
    assert ask(airspace, settings, "46.5,7.0,25000,2026-01-15T07:25:59Z", model=runs / cell)


@pytest.mark.parametrize("cell", ["kernel", "kriging"])
def test_the_winds_known_end_with_the_newest_of_them(airspace, settings, runs, cell):
    winds = ask(airspace, settings, ASKED, model=runs / cell)
    times = pl.read_parquet(airspace / "winds.parquet")["ts_s"]
    newest_s = times.filter(times < winds[0].context[1]).max()
    assert winds[0].newest_s == newest_s < winds[0].context[1]
    assert f"to {iso(newest_s)}\n" in render(winds)


def test_a_model_without_spread_tells_its_test_error(airspace, settings, runs, tmp_path):
    assert ask(airspace, settings, ASKED, model=runs / "knn")[0].spread_from.startswith(
        ("not known", "the model gives none")
    )
    home = tmp_path / "reports/wind_nowcast/mini"
    shutil.copytree(runs / "knn", home / "runs/toy/knn")
    assert ask(airspace, settings, ASKED, model=home / "runs/toy/knn")[0].spread_m_s is None
    metrics = {"rmse_east_m_s": {"value": 3.5}, "rmse_north_m_s": {"value": 2.5}}
    files.write_json(home / "evaluated/toy/metrics.json", {"cells": {"knn": {"metrics": metrics}}})
    (wind,) = ask(airspace, settings, ASKED, model=home / "runs/toy/knn")
    assert wind.spread_m_s == (3.5, 2.5) and "RMSE" in wind.spread_from


def test_a_models_own_spread_is_told_with_how_often_it_held(airspace, settings, runs, tmp_path):
    home = tmp_path / "reports/wind_nowcast/mini"
    shutil.copytree(runs / "msa-gaussian-5k-s0", home / "runs/toy/msa-gaussian-5k-s0")

    def asked():
        return render(ask(airspace, settings, ASKED, model=home / "runs/toy/msa-gaussian-5k-s0"))

    assert "spread: the model's own\n" in asked()
    files.write_json(
        home / "evaluated/toy/metrics.json",
        {"cells": {"msa-gaussian-5k-s0": {"metrics": {"coverage_90": {"value": 0.768}}}}},
    )
    assert "spread: the model's own: its 90 % interval held 77 % of the test winds\n" in asked()


def test_an_area_is_told_in_numbers_that_can_be_asked(airspace, settings, runs):
    with pytest.raises(InputError) as caught:
        ask(airspace, settings, "46.5,7,1234567.25,2026-01-15T07:08:00Z")
    assert "alt_ft 1234567.25 of point 1" in str(caught.value) and "e+" not in str(caught.value)
    area = nowcast.load(runs / "kernel")[1]["prepared"]["area"]
    told = {
        name: tuple(map(float, ends))
        for name, *ends in re.findall(r"(\w+) (-?[\d.]+) to (-?[\d.]+)", str(caught.value))
    }
    for name, step in (("lat_deg", 0.001), ("lon_deg", 0.001), ("alt_ft", 1)):
        assert (
            area[name][0] <= told[name][0] < area[name][0] + step
            and area[name][1] - step < told[name][1] <= area[name][1]
        )


def test_a_folder_without_a_model(airspace, settings, tmp_path):
    with pytest.raises(InputError, match="not a trained cell"):
        ask(airspace, settings, ASKED, model=tmp_path)
