"""Time slices, leads and splits: which rows are context, which are targets, and that no split sees
another's rows.

Thesis C.1 ("one-minute slices, 30-minute gap"), by time stamp and not by slice index.
Slice j covers [t0 + j w, t0 + (j + 1) w), w = slice_s. At lead L its context is the window [t0 + j
w - L - w, t0 + j w - L) ("slice"), the hour that ends there ("hour"), or the target's whole UTC day
("day", not causal, as the thesis' day average).
The law: a split's roles are its target slices and their slice contexts at the split's own lead;
rows in roles of different splits lie at least embargo_s apart; and what a model was fitted or
selected on is at least one lead old at the first target of every later test interval, so it was
known when that forecast was issued. Seconds; intervals are half open and count from t0. A rolling
split is made from the data (`resolve`) and then obeys the same law.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stages.errors import DataError, ParamsError
from stages.params import Prepare, Split
from stages.splits import SPLITS

CONTEXTS = ("slice", "hour", "day")
HOUR_S, DAY_S = 3600.0, 86400.0


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of time [start_s, end_s) in which `split` uses rows as `role`."""

    start_s: float
    end_s: float
    split: str
    role: str

    def __str__(self) -> str:
        return f"{self.split} {self.role} [{self.start_s:.10g}, {self.end_s:.10g})"


def target_ranges(settings: Prepare, split: str) -> list[range]:
    """The slices that lie wholly inside each interval of `split` and are targets: all, or every
    n-th from the first on."""
    w, step = settings.slice_s, getattr(settings.every, split, 1)
    return [
        range(math.ceil(start / w), math.floor(end / w), step)
        for start, end in getattr(settings.split, split)
    ]


def context_window(
    t0_s: float, j: int, slice_s: float, lead_s: float, context: str
) -> tuple[float, float]:
    """Start and end (Unix seconds, half open) of the context of target slice `j`; ParamsError
    for an unknown kind."""
    start = t0_s + slice_s * j
    if context == "slice":
        return start - lead_s - slice_s, start - lead_s
    if context == "hour":
        return start - lead_s - HOUR_S, start - lead_s
    if context == "day":
        midnight = DAY_S * math.floor(start / DAY_S)
        return midnight, midnight + DAY_S
    raise ParamsError("unknown kind of context", expected=" | ".join(CONTEXTS), found=repr(context))


def spans(settings: Prepare) -> list[Span]:
    """All role spans that the parameters allow, sorted by time; seconds from t0."""
    w, found = settings.slice_s, []
    for split in SPLITS:
        for slices in target_ranges(settings, split):
            if slices:
                first, last = slices[0], slices[-1]
                found.append(Span(w * first, w * (last + 1), split, "targets"))
                found.append(
                    Span(
                        context_window(0.0, first, w, settings.lead_s, "slice")[0],
                        context_window(0.0, last, w, settings.lead_s, "slice")[1],
                        split,
                        "context",
                    )
                )
    return sorted(found)


def violations(found: Iterable[Span], embargo_s: float) -> list[str]:
    """Pairs of different splits' spans that overlap or lie closer than the embargo.

    Spans are compared with the one that reaches furthest among the earlier ones of other splits, so
    all pairs are covered.
    """
    problems, reach = [], {}
    for span in sorted(found):
        for split, earlier in reach.items():
            if split != span.split and span.start_s - earlier.end_s < embargo_s:
                problems.append(
                    f"{earlier} and {span} are {span.start_s - earlier.end_s:.10g} s apart"
                )
        if span.split not in reach or reach[span.split].end_s < span.end_s:
            reach[span.split] = span
    return problems


def unissued(settings: Prepare) -> list[str]:
    """Train and val intervals that end before a test interval starts, but not by one lead:
    unknown when its first forecast is issued."""
    return [
        f"test [{start:.10g}, {end:.10g}) starts {start - known:.10g} s after {split} "
        f"[{begin:.10g}, {known:.10g}) ends"
        for start, end in sorted(settings.split.test)
        for split in SPLITS[:2]
        for begin, known in sorted(getattr(settings.split, split))
        if 0 <= start - known < settings.lead_s
    ]


def before(settings: Prepare, first: int) -> int:
    """The last slice boundary (in slices from t0) where a split may end that is followed by one
    whose first target is slice `first`."""
    start = context_window(0.0, first, settings.slice_s, settings.lead_s, "slice")[0]
    edge = math.floor((start - settings.embargo_s) / settings.slice_s)
    return edge if start - settings.slice_s * edge >= settings.embargo_s else edge - 1


