"""Forecasts of whole slices: asked together or apart, from neighbours that are remembered or
searched again, they are the same."""

import numpy as np
import pytest
import torch
from torch import nn

from stages.batches import Prediction
from stages.fields.models.gka import GKA
from stages.fields.models.gka_tnn import GKATNN
from stages.fields.models.kalman import Kalman
from stages.fields.models.particle import Particle
from stages.params import Contexts as ContextSettings
from stages.winds import forecasts as field
from stages.winds.contexts.dealt import dealt
from stages.winds.contexts.given import Contexts
from stages.winds.contexts.nearby import Nearby
from stages.winds.pairs import Pairs

NEARBY = ContextSettings(
    method="linear", places=8, horizontal_km=100.0, vertical_km=2.0, time_min=60.0
)
PREPARED = "data/mini/prepared/toy"


@pytest.fixture(scope="module")
def contexts(airspace):
    return Contexts(Pairs.open(airspace / PREPARED), NEARBY)


def alone(model, contexts, slice, lead, permute=None):
    """The forecast as one plain call of the model makes it, m/s."""
    given = contexts.given(slice, model, lead)
    if permute is not None:
        given = dealt(given, field.seeds.stream(permute, "permute", slice))
    mean, std = (np.asarray(contexts.pairs.meta["scaler"][name]) for name in ("y_mean", "y_std"))
    with torch.no_grad():
        return model(given.batch).mean.reshape(-1, 2).double().numpy() * std + mean


@pytest.mark.parametrize(
    "model",
    [Kalman(4, 2, 2, step_s=120.0), Particle(4, 2, 2, particles=30), GKA(4, 2, 2, places=8)],
    ids=lambda m: type(m).__name__,
)
def test_a_forecast_does_not_know_what_else_is_asked(contexts, model):
    """Several leads at once, whose slices share moments of issue, give the bits of one slice at
    one lead; so does the permuted one."""
    slices = contexts.pairs.targets("test")
    reached = dict.fromkeys((120.0, 300.0, 600.0), slices[:6])
    got = field.forecasts(model, contexts, reached, main=300.0, permute=5)
    for lead, some in reached.items():
        assert np.array_equal(
            got[lead].mean, np.concatenate([alone(model, contexts, j, lead) for j in sorted(some)])
        )
    assert np.array_equal(
        got[300.0].permuted,
        np.concatenate([alone(model, contexts, j, 300.0, 5) for j in slices[:6]]),
    )
    assert not np.array_equal(got[300.0].permuted, got[300.0].mean)
    assert (
        got[120.0].permuted is None
        and got[120.0].outside is None
        and got[300.0].outside is not None
    )


def test_a_moments_winds_are_read_once_for_all_leads(contexts):
    class Counting(nn.Module):
        context, window_s, calls = "recent", 600.0, 0

        def forward(self, batch):
            self.calls += 1
            return Prediction(torch.zeros_like(batch.target_x[:, :, :2]))

    model, pairs = Counting(), contexts.pairs
    slices = pairs.targets("test")[:6]
    reached = {120.0: slices, 300.0: slices}
    field.forecasts(model, contexts, reached)
    assert model.calls == len({pairs.issue_s(j, lead) for lead in reached for j in slices}) < 12


def test_remembered_neighbours_are_those_searched_again(contexts, monkeypatch):
    """For models of the project's metric, whatever was asked before; a model with a metric of
    its own is searched for."""
    fresh, searches = contexts.nearby, []
    shared = field.Shared(fresh.measured, NEARBY)
    monkeypatch.setattr(
        Nearby,
        "neighbours",
        lambda self, *given, plain=Nearby.neighbours: searches.append(1) or plain(self, *given),
    )
    pairs = contexts.pairs
    few = GKATNN(4, 2, 2, places=3)
    more = GKATNN(4, 2, 2, places=8)
    own = GKA(4, 2, 2, places=8, horizontal_km=5.0)
    for j in pairs.targets("test")[:3]:
        targets = np.arange(*pairs.rows_of(j))
        for issue_s in (pairs.issue_s(j), pairs.issue_s(j, 120.0)):
            for model, expected in ((few, 1), (more, 0), (few, 0), (own, 1), (own, 1)):
                given = (pairs.places(targets), pairs.t_s[targets], issue_s, model)
                before = len(searches)
                got = shared.neighbours(*given)
                assert len(searches) - before == expected
                assert np.array_equal(got, fresh.neighbours(*given)) and got.dtype == np.int64
                searches.clear()


def test_no_more_is_remembered_than_the_memory_set_aside(contexts, monkeypatch):
    pairs = contexts.pairs
    j = pairs.targets("test")[0]
    targets = np.arange(*pairs.rows_of(j))
    given = (pairs.places(targets), pairs.t_s[targets], pairs.issue_s(j), GKATNN(4, 2, 2, places=8))
    monkeypatch.setattr(field, "SHARED", 4 * 8 * len(targets) - 1)
    shared = field.Shared(contexts.nearby.measured, NEARBY)
    assert (
        np.array_equal(shared.neighbours(*given), contexts.nearby.neighbours(*given))
        and not shared.found
    )
