"""A day of the small sky, followed at speed: what is kept stays what the last minutes and the
model's horizon need, and the process does not grow. `make test` follows two hours of it."""

import os
from pathlib import Path

import pytest
from followers import follower
from sky_frames import sky

from stages.winds.streaming.answering import SETTLE_S
from stages.winds.streaming.carried import OPEN_S, STEP_S

GROWTH_BYTES = 64 << 20  # of the process, between a quarter of the time and its end
BLOCK = 1000  # lines


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


@pytest.mark.parametrize(
    ("name", "hours"),
    [("persistence", 2), pytest.param("kriging", 24, marks=pytest.mark.slow_fault)],
)
def test_a_stream_is_followed_for_hours_without_growing(tmp_path, name, hours):
    answering = follower(name, every_s=300.0)
    span_s = OPEN_S + answering.winds.back_s + STEP_S + SETTLE_S
    times: list[float] = []  # of the frames of the last minutes
    answers, most, early = 0, 0, 0
    for hour, file in enumerate(sky(tmp_path, hours, 2.0)):
        lines = file.read_bytes().splitlines(keepends=True)
        for start in range(0, len(lines), BLOCK):
            block = lines[start : start + BLOCK]
            answers += sum("winds" in line for line in answering.feed(b"".join(block), 0.0))
            now_s, kept = answering.clock.now_s, answering.winds.sizes()
            times = [ts_s for ts_s in times if ts_s >= now_s - span_s - 60]
            times += [float(line.partition(b",")[0]) for line in block]
            assert max(kept["messages"], kept["seen"]) <= len(times)
            assert kept["aircraft"] < 1000
            oldest_s = answering.winds.settled["ts_s"].min()
            reach_s = answering.winds.keep_s + OPEN_S + SETTLE_S
            assert oldest_s is None or oldest_s >= now_s - reach_s
        most = max(most, kept["winds"]) if 4 * (hour + 1) <= hours else most
        early = resident() if 4 * (hour + 1) <= hours else early
    assert answers > 11 * hours
    # at night nobody may fly for minutes
    assert not answering.events and set(answering.clock.events) <= {"jumped_ahead"}
    assert not +answering.clock.dropped
    if hours > 4:
        assert kept["winds"] < 2.5 * most
        assert resident() - early < GROWTH_BYTES
