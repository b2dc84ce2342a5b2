"""Frames in, answers out: what a stream is asked each `every_s` of its own time.

Asked times count from the stream's time. The answer is that of `nowcast` for the winds known then,
whatever the pieces in which frames came: each answer is made when the first frame that reaches its
moment has come. A line of it is a JSON object; vectors as in nowcast/answers.py.
"""

import functools
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError, InputError
from stages.params import Inference
from stages.winds import slices
from stages.winds.nowcast import answers, nowcast, spread
from stages.winds.nowcast.points import Point
from stages.winds.nowcast.refusals import iso
from stages.winds.streaming.carried import CarriedWinds
from stages.winds.streaming.clock import Frame, StreamClock
from stages.winds.streaming.splitting import Splitter

LEAD = "+lead"
AHEAD_MOST_S = 86_400.0
HORIZON_S = 10_800.0  # of models that choose among all past winds: older ones are let go
SETTLE_S = 60.0  # of the stream, after which frames are worked on, asked or not
EXPECTED = f"+SECONDS after the stream's time, or {LEAD}, as far as the model's lead reaches"


def asked(prepared: dict[Any, Any], **given: Any) -> list[Point]:
    """What is asked of a stream (nowcast.places), each time in seconds after the stream's.
    InputError for a time that is none of these."""
    lead = f"+{prepared['lead_s']:g}"
    for name in ("grid", "route"):
        given[name] = given[name] and given[name].replace(LEAD, lead)
    given["at"] = [text.replace(LEAD, lead) for text in given["at"] or []]
    found = nowcast.places(prepared["area"], **given)
    late = next((point for point in found if point.ts_s >= AHEAD_MOST_S), None)
    if late:
        raise InputError(
            "a stream is asked for times after its own", found=iso(late.ts_s), expected=EXPECTED
        )
    reach_s = prepared["lead_s"] + 2 * prepared["slice_s"]
    furthest_s = max(point.ts_s for point in found)
    if furthest_s >= reach_s:  # no wind that has come is ever in the slice one lead before
        raise InputError(
            "that time after the stream's is beyond the model's lead",
            found=f"+{furthest_s:.12g} seconds",
            expected=f"less than +{reach_s:g}: the lead of {prepared['lead_s']:g} and two slices",
            remedy=f"ask for {LEAD} or an earlier time",
        )
    return found


def kept_s(net: Any, prepared: dict[Any, Any], points: list[Point]) -> float:
    """How long, in seconds, winds are needed after they were measured."""
    horizon = {
        "slice": prepared["slice_s"],
        "hour": slices.HOUR_S,
        "day": slices.DAY_S,
        "neighbours": HORIZON_S,
        "recent": net.window_s,
    }[net.context]
    earlier = prepared["lead_s"] - min(point.ts_s for point in points)
    return float(horizon + 2 * prepared["slice_s"] + max(0.0, earlier))


