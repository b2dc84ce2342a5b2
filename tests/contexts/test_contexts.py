"""Local contexts: the neighbours brute force finds, nothing of the future, and the same whether
computed beforehand, in one go or in two."""

import math
import os
import signal

import numpy as np
import pytest
import torch

from stages import files, params
from stages.errors import DataError
from stages.layers.local import weights
from stages.winds.contexts import cache
from stages.winds.contexts.dealt import dealt
from stages.winds.contexts.given import Contexts
from stages.winds.pairs import Pairs

SETTINGS = params.Contexts(
    method="linear", places=6, horizontal_km=80.0, vertical_km=1.5, time_min=20.0
)
SLICES, POINTS, LEAD = 30, 9, 4


class Asking:
    """A model's wishes."""

    def __init__(self, context="neighbours", places=6, scale=None, window_s=600.0):
        self.context, self.places, self.scale, self.window_s = context, places, scale, window_s

    def metric(self, target_x):
        return self.scale


@pytest.fixture
def pairs():
    draw = np.random.default_rng(3)
    n = SLICES * POINTS
    columns = {
        "lat_deg": draw.uniform(44, 49, n),
        "lon_deg": draw.uniform(4, 10, n),
        "alt_ft": draw.uniform(2e4, 4e4, n),
        "u_m_s": draw.normal(0, 10, n),
        "v_m_s": draw.normal(5, 10, n),
    }
    columns = {name: value.astype(np.float32) for name, value in columns.items()}
    t_s = 1.7e9 + np.sort(60.0 * np.repeat(np.arange(SLICES), POINTS) + draw.uniform(0, 59.9, n))
    t_s[5 * POINTS] = (
        1.7e9 + 300.0
    )  # exactly on a border: the first moment of slice 5, not known at 300 s
    meta = {
        "t0_s": 1.7e9,
        "slice_s": 60,
        "lead_s": 60 * LEAD,
        "columns_x": ["lat_deg", "lon_deg", "alt_ft"],
        "truth": False,
        "kept": n,
        "scaler": {
            "x_mean": [46.5, 7.0, 3e4],
            "x_std": [1.5, 1.7, 5e3],
            "y_mean": [0.5, 5.0],
            "y_std": [10.0, 9.0],
        },
        "slices": {
            "train": list(range(5, 20)),
            "val": list(range(22, 26)),
            "test": list(range(27, 30)),
        },
    }
    return Pairs(meta, t_s, columns)


def places_km(pairs):
    """East, north and up in km and time in minutes, written down from the definition."""
    lat, lon, alt = pairs.places().T
    degree = math.pi / 180 * 6371.0088
    return np.stack(
        [
            (lon - 7.0) * degree * math.cos(math.radians(46.5)),
            (lat - 46.5) * degree,
            (alt - 3e4) * 0.3048e-3,
            (pairs.t_s - 1.7e9) / 60,
        ],
        1,
    )


def brute(pairs, slice, lead_min, lengths, k):
    """Row sets of the k nearest of each target among rows measured before the forecast was
    issued."""
    at = places_km(pairs) / np.array([lengths[0], lengths[0], lengths[1], lengths[2]])
    known = np.flatnonzero(pairs.t_s < 1.7e9 + 60 * (slice - lead_min))
    targets = np.flatnonzero(
        (pairs.t_s >= 1.7e9 + 60 * slice) & (pairs.t_s < 1.7e9 + 60 * slice + 60)
    )
    square = ((at[targets, None] - at[None, known]) ** 2).sum(-1)
    return [set(known[row].tolist()) for row in np.argsort(square, 1, kind="stable")[:, :k]]


@pytest.mark.parametrize(
    "method", ["linear", "kdtree", "forest", "trajectory", "boxes", "compiled"]
)
@pytest.mark.parametrize(
    ("lead", "lengths", "k"),
    [(None, None, 6), (2, (30.0, 3.0, 5.0), 9), (1, (300.0, 0.2, 60.0), 400)],
)
def test_neighbours_are_those_of_brute_force_and_known_when_the_forecast_is_issued(
    pairs, method, lead, lengths, k
):
    contexts = Contexts(pairs, SETTINGS.model_copy(update={"method": method}))
    scale = None if lengths is None else weights(*lengths)
    for j in (5, 9, 28):
        given = contexts.given(
            j, Asking(places=k, scale=scale), None if lead is None else 60.0 * lead
        )
        expected = brute(pairs, j, LEAD if lead is None else lead, lengths or (80.0, 1.5, 20.0), k)
        assert [set(row[row >= 0].tolist()) for row in given.context_rows] == expected
        assert all(
            len(set(row[row >= 0].tolist())) == (row >= 0).sum() for row in given.context_rows
        )
        assert (
            given.batch.context_x[..., 3][given.batch.context_mask].max()
            < 0
            <= given.batch.target_x[..., 3].min()
        )


