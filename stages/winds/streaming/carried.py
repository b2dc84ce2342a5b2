"""Messages to winds as they come: the decode stage's own steps over the last minutes alone.

What a reply is worth can still change while frames come: a position is judged by those up to a
minute after it too, and a frame may come NEAR_S late. So winds are open for OPEN_S and settled
then. Open winds are made anew for the aircraft that spoke since; a settled wind is never touched
again. Every rule of decoding looks back at most `back_s`, so that messages older than that, counted
from the oldest open wind, are let go; what is left gives the same winds as all frames from the
first on. Units in the column names.
"""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from stages.params import Decode
from stages.winds.decoding import states, winds
from stages.winds.decoding.transform import CAPTURE_GAP_S
from stages.winds.modes import messages
from stages.winds.modes.position import NEIGHBOUR_MAX_S
from stages.winds.nowcast import capture
from stages.winds.streaming.clock import NEAR_S, Frame
from stages.winds.streaming.nodes import Nodes

OPEN_S = NEAR_S + NEIGHBOUR_MAX_S
STEP_S = 30.0  # winds are settled so many seconds at a time
NAME = "stream"  # of the file that frames are said to be from
FRAMES = {"ts_s": pl.Float64, "hex": pl.String, "record": pl.UInt32}
# What `states` reads of a message.
USED = (
    "ts_s",
    "file",
    "record",
    "df",
    "icao",
    "altitude_ft",
    "cpr_odd",
    "cpr_lat",
    "cpr_lon",
    "gs_kt",
    "trk_deg",
    "bds",
    "roll_deg",
    "trk50_deg",
    "gs50_kt",
    "tas_kt",
    "hdg_mag_deg",
    "ias_kt",
    "mach",
    "drop",
)


class CarriedWinds:
    """The winds of a stream within the last `keep_s`; `dropped` counts by reason what gave none,
    what is still open left out."""

    def __init__(self, decode: Decode, keep_s: float) -> None:
        self.decode, self.keep_s = decode, keep_s
        # a position's age, that of the kept one it is decoded next to, the votes on that, its pair
        self.back_s = decode.state_age_max_s + 2 * NEIGHBOUR_MAX_S + decode.position_pair_max_s
        self.dropped: Counter[str] = Counter()
        self.nodes = Nodes()
        self.addresses: dict[str, float] = {}  # of frames with a CRC: when they were last seen
        self.begin()

    def begin(self) -> None:
        """Forget all but the counts."""
        self.edge_s = -np.inf  # winds before it are settled
        self.waiting: list[Frame] = []
        self.seen: set[tuple[float, str]] = set()
        self.messages = decoded([])
        self.settled = self.open = pl.DataFrame(schema=winds.COLUMNS)
        self.addresses.clear()

    def take(self, frame: Frame) -> None:
        """Keep a frame for the next `known`; one that was taken in before is a duplicate."""
        if frame[:2] in self.seen:
            self.dropped["duplicate"] += 1
            return
        self.seen.add(frame[:2])
        self.waiting.append(frame)

    def known(self, now_s: float) -> pl.DataFrame:
        """Usable winds (capture.COLUMNS and more) in order of time, of all frames taken in until
        the stream's time `now_s`."""
        spoke = self._decode()
        if now_s - OPEN_S - self.edge_s >= STEP_S:
            self._settle(now_s - OPEN_S, now_s)
        if len(spoke):
            theirs = pl.col("icao").is_in(spoke.implode())
            found, _ = self._winds(self.messages.filter(theirs), self.edge_s, np.inf)
            self.open = pl.concat([self.open.filter(~theirs), found])
        return pl.concat([self.settled, capture.usable(self.open, self.decode)[0]])

    def close(self, now_s: float) -> pl.DataFrame:
        """`known` where no frame will come any more: all is settled and counted."""
        self._decode()
        self._settle(np.inf, now_s)
        return self.settled

    def sizes(self) -> dict[str, int]:
        """How much is kept: messages, winds, aircraft, and frames that tell duplicates."""
        return {
            "messages": len(self.messages) + len(self.waiting),
            "winds": len(self.settled) + len(self.open),
            "aircraft": len(self.addresses),
            "seen": len(self.seen),
        }

    def _decode(self) -> pl.Series:
        """Decode the frames that wait; the addresses of those of some use."""
        fresh = decoded(self.waiting)
        self.waiting = []
        useless = fresh["drop"].is_not_null() & ~fresh["drop"].str.starts_with("bds_")
        self.dropped.update(winds.tally(fresh.filter(useless)["drop"]))
        fresh = fresh.filter(~useless)
        whole = fresh.filter(pl.col("df").is_in(states.CRC_FORMATS) & pl.col("drop").is_null())
        self.addresses |= dict(whole.group_by("icao").agg(pl.col("ts_s").max()).iter_rows())
        self.messages = pl.concat([self.messages, fresh])
        return fresh["icao"].unique()

    def _settle(self, edge_s: float, now_s: float) -> None:
        """Make the winds before `edge_s` final, count what gave none, let go what is too old."""
        found, counts = self._winds(self.messages, self.edge_s, edge_s)
        kept, dropped = capture.usable(found, self.decode)
        self.dropped.update(counts + Counter(dropped))
        self.settled = pl.concat([self.settled, kept]).filter(pl.col("ts_s") >= now_s - self.keep_s)
        self.edge_s = edge_s
        self.open = self.open.filter(pl.col("ts_s") >= edge_s)
        self.messages = self.messages.filter(pl.col("ts_s") >= edge_s - self.back_s)
        self.seen = {one for one in self.seen if one[0] >= now_s - NEAR_S}
        last = now_s - CAPTURE_GAP_S
        self.addresses = {icao: ts_s for icao, ts_s in self.addresses.items() if ts_s >= last}

    def _winds(
        self, rows: pl.DataFrame, begin_s: float, end_s: float
    ) -> tuple[pl.DataFrame, Counter[str]]:
        """The winds in [begin_s, end_s) of messages, and how many of these gave none."""
        inside = pl.col("ts_s").is_between(begin_s, end_s, closed="left")
        rows, _ = states.confirm(
            rows.sort(states.FILE_ORDER).with_columns(carried=~inside), frozenset(self.addresses)
        )
        found = states.assemble(rows, self.decode)
        with self.nodes.remembered():
            derived, counts = winds.derive(
                found.states.sort(winds.ORDER), self.decode, roll_needed=True
            )
        unsure = rows.filter(inside & (pl.col("drop") == "address_unconfirmed"))
        dropped = Counter(winds.tally(unsure["drop"]))
        for level in (*found.levels.values(), counts):
            dropped.update(level["dropped"])
        return derived, dropped


def decoded(frames: list[Frame]) -> pl.DataFrame:
    """The columns USED of decoded frames."""
    rows: Any = pl.DataFrame(frames, schema=FRAMES, orient="row").with_columns(file=pl.lit(NAME))
    return pl.concat([rows, messages.decode(rows["hex"])], how="horizontal").select(USED)
