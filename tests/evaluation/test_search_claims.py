"""Claims about the search: verdicts on counts and times made by hand, whose answer is known."""

import json

import numpy as np
import pytest

from stages import files
from stages.neighbours.experiment import claims

KEYS = {
    "id",
    "dataset",
    "text",
    "source",
    "verdict",
    "compared",
    "seeds",
    "slices",
    "interval",
    "why",
}


def cell(share=0.05, wrong=0, seen=1e6, spread=0.005, n=256):
    """A cell's entry as measure writes it."""

    def metric(value, half=0.0):
        return {"value": value, "low": value - half, "high": value + half, "n": n, "unit": "1"}

    return {
        "metrics": {
            "comparisons_share": metric(share, spread),
            "wrong_rows": metric(wrong),
            "seen": metric(seen),
        },
        "queries": n,
    }


def searched(share=0.05, **more):
    """metrics.json of a set on which linear search and TNN were asked for 100 and 1000
    neighbours."""
    cells = {
        f"{method}-{arm}-k{k}": cell(share if method == "trajectory" else 1.0, **more)
        for method in ("linear", "trajectory")
        for arm in ("iso", "aniso")
        for k in (100, 1000)
    }
    return {"cells": cells}


def times(linear=9.0, tnn=1.0, jitter=0.02, rounds=6, device="cpu", name="walk", k=1000):
    """Rows of `tables`: both searches, round by round."""
    rng = np.random.default_rng(0)
    return [
        {
            "set": name,
            "method": method,
            "device": device,
            "k": k,
            "points": 10**6,
            "rounds_ms": (ms * rng.lognormal(0, jitter, rounds)).tolist(),
        }
        for method, ms in (("linear", linear), ("trajectory", tnn))
    ]


def surface(ms, jitter=0.02, rounds=6, device="cpu"):
    """Rows of `surface` from {(K, F): ms}."""
    rng = np.random.default_rng(0)
    return [
        {
            "set": "walk",
            "segments": k,
            "fetch": f,
            "device": device,
            "rounds_ms": (value * rng.lognormal(0, jitter, rounds)).tolist(),
        }
        for (k, f), value in ms.items()
    ]


def bowl(k0, f0, segments=(20, 50, 100, 200), fetch=(1, 4, 16, 40)):
    """A time surface that is least at (k0, f0)."""
    return {(k, f): 1 + np.log(k / k0) ** 2 + np.log(f / f0) ** 2 for k in segments for f in fetch}


def entry(name, tables, benchmarks=None, dataset="walk"):
    found = [
        claim
        for claim in claims.conclusions(tables, benchmarks)
        if (claim["id"], claim["dataset"]) == (name, dataset)
    ]
    assert len(found) == 1 and set(found[0]) == KEYS
    json.dumps(found[0], allow_nan=False)
    return found[0]


def test_every_claim_once_for_each_set_it_speaks_of(tmp_path):
    for name in ("walk", "random_points", "simultaneous_points"):
        files.write_json(tmp_path / "evaluated" / name / "metrics.json", searched())
    expected = [
        ("W-2", "random_points"),
        ("W-2", "simultaneous_points"),
        ("W-2", "walk"),
        ("W-3", "simultaneous_points"),
        ("W-3", "walk"),
        ("W-4", "walk"),
        ("W-5", "walk"),
    ]
    assert [(c["id"], c["dataset"]) for c in claims.check(tmp_path)] == expected
    assert [c["verdict"] for c in claims.check(tmp_path)][-2:] == [
        "undecided",
        "undecided",
    ]  # no benchmarks.json
    files.write_json(
        tmp_path / "benchmarks.json",
        {"tables": times(device="cuda", linear=16.0) + times(), "surface": surface(bowl(70, 8))},
    )
    assert [c["verdict"] for c in claims.check(tmp_path)][-2:] == ["holds", "holds"]


def test_w2_holds_on_no_wrong_answer_and_names_the_method_that_gave_one():
    tables = {"walk": searched()}
    got = entry("W-2", tables)
    assert (
        got["verdict"] == "holds"
        and got["compared"]["trajectory"]["queries"] == 4 * 256
        and got["slices"] == 256
    )
    tables["walk"]["cells"]["trajectory-K20-F4"] = cell(wrong=1)
    got = entry("W-2", tables)
    assert got["verdict"] == "fails" and got["why"].startswith(
        "trajectory: 1 of 1280 answers in 5 cells are wrong"
    )
    only = {"walk": {"cells": {"linear-iso-k100": cell()}}}
    assert (
        entry("W-2", only)["verdict"] == "undecided"
        and "not searched here" in entry("W-2", only)["why"]
    )


