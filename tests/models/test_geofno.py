"""GeoFNO: its counts of parameters, the whole model against explicit Fourier sums, and what its
means and its torus promise."""

import pytest
import torch
from torch.nn.functional import gelu

from stages.batches import single
from stages.errors import InputError
from stages.fields.models.geofno import GeoFNO

COUNTS = {
    (4, 8): (15707, 25947),
    (6, 8): (28507, 51547),
    (8, 12): (103063, 195223),
    (12, 32): (1540963, 3015523),
}


def geofno(x_dim=2, **arguments):
    torch.manual_seed(0)
    return GeoFNO(x_dim, 3, 1, **arguments)


def some(context=9, targets=4, x_dim=2):
    draw = torch.Generator().manual_seed(1)
    return single(
        torch.rand(context, x_dim, generator=draw),
        torch.randn(context, 3, generator=draw),
        torch.rand(targets, x_dim, generator=draw),
    )


@pytest.mark.parametrize("size", COUNTS, ids=str)
def test_parameters_with_a_complex_weight_counted_once_and_twice(size):
    with torch.device("meta"):
        model = GeoFNO(2, 3, 1, modes=size[0], width=size[1])
    twice = sum(value.numel() for value in model.parameters())
    spectral = sum(value.numel() for name, value in model.named_parameters() if value.dim() == 5)
    assert (twice - spectral // 2, twice) == COUNTS[size] and spectral == 5 * 2 * size[
        0
    ] ** 2 * size[1] ** 2 * 2


def waves(points, modes):
    """exp(2 pi i k xi) of every point (N, 2) and kept mode, (N, 2m, m)."""
    k1, k2 = torch.tensor([*range(modes), *range(-modes, 0)]), torch.arange(modes)
    return torch.exp(
        2j * torch.pi * (points[:, 0, None, None] * k1[:, None] + points[:, 1, None, None] * k2)
    )


def by_hand(model, x, y, targets):
    """The model with explicit sums over waves in the place of every Fourier transform; values
    (N, H) instead of grids."""
    low, high = model.extent

    def place(p):
        return model.deformation((p[None] - low) / (high - low))[0].detach()

    side, modes = model.side, model.modes
    nodes = torch.cartesian_prod(torch.arange(side) / side, torch.arange(side) / side)
    labels = torch.cartesian_prod(torch.linspace(0, 1, side), torch.linspace(0, 1, side))

    def mean(values, points):
        return values.cfloat() / max(1, len(points))

    def into(values, points):
        return torch.einsum("nh,njk->hjk", mean(values, points), waves(points, modes).conj())

    twice = torch.tensor([1.0] + [2.0] * (modes - 1))

    def out(series, points):
        return torch.einsum("hjk,njk->nh", series * twice, waves(points, modes)).real

    def matrix(layer, series):
        return torch.einsum("hjk,jkho->ojk", series, torch.complex(*layer.weight.unbind(-1)))

    def pointwise(layer, values):
        return values @ layer.weight[:, :, 0, 0].T + layer.bias

    values = model.lift(torch.cat((x, y), 1))
    grid = gelu(
        out(matrix(model.inward, into(values, place(x))), nodes)
        + pointwise(model.coordinates[0], labels)
    )
    for spectral, local, coordinates in zip(
        model.spectral, model.local, model.coordinates[1:], strict=True
    ):
        grid = gelu(
            out(matrix(spectral, into(grid, nodes)), nodes)
            + pointwise(local, grid)
            + pointwise(coordinates, labels)
        )
    seen = out(matrix(model.outward, into(grid, nodes)), place(targets)) + model.target(targets)
    return model.readout(gelu(model.hidden(seen)))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"extent": "symmetric", "layers": 1},
        {"modes": 4, "side": 8},
        {"x_dim": 3, "extent": "standard"},
    ],
    ids=str,
)
@pytest.mark.parametrize("context", [0, 1, 9])
def test_the_model_is_explicit_fourier_sums(arguments, context):
    arguments = {"modes": 2, "width": 4, "layers": 2, "side": 7, **arguments}
    model, batch = geofno(**arguments), some(context, x_dim=arguments.get("x_dim", 2))
    with torch.no_grad():
        for layer in (model.inward, model.outward, *model.spectral):
            layer.weight.mul_(
                4
            )  # as large as what stands beside it, or a mistake there would not show
        expected = by_hand(model, batch.context_x[0], batch.context_y[0], batch.target_x[0])
        torch.testing.assert_close(model(batch).mean[0], expected, atol=1e-5, rtol=1e-5)


def test_the_same_context_said_twice_says_no_more():
    model, batch = geofno(), some()
    twice = single(
        batch.context_x[0].repeat(2, 1), batch.context_y[0].repeat(2, 1), batch.target_x[0]
    )
    torch.testing.assert_close(model(twice).mean, model(batch).mean, atol=1e-6, rtol=1e-6)


def test_positions_of_another_extent_are_brought_to_the_unit_square_before_they_are_bent():
    unit, symmetric = geofno(), geofno(extent="symmetric")
    places = torch.rand(1, 6, 2)
    seen = []
    for model, x in ((unit, places), (symmetric, 2 * places - 1)):
        model.deformation.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        model(single(x[0], torch.zeros(6, 3), x[0]))
    assert len(seen) == 4
    for value in seen:
        torch.testing.assert_close(value, places, atol=1e-6, rtol=1e-6)


def test_the_deformation_has_a_rate_of_its_own():
    names = [name for name, _ in geofno().named_parameters() if name.startswith("deformation")]
    assert geofno().rates == {"deformation": 1e-4} and len(names) == 12


@pytest.mark.parametrize("arguments", [{"x_dim": 1}, {"modes": 5, "side": 9}], ids=str)
def test_what_has_no_plane_or_too_many_modes_is_refused(arguments):
    with pytest.raises(InputError, match="axes"):
        geofno(**arguments)
