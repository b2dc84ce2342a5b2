"""Drift: the statistics are the textbook's to the resolution of the summary, and thresholds say
what they mean."""

import numpy as np
import pytest
from scipy import stats

from stages.errors import ParamsError
from stages.params import Drift
from stages.winds.retraining import drift

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(20, 8, 5000)
PAIRS = {
    "the same values": (NORMAL, NORMAL.copy()),
    "another draw": (NORMAL, RNG.normal(20, 8, 700)),
    "shifted": (NORMAL, RNG.normal(26, 8, 900)),
    "wider": (NORMAL, RNG.normal(20, 16, 900)),
    "apart": (NORMAL, RNG.normal(500, 1, 300)),
    "steps of 25 ft": (RNG.integers(400, 480, 4000) * 25.0, RNG.integers(420, 500, 600) * 25.0),
    "few levels": (
        RNG.choice([1.0, 2.0, 5.0], 3000, p=[0.5, 0.3, 0.2]),
        RNG.choice([1.0, 2.0, 5.0, 9.0], 400),
    ),
    "a constant against spread": (np.full(500, 3.0), RNG.normal(3, 1, 200)),
    "skewed": (RNG.exponential(3, 6000), RNG.exponential(4, 50)),
    "one new value": (NORMAL, np.array([21.0])),
}


@pytest.mark.parametrize("case", PAIRS)
def test_kolmogorov_smirnov_is_scipys_to_the_resolution_of_the_summary(case):
    f, g = PAIRS[case]
    assert drift.kolmogorov_smirnov(drift.summary(f), g) == pytest.approx(
        stats.ks_2samp(f, g).statistic, abs=1 / 200 + 1 / len(f)
    )


@pytest.mark.parametrize("case", PAIRS)
def test_the_wasserstein_distance_is_scipys_to_the_resolution_of_the_summary(case):
    f, g = PAIRS[case]
    known = drift.summary(f)
    unit = known["sd"] or 1.0
    resolution = np.ptp(f) / 200 + (np.ptp(f) + np.ptp(g)) / drift.STRIPS
    assert drift.wasserstein_sd(known, g) == pytest.approx(
        stats.wasserstein_distance(f, g) / unit, abs=resolution / unit
    )


def test_a_shift_by_one_standard_deviation_is_one():
    known = drift.summary(NORMAL)
    assert drift.wasserstein_sd(known, NORMAL + NORMAL.std()) == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize("case", PAIRS)
def test_the_stability_index_is_the_sum_over_counted_deciles(case):
    f, g = PAIRS[case]
    edges = sorted(set(np.quantile(f, np.arange(1, 10) / 10)))
    total = 0.0
    for low, high in zip([-np.inf, *edges], [*edges, np.inf], strict=True):
        a, b = (max(1e-4, np.mean((x > low) & (x <= high))) for x in (f, g))
        total += (b - a) * np.log(b / a)
    assert drift.stability_index(drift.summary(f), g) == pytest.approx(total)


@pytest.mark.parametrize("statistic", drift.STATISTICS)
def test_every_statistic_is_zero_of_the_same_values_and_grows_as_they_move_away(statistic):
    known, of = drift.summary(NORMAL), drift.STATISTICS[statistic]
    found = [of(known, NORMAL + shift) for shift in (0.0, 2.0, 6.0, 12.0)]
    assert found == sorted(found) and found[0] == pytest.approx(0, abs=0.006) and found[-1] > 0.4


def test_the_stability_index_never_exceeds_what_ten_bins_and_the_floor_allow():
    """All new rows in one decile: 0.9 ln 10 there, and 9 times (0.1 - FLOOR) ln(0.1 / FLOOR)."""
    most = 0.9 * np.log(10) + 9 * (0.1 - drift.FLOOR) * np.log(0.1 / drift.FLOOR)
    assert (
        drift.stability_index(drift.summary(NORMAL), np.full(100, 1e6))
        == pytest.approx(most, rel=1e-3)
        and most < 8.3
    )


def rows(n: int = 3000, seed: int = 0, u: float = 0.0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    draw = np.random.default_rng(seed)
    t_s = 1.7e9 + np.sort(draw.uniform(0, 7200, n))
    return t_s, {
        "u_m_s": draw.normal(u, 1, n),
        "v_m_s": draw.normal(0, 1, n),
        "lat_deg": draw.uniform(44, 49, n),
        "lon_deg": draw.uniform(4, 9, n),
        "alt_ft": draw.uniform(2e4, 4e4, n),
    }


def test_what_is_watched_is_wind_speed_place_and_how_many_winds_a_minute():
    t_s = np.array([0.0, 10, 59, 60, 185])
    table = {name: np.arange(5.0) for name in ("u_m_s", "v_m_s", "lat_deg", "lon_deg", "alt_ft")}
    found = drift.columns(t_s, table, 60.0)
    assert list(found) == [
        "u_m_s",
        "v_m_s",
        "speed_m_s",
        "lat_deg",
        "lon_deg",
        "alt_ft",
        "winds_per_min",
    ]
    assert found["winds_per_min"].tolist() == [3, 1, 1] and found["speed_m_s"] == pytest.approx(
        np.sqrt(2) * np.arange(5)
    )
    assert drift.columns(t_s, table, 30.0)["winds_per_min"].tolist() == [4, 2, 2, 2]


def test_a_planted_drift_is_named_by_column_and_statistic_and_nothing_else_is():
    thresholds = {
        name: Drift(warn=warn, refuse=refuse)
        for name, warn, refuse in (
            ("kolmogorov_smirnov", 0.25, 0.99),
            ("wasserstein_sd", 0.5, 2.5),
            ("stability_index", 0.5, 8.2),
        )
    }
    known = drift.reference(drift.columns(*rows(), 60.0))
    same = drift.compare(known, drift.columns(*rows(seed=1), 60.0), thresholds)
    assert (
        same["state"] == "steady"
        and same["drifted"] == same["broken"] == []
        and same["rows"] == {"reference": 3000, "new": 3000}
    )
    moved = drift.compare(known, drift.columns(*rows(seed=1, u=1.5), 60.0), thresholds)
    assert (
        moved["state"] == "drifted"
        and {line.split()[0] for line in moved["drifted"]} == {"u_m_s", "speed_m_s"}
        and not moved["broken"]
    )
    assert moved["columns"]["u_m_s"]["wasserstein_sd"] == {
        "value": pytest.approx(1.5, abs=0.1),
        "state": "drifted",
    }
    far = drift.compare(known, drift.columns(*rows(seed=1, u=9), 60.0), thresholds)
    assert far["state"] == "broken" and any(
        line.startswith("u_m_s wasserstein_sd") for line in far["broken"]
    )


@pytest.mark.parametrize(
    ("value", "state"),
    [(0.0, "steady"), (1.0, "steady"), (1.01, "drifted"), (2.0, "drifted"), (2.01, "broken")],
)
def test_a_state_begins_above_its_threshold(value, state):
    assert drift.state(value, Drift(warn=1.0, refuse=2.0)) == state


def test_an_unknown_statistic_is_the_users_mistake_and_the_nearest_name_is_told():
    with pytest.raises(
        ParamsError,
        match="retraining.drift.wasserstein: no such statistic; did you mean 'wasserstein_sd'",
    ):
        drift.check(
            {
                "wasserstein": Drift(warn=1.0, refuse=2.0),
                "stability_index": Drift(warn=1.0, refuse=2.0),
            }
        )
    drift.check({})
