"""`tradewind nowcast --follow`: a model beside a stream until the stream or its user ends it.

Each trouble of the feed is told once by name on standard error, and counted in the lines from then
on. SIGINT and SIGTERM end the work in good order: what has come is counted and told.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from stages.errors import InputError
from stages.params import Inference
from stages.winds.nowcast import nowcast
from stages.winds.streaming import sources
from stages.winds.streaming.answering import Answering, asked

STALL_S = 30.0
TROUBLES = {
    "stalled": f"nothing has come for {STALL_S:g} s; waiting",
    "unreachable": "nobody answers there; trying again, after pauses that grow",
    "disconnected": "the connection ended; connecting again",
    "replaced": "another file has that name now; it is read from its beginning",
    "truncated": "the file was cut; it is read from its beginning",
    "jumped_ahead": "the stamps jumped ahead; the stream's time follows them",
    "jumped_back": "the stamps jumped back; the context begins anew",
    "late": "frames come more than a minute after newer ones; they are dropped",
    "time_outlier": "frames are stamped far ahead of the others; they are dropped",
    "duplicate": "frames are repeated; each is used once",
}
GARBAGE = "the feed holds what is no frame with a time; it is dropped"
FEED = (*TROUBLES, "not_json", "not_hex", "wrong_length", "bad_time", "overlong_line", "cut_off")
FEED = (*FEED, "not_beast", "broken_frame")


def follow(
    source: str,
    emit: Callable[[Answering, dict[str, Any]], None],
    *,
    model: str | Path | None,
    settings: Inference,
    every_s: float,
    **given: Any,
) -> Answering:
    """Follow a source to its end, or until SIGINT or SIGTERM; `emit` is given each line. `given`:
    at, points, grid and route. InputError, before anything is read, for what cannot be done."""
    if not 0 < every_s <= 86_400:
        raise InputError(
            "that is no time between answers",
            where="--every",
            found=f"{every_s:g}",
            expected="seconds, more than 0 and at most a day",
        )
    folder, why = nowcast.chosen(model, settings)
    net, meta = nowcast.load(folder)
    points = asked(meta["prepared"], **given)
    live = source.startswith("tcp:")
    answering = Answering(
        (net, meta["prepared"], folder, why), points, settings, every_s=every_s, live=live
    )
    with stopped_by_signals() as stop:
        chunks = sources.open_source(source, stop, lambda name: answering.events.update([name]))
        attend(answering, chunks, emit)
    return answering


def attend(
    answering: Answering,
    chunks: sources.Chunks,
    emit: Callable[[Answering, dict[str, Any]], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Feed chunks to a model as they come, tell what befalls the stream, and close it."""
    known: set[str] = set()
    last_s, stalled = clock(), False
    for chunk in chunks:
        if chunk:
            last_s, stalled = clock(), False
            for line in answering.feed(chunk, time.time()):
                emit(answering, line)
        elif chunk is not None:
            answering.splitter.cut()
        elif not stalled and clock() - last_s > STALL_S:
            stalled = True
            answering.events["stalled"] += 1
            emit(answering, answering.line())
        known = tell(answering, known)
    for line in answering.close(time.time()):
        emit(answering, line)
    tell(answering, known)


def tell(answering: Answering, known: set[str]) -> set[str]:
    """Name on standard error the troubles that were not named before; all that were named."""
    totals = answering.totals()
    found = {name for counts in totals.values() for name in counts if name in FEED}
    for name in sorted(found - known):
        print(f"{name}: {TROUBLES.get(name, GARBAGE)}", file=sys.stderr, flush=True)
    return known | found


def summary(answering: Answering) -> str:
    """What was counted from beginning to end."""
    totals = answering.totals()
    parts = [f"{answering.frames:,} frames, {answering.answers:,} answers"]
    for name, word in (("dropped", "dropped"), ("events", "the feed")):
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(totals[name].items()))
        parts += [f"{word}: {counts}"] if counts else []
    return "; ".join(parts)


def written(line: dict[str, Any]) -> str:
    """A line of the output: strict JSON and its end."""
    return json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n"


def append(path: Path, text: str) -> None:
    """Add a line to a file in one write. InputError where it cannot be written."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(
            "the answer cannot be written", where=str(path), found=error.strerror or str(error)
        ) from None


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; what they did before is put back."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
