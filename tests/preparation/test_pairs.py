"""Pairs against masks over all rows, in original units: which rows are context, which are
targets, and what they hold."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_sky import SETTINGS, START_S, prepared, winds

from stages.errors import DataError, ParamsError
from stages.winds.pairs import Pairs


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    """Thirteen hours, over a midnight UTC (2020-09-14 00:00 is 11 h 33 min after the start),
    with truth."""
    folder = tmp_path_factory.mktemp("pairs")
    prepared(winds(hours=13, truth=True), folder)
    return Pairs.open(folder), pl.read_parquet(folder / "rows.parquet")


def by_mask(rows: pl.DataFrame, meta: dict, j: int, context: str, lead: float) -> np.ndarray:
    """Context row numbers by asking every row."""
    t, start = rows["t_s"].to_numpy(), meta["t0_s"] + 60.0 * j
    if context == "day":
        return np.flatnonzero(rows["t_s"].cast(pl.Int64) // 86400 == int(start) // 86400)
    length = {"slice": 60.0, "hour": 3600.0}[context]
    return np.flatnonzero((t >= start - lead - length) & (t < start - lead))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 770),
    st.sampled_from(["slice", "hour", "day"]),
    st.one_of(st.none(), st.integers(1, 9000), st.floats(0.5, 7200)),
)
def test_pair_is_what_a_mask_over_all_rows_finds(sky, j, context, lead):
    pairs, rows = sky
    pair = pairs.pair(j, context, lead_s=lead)
    expected = by_mask(rows, pairs.meta, j, context, SETTINGS.lead_s if lead is None else lead)
    targets = np.flatnonzero(rows["slice"] == j)
    assert np.array_equal(pair.context_rows, expected)
    assert np.array_equal(pair.target_rows, targets)
    assert pair.target_rows.dtype == pair.context_rows.dtype == np.int64
    scaler = pairs.meta["scaler"]
    for found, source, names, axis in (
        (pair.context_x, expected, ("lat_deg", "lon_deg", "alt_ft"), "x"),
        (pair.context_y, expected, ("u_m_s", "v_m_s"), "y"),
        (pair.target_x, targets, ("lat_deg", "lon_deg", "alt_ft"), "x"),
        (pair.target_y, targets, ("u_m_s", "v_m_s"), "y"),
        (pair.target_true, targets, ("u_true_m_s", "v_true_m_s"), "y"),
    ):
        assert found.dtype == np.float32
        assert found.shape == (len(source), len(names))
        back = found.astype(np.float64) * scaler[f"{axis}_std"] + scaler[f"{axis}_mean"]
        np.testing.assert_allclose(
            back, rows[source].select(names).to_numpy(), rtol=1e-5, atol=1e-3
        )
    if context != "day" and len(expected) and len(targets):
        gap = rows["t_s"][targets].min() - rows["t_s"][expected].max()
        assert gap > (SETTINGS.lead_s if lead is None else lead) - 1e-6


def test_day_knows_no_lead_and_ends_at_midnight_utc(sky):
    pairs, rows = sky
    before, after = pairs.pair(690, "day"), pairs.pair(700, "day")
    assert before.context_rows[-1] + 1 == after.context_rows[0]
    assert (
        rows["t_s"][int(after.context_rows[0])]
        >= 1_600_041_600.0
        > rows["t_s"][int(before.context_rows[-1])]
    )
    assert np.array_equal(pairs.pair(690, "day", lead_s=60.0).context_y, before.context_y)
    assert len(before.context_rows) + len(after.context_rows) == rows.height


def test_targets_are_the_splits_slices_and_have_context(sky):
    pairs, _ = sky
    for split in ("train", "val", "test"):
        found = pairs.targets(split)
        assert found == sorted(found) == pairs.meta["slices"][split]
        for j in found:
            pair = pairs.pair(j)
            assert len(pair.target_rows) > 0
            assert len(pair.context_rows) > 0


def test_training_rows_are_standard(sky):
    """Rows counted once: mean 0 and deviation 1 over the rows the scaler was fitted on."""
    pairs, _ = sky
    made = [pairs.pair(j) for j in pairs.targets("train")]
    numbers, first = np.unique(
        np.concatenate([rows for p in made for rows in (p.target_rows, p.context_rows)]),
        return_index=True,
    )
    values = np.concatenate([y for p in made for y in (p.target_y, p.context_y)])[first]
    assert len(numbers) > 500
    np.testing.assert_allclose(values.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(values.std(0), 1, atol=1e-5)


def test_empty_context_at_another_lead_is_empty(sky):
    pairs, _ = sky
    pair = pairs.pair(1, "slice", lead_s=7200.0)
    assert pair.context_x.shape == (0, 3)
    assert pair.context_y.shape == (0, 2)
    assert len(pair.target_rows) > 0


def test_no_truth_but_in_a_simulation(tmp_path):
    prepared(winds(), tmp_path)
    assert Pairs.open(tmp_path).pair(20).target_true is None


@pytest.mark.parametrize("lead", [0.0, -60.0, float("nan")])
def test_a_lead_must_leave_the_target_ahead(sky, lead):
    with pytest.raises(ParamsError, match="lead must be positive"):
        sky[0].pair(20, lead_s=lead)


def test_unknown_words(sky):
    with pytest.raises(ParamsError, match="train | val | test"):
        sky[0].targets("dev")
    with pytest.raises(ParamsError, match="slice | hour | day"):
        sky[0].pair(20, "minute")


def test_folder_that_does_not_fit_together(tmp_path):
    prepared(winds(), tmp_path)
    rows = tmp_path / "rows.parquet"
    pl.read_parquet(rows)[:-1].write_parquet(rows)
    with pytest.raises(DataError, match="do not belong together"):
        Pairs.open(tmp_path)
    rows.unlink()
    with pytest.raises(DataError, match="a file is missing"):
        Pairs.open(tmp_path)


def test_start_is_what_the_comments_say():
    assert START_S + 11 * 3600 + 33 * 60 == 1_600_041_600.0
