"""Frames in the binary form that receivers serve (Mode-S Beast): an escape byte 1A, a kind, six
bytes of a 12 MHz counter, one of the signal's strength, the frame; each 1A inside is doubled.

Kinds: 1 Mode A/C (two bytes, no use here), 2 a short frame, 3 a long one, 4 the receiver's status.
A frame that another begins in is broken: it is counted, and reading goes on with the other.
"""

from collections import Counter

ESCAPE = 0x1A
LENGTHS = {ord("1"): 2, ord("2"): 7, ord("3"): 14, ord("4"): 14}
FRAMES = (ord("2"), ord("3"))
UNUSED = {ord("1"): "mode_ac", ord("4"): "status"}
HEAD = 7  # counter and signal
MARKS = tuple(bytes([ESCAPE, kind]) for kind in LENGTHS)


def looks_so(data: bytes) -> bool:
    """Whether bytes hold the beginning of such a frame."""
    return any(mark in data for mark in MARKS)


def parse(data: bytes, dropped: Counter[str]) -> tuple[list[tuple[int, str]], bytes]:
    """(counter, hexadecimal digits in upper case) of every whole frame, and the bytes of one that
    is not whole yet; `dropped` counts what gave none by reason."""
    found, at = [], 0
    while True:
        start = data.find(ESCAPE, at)
        if start < 0:
            dropped["not_beast"] += at < len(data)
            return found, b""
        dropped["not_beast"] += start > at
        if start + 1 == len(data):
            return found, data[start:]
        kind = data[start + 1]
        if kind not in LENGTHS:
            dropped["not_beast"] += 1
            at = start + 2
            continue
        content, at = _content(data, start + 2, HEAD + LENGTHS[kind])
        if content is None:
            if at == len(data):
                return found, data[start:]
            dropped["broken_frame"] += 1
        elif kind in FRAMES:
            found.append((int.from_bytes(content[:6], "big"), content[HEAD:].hex().upper()))
        else:
            dropped[UNUSED[kind]] += 1


def _content(data: bytes, at: int, length: int) -> tuple[bytes | None, int]:
    """`length` bytes from `at` on with the doubled escapes made one, and where they end; None
    where another frame begins before (its place) or the data end (theirs)."""
    content = bytearray()
    while len(content) < length:
        stop = min(at + length - len(content), len(data))
        escape = data.find(ESCAPE, at, stop)
        if escape < 0:
            content += data[at:stop]
            if len(content) < length:
                return None, len(data)
            return bytes(content), stop
        content += data[at:escape]
        if escape + 1 >= len(data):
            return None, len(data)
        if data[escape + 1] != ESCAPE:
            return None, escape
        content.append(ESCAPE)
        at = escape + 2
    return bytes(content), at
