"""The time windows of slices and contexts, and the law of the splits, against counting every
second by hand."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages import params
from stages.errors import DataError, ParamsError
from stages.params import Prepare
from stages.splits import SPLITS
from stages.winds import slices

T0 = 1_600_000_080.0


@pytest.mark.parametrize(
    ("context", "window"),
    [
        ("slice", (T0 + 40 * 60 - 1800 - 60, T0 + 40 * 60 - 1800)),
        ("hour", (T0 + 40 * 60 - 1800 - 3600, T0 + 40 * 60 - 1800)),
        ("day", (1_599_955_200.0, 1_600_041_600.0)),  # 2020-09-13 00:00 UTC and the midnight after
    ],
)
def test_context_windows(context, window):
    assert slices.context_window(T0, 40, 60.0, 1800.0, context) == window


def test_day_is_the_targets_day_not_the_contexts():
    j = 700  # 13 September 12:28 + 11 h 40 min is 14 September, UTC
    assert slices.context_window(T0, j, 60.0, 1800.0, "day") == (1_600_041_600.0, 1_600_128_000.0)


def test_unknown_context():
    with pytest.raises(ParamsError, match="slice | hour | day"):
        slices.context_window(T0, 1, 60.0, 1800.0, "week")


def test_only_whole_slices_belong_to_an_interval():
    settings = Prepare(
        slice_s=60,
        lead_s=60,
        embargo_s=0,
        split={"train": ((61, 299),), "val": ((600, 660),), "test": ((900, 960),)},
    )
    assert slices.target_ranges(settings, "train") == [range(2, 4)]
    assert slices.target_ranges(settings, "val") == [range(10, 11)]


def roles_by_second(settings: Prepare, horizon: int) -> dict[str, set[int]]:
    """Every second that a split uses, found by walking slices one after another."""
    w, lead = int(settings.slice_s), int(settings.lead_s)
    used: dict[str, set[int]] = {name: set() for name in SPLITS}
    for name, j in itertools.product(SPLITS, range(horizon)):
        if any(
            start <= j * w and (j + 1) * w <= end for start, end in getattr(settings.split, name)
        ):
            used[name] |= set(range(j * w, (j + 1) * w)) | set(
                range(j * w - lead - w, j * w - lead)
            )
    return used


interval = st.tuples(st.integers(0, 30), st.integers(1, 8)).map(
    lambda pair: (pair[0] * 10.0, (pair[0] + pair[1]) * 10.0)
)


@settings(max_examples=200, deadline=None)
@example(
    [(0.0, 80.0), (20.0, 30.0)], (90.0, 100.0), (300.0, 310.0), 12, 20
)  # an interval inside another: the outer one counts
@example(
    [(200.0, 220.0)], (20.0, 30.0), (300.0, 310.0), 12, 0
)  # between a forecast's context and its target: apart, but too young
@given(
    st.lists(interval, min_size=1, max_size=2),
    interval,
    interval,
    st.integers(1, 12),
    st.integers(0, 60),
)
def test_law_agrees_with_counting_seconds(train, val, test, lead, embargo):
    settings = Prepare(
        slice_s=10,
        lead_s=lead * 10,
        embargo_s=embargo,
        split={"train": tuple(train), "val": (val,), "test": (test,)},
    )
    used = roles_by_second(settings, 40)
    # the last whole second of one role and the first of the next are one second further apart than
    # the spans
    apart = min(
        abs(a - b)
        for left, right in itertools.combinations(used.values(), 2)
        for a in left
        for b in right
    )
    begins, lead_s = test[0], lead * 10
    # counted second by second too: the last second of each earlier fitted or selected interval,
    # against the first forecast's issue
    fresh = any(
        second > begins - lead_s
        for start, end in (*train, val)
        if end <= begins
        for second in range(int(start) + 1, int(end) + 1)
    )
    if apart < embargo + 1:
        with pytest.raises(ParamsError, match="splits would share rows"):
            slices.check(settings, "here")
    elif fresh:
        with pytest.raises(
            ParamsError, match="not yet known when the first test forecast is issued"
        ):
            slices.check(settings, "here")
    else:
        slices.check(settings, "here")


ROOMY = {
    "train": ((1860, 3600),),
    "val": ((5520, 7200),),
    "test": ((10860, 11160),),
}  # the test's contexts are [9000, 9300)


def planned(**split) -> Prepare:
    return Prepare(slice_s=60, lead_s=1800, embargo_s=0, split=ROOMY | split)


def test_what_is_fitted_or_selected_on_is_a_lead_old_when_the_first_test_forecast_is_issued():
    """Apart by the embargo is not enough: targets between a forecast's context and its own
    moment are known only after it is issued."""
    slices.check(planned(), "here")
    slices.check(
        planned(train=((1860, 3600), (16200, 18000))), "here"
    )  # what follows the test is another matter
    with pytest.raises(ParamsError) as caught:
        slices.check(planned(val=((9300, 9360),)), "profiles.toy")
    said = str(caught.value)
    assert "test [10860, 11160) starts 1500 s after val [9300, 9360) ends" in said
    assert "lead_s = 1800 s" in said and "profiles.toy" in said and caught.value.exit_code == 2
    with pytest.raises(ParamsError, match=r"starts 1500 s after train \[9300, 9360\) ends"):
        slices.check(planned(train=((1860, 3600), (9300, 9360))), "here")
    later = ((10860, 11160), (30000, 30300))
    with pytest.raises(
        ParamsError, match=r"test \[30000, 30300\) starts 1200 s after train \[28740, 28800\) ends"
    ):
        slices.check(
            planned(train=((1860, 3600), (28740, 28800)), test=later), "here"
        )  # every test interval, not the first alone


@pytest.mark.parametrize(
    ("end", "age"), [(9059, None), (9060, None), (9061, 1799), (10860, 0), (10861, None)]
)
def test_exactly_one_lead_is_old_enough(end, age):
    expected = (
        [] if age is None else [f"test [10860, 11160) starts {age} s after val [8000, {end}) ends"]
    )
    assert slices.unissued(planned(val=((8000, end),))) == expected


def test_error_names_both_roles_and_the_distance():
    settings = Prepare(
        slice_s=60,
        lead_s=1800,
        embargo_s=180,
        split={"train": ((1860, 2520),), "val": ((2700, 2880),), "test": ((3240, 3600),)},
    )
    with pytest.raises(
        ParamsError,
        match=r"test context \[1380, 1740\) and train targets \[1860, 2520\) are 120 s apart",
    ):
        slices.check(settings, "here")


def test_split_without_a_whole_slice():
    settings = Prepare(
        slice_s=60,
        lead_s=60,
        embargo_s=0,
        split={"train": ((0, 600),), "val": ((1000, 1050),), "test": ((3000, 3060),)},
    )
    with pytest.raises(ParamsError, match="holds no whole slice"):
        slices.check(settings, "here")


def test_rows_of_one_moment_are_refused_even_without_an_embargo():
    one, other = slices.Span(5.0, 7.0, "train", "targets"), slices.Span(7.0, 7.0, "test", "context")
    with pytest.raises(DataError, match="too close"):
        slices.check_rows([one, other], 0.0, "here")
    slices.check_rows(
        [one, slices.Span(7.0, 8.0, "train", "context")], 100.0, "here"
    )  # one split may meet itself


def test_every_profile_obeys_the_law():
    """`check` raises where a split breaks it."""
    checked = [
        slices.check(settings, f"{name}.{dataset}")
        for name, profile in params.load().profiles.items()
        for dataset, settings in profile.prepare.items()
    ]
    assert checked == [None] * len(checked) and len(checked) >= 4


def test_every_nth_slice_of_what_selects_and_tests_is_a_target():
    settings = Prepare(
        slice_s=60,
        lead_s=60,
        embargo_s=0,
        every={"val": 2, "test": 3},
        split={"train": ((60, 600),), "val": ((720, 1020),), "test": ((1140, 1740),)},
    )
    found = {name: slices.target_ranges(settings, name) for name in SPLITS}
    assert {name: [list(one) for one in ranges] for name, ranges in found.items()} == {
        "train": [list(range(1, 10))],
        "val": [[12, 14, 16]],
        "test": [[19, 22, 25, 28]],
    }
