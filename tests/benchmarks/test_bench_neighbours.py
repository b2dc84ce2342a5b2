"""The benchmark of the search: whole and small. What is written down can be read by the claims;
no time is asserted."""

import json
import operator
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import files
from stages.errors import DataError
from stages.neighbours.experiment import claims, sets
from stages.params import Search
from tests.benchmarks import bench_neighbours as bench
from tests.benchmarks import clock, races, scale

SEARCH = Search(
    points=1500,
    queries=12,
    neighbours=(3, 40),
    window=0.3,
    segments=(10, 25, 50),
    fetch=(1, 2, 4),
    leaves=(10,),
    seed=0,
    sets={"original": (), "synthetic": ()},
)
PLAN = races.Plan(SEARCH, rounds=5, builds=1, slow=6, python=2)


@pytest.fixture(scope="module")
def content():
    """benchmarks.json of a small run."""

    class Profile:
        profile, search = "mini", SEARCH

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "OTHERS", float("inf"))  # no round is repeated
        found = bench.run(Profile, 1500, 0, lambda search: PLAN, steps=5)
    return json.loads(json.dumps(found, allow_nan=False))


@pytest.mark.slow_fault
def test_every_race_is_run_and_every_answer_is_right(content):
    methods = {"yardstick", "boxes", "compiled", "forest", "trajectory", "linear"}
    rows = {(row["set"], row["arm"], row["k"], row["method"]) for row in content["speed"]}
    assert rows == {
        (name, arm, k, method)
        for name in (sets.SMOOTH, sets.RANDOM)
        for arm in ("iso", "aniso")
        for k in (3, 40)
        for method in methods
    }
    assert all(row["ratio"] == 1 for row in content["speed"] if row["method"] == "yardstick")
    assert all(row["wrong_rows"] == 0 for row in content["speed"] + content["per_query"])
    assert {row["arm"] for row in content["per_query"]} == {"iso", "aniso", "per_query"}
    trees = {f"kdtree-{variant}-leaf10" for variant in ("plain", "scaled", "masked")} | {
        "ckdtree-plain-leaf10"
    }
    for name in (sets.SMOOTH, sets.RANDOM, sets.SIMULTANEOUS):
        mine = [row for row in content["tables"] if row["set"] == name]
        assert {row["method"] for row in mine} == methods - {"yardstick"} | trees and all(
            row["build_s"] >= 0 for row in mine
        )
    assert {(row["set"], row["segments"], row["fetch"]) for row in content["surface"]} == {
        (sets.SMOOTH, k, f) for k in (10, 25, 50) for f in (1, 2, 4)
    }
    for row in content["speed"] + content["tables"] + content["surface"] + content["per_query"]:
        assert (
            len(row["rounds_ms"]) >= 5
            and min(row["rounds_ms"]) <= row["ms"] <= max(row["rounds_ms"])
            and row["ms"] > 0
        )
        assert len(row["others"]) == len(row["rounds_ms"])


@pytest.mark.slow_fault
def test_where_it_was_measured_is_told_and_the_host_is_not(content):
    assert content["machine"]["cores"] == os.cpu_count() and set(
        content["machine"]["versions"]
    ) == {"python", "torch", "numpy", "scipy", "numba"}
    assert content["profile"] == "mini" and os.uname().nodename not in json.dumps(
        content["machine"]
    )
    shown = bench.as_text(content)
    assert (
        content["quiet"]
        and "WARNING" not in shown
        and "WARNING" in bench.as_text(content | {"quiet": False})
    )
    assert ("no GPU here" in shown) == (not torch.cuda.is_available())
    assert "wrong answers of speed: 0 (at most 0)" in shown


@pytest.mark.slow_fault
def test_an_epoch_is_told_for_all_its_steps(content):
    epoch = content["epoch"]
    assert (
        epoch["seconds"] == pytest.approx(1440 * np.median(epoch["rounds_ms_a_step"]) / 1e3)
        and epoch["steps_timed"] == 5
    )
    assert (epoch["targets"], epoch["context"], epoch["points"]) == (700, 64, 1500)


@pytest.mark.slow_fault
def test_claims_read_it(content):
    cells = {
        f"trajectory-{arm}-k40": {
            "metrics": {
                name: {"value": 1.0, "low": 1.0, "high": 1.0, "n": 12}
                for name in ("wrong_rows", "comparisons_share", "seen")
            }
        }
        for arm in ("iso", "aniso")
    }
    found = {
        claim["id"]: claim for claim in claims.conclusions({sets.SMOOTH: {"cells": cells}}, content)
    }
    assert (
        found["W-4"]["compared"]["faster on CPU"]["points"] == 1500 and found["W-4"]["slices"] >= 5
    )
    assert (
        set(found["W-5"]["compared"]) == {"sweet spot in K", "sweet spot in F"}
        and found["W-5"]["slices"] >= 5
    )


