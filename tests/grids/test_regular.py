"""Fields of weather as grids: what is normalised gives the same grid, what is not is refused by
name."""

from pathlib import Path

import numpy as np
import pytest
import torch

from stages import seeds
from stages.errors import DataError
from stages.fields.grids.regular import regular

WHERE = Path("field.grib")
LAT, LON = np.linspace(-75, 75, 6), np.arange(12) * 30.0 - 180
FIELD = seeds.stream(0, "regular").standard_normal((6, 12))
NAMES = ("latitude", "longitude")


def same(one, other):
    assert one.sphere and other.sphere and torch.equal(one.mask, other.mask)
    assert all(map(torch.equal, one.axes, other.axes))
    assert torch.equal(one.values, other.values)


def test_directions_starts_and_orders_of_axes_do_not_matter():
    plain = regular(NAMES, LAT, LON, FIELD, WHERE)
    same(regular(NAMES, LAT[::-1], LON, FIELD[::-1], WHERE), plain)
    same(regular(("lon", "lat"), LAT, LON, FIELD.T, WHERE), plain)
    eastward = np.arange(12) * 30.0  # from Greenwich on: 0 to 330
    same(regular(NAMES, LAT, eastward, np.roll(FIELD, -6, 1), WHERE), plain)


def test_a_missing_value_is_masked_and_an_empty_field_refused():
    holed = FIELD.copy()
    holed[2, 3] = np.nan
    found = regular(NAMES, LAT, LON, holed, WHERE)
    assert not found.mask[0, 2, 3] and int(found.mask.sum()) == 71
    assert torch.isfinite(found.values).all()
    with pytest.raises(DataError, match="no value"):
        regular(NAMES, LAT, LON, np.full((6, 12), np.nan), WHERE)


def test_a_part_of_the_globe_is_no_sphere():
    assert not regular(NAMES, LAT, LON[:5], FIELD[:, :5], WHERE).sphere


def test_other_axes_missing_rows_and_other_shapes_are_refused_by_name():
    with pytest.raises(DataError, match="latitude and longitude"):
        regular(("x", "y"), LAT, LON, FIELD, WHERE)
    with pytest.raises(DataError, match="latitude is not evenly spaced"):
        regular(NAMES, np.delete(LAT, 2), LON, np.delete(FIELD, 2, 0), WHERE)
    with pytest.raises(DataError, match="rows and columns"):
        regular(NAMES, LAT, LON, FIELD[:5], WHERE)
    with pytest.raises(DataError, match="longitude is not evenly spaced"):
        regular(NAMES, LAT, np.r_[LON[:-1], LON[0]], FIELD, WHERE)
