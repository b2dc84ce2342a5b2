"""Bytes cut anywhere give the frames of the whole: lines of every form, AVR, Beast; garbage in
between is counted and costs nothing else."""

import random

import pytest

from stages.winds.modes import frames
from stages.winds.modes.frames import LINE_MAX_BYTES
from stages.winds.streaming.splitting import COUNTER_HZ, Splitter

A, B, SHORT = "A00015B7C26E1370AA00005DD34A", "8D40621D58C382D690C8AC2863A7", "02E197B00179C3"
T0 = 1_768_456_800.0
LINES = [(T0 + i / 4, (A, B, SHORT)[i % 3]) for i in range(60)]
FORMS = {
    "csv": "".join(f"{t:.3f},{h}\n" for t, h in LINES),
    "quoted": "ts;frame\r\n" + "".join(f'{t:.2f};"{h.lower()}"\r\n' for t, h in LINES),
    "json": "".join(f'{{"timestamp": {t}, "frame": "{h}"}}\n' for t, h in LINES),
    "timed avr": "".join(f"{t:.3f} *{h};\n" for t, h in LINES),
}


def cut(content: bytes, seed: int, longest: int = 40) -> list[bytes]:
    rng, at, parts = random.Random(seed), 0, []
    while at < len(content):
        size = rng.randint(1, longest)
        parts.append(content[at : at + size])
        at += size
    return parts


def split(parts, live=True, clock=lambda: T0):
    splitter = Splitter(live)
    found = [frame for part in parts for frame in splitter.feed(part, clock())]
    return splitter, found + splitter.close(clock())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["", "\n", "12,zz\n\n", "�garbage � ,,,\n" * 3])
def test_any_cut_gives_what_the_whole_file_gives(tmp_path, form, end):
    content = b"\xef\xbb\xbf" * (form == "csv") + (FORMS[form] + end).encode()
    (tmp_path / "frames").write_bytes(content)
    expected = frames.read(tmp_path / "frames")
    for seed in range(3):
        splitter, found = split(cut(content, seed))
        assert found == list(expected.frames.select("ts_s", "hex", "record").iter_rows())
        assert splitter.dropped == expected.dropped


def beast(digits: str, counter: int, kind: str) -> bytes:
    content = counter.to_bytes(6, "big") + b"\x1a" + bytes.fromhex(digits)
    return b"\x1a" + kind.encode() + content.replace(b"\x1a", b"\x1a\x1a")


COUNTED = [
    (h, round(t * COUNTER_HZ) + 0x1A1A1A, "2" if len(h) == 14 else "3")
    for t, h in ((i / 4, (A, B, SHORT, "1A" * 14)[i % 4]) for i in range(60))
]


def test_beast_cut_anywhere_and_its_counter_tells_the_time():
    content = b"".join(beast(*one) for one in COUNTED)
    whole = [(T0 + i / 4, digits, i) for i, (digits, _, _) in enumerate(COUNTED)]
    for seed in range(5):
        splitter, found = split(cut(content, seed, 9), live=False)
        assert [one[1:] for one in found] == [one[1:] for one in whole]
        assert [one[0] for one in found] == pytest.approx([one[0] for one in whole], abs=1e-5)
        assert not +splitter.dropped


def test_every_prefix_of_beast_loses_nothing_but_what_has_not_come():
    content = b"".join(beast(*one) for one in COUNTED[:6])
    ends = [len(b"".join(beast(*one) for one in COUNTED[:n])) for n in range(7)]
    for size in range(len(content) + 1):
        splitter = Splitter(live=False)
        found = splitter.feed(content[:size], T0)
        assert len(found) == sum(end <= size for end in ends[1:])
        assert len(found) + len(splitter.feed(content[size:], T0)) == 6


def test_broken_beast_costs_the_frame_and_no_other():
    one, two, three = (beast(h, 0x123456, kind) for h, _, kind in COUNTED[:3])
    content = one + two[:7] + three + b"noise" + beast("0102", 0, "1") + one
    splitter, found = split([content], live=False)
    assert [digits for _, digits, _ in found] == [A, SHORT, A]
    assert +splitter.dropped == {"broken_frame": 1, "not_beast": 1, "mode_ac": 1}


def test_bare_avr_is_given_the_moment_at_which_it_came():
    moments = iter(T0 + 10 * i for i in range(99))
    parts = [f"*{h};\n".encode() for _, h in LINES[:5]]
    _, found = split(parts, clock=lambda: next(moments))
    assert [ts_s for ts_s, *_ in found] == [T0 + 10 * i for i in range(5)]
    assert [digits for _, digits, _ in found] == [h for _, h in LINES[:5]]


def test_a_live_counter_that_begins_anew_is_held_to_the_clock():
    now = [T0]
    splitter = Splitter(live=True)

    def fed(counter_s: float, arrived_s: float) -> float:
        now[0] = arrived_s
        line = f"@{round(counter_s * COUNTER_HZ):012X}{A};\n".encode()
        return splitter.feed(line, arrived_s)[0][0] - T0

    assert fed(100.0, T0) == 0
    assert fed(101.5, T0 + 1.9) == pytest.approx(1.5)  # held up on its way
    assert fed(0.5, T0 + 3.0) == pytest.approx(3.0)  # the receiver began anew
    assert fed(1.0, T0 + 3.1) == pytest.approx(3.5)


def test_a_line_without_end_is_passed_over_and_kept_nowhere():
    splitter = Splitter(live=True)
    good = FORMS["csv"].encode()
    found = splitter.feed(good + b"x" * 10, T0)
    for _ in range(40):
        found += splitter.feed(b"y" * (LINE_MAX_BYTES // 8), T0)
        assert len(splitter.rest) <= LINE_MAX_BYTES
    found += splitter.feed(b"the end\n" + good, T0)
    assert [one[:2] for one in found] == LINES * 2
    assert splitter.dropped["overlong_line"] == 1


def test_what_was_cut_off_by_a_new_connection_is_no_part_of_the_next_line():
    splitter = Splitter(live=True)
    found = splitter.feed(f"{T0},{A}\n{T0 + 1},{A[:9]}".encode(), T0)
    splitter.cut()
    found += splitter.feed(f"{T0 + 2},{B}\n".encode(), T0)
    assert [one[:2] for one in found] == [(T0, A), (T0 + 2, B)]
    assert splitter.dropped == {"cut_off": 1}
