"""The bytes of a stream, cut anywhere, to frames with their times.

Lines go through the one parser of lines (modes/lines.py), in whatever form they are; what is not
yet ended by a line feed waits. Binary frames are told from lines by their first bytes (beast.py).
A frame without a time of its own (AVR, Beast) is given one: of the moment at which it came, or by
the receiver's 12 MHz counter from there on. Unix seconds.
"""

import re
from collections import Counter

import polars as pl

from stages.winds.modes import lines
from stages.winds.modes.frames import LINE_MAX_BYTES
from stages.winds.streaming import beast
from stages.winds.streaming.clock import Frame

COUNTER_HZ = 12e6
APART_S = 2.0  # a counter that leaves the clock by more has begun anew
PAUSE_S = 60.0  # a recorded counter that steps by more has begun anew
COUNTED = re.compile(r"@([0-9A-Fa-f]{12})")
BOM = b"\xef\xbb\xbf"


class Reference:
    """Times for frames that have a counter or nothing: `live`, the counter is held to the clock;
    of a recording it is believed wherever it goes on."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self.anchor: tuple[float, int] | None = None  # Unix seconds, and the counter then
        self.last_s = 0.0

    def at(self, arrived_s: float, counter: int | None) -> float:
        """The time of a frame that came at `arrived_s`."""
        if counter is None:
            return arrived_s
        if self.anchor is not None:
            told = self.anchor[0] + (counter - self.anchor[1]) / COUNTER_HZ
            apart = abs(told - arrived_s) > APART_S
            if not (apart if self.live else not -APART_S <= told - self.last_s <= PAUSE_S):
                self.last_s = told
                return told
        began = self.anchor is None or self.live
        self.last_s = arrived_s if began else self.last_s
        self.anchor = self.last_s, counter
        return self.last_s


class Splitter:
    """`feed` it bytes; `dropped` counts the lines and binary frames that gave none, by reason."""

    def __init__(self, live: bool) -> None:
        self.reference = Reference(live)
        self.dropped: Counter[str] = Counter()
        self.binary: bool | None = None  # None: not yet known
        self.rest, self.record = b"", 0
        self.head: list[str] = []  # the first lines, by which the form is told
        self.layout = lines.Layout()
        self.overlong = False  # the rest of a line that was too long is being passed over

    def feed(self, data: bytes, arrived_s: float) -> list[Frame]:
        """The frames that are whole now, in the order in which they came."""
        data = self.rest + data
        if self.binary is None:
            if beast.looks_so(data):
                self.binary = True
            elif b"\n" in data or len(data) > LINE_MAX_BYTES:
                self.binary, data = False, data.removeprefix(BOM)
            else:
                self.rest = data
                return []
        if self.binary:
            found, self.rest = beast.parse(data, self.dropped)
            return [self._frame(digits, arrived_s, counter) for counter, digits in found]
        whole, feed, self.rest = data.rpartition(b"\n")
        passing, self.overlong = self.overlong, self.overlong and not feed
        if len(self.rest) > LINE_MAX_BYTES:
            self.dropped["overlong_line"] += not self.overlong
            self.overlong, self.rest = True, b""
        text = whole.decode("utf-8", "replace").split("\n")[passing:] if feed else []
        return self._parsed(text, arrived_s) if text else []

    def cut(self) -> None:
        """Forget what is not whole: the stream goes on somewhere else."""
        if self.rest:
            self.dropped["cut_off"] += 1
        self.rest, self.overlong = b"", False

    def close(self, arrived_s: float) -> list[Frame]:
        """The last line, where no line feed ended it."""
        if self.binary or not self.rest or self.overlong:
            self.cut()
            return []
        text = self.rest.removeprefix(BOM if self.binary is None else b"")
        self.rest = b""
        return self._parsed(text.decode("utf-8", "replace").split("\n"), arrived_s)

    def _parsed(self, text: list[str], arrived_s: float) -> list[Frame]:
        block = pl.Series("line", text, dtype=pl.String)
        if len(self.head) < lines.SAMPLE_LINES:  # a longer head may tell the form better
            self.head += text[: lines.SAMPLE_LINES - len(self.head)]
            self.layout = lines.layout(pl.Series("line", self.head, dtype=pl.String))
        table = lines.parsed(block, self.layout, self.record)
        self.record += len(block)
        found = []
        for (record, ts_s, digits, reason), line in zip(table.iter_rows(), text, strict=True):
            if reason is None:
                found.append((ts_s, digits, record))
            elif reason == "no_time":
                counter = COUNTED.search(line)
                ts_s = self.reference.at(arrived_s, int(counter[1], 16) if counter else None)
                found.append((ts_s, digits, record))
            else:
                self.dropped[reason] += 1
        return found

    def _frame(self, digits: str, arrived_s: float, counter: int) -> Frame:
        self.record += 1
        return self.reference.at(arrived_s, counter), digits, self.record - 1
