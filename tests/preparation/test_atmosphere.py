"""The standard atmosphere against its published table, an integration of hydrostatics, and an
aircraft's own instruments."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from stages.winds.decoding import atmosphere

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data"))
FOOT_M = 0.3048


@pytest.mark.parametrize(
    ("height_m", "kelvin", "pascal"),
    [
        (-1000, 294.65, 113_929),
        (0, 288.15, 101_325),
        (5000, 255.65, 54_019.9),
        (10_000, 223.15, 26_436.3),
        (11_000, 216.65, 22_632.1),
        (15_000, 216.65, 12_044.6),
        (20_000, 216.65, 5_474.88),
    ],
)
def test_table_of_the_standard(height_m, kelvin, pascal):
    assert atmosphere.temperature_k(height_m / FOOT_M) == pytest.approx(kelvin, abs=1e-9)
    assert atmosphere.pressure_pa(height_m / FOOT_M) == pytest.approx(pascal, rel=2e-5)


def test_pressure_is_hydrostatic():
    for height_m in (3000.0, 11_000.0, 18_500.0):
        column, _ = quad(
            lambda z: 9.80665 / (287.05287 * (288.15 - 0.0065 * min(z, 11_000))),
            0,
            height_m,
            points=[11_000],
        )
        assert atmosphere.pressure_pa(height_m / FOOT_M) == pytest.approx(
            101_325 * np.exp(-column), rel=1e-9
        )


def test_airspeed_solves_the_pitot_equation():
    for cas_kt, alt_ft in ((150.0, 3000.0), (280.0, 35_000.0), (250.0, 45_000.0)):

        def impact(speed_m_s, pressure_pa, temperature_k):
            return pressure_pa * ((1 + speed_m_s**2 / (7 * 287.05287 * temperature_k)) ** 3.5 - 1)

        pressure, temperature = (
            float(atmosphere.pressure_pa(alt_ft)),
            float(atmosphere.temperature_k(alt_ft)),
        )
        wanted = impact(cas_kt * 1852 / 3600, 101_325, 288.15)
        true = brentq(
            lambda v: impact(v, pressure, temperature) - wanted,  # noqa: B023 (called at once)
            1,
            400,
        ) / (1852 / 3600)
        assert atmosphere.tas_from_cas(cas_kt, alt_ft) == pytest.approx(true, rel=1e-10)


@settings(deadline=None, database=None)
@given(st.floats(60, 400), st.floats(0, 45_000))
def test_mach_and_calibrated_airspeed_are_inverse(cas_kt, alt_ft):
    mach = atmosphere.mach_from_cas(cas_kt, alt_ft)
    assert atmosphere.cas_from_mach(mach, alt_ft) == pytest.approx(cas_kt, rel=1e-9)
    assert atmosphere.tas_from_mach(mach, alt_ft) >= cas_kt * (
        1 - 1e-12
    )  # never slower than the sea-level reading


def test_outside_the_standard_there_is_no_answer():
    assert np.isnan(
        atmosphere.tas_from_cas([250, -1, np.nan, 250], [70_000, 100, 100, -20_000])
    ).all()


def test_an_aircrafts_own_computer_agrees():
    """The laboratory aircraft records calibrated and true airspeed and Mach: Mach needs no
    temperature and must agree closely."""
    path = MIRROR / "mode-s/openap/phlab_20170320_08.csv"
    if not path.exists():
        pytest.skip("shared/data/mode-s/openap is not here")
    rows = (
        pl.read_csv(path, infer_schema_length=None)
        .select("cas", "mach", "alt", "tas")
        .cast(pl.Float64)
        .drop_nulls()
    )
    rows = rows.filter(pl.col("cas") > 120)
    assert len(rows) > 4000
    cas, mach, alt, tas = rows.to_numpy().T
    assert np.abs(atmosphere.mach_from_cas(cas, alt) - mach).max() < 0.01
    assert (
        np.median(np.abs(atmosphere.tas_from_cas(cas, alt) - tas)) < 3.0
    )  # kn; the day was not a standard day
