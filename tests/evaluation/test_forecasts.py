"""Forecasts of whole slices: their unit, and where one that is not finite stops."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from wind_settings import NEARBY, PREPARED

from stages.batches import Prediction
from stages.errors import DivergedError
from stages.layers.heads import Gaussian
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.pairs import Pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))


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