def test_a_row_measured_at_the_issue_time_itself_is_not_known(pairs):
    row = 5 * POINTS
    now = Contexts(pairs, SETTINGS).given(5 + LEAD, Asking(places=400)).context_rows
    later = Contexts(pairs, SETTINGS).given(6 + LEAD, Asking(places=400)).context_rows
    assert row not in now and row - 1 in now and row in later


def test_a_metric_for_each_target(pairs):
    scale = torch.stack([weights(30.0 + 20 * i, 1.0, 10.0) for i in range(POINTS)])
    found = Contexts(pairs, SETTINGS).given(12, Asking(places=5, scale=scale)).context_rows
    expected = [brute(pairs, 12, LEAD, (30.0 + 20 * i, 1.0, 10.0), 5)[i] for i in range(POINTS)]
    assert [set(row.tolist()) for row in found] == expected


def test_of_each_cell_of_space_and_time_the_first_row_alone_is_a_neighbour(pairs):
    thin = params.Cell(horizontal_km=150.0, vertical_km=2.0, time_min=4.0)
    firsts: dict[tuple, int] = {}
    at = places_km(pairs)
    at[:, 3] -= at[0, 3]  # cells of time begin with the first row
    for row, cell in enumerate(np.floor(at / [150.0, 150.0, 2.0, 4.0]).astype(int).tolist()):
        firsts.setdefault(tuple(cell), row)
    kept = sorted(firsts.values())
    assert 50 < len(kept) < len(pairs.t_s) - 50
    contexts = Contexts(pairs, SETTINGS.model_copy(update={"thin": thin}))
    assert contexts.nearby.kept.tolist() == kept
    found = contexts.given(14, Asking(places=400)).context_rows
    known = [row for row in kept if pairs.t_s[row] < 1.7e9 + 60 * (14 - LEAD)]
    assert all(sorted(row[row >= 0].tolist()) == known for row in found)
    nearest = contexts.given(14, Asking(places=3, scale=weights(80.0, 1.5, 20.0))).context_rows
    ranked = brute(pairs, 14, LEAD, (80.0, 1.5, 20.0), 400)
    assert all(set(row.tolist()) <= {*known} & of for row, of in zip(nearest, ranked, strict=True))


def test_the_batch_tells_where_when_and_what(pairs):
    given = Contexts(pairs, SETTINGS).given(14, Asking())
    batch, km = given.batch, places_km(pairs)
    assert (
        batch.context_x.shape == (POINTS, 6, 4)
        and batch.target_x.shape == (POINTS, 1, 4)
        and batch.target_y.shape == (POINTS, 1, 2)
    )
    issue_min = 14 - LEAD
    local = (km - [0, 0, 0, issue_min]) / [100, 100, 1, 60]
    np.testing.assert_allclose(batch.context_x.numpy(), local[given.context_rows], atol=2e-6)
    np.testing.assert_allclose(batch.target_x[:, 0].numpy(), local[given.target_rows], atol=2e-6)
    wind = np.stack([pairs._y[0], pairs._y[1]], 1)
    np.testing.assert_allclose(
        batch.context_y.numpy(), ((wind - [0.5, 5.0]) / [10.0, 9.0])[given.context_rows], atol=1e-6
    )
    np.testing.assert_allclose(batch.target_y[:, 0].numpy(), pairs.pair(14).target_y, atol=1e-6)


def test_recent_is_one_set_of_the_last_time_and_slices_are_as_ever(pairs):
    contexts = Contexts(pairs, SETTINGS)
    given = contexts.given(14, Asking("recent", window_s=180.0))
    expected = np.flatnonzero((pairs.t_s >= 1.7e9 + 60 * 7) & (pairs.t_s < 1.7e9 + 60 * 10))
    assert given.context_rows.tolist() == [expected.tolist()] and given.batch.target_x.shape == (
        1,
        POINTS,
        4,
    )
    assert (
        len(contexts.given(14, Asking("recent", window_s=math.inf)).context_rows[0]) == 10 * POINTS
    )
    pair, plain = pairs.pair(14, "slice"), contexts.given(14, Asking("slice"))
    assert (
        torch.equal(plain.batch.context_x[0], torch.tensor(pair.context_x))
        and plain.context_rows[0].tolist() == pair.context_rows.tolist()
    )


def test_before_any_measurement_there_is_no_context(pairs):
    given = Contexts(pairs, SETTINGS).given(5, Asking(), lead_s=3600.0)
    assert (
        (given.context_rows == -1).all()
        and not given.batch.context_mask.any()
        and not given.batch.context_y.any()
    )


def test_shuffling_deals_a_sets_values_to_its_own_points(pairs):
    given = Contexts(pairs, SETTINGS).given(6, Asking("slice"))
    mixed = dealt(given, np.random.default_rng(0))
    before, after = given.batch.context_y[0], mixed.batch.context_y[0]
    assert torch.equal(mixed.batch.context_x, given.batch.context_x)
    assert not torch.equal(before, after) and sorted(before.tolist()) == sorted(after.tolist())


