"""Recalibrated spreads: they hold what they say on winds like those of the validation minutes, and
rest on these alone."""

import shutil

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from stages.winds import measure
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.recalibration import ALL, LEAST, Recalibration, quantile


def drawn(rng, count, sd=3.0):
    """Errors of `count` winds around predictions of 0."""
    return np.zeros((count, 2)), rng.normal(0, sd, (count, 2))


@pytest.mark.parametrize("count", [1, 8, 9, 10, 19, 200])
def test_the_quantile_is_that_of_the_definition(count):
    scores = np.random.default_rng(count).exponential(size=count)
    held = [one for one in sorted(scores) if (scores <= one).sum() >= 0.9 * (count + 1)]
    assert quantile(scores) == (held[0] if held else scores.max())


@pytest.mark.parametrize("given", [0.5, 3.0, 20.0, None])
def test_whatever_the_model_says_the_interval_holds_nine_in_ten(given):
    """The theorem: of exchangeable scores 0.9 to 0.9 + 1/(n + 1), over draws of both sets."""
    rng, held, count = np.random.default_rng(3), [], 60
    for _ in range(400):
        scale = None if given is None else np.full((count, 2), given)
        bins = np.full(count, "000-005 km")
        made = Recalibration.fit(*drawn(rng, count), scale, bins)
        _, measured = drawn(rng, 500)
        spread = made.spread(
            None if given is None else np.full((500, 2), given), np.full(500, "000-005 km")
        )
        held.append((np.abs(measured) <= norm.ppf(0.95) * spread).mean())
    error = np.std(held) / 20
    assert 0.9 - 3 * error <= np.mean(held) <= 0.9 + 1 / (2 * count + 1) + 3 * error


def test_each_distance_has_its_factor_and_one_with_few_winds_that_of_all():
    rng = np.random.default_rng(0)
    near, far, few = drawn(rng, 400, 1.0), drawn(rng, 400, 4.0), drawn(rng, LEAST // 2 - 1, 30.0)
    predicted, measured = (np.concatenate(parts) for parts in zip(near, far, few, strict=True))
    bins = np.repeat(["near", "far", "few"], [400, 400, len(few[0])])
    made = Recalibration.fit(predicted, measured, np.ones_like(predicted), bins)
    assert set(made.factors) == {ALL, "near", "far"} and made.counts["near"] == 800
    assert made.factors["near"] == pytest.approx(1.0, rel=0.1)
    assert made.factors["far"] == pytest.approx(4.0, rel=0.1)
    spread = made.spread(np.full((4, 2), 2.0), np.array(["near", "far", "few", "never seen"]))
    assert (
        spread[:, 0].tolist() == [2 * made.factors[name] for name in ("near", "far", ALL, ALL)]
        and (spread[:, 0] == spread[:, 1]).all()
    )


def test_what_is_written_reads_back():
    made = Recalibration.fit(
        *drawn(np.random.default_rng(1), 300), None, np.repeat(["a", "b"], 150)
    )
    assert Recalibration.read(made.entry(own=False)) == made
    assert {one["unit"] for one in made.entry(own=False).values()} == {"m/s"}
    assert {one["unit"] for one in made.entry(own=True).values()} == {"1"}


def evaluated(airspace, settings, cell):
    """The entry of a cell of the toy airspace."""
    asked = Settings((10,), 0, settings.contexts)
    prepared = airspace / "data/mini/prepared/toy"
    return measure.cell(airspace / "reports/wind_nowcast/mini/runs/toy" / cell, prepared, asked)


def test_nothing_is_recalibrated_by_a_few_minutes(airspace, settings):
    entry = evaluated(airspace, settings, "kriging")
    assert "recalibration" not in entry and "coverage_90_recalibrated" not in entry["metrics"]
    assert entry["metrics"]["rmse_component_val_kn"]["value"] > 0


def test_an_evaluation_recalibrates_by_the_validation_minutes(airspace, settings, monkeypatch):
    monkeypatch.setattr(measure, "MINUTES", 5)
    entry = evaluated(airspace, settings, "kriging")
    data = EvaluationData.open(
        airspace / "data/mini/prepared/toy", Settings((10,), 0, settings.contexts)
    )
    assert not set(data.rows["slice"]) & set(data.validation.rows["slice"])
    assert entry["recalibration"][ALL]["n"] == 2 * len(data.validation.rows)
    assert 0.5 < entry["metrics"]["coverage_90_recalibrated"]["value"] < 1
    assert entry["metrics"]["spread_recalibrated_m_s"]["value"] > 0


def test_the_test_winds_do_not_move_the_factors(airspace, settings, monkeypatch, tmp_path):
    monkeypatch.setattr(measure, "MINUTES", 5)
    before = evaluated(airspace, settings, "kernel")
    shutil.copytree(airspace, tmp_path / "again")
    path = tmp_path / "again/data/mini/prepared/toy/rows.parquet"
    rows = pl.read_parquet(path)
    last = pl.col("t_s") >= rows["t_s"].min() + 3660  # the test minutes
    rows.with_columns(u_m_s=pl.when(last).then(pl.col("u_m_s") + 40).otherwise("u_m_s")).select(
        rows.columns
    ).write_parquet(path)
    after = evaluated(tmp_path / "again", settings, "kernel")
    assert after["recalibration"] == before["recalibration"]
    assert after["metrics"]["rmse_component_kn"] != before["metrics"]["rmse_component_kn"]
    names = [name for name in before["metrics"] if "_val_" in name]
    assert len(names) == 4
    assert {name: after["metrics"][name] for name in names} == {
        name: before["metrics"][name] for name in names
    }
