"""The time of a stream: the newest stamp that can be believed, whatever a receiver's clock does.

A frame within NEAR_S of the stream's time is taken in. One that is stamped further ahead or behind
waits: the next frame near the old time shows that it was a stray; AHEAD frames in a row that agree
with each other show that the stream has jumped on (a pause, a clock set right), BEHIND of them that
it was set back, and then it begins anew. Setting back forgets the context, so it takes more to
believe. Unix seconds.
"""

from collections import Counter, deque
from collections.abc import Iterator

Frame = tuple[float, str, int]  # Unix seconds, hexadecimal digits, number of its line

NEAR_S = 60.0
AHEAD, BEHIND = 5, 100
AHEAD_STRAY, BEHIND_STRAY = "time_outlier", "late"


class StreamClock:
    """`now_s` is the stream's time, None before the first frame; `dropped` counts the frames that
    it refused, `events` the jumps that it believed, `restarts` those that were set backs."""

    def __init__(self) -> None:
        self.now_s: float | None = None
        self.away: deque[Frame] = deque()
        self.dropped: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.restarts = 0

    def take(self, frame: Frame) -> Iterator[Frame]:
        """The frames that may be taken in now that this one has come, with `now_s` moved on for
        each: none, this one, or all that waited."""
        if self.now_s is None or abs(frame[0] - self.now_s) <= NEAR_S:
            self.refuse(len(self.away))
            self.now_s = frame[0] if self.now_s is None else max(self.now_s, frame[0])
            yield frame
            return
        self.away.append(frame)
        for count, ahead in ((AHEAD, True), (BEHIND, False)):
            if self._agree(count, ahead):
                self.refuse(len(self.away) - count)
                waited = sorted(self.away, key=lambda one: (one[0], one[2]))
                self.away.clear()
                self.events["jumped_ahead" if ahead else "jumped_back"] += 1
                self.restarts += not ahead
                self.now_s = waited[0][0]
                for one in waited:
                    self.now_s = one[0]
                    yield one
                return
        self.refuse(len(self.away) - BEHIND)

    def refuse(self, count: int) -> None:
        """Drop the first `count` of the frames that wait."""
        for _ in range(count):
            ahead = self.away.popleft()[0] > (self.now_s or 0.0)
            self.dropped[AHEAD_STRAY if ahead else BEHIND_STRAY] += 1

    def _agree(self, count: int, ahead: bool) -> bool:
        """Whether the last `count` frames that wait lie on one side and within NEAR_S."""
        if len(self.away) < count or self.now_s is None:
            return False
        stamps = [self.away[i][0] for i in range(-count, 0)]
        one_side = min(stamps) > self.now_s if ahead else max(stamps) < self.now_s
        return one_side and max(stamps) - min(stamps) <= NEAR_S
