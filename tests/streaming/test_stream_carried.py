"""The law of the carried decoder: after any prefix of a stream its winds and its counts are those
that the decode stage gives for all frames until then."""

import random

import polars as pl
import pytest
from sky_frames import SETTINGS, flown

from stages.winds.decoding import declination
from stages.winds.nowcast import capture
from stages.winds.streaming.carried import OPEN_S, STEP_S, CarriedWinds

FOREVER_S = 1e9


def disordered(frames, seconds, seed=0):
    """The same frames, each up to so many seconds late."""
    rng = random.Random(seed)
    late = sorted(frames, key=lambda one: one[0] + rng.uniform(0, seconds))
    return [(ts_s, digits, i) for i, (ts_s, digits, _) in enumerate(late)]


def followed(frames, step, keep_s=FOREVER_S):
    """The decoder, its winds and the stream's time after frames that came `step` at a time."""
    decoder, now_s = CarriedWinds(SETTINGS.decode, keep_s), 0.0
    for start in range(0, len(frames), step):
        for one in frames[start : start + step]:
            decoder.take(one)
            now_s = max(now_s, one[0])
        known = decoder.known(now_s)
    return decoder, known.select(capture.COLUMNS), now_s


def batch(frames, folder):
    (folder / "prefix.csv").write_text("".join(f"{t:.3f},{h}\n" for t, h, _ in frames))
    return capture.read(folder / "prefix.csv", SETTINGS.decode)


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.sort(capture.COLUMNS).equals(other.sort(capture.COLUMNS))


@pytest.mark.parametrize(("late_s", "count", "step"), [(0, 6001, 211), (50, 5003, 487)])
def test_winds_and_counts_after_a_prefix_are_those_of_the_batch(tmp_path, late_s, count, step):
    frames = disordered(flown(), late_s)[:count]
    decoder, known, now_s = followed(frames, step)
    expected, dropped = batch(frames, tmp_path)
    assert len(known) > 200 and same(known, expected)
    decoder.close(now_s)
    assert +decoder.dropped == dropped


def test_one_message_at_a_time_is_no_other_stream(tmp_path):
    frames = flown()[:1000]
    _, before, _ = followed(frames[:940], 470)
    decoder, now_s = CarriedWinds(SETTINGS.decode, FOREVER_S), 0.0
    for i, one in enumerate(frames):
        decoder.take(one)
        now_s = max(now_s, one[0])
        if i >= 939:
            known = decoder.known(now_s)
            if i == 939:
                assert same(known.select(capture.COLUMNS), before)
    assert len(known) > len(before)
    assert same(known.select(capture.COLUMNS), batch(frames, tmp_path)[0])


def test_repeated_frames_count_once(tmp_path):
    frames = flown()[:1500]
    twice = [one for one in frames for _ in range(2)]
    twice = [(ts_s, digits, i) for i, (ts_s, digits, _) in enumerate(twice)]
    decoder, known, _ = followed(twice, 300)
    assert decoder.dropped["duplicate"] == len(frames)
    assert same(known, batch(twice, tmp_path)[0])


def test_what_is_kept_does_not_grow_and_holds_what_is_needed(tmp_path):
    frames, keep_s = flown(), 300.0
    decoder, known, now_s = followed(frames, 1000, keep_s)
    expected, _ = batch(frames, tmp_path)
    recent = pl.col("ts_s") >= now_s - keep_s
    assert same(known.filter(recent), expected.filter(recent)) and len(expected) > 2 * len(known)
    span_s = OPEN_S + decoder.back_s + STEP_S + 120.0  # a step's frames come on top
    kept = decoder.sizes()
    assert kept["messages"] <= sum(one[0] >= now_s - span_s for one in frames) < len(frames) / 4
    assert kept["seen"] < kept["messages"]


def test_beginning_anew_forgets_the_context_and_not_the_counts():
    decoder, known, _ = followed(flown()[:2000], 500)
    dropped = decoder.dropped.copy()
    decoder.begin()
    assert len(known) and decoder.known(1.0).is_empty() and decoder.dropped == dropped


def test_the_field_at_a_node_is_evaluated_once_and_is_the_same(monkeypatch):
    decoder, _, _ = followed(flown()[:1500], 500)
    assert decoder.nodes.field and declination._nodes == decoder.nodes.evaluate
    again, _, _ = followed(flown()[:1500], 250)
    assert again.nodes.field.keys() == decoder.nodes.field.keys()
    assert all((row == again.nodes.field[key]).all() for key, row in decoder.nodes.field.items())
