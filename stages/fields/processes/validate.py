"""Rules on tasks that are kept: the raw files as acquired; splits that share nothing; contexts of
many sizes; what the exact law promises comes true (its own score, the share of targets within its
50 % and 90 % intervals); and the bound where it is known.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages import files, runner
from stages.fields.processes.layout import ABOUT, TASKS
from stages.fields.processes.settings import Functions, functions_of, processes_of
from stages.scores.scores import covered
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired

MODULE = "stages.fields.processes.validate"
# Bounds of the 1-D tasks of reference code H, nats a target, by kernel: the exact law's own score,
# computed once by other code.
KNOWN = {"eq": -0.365, "matern12": -0.930, "matern32": -0.571, "matern52": -0.483,
         "periodic": 0.467}  # fmt: skip
LENGTHS, NOISE = (-0.602, 0.0), 0.1  # of which they are
ERRORS = 4.0  # standard errors, of ours and of the known number, that a bound may lie off
KNOWN_ERROR = 0.015
WRONG = "what is called exact is not: look at the process and its prediction"
RULES = [
    *MANIFEST,
    Rule("processes.tasks", "splits", "tasks", "critical", "a split is empty", low=1),
    Rule("processes.leak", "splits", "shared", "critical",
         "tasks that stand in the other split, too: their streams are one", high=0),
    Rule("processes.coverage", "splits", "coverage_off", "critical", WRONG, high=0.03),
    Rule("processes.bound", "splits", "bound_off", "critical", WRONG, high=ERRORS),
    Rule("processes.sizes", "splits", "sizes", "warning",
         "contexts have few different sizes: keep more tasks", low=2),
]  # fmt: skip


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    known = processes_of(asked.parameters, asked["profile"]).datasets
    runner.known("set of functions", asked["dataset"], known)
    told = functions_of(asked.parameters, asked["dataset"])

    def gather(
        raw: Path, prepared: Path, judged: dict[str, str]
    ) -> tuple[dict[str, Table], list[Rule]]:
        return summed(raw, prepared, judged, told), RULES

    return stage.work(asked, MODULE, "prepared", gather, {"made": told.model_dump(mode="json")})


def expected(told: Functions) -> float | None:
    """The bound that is known of such tasks, nats a target."""
    if told.process == "sawtooth":
        return float(-np.log(told.noise) - 0.5 * np.log(2 * np.pi * np.e))
    plain = (told.axes, told.context, told.reach, told.range) == (1, 64, 2.0, 4.0)
    same = (told.low, told.high) == LENGTHS and told.noise == NOISE
    return KNOWN[told.law] if plain and same else None


def summed(raw: Path, prepared: Path, judged: dict[str, str], told: Functions) -> dict[str, Table]:
    """The summaries of a set."""
    manifest, about = files.read_json(raw / "manifest.json"), files.read_json(prepared / ABOUT)
    tensors, rows = load_file(prepared / TASKS), []
    known = expected(told)
    seen = {split: _digests(tensors[f"{split}.target_x"]) for split in about["bound"]}
    for split, bound in about["bound"].items():
        mean, sd = (tensors[f"{split}.exact_{part}"] for part in ("mean", "sd"))
        values = tensors[f"{split}.target_y"][..., 0]
        shares = [float(covered(mean, sd, values, level).mean()) - level for level in (0.5, 0.9)]
        error = float(
            np.hypot(bound["standard_error"], 0 if "saw" in told.process else KNOWN_ERROR)
        )
        others: set[Any] = set().union(*(seen[other] for other in seen if other != split))
        rows.append(
            {
                "split": split,
                "tasks": bound["n"],
                "shared": len(seen[split] & others),
                "coverage_off": max(map(abs, shares)),
                "bound_off": 0.0 if known is None else abs(bound["value"] - known) / error,
                "sizes": len(np.unique(tensors[f"{split}.real"].sum(1))),
            }
        )
    return {**acquired(raw, manifest, judged), "splits": Table(rows, "split")}


def _digests(targets: np.ndarray) -> set[bytes]:
    """Of each task the bytes of its first target, which no two tasks share."""
    return {row[0].tobytes() for row in targets}


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge the tasks that are kept: splits, and whether their exact law is exact."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
