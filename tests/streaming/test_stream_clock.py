"""What a stream's time makes of stamps: strays, jumps ahead and back, frames that come late."""

from stages.winds.streaming.clock import AHEAD, BEHIND, NEAR_S, StreamClock

T0 = 1_768_456_800.0


def run(stamps):
    clock = StreamClock()
    taken = [one[0] for i, ts_s in enumerate(stamps) for one in clock.take((ts_s, "", i))]
    return clock, taken


def test_disorder_within_a_minute_passes_and_time_never_goes_back():
    stamps = [T0, T0 + 50, T0 - 5, T0 + 20, T0 + 50 - NEAR_S]
    clock, taken = run(stamps)
    assert taken == stamps and clock.now_s == T0 + 50
    assert not clock.dropped and not clock.events


def test_strays_are_dropped_by_their_side_and_move_nothing():
    clock, taken = run([T0, 4e9, T0 + 1, T0 - 900, 2e9, T0 + 2])
    assert taken == [T0, T0 + 1, T0 + 2] and clock.now_s == T0 + 2
    assert clock.dropped == {"time_outlier": 2, "late": 1} and not clock.events


def test_a_pause_of_an_hour_is_believed_after_a_few_frames_and_loses_none():
    after = [T0 + 3600 + i for i in range(AHEAD + 2)]
    clock, taken = run([T0, *after])
    assert taken == [T0, *after] and clock.now_s == after[-1]
    assert clock.events == {"jumped_ahead": 1} and not clock.dropped and not clock.restarts


def test_strays_that_do_not_agree_are_no_jump():
    clock, taken = run([T0, *(T0 + 1e5 * i for i in range(1, 400)), T0 + 3])
    assert taken == [T0, T0 + 3] and not clock.events
    assert clock.dropped == {"time_outlier": 399}


def test_a_stream_set_back_begins_anew_but_not_for_a_late_burst():
    late = [T0 - 500 + i / 10 for i in range(BEHIND)]
    clock, taken = run([T0, *late[:-1], T0 + 1])
    assert taken == [T0, T0 + 1] and not clock.restarts
    assert clock.dropped == {"late": BEHIND - 1}
    clock, taken = run([T0, *late])
    assert taken == [T0, *late] and clock.now_s == late[-1]
    assert clock.restarts == 1 and clock.events == {"jumped_back": 1}


def test_a_first_stamp_far_ahead_is_outlived():
    clock, taken = run([4e9, *(T0 + i / 10 for i in range(BEHIND + 10))])
    assert clock.restarts == 1 and len(taken) == 1 + BEHIND + 10
    assert clock.now_s == T0 + (BEHIND + 9) / 10