@pytest.mark.parametrize(
    ("name", "share", "verdict"),
    [
        ("walk", 0.05, "holds"),
        ("walk", 0.5, "fails"),
        ("walk", 0.1, "undecided"),
        ("walk", 0.103, "undecided"),
        ("simultaneous_points", 0.99, "holds"),
        ("simultaneous_points", 0.5, "fails"),
        ("simultaneous_points", 0.902, "undecided"),
    ],
)
def test_w3(name, share, verdict):
    got = entry("W-3", {name: searched(share)}, dataset=name)
    assert got["verdict"] == verdict and got["interval"] == [
        pytest.approx(share - 0.005),
        pytest.approx(share + 0.005),
    ]
    assert {part.split(" ")[0] for part in got["compared"]} == {
        "trajectory-iso-k1000",
        "trajectory-aniso-k1000",
    }


def test_w3_one_scale_may_refute_it_and_its_interval_decides():
    tables = {"walk": searched()}
    tables["walk"]["cells"]["trajectory-aniso-k1000"] = cell(0.3)
    got = entry("W-3", tables)
    assert got["verdict"] == "fails" and got["interval"] == [
        pytest.approx(0.295),
        pytest.approx(0.305),
    ]


def test_w3_asks_for_few_of_the_points_seen():
    """Where 1000 neighbours are a tenth of what is seen no search can look at less: the largest
    k of at most 2 % is taken."""
    assert set(entry("W-3", {"walk": searched(seen=1e4)})["compared"]) == {
        f"trajectory-{arm}-k100 is a small part" for arm in ("iso", "aniso")
    }
    assert entry("W-3", {"walk": {"cells": {}}})["verdict"] == "undecided"


@pytest.mark.parametrize(
    ("linear", "tnn", "verdict", "faster", "about"),
    [
        (9.0, 1.0, "undecided", "holds", "holds"),
        (9.0, 4.0, "fails", "holds", "fails"),
        (9.0, 18.0, "fails", "fails", "fails"),
        (9.0, 9.0 / 4.4, "undecided", "holds", "undecided"),
    ],
)
def test_w4_on_a_cpu_leaves_the_gpu_undecided_unless_refuted(linear, tnn, verdict, faster, about):
    got = entry("W-4", {"walk": searched()}, {"tables": times(linear, tnn)})
    assert got["verdict"] == verdict and got["compared"]["faster on GPU"] == {
        "verdict": "undecided"
    }
    assert (
        got["compared"]["faster on CPU"]["verdict"],
        got["compared"]["about 8.8 times on CPU"]["verdict"],
    ) == (faster, about)
    low, high = got["compared"]["faster on CPU"]["interval"]
    assert (
        low <= got["compared"]["faster on CPU"]["value"] <= high
        and low <= linear / tnn * 1.05
        and high >= linear / tnn * 0.95
    )


def test_w4_takes_a_gpu_where_one_was_measured_and_wants_enough_rounds():
    both = times() + times(2.55, 0.16, device="cuda")
    assert entry("W-4", {"walk": searched()}, {"tables": both})["verdict"] == "holds"
    assert (
        entry("W-4", {"walk": searched()}, {"tables": times() + times(2.55, 0.5, device="cuda")})[
            "verdict"
        ]
        == "fails"
    )
    assert (
        entry("W-4", {"walk": searched()}, {"tables": times(rounds=4) + times(device="cuda")})[
            "verdict"
        ]
        == "undecided"
    )
    other = entry("W-4", {"walk": searched()}, {"tables": times(name="other") + times(k=16)})
    assert other["verdict"] == "undecided" and "bench-neighbours" in other["why"]


@pytest.mark.parametrize(
    ("ms", "verdict", "told"),
    [
        (bowl(70, 8), "holds", "sweet spot in K"),
        (bowl(70, 1), "fails", "sweet spot in F"),
        (bowl(500, 8), "undecided", "at K = 200, where the grid"),
        (bowl(70, 90), "undecided", "at F = 40, where the grid"),
        (dict.fromkeys(bowl(1, 1), 1.0), "undecided", "sweet spot"),
        (bowl(70, 8, fetch=(4, 16)), "undecided", "too few"),
        ({}, "undecided", "bench-neighbours"),
    ],
)
def test_w5(ms, verdict, told):
    got = entry("W-5", {"walk": searched()}, {"surface": surface(ms)})
    assert got["verdict"] == verdict and told in got["why"]
    if verdict == "holds":
        assert (
            got["compared"]["sweet spot in K"]["fastest"]["segments"] in (50, 100)
            and got["interval"][0] > 1
        )


def test_w5_rounds_that_scatter_more_than_the_surface_bends_decide_nothing():
    assert (
        entry("W-5", {"walk": searched()}, {"surface": surface(bowl(70, 8), jitter=2.0)})["verdict"]
        == "undecided"
    )


def test_w5_prefers_the_gpu_of_the_figure():
    got = entry(
        "W-5",
        {"walk": searched()},
        {"surface": surface(bowl(70, 8)) + surface(bowl(70, 1), device="cuda")},
    )
    assert got["verdict"] == "fails" and "measured on cuda" in got["why"]