@pytest.mark.parametrize(("slice", "places"), [(6, 25), (14, 3)])  # padded sets; few of many rows
def test_shuffling_deals_local_values_among_all_rows_that_are_read(pairs, slice, places):
    """A row has one dealt wind, some other row's, in every set; padding stays empty."""
    given = Contexts(pairs, SETTINGS).given(slice, Asking(places=places))
    mixed, rows = dealt(given, np.random.default_rng(0)), given.context_rows
    assert torch.equal(mixed.batch.context_x, given.batch.context_x)
    assert torch.equal(mixed.batch.context_mask, given.batch.context_mask)
    assert not mixed.batch.context_y[~given.batch.context_mask].any()
    read = np.unique(rows[rows >= 0])
    winds = {tuple(wind): row for row, wind in zip(read, pairs.winds(read).tolist(), strict=True)}
    to = {}
    for row, wind in zip(rows[rows >= 0], mixed.batch.context_y[rows >= 0].tolist(), strict=True):
        assert to.setdefault(row, winds[tuple(wind)]) == winds[tuple(wind)]
    assert sorted(to) == sorted(to.values()) == read.tolist()
    assert sum(a != b for a, b in to.items()) > len(read) / 2


def test_the_mean_of_a_targets_neighbours_errs_more_when_winds_are_dealt(pairs):
    """Among its own neighbours alone winds may change places, and no mean of them changes."""
    given = Contexts(pairs, SETTINGS).given(14, Asking(places=6))
    own, every = given.shuffled(np.random.default_rng(0)), dealt(given, np.random.default_rng(0))
    plain = given.batch.context_y.mean(1)
    assert torch.allclose(own.batch.context_y.mean(1), plain, atol=1e-6)
    assert not torch.allclose(every.batch.context_y.mean(1), plain, atol=0.1)


def folder_of(pairs, where, settings=SETTINGS):
    cache.compute(pairs, settings, where / "work", where / "final")
    return where / "final"


def test_what_was_computed_beforehand_is_what_would_be_found_now(pairs, tmp_path, monkeypatch):
    contexts = Contexts(
        pairs, SETTINGS, cache.Cache.open(folder_of(pairs, tmp_path), pairs, SETTINGS)
    )
    fresh = [
        Contexts(pairs, SETTINGS).given(j, Asking(places=4)).context_rows
        for j in pairs.targets("train")
    ]
    asked = []
    monkeypatch.setattr(
        "stages.winds.contexts.nearby.Nearby.neighbours",
        lambda self, *given: asked.append(given) or np.zeros((POINTS, 4), int),
    )
    assert all(
        (contexts.given(j, Asking(places=4)).context_rows == rows).all()
        for j, rows in zip(pairs.targets("train"), fresh, strict=True)
    )
    assert not asked
    for j, model, lead in (
        (22, Asking(places=4), None),
        (6, Asking(places=4), 120.0),
        (6, Asking(places=7), None),
        (6, Asking(places=4, scale=weights(1.0, 1.0, 1.0)), None),
    ):  # not training, another lead, more places, own metric
        contexts.given(j, model, lead)
    assert len(asked) == 4


def test_a_killed_run_is_continued_and_gives_the_same_bytes(pairs, tmp_path, monkeypatch):
    whole = folder_of(pairs, tmp_path / "whole")
    monkeypatch.setattr(cache, "CHUNK", 3 * POINTS)
    pid = os.fork()
    if not pid:
        os.environ["FAULT"] = "contexts:2"
        try:
            folder_of(pairs, tmp_path / "killed")
        finally:
            os._exit(0)
    assert (
        os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        and not (tmp_path / "killed/final").exists()
    )
    seen = []
    plain = cache.Nearby.neighbours
    monkeypatch.setattr(
        cache.Nearby, "neighbours", lambda self, *given: seen.append(given) or plain(self, *given)
    )
    assert files.read_json(tmp_path / "killed/work/progress.json") == {"slices": 6}
    again = folder_of(pairs, tmp_path / "killed")
    assert len(seen) == len(pairs.targets("train")) - 6
    for name in (cache.NAME, "contexts.json"):
        assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_contexts_of_other_data_or_another_metric_are_refused(pairs, tmp_path):
    folder = folder_of(pairs, tmp_path)
    with pytest.raises(DataError, match=r"(?s)do not belong to this data.*time_min 20"):
        cache.Cache.open(folder, pairs, SETTINGS.model_copy(update={"time_min": 21.0}))
    np.save(folder / cache.NAME, np.zeros((3, 6), np.int32))
    with pytest.raises(DataError, match="not whole"):
        cache.Cache.open(folder, pairs, SETTINGS)