def resolve(
    settings: Prepare, first_s: float, last_s: float, usable: Sequence[int] | None = None
) -> Prepare:
    """Settings that pass `check`, with a rolling split laid over data from `first_s` to `last_s`
    (Unix s); a fixed split stays.

    `usable` are the slices that can be targets, in order (default: all from the first that has a
    context). The last of them ends the test; where the data have a hole, val ends at the last one
    before it. DataError when nothing is left to train on.
    """
    if settings.rolling is None:
        return settings
    w, rolling = settings.slice_s, settings.rolling
    earliest = math.ceil((settings.lead_s + w) / w)
    end = math.floor((last_s - w * math.ceil(first_s / w)) / w) + 1
    usable = range(earliest, end) if usable is None else [j for j in usable if j >= earliest]
    end = usable[-1] + 1 if usable else end
    tests, vals = math.floor(rolling.test_s / w), math.floor(rolling.val_s / w)
    limit = before(settings, end - tests)
    val_end = next((j + 1 for j in reversed(usable) if j < limit), limit)
    limit = before(settings, val_end - vals)
    if not any(j < limit for j in usable):
        needed = earliest + 1 + vals + tests - 2 * before(settings, 0)
        missing = needed - (earliest + len(usable) if usable else end)
        raise DataError(
            "there are too few data for the rolling split",
            where=f"{last_s - first_s:.0f} s of data from {first_s:.0f} s on",
            expected=f"{w * needed:.10g} s, of which {w * vals:.10g} s select and {w * tests:.10g} "
            "s test",
            found=f"{w * max(1, missing):.10g} s are missing",
            remedy="drop more captures, or lower `rolling` in "
            "stages/params/budgets/PROFILE/winds.yaml",
        )
    split = Split(
        train=((w * earliest, w * limit),),
        val=((w * (val_end - vals), w * val_end),),
        test=((w * (end - tests), w * end),),
    )
    return settings.model_copy(update={"split": split, "rolling": None})


def check(settings: Prepare, where: str) -> None:
    """The law on the parameters alone, before any work: ParamsError with every pair of spans or
    intervals that breaks it.

    A rolling split is checked as it would lie over ample data.
    """
    w, rolling = settings.slice_s, settings.rolling
    if rolling:
        empty = [
            name
            for name, length in (("val", rolling.val_s), ("test", rolling.test_s))
            if length < w
        ]
        ample = (
            3 * settings.lead_s + 2 * settings.embargo_s + rolling.test_s + rolling.val_s + 20 * w
        )
        settings = settings if empty else resolve(settings, 0.0, ample)
    else:
        empty = [name for name in SPLITS if not any(target_ranges(settings, name))]
    if empty:
        raise ParamsError(
            "a split holds no whole slice",
            where=where,
            found=", ".join(empty),
            expected=f"intervals of at least {settings.slice_s:.10g} s that begin on a slice",
            remedy="widen the interval in stages/params/budgets/PROFILE/winds.yaml",
        )
    problems = violations(spans(settings), settings.embargo_s)
    if problems:
        raise ParamsError(
            "splits would share rows, or rows too close in time",
            where=where,
            expected=f"at least {settings.embargo_s:.10g} s between any two roles of different "
            "splits",
            found="; ".join(problems),
            remedy="move the split intervals apart, or lower embargo_s",
        )
    problems = unissued(settings)
    if problems:
        raise ParamsError(
            "models would be fitted or selected on what is not yet known when the first test "
            "forecast is issued",
            where=where,
            expected=f"each test interval at least lead_s = {settings.lead_s:.10g} s after the end "
            "of every train and val interval before it",
            found="; ".join(problems),
            remedy="move the test interval later, or end train and val earlier",
        )


def check_rows(found: Iterable[Span], embargo_s: float, where: str) -> None:
    """The law on the rows that are really used: spans run from the first to the last row of a
    role. DataError if broken."""
    problems = violations(
        found, max(embargo_s, 1e-9)
    )  # at no distance it would be the same row, even without an embargo
    if problems:
        raise DataError(
            "rows of different splits are too close in time",
            where=where,
            found="; ".join(problems[:5]),
            expected=f"at least {embargo_s:.10g} s apart",
            remedy="move the split intervals apart in stages/params/budgets/PROFILE/winds.yaml",
        )
