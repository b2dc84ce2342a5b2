"""Rules on tasks on and off the grid: the raw files as acquired; splits that share nothing; what
the exact laws promise comes true (the shares of targets within their 50 % and 90 % intervals), and
to read more never makes them less likely; and the bounds where they are known. Of real hours: that
no hour serves two splits, as present or as grid, and that every grid is as old as declared."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages import files, runner
from stages.fields.grids.layout import ABOUT, HOURS, TASKS, WORLD
from stages.fields.grids.settings import Coupled, Stale, Whole, coupled_of, grids_of
from stages.fields.problems.coupled.tasks import READS
from stages.fields.problems.stale.world import inside
from stages.scores.scores import covered
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.fields.grids.validate"
# Bounds of 1-D tasks by correlation and what is read, nats a target: the exact law's own score,
# computed once by other code.
KNOWN = {(0.8, "both"): -0.288, (0.5, "both"): -0.422, (0.8, "off"): -0.472, (0.5, "off"): -0.472,
         (0.0, "both"): -0.472, (0.0, "off"): -0.472}  # fmt: skip
PLAIN = {"low": -0.602, "high": 0.602, "noise": 0.2, "axes": 1, "cells": 64, "context": 64,
         "reach": 2.0, "range": 4.0}  # fmt: skip
ERRORS = 4.0  # standard errors, of ours and of the known number, that a bound may lie off
KNOWN_ERROR = 0.015
WRONG = "what is called exact is not: look at the process and its prediction"
WHOLE = [
    *MANIFEST,
    Rule("grids.tasks", "splits", "tasks", "critical", "a split is empty", low=1),
    Rule("grids.leak", "splits", "shared", "critical",
         "tasks that stand in the other split, too: their streams are one", high=0),
]  # fmt: skip
RULES = [
    *WHOLE,
    Rule("grids.coverage", "splits", "coverage_off", "critical", WRONG, high=0.05),
    Rule("grids.bound", "splits", "bound_off", "critical", WRONG, high=ERRORS),
    Rule("grids.more", "splits", "lost", "critical",
         "who reads both sources does worse than who reads one: the exact law is wrong", high=0.0),
]  # fmt: skip
REAL = [
    *WHOLE,
    Rule("grids.hours", "splits", "hours_shared", "critical",
         "an hour serves two splits: widen the gaps between runs", high=0),
    Rule("grids.age", "splits", "age_off", "critical",
         "a grid is younger or older than declared: look at stages/fields/problems/stale", high=0),
]  # fmt: skip

GLOBAL = [
    *WHOLE,
    Rule("grids.strips", "splits", "outside", "critical",
         "places of tasks outside of their split's strips", high=0),
    Rule("grids.nodes", "splits", "train_too", "critical",
         "places of tasks whose longitudes train, too: move strips_deg apart", high=0),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = grids_of(asked.parameters, asked["profile"]).datasets
    runner.known("set of tasks on a grid", asked["dataset"], known)
    told = coupled_of(asked.parameters, asked["dataset"])

    def gather(
        raw: Path, prepared: Path, judged: dict[str, str]
    ) -> tuple[dict[str, Table], list[Rule]]:
        if isinstance(told, Stale):
            return summed_hours(raw, prepared, judged, told), REAL
        if isinstance(told, Whole):
            return summed_strips(raw, prepared, judged, told), GLOBAL
        return summed(raw, prepared, judged, told), RULES

    return stage.work(asked, MODULE, "prepared", gather, {"made": told.model_dump(mode="json")})


def expected(told: Coupled, reads: str) -> float | None:
    """The bound that is known of such tasks, nats a target."""
    plain = {key: getattr(told, key) for key in PLAIN} == PLAIN
    return KNOWN.get((told.correlation or 0.0, reads)) if plain else None


def summed(raw: Path, prepared: Path, judged: dict[str, str], told: Coupled) -> dict[str, Table]:
    """The summaries of a set."""
    manifest, about = files.read_json(raw / "manifest.json"), files.read_json(prepared / ABOUT)
    tensors, rows = load_file(prepared / TASKS), []
    seen = {split: _digests(tensors[f"{split}.target_x"]) for split in about["bound"]}
    for split, bounds in about["bound"].items():
        values, shares, off = tensors[f"{split}.target_y"][..., 0], [], [0.0]
        for reads in READS:
            mean, sd = (tensors[f"{split}.{reads}_{part}"] for part in ("mean", "sd"))
            inside = (covered(mean, sd, values, level).mean() - level for level in (0.5, 0.9))
            shares += [float(one) for one in inside]
            known, bound = expected(told, reads), bounds[reads]
            if known is not None:
                error = float(np.hypot(bound["standard_error"], KNOWN_ERROR))
                off.append(abs(bound["value"] - known) / error)
        others: set[Any] = set().union(*(seen[other] for other in seen if other != split))
        best = max(bounds[reads]["value"] for reads in ("off", "on"))
        rows.append(
            {
                "split": split,
                "tasks": bounds["both"]["n"],
                "shared": len(seen[split] & others),
                "coverage_off": max(map(abs, shares)),
                "bound_off": max(off),
                # nothing but rounding where the other source tells nothing
                "lost": max(0.0, best - bounds["both"]["value"] - 1e-9),
            }
        )
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def summed_hours(
    raw: Path, prepared: Path, judged: dict[str, str], told: Stale
) -> dict[str, Table]:
    """The summaries of a set of real hours."""
    manifest, rows = files.read_json(raw / "manifest.json"), []
    tensors = load_file(prepared / TASKS)
    hours = {"train": set(load_file(prepared / HOURS)["hour"].tolist())}
    for split in ("val", "test"):
        both = np.concatenate([tensors[f"{split}.{name}"] for name in ("now", "then")])
        hours[split] = set(both.tolist())
    twice = in_both(tensors)
    for split in ("val", "test"):
        age = tensors[f"{split}.now"] - tensors[f"{split}.then"]
        others: set[int] = set().union(*(hours[other] for other in hours if other != split))
        rows.append(
            {
                "split": split,
                "tasks": len(age),
                "shared": twice,
                "hours_shared": len(hours[split] & others),
                "age_off": int(((age < told.age_h[0]) | (age > told.age_h[1])).sum()),
            }
        )
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def summed_strips(
    raw: Path, prepared: Path, judged: dict[str, str], told: Whole
) -> dict[str, Table]:
    """The summaries of a set of the whole globe."""
    manifest, rows = files.read_json(raw / "manifest.json"), []
    tensors, trains = load_file(prepared / TASKS), load_file(prepared / WORLD)["lon"]
    twice = in_both(tensors)
    for split in ("val", "test"):
        real = tensors[f"{split}.real"]
        lon = np.concatenate([tensors[f"{split}.context_x"][real][:, 1],
                              tensors[f"{split}.target_x"][..., 1].ravel()])  # fmt: skip
        rows.append(
            {
                "split": split,
                "tasks": len(real),
                "shared": twice,
                "outside": int((~inside(lon, getattr(told.strips_deg, split))).sum()),
                "train_too": int(np.isin(np.mod(lon, 360.0), np.mod(trains, 360.0)).sum()),
            }
        )
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def in_both(tensors: dict[str, np.ndarray]) -> int:
    """How many tasks of "val" have the targets of one of "test"."""
    seen = [{row.tobytes() for row in tensors[f"{one}.target_x"]} for one in ("val", "test")]
    return len(seen[0] & seen[1])


def _digests(targets: np.ndarray) -> set[bytes]:
    """Of each task the bytes of its first target, which no two tasks share."""
    return {row[0].tobytes() for row in targets}


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge tasks on and off the grid: splits, and whether their exact laws are exact."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