class Answering:
    """A model that follows a stream. `counts` are those since the last line, `totals` of all."""

    def __init__(
        self,
        cell: tuple[Any, dict[Any, Any], Path, str],  # model, prepared, folder, why this one
        points: list[Point],
        settings: Inference,
        *,
        every_s: float,
        live: bool = False,
    ) -> None:
        self.net, self.prepared, self.folder, self.why = cell
        self.points, self.settings, self.every_s = points, settings, every_s
        self.splitter, self.clock = Splitter(live), StreamClock()
        self.winds = CarriedWinds(settings.decode, kept_s(self.net, self.prepared, points))
        self.events: Counter[str] = Counter()
        self.told: dict[str, Counter[str]] = {"dropped": Counter(), "events": Counter()}
        self.frames = self.told_frames = self.answers = 0
        self.due_s = self.worked_s = -math.inf
        self.rows: list[answers.Wind] = []  # of the last answer
        self.spreads = functools.cache(spread.of_cell)

    def feed(self, data: bytes, arrived_s: float) -> Iterator[dict[str, Any]]:
        """Take bytes in that came at `arrived_s` (Unix s); the lines that are due."""
        return self.take(self.splitter.feed(data, arrived_s), arrived_s)

    def close(self, arrived_s: float) -> Iterator[dict[str, Any]]:
        """Take in what waited for its end, and settle and count everything."""
        yield from self.take(self.splitter.close(arrived_s), arrived_s)
        self.clock.refuse(len(self.clock.away))
        if self.clock.now_s is not None:
            self.winds.close(self.clock.now_s)

    def take(self, frames: list[Frame], arrived_s: float) -> Iterator[dict[str, Any]]:
        """As `feed`, of frames."""
        for frame in frames:
            restarts = self.clock.restarts
            for one in self.clock.take(frame):
                if restarts != self.clock.restarts:
                    restarts = self.clock.restarts
                    self.winds.begin()
                    self.due_s = self.worked_s = -math.inf
                self.frames += 1
                self.winds.take(one)
            now_s = self.clock.now_s
            if now_s is None or math.isinf(self.due_s):
                self.worked_s = now_s or self.worked_s
                self.due_s = self.next_s()
            elif now_s >= self.due_s:
                self.due_s, self.worked_s = self.next_s(), now_s
                yield self.line(arrived_s)
            elif now_s >= self.worked_s + SETTLE_S:
                self.worked_s = now_s
                self.winds.known(now_s)

    def next_s(self) -> float:
        """When the next answer is due."""
        now_s = self.clock.now_s or 0.0
        return (math.floor(now_s / self.every_s) + 1) * self.every_s

    def answer(self) -> list[answers.Wind]:
        """The winds asked for, of all that has come. InputError as `nowcast`."""
        now_s = self.clock.now_s or 0.0
        known = self.winds.known(now_s)
        points = [replace(point, ts_s=now_s + point.ts_s) for point in self.points]
        return nowcast.answer(
            self.net,
            self.prepared,
            points,
            (known, dict(self.winds.dropped), "the stream"),
            settings=self.settings,
            folder=self.folder,
            why=self.why,
            spreads=self.spreads,
        )

    def line(self, arrived_s: float | None = None) -> dict[str, Any]:
        """What is told now: the answer, or why there is none, and what was counted since the last
        line. `arrived_s`: when the newest frame came; None: nothing is asked, only told."""
        told: dict[str, Any] = {}
        if arrived_s is not None:
            try:
                self.rows = self.answer()
                newest_s = self.newest_s(max(row.context[1] for row in self.rows))
                told = {
                    **answers.about(self.rows),
                    "context_winds": max(row.context[2] for row in self.rows),
                    "newest_wind_age_s": round((self.clock.now_s or 0.0) - newest_s, 3),
                    "winds": answers.table(self.rows).to_dicts(),
                }
                self.answers += 1
            except (InputError, DataError) as error:
                self.rows = []
                told = {"refused": error.what, "found": error.found}
            told["age_s"] = round(max(0.0, time.time() - arrived_s), 4)
        now_s = self.clock.now_s
        head = {"time": None if now_s is None else iso(now_s), "time_s": now_s}
        return {**head, **told, **self.since()}

    def newest_s(self, end_s: float) -> float:
        """When the last of the winds before `end_s` was measured, as last worked on."""
        times = pl.concat([self.winds.settled["ts_s"], self.winds.open["ts_s"]]).to_numpy()
        return float(times[times < end_s].max(initial=-math.inf))

    def since(self) -> dict[str, Any]:
        """Frames, drops and events since this was last asked for."""
        totals = self.totals()
        told = {
            name: {
                reason: count - self.told[name][reason]
                for reason, count in sorted(totals[name].items())
                if count > self.told[name][reason]
            }
            for name in self.told
        }
        frames, self.told_frames = self.frames - self.told_frames, self.frames
        self.told = totals
        return {"frames": frames, **told}

    def totals(self) -> dict[str, Counter[str]]:
        """What was dropped and what befell the stream since its beginning, by reason."""
        dropped = self.splitter.dropped + self.clock.dropped + self.winds.dropped
        return {"dropped": dropped, "events": self.events + self.clock.events}
