"""One model evaluated: its lead, its scale and units, and a forecast that is not finite."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from stages.batches import Prediction
from stages.errors import DivergedError
from stages.layers.heads import Gaussian
from stages.winds import evaluation_data
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.pairs import Pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from evaluated_winds import NEARBY, PREPARED


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


@pytest.mark.fault("F18")
def test_a_forecast_that_is_not_finite_stops_with_its_place(airspace):
    class Broken(torch.nn.Module):
        context = "slice"

        def forward(self, batch):
            return Prediction(torch.full_like(batch.target_x[:, :, :2], torch.nan))

    pairs = Pairs.open(airspace / PREPARED)
    first = pairs.targets("test")[0]
    with pytest.raises(DivergedError, match=f"slice {first}, lead 600 s"):
        field.forecasts(Broken(), Contexts(pairs, NEARBY), {600.0: [first]})


def test_scale_and_units_of_a_known_model(airspace):
    """A model that answers 1 and spread 2 in standardised units answers mean + std and 2 std in
    m/s."""

    class Known(torch.nn.Module):
        context = "slice"

        def forward(self, batch):
            one = torch.ones_like(batch.target_x[:, :, :2])
            return Gaussian(one, 2 * one)

    pairs = Pairs.open(airspace / PREPARED)
    mean, std = (np.array(pairs.meta["scaler"][name]) for name in ("y_mean", "y_std"))
    given = field.forecasts(Known(), Contexts(pairs, NEARBY), {600.0: pairs.targets("test")[:2]})[
        600.0
    ]
    assert given.mean == pytest.approx(np.tile(mean + std, (len(given.row), 1)))
    assert given.scale == pytest.approx(np.tile(2 * std, (len(given.row), 1)))
