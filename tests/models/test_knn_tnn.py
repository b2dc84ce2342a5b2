"""k nearest neighbours in space and time against a full sort in km and minutes, and the laws of
all models that read local contexts."""

from functools import partial

import numpy as np
import pytest
import torch

from stages import seeds
from stages.batches import Batch, collate, single
from stages.fields.models.gka import GKA
from stages.fields.models.gka_mlp_tnn import GKAMLPTNN
from stages.fields.models.gka_tnn import GKATNN
from stages.fields.models.knn_tnn import KNNTNN
from stages.fields.models.kriging import Kriging
from stages.fields.models.optimum import Optimum
from stages.neighbours.linear import Linear

UNITS = np.array([100.0, 100.0, 1.0, 60.0])  # km, km, km, min of a local unit
MODELS = {
    "knn_tnn": KNNTNN,
    "gka": GKA,
    "gka_tnn": GKATNN,
    "gka_tnn-requery": partial(GKATNN, requery=1),
    "gka_mlp_tnn": GKAMLPTNN,
    "gka_mlp_tnn-requery": partial(GKAMLPTNN, requery=1),
    "kriging": Kriging,
    "kriging-matern": partial(Kriging, kind="matern"),
    "optimum": Optimum,
}
laws = pytest.mark.parametrize("name", MODELS)
POINTS = [(0, 1), (0, 0), (1, 1), (3, 0), (2, 5), (17, 4), (40, 33)]


def made(name, seed=0):
    seeds.everything(seed)
    model = MODELS[name](4, 2, 2)
    if name == "optimum":
        model.set_scaler(torch.tensor([3.0, -1.0]), torch.tensor([12.0, 9.0]))
    return model


def some(context, targets, seed=0):
    generator = seeds.torch_stream(seed, "local", context, targets)

    def draw(count, width):
        return torch.randn(count, width, generator=generator)

    return single(draw(context, 4), draw(context, 2), draw(targets, 4), draw(targets, 2))


def outputs(prediction):
    return [value for value in (prediction.mean, prediction.scale) if value is not None]


def flown(count, targets):
    """Winds measured in the last 4 h over 400 x 400 x 6 km and targets half an hour ahead, in km
    and min."""
    rng = seeds.stream(0, "flown", count)

    def places(n, t):
        return np.stack((*rng.uniform(-200, 200, (2, n)), rng.uniform(-3, 3, n), t), 1)

    return (
        places(count, rng.uniform(-240, 0, count)),
        rng.normal(size=(count, 2)),
        places(targets, np.full(targets, 30.0)),
    )


def asked(model, x, y, targets):
    """The batch that the search makes for a model, as contexts are made in training."""
    x, y, targets = (
        torch.tensor(values, dtype=torch.float32) for values in (x / UNITS, y, targets / UNITS)
    )
    found = Linear(x).query(targets, model.places, scale=model.metric(targets))
    real = torch.ones(len(targets), 1, dtype=torch.bool)
    return Batch(x[found.index], y[found.index], found.mask, targets[:, None], real), found


@pytest.mark.parametrize("places", [1, 7, 300, 400])
@pytest.mark.parametrize("lengths", [(50.0, 0.5, 60.0), (10.0, 5.0, 500.0)])
def test_the_forecast_is_the_mean_of_the_nearest_in_km_and_minutes(places, lengths):
    x, y, targets = flown(300, 40)
    horizontal, vertical, time = lengths
    model = KNNTNN(4, 2, 2, places, horizontal, vertical, time)
    square = (
        ((targets[:, None] - x[None]) / np.array([horizontal, horizontal, vertical, time])) ** 2
    ).sum(2)
    wanted = y[np.argsort(square, 1)[:, :places]].mean(1)
    np.testing.assert_allclose(model(asked(model, x, y, targets)[0]).mean[:, 0], wanted, atol=1e-5)


def test_the_neighbours_that_a_kernel_keeps_are_those_that_weigh_most():
    x, y, targets = flown(600, 40)
    model = GKA(4, 2, 2, 64, 40.0, 0.8, 90.0)
    batch, found = asked(model, x, y, targets)
    weight = np.exp(
        -(((targets[:, None] - x[None]) / np.array([40.0, 40.0, 0.8, 90.0])) ** 2).sum(2)
    )
    kept = np.take_along_axis(weight, found.index.numpy(), 1)
    np.testing.assert_allclose(np.sort(kept, 1), np.sort(weight, 1)[:, -64:], rtol=1e-4)
    # what is left out can move the mean by no more than its share of the weight times the range of
    # the winds
    left = 1 - kept.sum(1) / weight.sum(1)
    error = np.abs(model(batch).mean[:, 0].numpy() - weight @ y / weight.sum(1, keepdims=True)).max(
        1
    )
    assert left.max() < 0.05 and (error <= left * np.ptp(y) + 1e-5).all()


