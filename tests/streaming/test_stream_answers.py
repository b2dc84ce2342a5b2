"""A stream's answers: the batch's after any prefix, the same however the bytes were cut; what is
refused, what is told of a feed that goes wrong."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from followers import MODELS, PLACE, PREPARED, follower, given
from sky_frames import SETTINGS, flown
from test_stream_splitting import cut

from stages.errors import InputError
from stages.winds.nowcast import capture, nowcast
from stages.winds.streaming import follow
from stages.winds.streaming.answering import asked

TIMES = [PLACE, "45.8,6.4,FL300,+0", "47.1,8.0,30000,+300"]


def lines_of(frames) -> bytes:
    return "".join(f"{t:.3f},{h}\n" for t, h, _ in frames).encode()


def batch(answering, frames, folder):
    """What `nowcast --context` says of the same frames and points."""
    (folder / "prefix.csv").write_bytes(lines_of(frames))
    known = capture.read(folder / "prefix.csv", SETTINGS.decode)
    now_s = max(one[0] for one in frames)
    points = [replace(point, ts_s=now_s + point.ts_s) for point in answering.points]
    where = answering.folder
    return nowcast.answer(
        answering.net, PREPARED, points, (*known, "batch"), settings=SETTINGS, folder=where
    )


def numbers(rows) -> np.ndarray:
    return np.array(
        [(row.u_m_s, row.v_m_s, *(row.spread_m_s or ()), row.nearest_km) for row in rows]
    )


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("msa", "persistence") else pytest.param(name, marks=pytest.mark.slow_fault)
        for name in MODELS
    ],
)
def test_after_any_prefix_the_answer_is_the_batchs(tmp_path, name):
    frames, answering = list(flown()), follower(name, *TIMES, every_s=120.0)
    before = 0
    for count in (9011, 9400, 12_007):
        told = list(answering.take(frames[before:count], 0.0))
        before = count
        expected = numbers(batch(answering, frames[:count], tmp_path))
        np.testing.assert_allclose(numbers(answering.answer()), expected, atol=1e-5, rtol=0)
    assert told and all("winds" in line for line in told)


def test_answers_do_not_depend_on_the_cuts():
    content, told = lines_of(flown()[:6000]), []
    for seed, longest in ((0, 3000), (1, 60_000)):
        answering = follower()
        parts = cut(content, seed, longest)
        told.append([line for part in parts for line in answering.feed(part, 0.0)])
    keys = ("time_s", "context_winds", "newest_wind_age_s", "winds", "refused")
    one, other = ([[line.get(key) for key in keys] for line in lines] for lines in told)
    assert one == other and len(one) > 8
    assert "refused" not in told[0][-1] and told[0][-1]["newest_wind_age_s"] < 60


def test_a_line_tells_what_it_rests_on_and_is_strict_json():
    answering = follower("kalman", PLACE, every_s=120.0)
    *_, line = answering.feed(lines_of(flown()[:4000]), 0.0)
    line = json.loads(follow.written(line))
    (wind,) = line["winds"]
    assert wind["time"] > line["time"] and wind["u_spread_m_s"] > 0
    assert line["context_winds"] > 50 and line["lead_s"] == 600 and line["frames"] > 0
    assert line["dropped"]["bad_crc"] >= 1 and line["events"] == {}
    assert line["newest_wind_age_s"] < 60 < line["age_s"]


def test_a_level_and_a_route_are_asked_of_a_stream_too():
    (*_, line) = follower(grid="FL340,+lead,2", at=None).feed(lines_of(flown()[:4000]), 0.0)
    assert len(line["winds"]) == 3 * 4
    route = "FL340,+0,450,46.2,6.1,46.6,6.8"
    (*_, line) = follower(route=route, at=None).feed(lines_of(flown()[:12_000]), 0.0)
    assert len(line["winds"]) == 4


def test_before_the_first_wind_a_line_says_so_and_the_stream_goes_on():
    answering = follower(every_s=2.0)
    assert [line.get("refused") for line in answering.take(list(flown()[:30]), 0.0)]
    answering.every_s = 60.0
    (*_, line) = answering.take(list(flown()[30:3000]), 0.0)
    assert line["winds"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"at": ["46.5,7.2,FL340,2026-01-17T05:00:00Z"]}, "times after its own"),
        ({"at": ["46.5,7.2,FL340,-60"]}, "time cannot be"),
        ({"at": [PLACE, "46.5,7.2,FL340,+720"]}, r"(?s)beyond the model's lead.*less than \+720"),
        ({"at": ["46.5,7.2,FL340,+86000"]}, "beyond the model's lead"),
        ({"at": ["10,7.2,FL340,+lead"]}, "knows nothing of that place"),
        ({"at": []}, "no point was asked for"),
        ({"grid": "FL340,+lead", "at": []}, "not a grid"),
    ],
)
def test_what_cannot_be_asked_of_a_stream(more, says):
    with pytest.raises(InputError, match=says):
        asked(PREPARED, **given() | more)


def test_a_stream_set_back_by_an_hour_begins_anew_and_answers_again():
    frames = list(flown()[:5000])
    again = [(ts_s - 3600.0, digits, 5000 + i) for i, (ts_s, digits, _) in enumerate(frames)]
    answering = follower()
    list(answering.take(frames, 0.0))
    *_, line = answering.take(again, 0.0)
    assert line["winds"] and line["time_s"] < frames[0][0]
    assert answering.totals()["events"] == {"jumped_back": 1}


def test_an_hour_without_frames_is_survived():
    frames = list(flown()[:4000])
    later = [(ts_s + 7200.0, digits, i) for i, (ts_s, digits, _) in enumerate(frames)]
    answering = follower()
    list(answering.take(frames, 0.0))
    lines = list(answering.take(later, 0.0))
    assert lines[0]["refused"] and lines[-1]["winds"]
    assert answering.totals()["events"] == {"jumped_ahead": 1}


def test_garbage_repeats_and_stalls_are_named_once_and_counted(capsys):
    good = lines_of(flown()[:2500])
    junk = b"\x00\xff junk\n1768456800.0,ABC\n" + good[-4000:]
    now, told = itertools.count(0.0, 20.0), []
    answering = follower()
    chunks = [good, None, None, None, None, junk, junk, None, None, None, b"", good[:10], b"", None]
    follow.attend(answering, iter(chunks), lambda _, line: told.append(line), lambda: next(now))
    totals = answering.totals()
    assert totals["events"] == {"stalled": 2} and totals["dropped"]["cut_off"] == 1
    assert totals["dropped"]["duplicate"] > 100 and totals["dropped"]["not_hex"] >= 2
    named = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert sorted(named) == sorted(set(named))
    assert {"stalled", "duplicate", "not_hex", "cut_off"} <= set(named)
    assert sum(line["events"].get("stalled", 0) for line in told) == 2
    assert "2 stalled" in follow.summary(answering)
