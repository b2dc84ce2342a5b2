"""Speed of the columnar decoder as a ratio to rs1090's batch call, both on the same frames in the
same run.

`python -m tests.benchmarks.bench_decode` (make bench-decode). Frames: the real DF20 and DF21
captures repeated, where the mirror is there (TRADEWIND_MIRROR or ../shared/data); else invented
replies. The two take turns, so that a busy machine slows both. Ends with 1 when the goal, GOAL
times rs1090, is missed. rs1090 comes with the `test` extra and is needed only here and in tests.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from stages import seeds
from stages.errors import InputError, TradewindError
from stages.winds.modes import bits, crc, frames, messages

GOAL = 20.0
OURS, THEIRS = 400_000, 100_000  # frames per call
ROUNDS = 3
CAPTURES = ("sample_data_commb_df20.csv", "sample_data_commb_df21.csv")


def invented(count: int) -> pl.Series:
    """Comm-B replies in the form of 5,0 and 6,0 as they are flown, DF20 and DF21 in turn:
    hexadecimal text [count]."""
    rng = seeds.stream(0, "bench", "decode")

    def draw(low: int, high: int) -> np.ndarray:
        return rng.integers(low, high, count).astype(np.uint64)

    ground = draw(180, 260)
    # last bit of each field and its value; the status bits are 1
    fifty = {
        1: 1,
        11: draw(0, 40),
        12: 1,
        23: draw(0, 1024),
        24: 1,
        34: ground,
        35: 1,
        45: draw(0, 8),
        46: 1,
        56: ground + draw(0, 30),
    }
    sixty = {
        1: 1,
        12: draw(0, 1024),
        13: 1,
        23: draw(240, 280),
        24: 1,
        34: draw(185, 200),
        35: 1,
        45: draw(0, 40),
        46: 1,
        56: draw(0, 40),
    }
    words = [
        sum(np.uint64(value) << np.uint64(56 - last) for last, value in fields.items())
        for fields in (fifty, sixty)
    ]
    word = np.where(np.arange(count) % 4 < 2, *words)
    octets = np.zeros((count, crc.LENGTH), np.uint8)
    octets[:, 0] = np.where(np.arange(count) % 2, 0xA8, 0xA0)
    octets[:, 2:4] = 0x15, 0xB7  # 33,975 ft
    octets[:, 4:11] = word.astype(">u8").view(np.uint8).reshape(count, 8)[:, 1:]
    parity = crc.remainder(np.ascontiguousarray(octets.T)) ^ draw(0x400000, 0x400200).astype(
        np.uint32
    )
    octets[:, 11:] = parity.astype(">u4").view(np.uint8).reshape(count, 4)[:, 1:]
    digits = np.frombuffer(octets.tobytes().hex().upper().encode(), np.uint8)
    return bits.fixed_strings(digits.reshape(count, 2 * crc.LENGTH))


def replies(count: int) -> tuple[str, pl.Series]:
    """What the frames are, and hexadecimal text [count]."""
    folder = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s/pyModeS"
    if all((folder / name).exists() for name in CAPTURES):
        real = pl.concat([frames.read(folder / name).frames["hex"] for name in CAPTURES])
        return "real DF20 and DF21 replies, repeated", pl.concat(
            [real] * (count // len(real) + 1)
        ).head(count)
    return "invented DF20 and DF21 replies", invented(count)


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> int:
    """Measure, print the table; 0 when the goal is reached."""
    argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_decode", description=__doc__.split("\n\n")[0]
    ).parse_args()
    try:
        import rs1090
    except ImportError:
        raise InputError(
            "rs1090 is not installed",
            expected="the yardstick of this benchmark",
            remedy="pip install -e '.[test]'",
        ) from None
    kind, text = replies(OURS)
    listed = text.head(THEIRS).to_list()
    messages.decode(text.head(1000)), rs1090.decode(listed[:1000])  # tables, threads
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(THEIRS / seconds(lambda: rs1090.decode(listed)))
        ours.append(OURS / seconds(lambda: messages.decode(text)))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"{kind}; median (least, most) of {ROUNDS} turns\n")
    print("| decoder | frames per call | frames per second | ratio |\n|---|---|---|---|")
    for name, count, speeds, relative in (
        ("rs1090 batch", THEIRS, theirs, 1.0),
        ("columns", OURS, ours, ratio),
    ):
        print(
            f"| {name} | {count:,} | {statistics.median(speeds):,.0f} ({min(speeds):,.0f}, "
            f"{max(speeds):,.0f}) | {relative:.1f} |"
        )
    print(f"\ngoal: at least {GOAL:.0f} times rs1090: {'reached' if ratio >= GOAL else 'MISSED'}")
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
