"""Leads of the horizon curve: which of them the weights know nothing of, and how they are named."""

import math
import sys
from pathlib import Path

import pytest

from stages.winds import evaluation_data

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))


@pytest.mark.parametrize(
    ("train", "val", "test", "expected"),
    [
        ([1, 2], [10, 11], [20, 21], 8 * 60),
        ([1, 2, 90], [10], [20, 95], 4 * 60),  # what was fitted after a target is not newer than it
        ([30], [40], [20, 21], math.inf),
        ([10, 11], [1], [20], 8 * 60),
    ],
)
def test_causal_lead(train, val, test, expected):
    assert (
        evaluation_data.causal_lead_s(
            {"slices": {"train": train, "val": val, "test": test}, "slice_s": 60.0}
        )
        == expected
    )


def test_lead_names_sort_as_numbers():
    leads = [7.5, 5, 30, 120, 60]
    assert [
        float(name) for name in sorted(evaluation_data.lead_name(60 * lead) for lead in leads)
    ] == sorted(leads)
