"""Claims W-2 to W-5 of thesis chapter 1, about the search itself, as checks on metrics.json
(counts) and benchmarks.json (times).

W-2 is exact: one query answered otherwise than by brute force refutes it. W-3 compares the share of
points looked at with thresholds that follow from the printed counts. W-4 and W-5 compare times
taken side by side in one run: rounds are resampled together, and what is chosen (the fastest cell
inside and on the edge) is chosen anew in each resample, so that picking the best of many is part of
the interval. Verdicts and entries are those of stages/claims; `slices` counts queries
(W-2, W-3) or rounds (W-4, W-5).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stages import seeds
from stages.claims.parts import RESAMPLES, Part, conclude, unmeasured, verdict_of
from stages.files import read_json
from stages.scores import bootstrap

# of linear search: the document prints 3.5 to 10.1 % on trajectories, 99.9 % and more on random
# points
SMALL, NEARLY_ALL = (0.1, 0.9)
# of the points seen: more neighbours than this would themselves be much of a small part (the
# document's are 0.1 %)
FEW = 0.02
WITHOUT = (
    "random_points",
    "simultaneous_points",
)  # trajectories; the second are the document's random points
PRINTED = {
    "cpu": 8.8,
    "cuda": 16.0,
}  # linear over TNN, thesis table 1.3, original data: 9.03 / 1.03 ms and 2.55 / 0.16 ms
ABOUT = 2.0  # "about n times": at least n over this; machines and linear searches differ
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class PointSetResults:
    """What is known of one point set: the cells of its metrics.json, and the rows of
    benchmarks.json that are its own."""

    dataset: str
    cells: dict[str, dict[Any, Any]]
    tables: list[dict[Any, Any]] = field(
        default_factory=list
    )  # method, k, device, points, rounds_ms
    surface: list[dict[Any, Any]] = field(
        default_factory=list
    )  # segments, fetch, device, rounds_ms

    def asked(self) -> list[int]:
        """The numbers of neighbours that TNN was asked for, ascending."""
        return sorted(
            {
                int(name.rpartition("-k")[2])
                for name in self.cells
                if name.startswith("trajectory-") and "-k" in name
            }
        )


def resampled(rounds: np.ndarray, dataset: str) -> np.ndarray:
    """Medians (R, C) over resampled rounds of times (rounds, C); all columns are resampled
    alike."""
    picks = seeds.stream(0, "claims", "search", dataset).integers(
        len(rounds), size=(RESAMPLES, len(rounds))
    )
    return np.median(rounds[picks], axis=1)


def judged(
    name: str, value: float, draws: np.ndarray, bar: float, numbers: dict[Any, Any], what: str
) -> Part:
    """A part that holds when what should exceed `bar` does so in the whole 90 % interval, and
    fails when it nowhere does."""
    low, high = bootstrap.interval(draws)
    verdict = verdict_of(low, high, bar)
    return Part(
        name,
        verdict,
        {**numbers, "value": value, "interval": [low, high], "bar": bar, "verdict": verdict},
        f"{name}: {what} {value:.3g}, 90 % interval [{low:.3g}, {high:.3g}], bar {bar:g}",
    )


def w2(measured: PointSetResults) -> dict[Any, Any]:
    """Every answer of every method, TNN first, against brute force."""
    text = (
        "Trajectory nearest neighbours are exactly those of brute force; so are those of every "
        "method compared with it."
    )
    names = sorted(
        {cell.partition("-")[0] for cell in measured.cells},
        key=lambda name: (name != "trajectory", name),
    )
    parts = (
        [] if "trajectory" in names else [unmeasured("trajectory", "trajectory: not searched here")]
    )
    for name in names:
        rows = [
            content["metrics"]["wrong_rows"]
            for cell, content in measured.cells.items()
            if cell.partition("-")[0] == name
        ]
        wrong, asked = int(sum(row["value"] for row in rows)), sum(row["n"] for row in rows)
        verdict = "fails" if wrong else "holds"
        parts.append(
            Part(
                name,
                verdict,
                {
                    "wrong_rows": wrong,
                    "queries": asked,
                    "cells": len(rows),
                    "slices": rows[0]["n"],
                    "verdict": verdict,
                },
                f"{name}: {wrong} of {asked} answers in {len(rows)} cells are wrong",
            )
        )
    return conclude(
        measured,
        "W-2",
        text,
        "thesis, section 1.3.6",
        parts,
        "indices and distances compared bit by bit; a right answer to these queries does not prove "
        "the next one",
    )


def w3(measured: PointSetResults) -> dict[Any, Any]:
    """The share of linear search's comparisons that TNN makes in both scales, at the largest k
    that is few of the points seen."""
    text = (
        "On points along trajectories TNN compares a query with a small part of the points that "
        "linear search looks at; on random points with nearly all."
    )
    random, parts = measured.dataset in WITHOUT, []
    bar, sides = (
        (NEARLY_ALL, ("nearly all", "above")) if random else (SMALL, ("a small part", "below"))
    )
    for arm in ("iso", "aniso"):
        few = [
            k
            for k in measured.asked()
            if (cell := measured.cells.get(f"trajectory-{arm}-k{k}"))
            and k <= FEW * cell["metrics"]["seen"]["value"]
        ]
        name = f"trajectory-{arm}-k{max(few or measured.asked() or [0])}"
        part = f"{name} is {sides[0]}"
        if name not in measured.cells:
            parts.append(unmeasured(part, f"{part}: not searched here"))
            continue
        share = measured.cells[name]["metrics"]["comparisons_share"]
        low, high = share["low"], share["high"]
        verdict = verdict_of(low, high, bar, above=random)
        parts.append(
            Part(
                part,
                verdict,
                {
                    "comparisons_share": share["value"],
                    "interval": [low, high],
                    "bar": bar,
                    "slices": share["n"],
                    "verdict": verdict,
                },
                f"{part}: {100 * share['value']:.2f} % of linear search, 90 % interval "
                f"[{100 * low:.2f}, {100 * high:.2f}], should be {sides[1]} {100 * bar:g}",
            )
        )
    entry = conclude(
        measured,
        "W-3",
        text,
        "thesis, table 1.3",
        parts,
        "the bars: one tenth is about the largest share printed on trajectories (10.1 %), nine "
        "tenths its mirror",
    )
    told = [part for part in parts if part.interval and part.verdict == entry["verdict"]]
    edge = min if random else max  # the part nearest to its bar
    return entry | {
        "interval": edge(
            (part.interval for part in told),
            key=lambda ends: ends[0 if random else 1],
            default=None,
        )
    }


def faster(measured: PointSetResults, device: str) -> list[Part]:
    """Linear search's time over TNN's on one device: above 1, and about the printed factor."""
    where, printed = {"cpu": "CPU", "cuda": "GPU"}[device], PRINTED[device]
    mine = {
        row["method"]: row
        for row in measured.tables
        if row["device"] == device and row["k"] == max(measured.asked(), default=0)
    }
    if not {"linear", "trajectory"} <= set(mine):
        return [
            unmeasured(
                f"faster on {where}",
                f"faster on {where}: no such times were measured (`make bench-neighbours`)",
            )
        ]
    rounds = np.array([mine["linear"]["rounds_ms"], mine["trajectory"]["rounds_ms"]], np.float64).T
    if len(rounds) < LEAST_ROUNDS:
        return [
            unmeasured(f"faster on {where}", f"faster on {where}: {len(rounds)} rounds are too few")
        ]
    linear, tnn = np.median(rounds, 0)
    draws = resampled(rounds, measured.dataset)
    numbers = {
        "linear_ms": float(linear),
        "trajectory_ms": float(tnn),
        "points": mine["trajectory"]["points"],
        "slices": len(rounds),
    }
    return [
        judged(
            name, float(linear / tnn), draws[:, 0] / draws[:, 1], bar, numbers, "linear over TNN"
        )
        for name, bar in (
            (f"faster on {where}", 1.0),
            (f"about {printed:g} times on {where}", printed / ABOUT),
        )
    ]


def w4(measured: PointSetResults) -> dict[Any, Any]:
    """Time of linear search over time of TNN."""
    text = (
        "Masked TNN finds 1000 neighbours among a million points faster than linear search, about "
        "9 times on a CPU and 16 times on a GPU."
    )
    return conclude(
        measured,
        "W-4",
        text,
        "thesis, table 1.3",
        [part for device in PRINTED for part in faster(measured, device)],
        f"'about' is read as at least the printed factor over {ABOUT:g}; both searches are ours, "
        "in one run",
    )


def sweet(measured: PointSetResults, rows: list[dict[Any, Any]], axis: str) -> Part:
    """Whether the least time over the surface lies between the ends of one axis (segments: K,
    fetch: F), the other axis left free."""
    letter, values = {"segments": "K", "fetch": "F"}[axis], np.array([row[axis] for row in rows])
    name, ends = f"sweet spot in {letter}", (values.min(), values.max())
    inside = (values > ends[0]) & (values < ends[1])
    rounds = np.array([row["rounds_ms"] for row in rows], np.float64).T
    if not inside.any() or len(rounds) < LEAST_ROUNDS:
        return unmeasured(
            name, f"{name}: {len(set(values))} values and {len(rounds)} rounds are too few"
        )

    def edge_over_inside(times):
        return times[..., ~inside].min(-1) / times[..., inside].min(-1)

    medians = np.median(rounds, 0)
    best = rows[int(medians.argmin())]
    numbers = {
        "fastest": {
            "segments": best["segments"],
            "fetch": best["fetch"],
            "ms": float(medians.min()),
        },
        "slices": len(rounds),
    }
    part = judged(
        name,
        float(edge_over_inside(medians)),
        edge_over_inside(resampled(rounds, measured.dataset)),
        1.0,
        numbers,
        f"fastest at an end of {letter} over fastest between the ends",
    )
    if (
        part.verdict == "fails" and best[axis] > 1
    ):  # more than one point or segment: the grid ends there, the choice does not
        return Part(
            name,
            "undecided",
            part.numbers | {"verdict": "undecided"},
            f"{part.why}; the time still falls at {letter} = {best[axis]}, where the grid ends",
        )
    return part


def w5(measured: PointSetResults) -> dict[Any, Any]:
    """The time surface over points a segment (K) and segments a fetch (F)."""
    text = (
        "There is a sweet spot in the points of a segment (K) and the segments of a fetch (F): the "
        "time is least between the extremes."
    )
    rows = [
        row for row in measured.surface if row["device"] == "cuda"
    ] or measured.surface  # the figure was measured on a GPU
    parts = (
        [sweet(measured, rows, axis) for axis in ("segments", "fetch")]
        if rows
        else [
            unmeasured(
                "sweet spot", "no times over K and F were measured (`make bench-neighbours`)"
            )
        ]
    )
    note = f"measured on {rows[0]['device']}; figure 1.4 is of a GPU" if rows else ""
    return conclude(measured, "W-5", text, "thesis, figure 1.4", parts, note)


def conclusions(
    tables: dict[str, dict[Any, Any]], benchmarks: dict[Any, Any] | None
) -> list[dict[Any, Any]]:
    """Every claim on every set that it speaks of: tables = set -> metrics.json, benchmarks =
    benchmarks.json, None where not run."""
    times = benchmarks or {}

    def own(key, name):
        return [row for row in times.get(key, []) if row["set"] == name]

    sets = [
        PointSetResults(name, content["cells"], own("tables", name), own("surface", name))
        for name, content in sorted(tables.items())
    ]
    silent = {
        w3: WITHOUT[:1],
        w4: WITHOUT,
        w5: WITHOUT,
    }  # where time is random too TNN prunes by it: not the document's case
    return [
        claim(measured)
        for claim in (w2, w3, w4, w5)
        for measured in sets
        if measured.dataset not in silent.get(claim, ())
    ]


def check(home: Path) -> list[dict[Any, Any]]:
    """Every claim on what stands under `home` (reports/neighbours/PROFILE)."""
    found = {
        file.parent.name: read_json(file)
        for file in sorted((home / "evaluated").glob("[!.]*/metrics.json"))
    }
    file = home / "benchmarks.json"
    return conclusions(found, read_json(file) if file.exists() else None)