@laws
def test_what_a_model_tells_the_search(name):
    model, targets = made(name), torch.randn(5, 4, generator=seeds.torch_stream(0, "targets"))
    if model.context == "recent":
        assert model.window_s == float("inf")
        return
    assert model.context == "neighbours" and type(model.places) is int
    with torch.no_grad():
        metric = model.metric(targets)
    if name in ("gka_tnn", "gka_mlp_tnn", "kriging", "kriging-matern"):
        assert metric is None
    else:
        assert (
            metric.shape == ((5, 4) if name == "gka_mlp_tnn-requery" else (4,))
            and not metric.requires_grad
        )
        assert (metric > 0).all() and torch.equal(metric[..., 0], metric[..., 1])
        torch.testing.assert_close(
            metric.expand(5, 4), torch.tensor([4.0, 4, 4, 1]).expand(5, 4), rtol=0.1, atol=0
        )  # 50, 0.5 km, 60 min


@laws
@pytest.mark.parametrize("points", POINTS, ids=str)
def test_any_numbers_of_points_give_finite_predictions_of_the_right_shape(name, points):
    for value in outputs(made(name)(some(*points))):
        assert (
            value.shape == (1, points[1], 2)
            and value.dtype == torch.float32
            and torch.isfinite(value).all()
        )


@laws
def test_no_sets_give_no_predictions(name):
    batch = Batch(**{key: value[:0] for key, value in vars(some(3, 2)).items()})
    assert all(value.shape == (0, 2, 2) for value in outputs(made(name)(batch)))


@laws
@pytest.mark.parametrize("garbage", [50.0, 3e38])
def test_a_padded_batch_gives_what_each_set_gives_alone(name, garbage):
    model, sets = made(name), [some(*points, seed) for seed, points in enumerate(POINTS)]
    together = collate(sets)
    together = Batch(
        **{
            key: value
            if value.dtype == torch.bool
            else value
            + garbage
            * ~(together.target_mask if "target" in key else together.context_mask)[..., None]
            for key, value in vars(together).items()
        }
    )
    joint = outputs(model(together))
    for row, alone in enumerate(sets):
        for value, lone in zip(joint, outputs(model(alone)), strict=True):
            assert torch.isfinite(value).all()
            torch.testing.assert_close(
                value[row, : alone.target_x.shape[1]], lone[0], atol=1e-5, rtol=1e-5
            )
    if model.learns == "gradient":  # nor does the way back meet the garbage
        loss = (
            model.loss(together)
            if model.own_loss
            else (joint[0] * together.target_mask[..., None]).square().sum()
        )
        loss.backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@laws
def test_the_order_of_the_context_does_not_matter_and_targets_keep_theirs(name):
    model, batch = made(name), some(30, 20)
    batch.context_x[0, 5:10] = batch.context_x[
        0, 5
    ]  # five reports from one place with different winds
    batch.target_x[0, 3] = batch.context_x[0, 5]
    context, target = (
        torch.randperm(n, generator=seeds.torch_stream(1, "permutation", n)) for n in (30, 20)
    )
    shuffled = Batch(
        batch.context_x[:, context],
        batch.context_y[:, context],
        batch.context_mask,
        batch.target_x[:, target],
        batch.target_mask,
    )
    for one, other in zip(outputs(model(batch)), outputs(model(shuffled)), strict=True):
        torch.testing.assert_close(one[:, target], other, atol=1e-5, rtol=1e-5)


@laws
def test_the_gradient_reaches_every_parameter(name):
    model, batch = made(name), some(30, 20)
    parameters = dict(model.named_parameters())
    assert bool(parameters) == (model.learns == "gradient")
    if parameters:
        sum((value - 0.3).square().sum() for value in outputs(model(batch))).backward()
    assert not [
        key
        for key, value in parameters.items()
        if value.grad is None or not value.grad.abs().max() > 0
    ]


@laws
def test_its_tensors_alone_make_it_again(name):
    model, batch = made(name, seed=3), some(30, 20)
    with torch.device("meta"):
        again = MODELS[name](4, 2, 2)
    again.load_state_dict(model.state_dict(), assign=True)
    assert all(value.dtype == torch.float32 for value in model.state_dict().values())
    for one, other in zip(outputs(model(batch)), outputs(again(batch)), strict=True):
        assert torch.equal(one, other)


@laws
def test_far_targets_equal_points_and_fully_masked_sets_stay_finite(name):
    model, batch = made(name), some(12, 6)
    batch.context_x[:] = batch.context_x[:, :1]
    batch.target_x[0, 0] = 1e4
    masked = Batch(
        batch.context_x,
        batch.context_y,
        torch.zeros_like(batch.context_mask),
        batch.target_x,
        torch.zeros_like(batch.target_mask),
        batch.target_y,
    )
    values = [
        *outputs(model(batch)),
        *outputs(model(masked)),
        *([model.loss(masked)] if model.own_loss else []),
    ]
    assert all(torch.isfinite(value).all() for value in values)
    if model.learns == "gradient":
        sum(value.sum() for value in values).backward()
        assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize(
    "name", [name for name in MODELS if name != "optimum"]
)  # which knows its law's mean
def test_without_context_the_prior_mean_is_predicted(name):
    assert torch.equal(made(name)(some(0, 3)).mean, torch.zeros(1, 3, 2))
