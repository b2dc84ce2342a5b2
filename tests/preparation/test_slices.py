"""The time windows of slices and contexts, and the law of the splits, against counting every second by hand."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages import params
from stages.errors import DataError, ParamsError
from stages.params import Prepare
from stages.preparation import slices

T0 = 1_600_000_080.0


@pytest.mark.parametrize(("context", "window"), [
    ("slice", (T0 + 40 * 60 - 1800 - 60, T0 + 40 * 60 - 1800)),
    ("hour", (T0 + 40 * 60 - 1800 - 3600, T0 + 40 * 60 - 1800)),
    ("day", (1_599_955_200.0, 1_600_041_600.0)),  # 2020-09-13 00:00 UTC and the midnight after
])
def test_context_windows(context, window):
    assert slices.context_window(T0, 40, 60.0, 1800.0, context) == window


def test_day_is_the_targets_day_not_the_contexts():
    j = 700  # 13 September 12:28 + 11 h 40 min is 14 September, UTC
    assert slices.context_window(T0, j, 60.0, 1800.0, "day") == (1_600_041_600.0, 1_600_128_000.0)


def test_unknown_context():
    with pytest.raises(ParamsError, match="slice | hour | day"):
        slices.context_window(T0, 1, 60.0, 1800.0, "week")


def test_only_whole_slices_belong_to_an_interval():
    settings = Prepare(slice_s=60, lead_s=60, embargo_s=0, split={"train": ((61, 299),), "val": ((600, 660),), "test": ((900, 960),)})
    assert slices.target_ranges(settings, "train") == [range(2, 4)]
    assert slices.target_ranges(settings, "val") == [range(10, 11)]


def roles_by_second(settings: Prepare, horizon: int) -> dict[str, set[int]]:
    """Every second that a split uses, found by walking slices one after another."""
    w, lead = int(settings.slice_s), int(settings.lead_s)
    used: dict[str, set[int]] = {name: set() for name in slices.NAMES}
    for name, j in itertools.product(slices.NAMES, range(horizon)):
        if any(start <= j * w and (j + 1) * w <= end for start, end in getattr(settings.split, name)):
            used[name] |= set(range(j * w, (j + 1) * w)) | set(range(j * w - lead - w, j * w - lead))
    return used


interval = st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda pair: (pair[0] * 10.0, (pair[0] + pair[1]) * 10.0))


@settings(max_examples=200, deadline=None)
@example([(0.0, 80.0), (20.0, 30.0)], (90.0, 100.0), (300.0, 310.0), 12, 20)  # an interval inside another: the outer one counts
@given(st.lists(interval, min_size=1, max_size=2), interval, interval, st.integers(1, 12), st.integers(0, 60))
def test_law_agrees_with_counting_seconds(train, val, test, lead, embargo):
    settings = Prepare(slice_s=10, lead_s=lead * 10, embargo_s=embargo, split={"train": tuple(train), "val": (val,), "test": (test,)})
    used = roles_by_second(settings, 40)
    # the last whole second of one role and the first of the next are one second further apart than the spans
    apart = min(abs(a - b) for left, right in itertools.combinations(used.values(), 2) for a in left for b in right)
    if apart >= embargo + 1:
        slices.check(settings, "here")
    else:
        with pytest.raises(ParamsError, match="splits would share rows"):
            slices.check(settings, "here")


def test_error_names_both_roles_and_the_distance():
    settings = Prepare(slice_s=60, lead_s=1800, embargo_s=180, split={
        "train": ((1860, 2520),), "val": ((2700, 2880),), "test": ((3240, 3600),)})
    with pytest.raises(ParamsError, match=r"test context \[1380, 1740\) and train targets \[1860, 2520\) are 120 s apart"):
        slices.check(settings, "here")


def test_split_without_a_whole_slice():
    settings = Prepare(slice_s=60, lead_s=60, embargo_s=0, split={"train": ((0, 600),), "val": ((1000, 1050),), "test": ((3000, 3060),)})
    with pytest.raises(ParamsError, match="holds no whole slice"):
        slices.check(settings, "here")


def test_rows_of_one_moment_are_refused_even_without_an_embargo():
    one, other = slices.Span(5.0, 7.0, "train", "targets"), slices.Span(7.0, 7.0, "test", "context")
    with pytest.raises(DataError, match="too close"):
        slices.check_rows([one, other], 0.0, "here")
    slices.check_rows([one, slices.Span(7.0, 8.0, "train", "context")], 100.0, "here")  # one split may meet itself


def test_every_profile_obeys_the_law():
    for name, profile in params.load().profiles.items():
        for dataset, settings in profile.prepare.items():
            slices.check(settings, f"{name}.{dataset}")
