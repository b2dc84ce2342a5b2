"""Contexts and targets at the edge of what there is, for every model in the tables of fields and
orders (F16).

No context, one point, the same point many times, every target masked, targets far outside the area,
a batch of one, no target at all: a finite prediction of the right shape, or an error of ours. Never
a number that is not finite without a name: what a model answers there is scored by the project's
own metrics, which refuse or name what they cannot know.
"""

import json

import lab
import numpy as np
import pytest
import torch

from stages import params, seeds
from stages.batches import Batch, collate, single
from stages.errors import TradewindError
from stages.fields import models as fields
from stages.fields.models import axes, build
from stages.sequences import models as orders
from stages.winds import metrics

MODELS = params.load(lab.HOME / "params.yaml").models
ARMS = [
    (name, arm, next(iter(model.sizes), "none"))
    for name, model in MODELS.items()
    if name in fields.names()
    for arm in model.arms
]
NETS = [
    (name, arm, next(iter(model.sizes), "none"))
    for name, model in MODELS.items()
    if name in orders.names()
    for arm in model.arms
]
FAR = 1e6  # standard deviations
VOCABULARY, LENGTH = 5, 8


def field(case):
    """A model of the table, its weights drawn from seed 0."""
    name, arm, size = case
    seeds.everything(0)
    net = build(name, MODELS[name].arms[arm], MODELS[name].sizes.get(size)).eval()
    if name == "knn":
        net.neighbours.fill_(4)
    return net


def points(name: str, context: int, targets: int) -> Batch:
    """A set of standardised points; local contexts lie before the issue time, their targets
    after it."""
    draw, wide = seeds.torch_stream(0, "edges", context, targets), axes(name)
    batch = single(
        torch.randn(context, wide, generator=draw),
        torch.randn(context, 2, generator=draw),
        torch.randn(targets, wide, generator=draw),
        torch.randn(targets, 2, generator=draw),
    )
    if wide == 4:
        batch.context_x[..., 3], batch.target_x[..., 3] = (
            -batch.context_x[..., 3].abs(),
            batch.target_x[..., 3].abs(),
        )
    return batch


def masked(name: str) -> Batch:
    """All targets are padding."""
    batch = points(name, 9, 4)
    return Batch(
        batch.context_x,
        batch.context_y,
        batch.context_mask,
        batch.target_x,
        torch.zeros_like(batch.target_mask),
        batch.target_y,
    )


def repeated(name: str, same: bool) -> Batch:
    """One place reported twelve times, with one wind or with twelve."""
    batch = points(name, 12, 3)
    batch.context_x[:] = batch.context_x[:, :1].clone()
    if same:
        batch.context_y[:] = batch.context_y[:, :1].clone()
    batch.target_x[0, 0] = batch.context_x[0, 0]
    return batch


def outside(name: str) -> Batch:
    """Targets a million standard deviations away, in place and, where it has one, in time."""
    batch = points(name, 9, 4)
    batch.target_x[:] = batch.target_x.sign() * FAR
    if axes(name) == 4:
        batch.target_x[..., 3] = FAR
    return batch


EDGES = {
    "no context": lambda name: points(name, 0, 3),
    "one point": lambda name: points(name, 1, 3),
    "one point, one target": lambda name: points(name, 1, 1),
    "no target": lambda name: points(name, 5, 0),
    "nothing at all": lambda name: points(name, 0, 0),
    "one place": lambda name: repeated(name, False),
    "one report many times": lambda name: repeated(name, True),
    "all targets masked": masked,
    "targets outside": outside,
    "an empty set beside a full one": lambda name: collate(
        [points(name, 0, 3), points(name, 8, 2)]
    ),
}


@pytest.mark.fault("F16")
@pytest.mark.parametrize("case", ARMS, ids="-".join)
def test_every_field_model_answers_finitely_or_refuses_by_name(case):
    net = field(case)
    for edge, make in EDGES.items():
        batch = make(case[0])
        try:
            with torch.no_grad():
                answer = net(batch)
        except TradewindError as error:
            assert error.what, edge
            continue
        assert answer.mean.shape == (*batch.target_x.shape[:2], 2), edge
        assert torch.isfinite(answer.mean).all(), edge
        assert answer.scale is None or (
            torch.isfinite(answer.scale).all() and (answer.scale > 0).all()
        ), edge


@pytest.mark.fault("F16")
@pytest.mark.parametrize("case", ARMS, ids="-".join)
def test_a_batch_of_one_is_the_same_set_in_a_batch_of_three(case):
    net, alone = field(case), points(case[0], 7, 4)
    with torch.no_grad():
        one = net(alone).mean
        three = net(collate([points(case[0], 3, 2), alone, points(case[0], 0, 5)])).mean
    torch.testing.assert_close(three[1, :4], one[0], atol=1e-5, rtol=1e-5)


@pytest.mark.fault("F16")
@pytest.mark.parametrize("case", NETS, ids="-".join)
@pytest.mark.parametrize("rows, given", [(1, 0), (1, LENGTH), (1, LENGTH - 1), (3, 0)])
def test_every_model_of_sequences_has_a_finite_law_from_no_token_to_all(case, rows, given):
    name, _, size = case
    seeds.everything(0)
    arguments = {
        key: value for key, value in MODELS[name].sizes.get(size, {}).items() if key != "axes"
    }
    net = orders.build(
        name,
        None,
        {**arguments, "positions": "sinusoidal"} if "positions" in arguments else arguments,
        VOCABULARY,
        LENGTH,
    ).eval()
    draw = seeds.torch_stream(0, "edges", rows)
    tokens = torch.randint(VOCABULARY, (rows, LENGTH), generator=draw)
    known = (torch.arange(LENGTH) < given).expand(rows, -1)
    with torch.no_grad():
        if name == "diffusion":
            found = [net.loss(tokens, draw, known), net.bound(tokens, draw, 4, known)]
            assert torch.equal(net.sample(tokens, known, 2, draw)[:, :given], tokens[:, :given])
        else:
            found = [
                net(tokens, torch.arange(LENGTH).expand(rows, -1)[:, : max(given, 1)]),
                net(tokens[:, :], torch.arange(LENGTH).flip(0).expand(rows, -1)),
            ]
    assert all(torch.isfinite(value).all() for value in found)


CALM = np.zeros((1, 2))
POINTS = {
    "one calm point": metrics.Points(np.zeros(1, int), CALM, CALM),
    "one point": metrics.Points(np.zeros(1, int), CALM + 3, CALM + 4),
    "no direction": metrics.Points(np.arange(3), np.zeros((3, 2)), np.zeros((3, 2))),
    "one slice": metrics.Points(np.zeros(4, int), np.ones((4, 2)), np.ones((4, 2))),
}


@pytest.mark.fault("F16", "F18")
@pytest.mark.parametrize("name", POINTS)
def test_a_metric_that_has_no_value_is_named_and_none_is_a_nan(name):
    numbers, sums = metrics.by_slice(metrics.columns(POINTS[name]), POINTS[name].slice)
    values, undefined = metrics.summarise(numbers, sums)
    json.dumps([values, undefined], allow_nan=False)  # strict JSON, as the table is
    assert (
        values["rmse_component_kn"]["value"] >= 0
        and all(undefined.values())
        and not set(values) & set(undefined)
    )