def test_goals_are_met_or_missed_by_their_bars():
    found = {
        "speed": [
            {
                "method": "boxes",
                "set": sets.SMOOTH,
                "arm": "iso",
                "k": 16,
                "ratio": 0.5,
                "wrong_rows": 0,
            },
            {
                "method": "compiled",
                "set": sets.RANDOM,
                "arm": "iso",
                "k": 1000,
                "ratio": 0.11,
                "wrong_rows": 0,
            },
            {
                "method": "linear",
                "set": sets.RANDOM,
                "arm": "iso",
                "k": 1000,
                "ratio": 9.0,
                "wrong_rows": 2,
            },
        ],
        "per_query": [],
        "tables": [
            {"device": "cuda", "method": "boxes", "set": sets.SMOOTH, "speed_up": 20.0, "ms": 0.2}
        ],
        "builds": [{"method": "boxes", "set": sets.SMOOTH, "seconds": 1.2, "points": 2_000_000}],
        "epoch": {"seconds": 61.0},
        "large": [
            {"method": "boxes", "points": 10**6, "larger": 1.0},
            {
                "method": "boxes",
                "points": 33 * 10**6,
                "larger": 33.0,
                "slower": 1.5,
                "build_s": 59.0,
                "taken_mib": 2100.0,
            },
        ],
    }
    met = {row["goal"]: row["passed"] for row in bench.goals(found)}
    assert len(met) == 12 and [name for name, passed in met.items() if not passed] == [
        "compiled over cKDTree, random_points, iso, k=1000",
        "wrong answers of speed",
        "boxes at 33,000,000 points: taken_mib",
        "an epoch of GKA-MLP-TNN over a day of a million points, s",
        "boxes on the GPU, ms a query",
    ]


def test_contenders_take_turns_and_disturbed_rounds_are_repeated(monkeypatch):
    called = []
    contenders = {name: clock.Contender(lambda name=name: called.append(name), 2) for name in "ab"}
    loads = iter([0.0, 1.0, 0.1, 0.9, 0.2, 0.0])
    monkeypatch.setattr(clock, "others", lambda before: next(loads))
    times = clock.race(contenders, rounds=4)
    assert (
        called == ["a", "b"] * 7
        and times.others == [0.0, 0.1, 0.2, 0.0]
        and len(times.rounds_ms["a"]) == 4
    )
    monkeypatch.setattr(clock, "others", lambda before: 2.0)
    assert (
        clock.race(contenders, rounds=4).others == [2.0] * 8
    )  # patience has an end; what was measured is told as it was


def test_queries_that_see_next_to_nothing_do_not_race():
    points = sets.build(
        sets.RANDOM, None, SEARCH.model_copy(update={"queries": 1500, "window": 0.5})
    )
    kept = races.late(points)
    assert (
        0 < len(kept.queries) < 1500
        and kept.seen().min() >= 15
        and (np.sort(points.seen())[: -len(kept.queries)] < 15).all()
    )


def test_ratios_are_taken_round_by_round():
    times = clock.Times({"a": [1.0, 4.0, 9.0], "b": [1.0, 2.0, 3.0]}, [0.0] * 3)
    assert times.ratio("a", "b") == 2.0 and times.median("a") == 4.0


class Told(list):
    """A connection that keeps what is sent."""

    def send(self, value):
        self.append(value)


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux only"
)
def test_the_large_index_is_made_measured_and_asked(tmp_path):
    told = Told()
    scale.make_walks(str(tmp_path), 20_000, told)
    assert told == [{"points": 20_000}] and np.load(tmp_path / "points.npy").shape == (20_000, 4)
    scale.index_and_ask(str(tmp_path), "boxes", told)
    assert (
        told[1]["points"] == 20_000
        and told[1]["peak_mib"] - told[1]["bare_mib"] == told[1]["taken_mib"]
        and told[1]["bare_mib"] > 0
    )
    assert len(told[1]["rounds_ms"]) == scale.ROUNDS


def test_a_process_of_its_own_answers_or_its_death_is_told():
    assert scale.apart(operator.methodcaller("send", {"points": 1000})) == {"points": 1000}
    with pytest.raises(DataError, match="died") as caught:
        scale.apart(os.chdir, "/nowhere")  # raises in the child, which then sends nothing
    assert "--skip-33m" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"), [(["--profile", "mono"], "mini"), (["--points", "10"], "10000")]
)
def test_mistakes_are_told_before_any_work(tmp_path, monkeypatch, capsys, words, told):
    from stages import params

    given, code = params.read_yaml(Path("params.yaml")), Path("stages").resolve()
    (tmp_path / "stages").symlink_to(code)
    given["profiles"]["mini"]["search"] = SEARCH.model_dump(mode="json") | {"neighbours": [3]}
    monkeypatch.chdir(tmp_path)
    files.write_json("params.yaml", given | {"run": given["profiles"]["mini"]})
    assert (
        bench.main(words) == 2
        and told in capsys.readouterr().err
        and {path.name for path in tmp_path.iterdir()} == {"params.yaml", "stages"}
    )
