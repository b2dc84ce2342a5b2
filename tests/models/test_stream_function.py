"""A wind that is the turned slope of a stream function has no divergence, whichever model predicts
it: by autograd and by finite differences; its units, its training, models whose targets hear each
other."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from stages import seeds
from stages.batches import Batch, Prediction, single
from stages.contracts import FieldModel
from stages.fields.models import build, model_class, names
from stages.layers import stream_head

pytestmark = pytest.mark.usefixtures("twice_differentiable")
LEAST = 1e-5  # of the shear
HEARING = ("msa", "tfs", "hypermixer", "geofno", "gen", "gng", "perceiver")
UNITS = torch.tensor([1.25, 0.8], dtype=torch.float64)  # components were standardised differently


@pytest.fixture
def twice_differentiable():
    """Attention by torch's own plain form, of which second derivatives exist."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


def drawn(context=20, targets=12, seed=0) -> Batch:
    def place(*shape):
        return torch.randn(*shape, generator=seeds.torch_stream(seed, *shape))

    batch = single(place(context, 4), place(context, 2), place(targets, 4))
    batch.context_x[..., 3], batch.target_x[..., 3] = -batch.context_x[..., 3].abs(), 0.5
    return Batch(**{k: v.double() if v is not None and v.is_floating_point() else v
                    for k, v in vars(batch).items()})  # fmt: skip


def gradients(ask, batch, unit=UNITS):
    """d(u, v)/d(east, north) in one speed at every target (T, 2, 2), by autograd."""
    place = batch.target_x.clone().requires_grad_()
    mean = stream_head.wind(ask, Batch(batch.context_x, batch.context_y, batch.context_mask, place,
                                       batch.target_mask), unit).mean / unit  # fmt: skip
    rows = [torch.autograd.grad(mean[..., k].sum(), place, retain_graph=True,
                                materialize_grads=True)[0] for k in (0, 1)]  # fmt: skip
    return torch.stack(rows, -2)[0, :, :, :2]


def of_shear(found):
    """Root mean square divergence over that of the whole gradient."""
    divergence = found[:, 0, 0] + found[:, 1, 1]
    return float(divergence.square().mean().sqrt() / found.square().sum((1, 2)).mean().sqrt())


def made(name) -> FieldModel:
    seeds.everything(0)
    return stream_head.smooth(build(name, x_dim=4)).double().eval()


@pytest.mark.parametrize("name", ["stream", "kernel", "kriging", "cnp", "tnp", "pseudo_tnp"])
def test_no_model_has_divergence_by_autograd(name):
    if name == "stream":
        seeds.everything(0)
        model = build("stream_function").double()
        model.set_scaler(torch.zeros(2), 1 / UNITS)
        unit = model.unit
        assert unit.tolist() == pytest.approx((UNITS * (1 / UNITS).mean()).tolist())
        found = gradients(model.stream, drawn(), unit)
    else:
        found = gradients(made(name), drawn())
    assert found.abs().max() > 1e-6 and of_shear(found) < LEAST


@pytest.mark.parametrize("name", ["kernel", "kriging", "stream_function"])
def test_none_by_finite_differences(name):
    batch, step = drawn(), 1e-4
    if name == "stream_function":
        seeds.everything(0)
        ask = build(name).double()
    else:
        model = made(name)

        def ask(batch):
            return stream_head.wind(model, batch, torch.ones(2))

    def moved(axis, by):
        shift = torch.zeros(4, dtype=torch.float64)
        shift[axis] = by
        place = batch.target_x + shift
        with torch.no_grad():
            return ask(Batch(batch.context_x, batch.context_y, batch.context_mask, place,
                             batch.target_mask)).mean[0]  # fmt: skip

    slopes = [(moved(axis, step) - moved(axis, -step)) / (2 * step) for axis in (0, 1)]
    found = torch.stack(slopes, -1)
    assert found.abs().max() > 1e-6 and of_shear(found) < LEAST


def test_a_plain_head_has_divergence_so_the_test_can_fail():
    seeds.everything(0)
    model, batch = stream_head.smooth(build("tnp", x_dim=4)).double(), drawn()
    place = batch.target_x.clone().requires_grad_()
    mean = model(Batch(batch.context_x, batch.context_y, batch.context_mask, place,
                       batch.target_mask)).mean  # fmt: skip
    rows = [torch.autograd.grad(mean[..., k].sum(), place, retain_graph=True)[0] for k in (0, 1)]
    assert of_shear(torch.stack(rows, -2)[0, :, :, :2]) > 0.01


def test_targets_that_hear_each_other_are_asked_one_by_one():
    model, batch = made("msa"), drawn(targets=5)
    alone = stream_head.one_by_one(model)
    each = [stream_head.wind(alone, Batch(batch.context_x, batch.context_y, batch.context_mask,
                                          batch.target_x[:, k : k + 1], batch.target_mask[:, :1]),
                             UNITS).mean for k in range(5)]  # fmt: skip
    torch.testing.assert_close(stream_head.wind(alone, batch, UNITS).mean, torch.cat(each, 1))
    together = stream_head.wind(model, batch, UNITS).mean
    assert (together - torch.cat(each, 1)).abs().max() > 1e-4


def test_a_turning_disc_is_what_its_stream_function_says():
    def disc(batch):  # psi = (e^2 + n^2) / 2: u = -n, v = e
        return Prediction(batch.target_x[..., :2].square() / 2)

    batch = drawn()
    mean = stream_head.wind(disc, batch, torch.ones(2)).mean
    east, north = batch.target_x[..., 0], batch.target_x[..., 1]
    torch.testing.assert_close(mean, torch.stack((-north, east), -1))
    still = stream_head.wind(lambda _: Prediction(torch.zeros(1, 12, 2)), batch, torch.ones(2))
    assert not still.mean.any()


def test_it_learns_the_wind_of_a_vortex():
    seeds.everything(0)
    model = build("stream_function", {"mixing": "hyper"}, {"width": 16, "heads": 2, "layers": 1})
    adam = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for step in range(80):
        place = torch.randn(4, 40, 4, generator=seeds.torch_stream(1, step))
        wind = torch.stack((-place[..., 1], place[..., 0]), -1)
        mask = torch.ones(4, 20, dtype=torch.bool)
        batch = Batch(place[:, :20], wind[:, :20], mask, place[:, 20:], mask, wind[:, 20:])
        loss = model(batch).loss(batch.target_y).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-10:]) / 10 < 0.8 < losses[0]  # knowing nothing: 1.42 nats


def test_every_model_named_here_is_one():
    assert {"kernel", "kriging", "cnp", "tnp", "pseudo_tnp", *HEARING} <= set(names())
    assert model_class("stream_function").context == "recent"
