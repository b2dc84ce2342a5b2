"""Rules on sets of points (the problems beside wind): raw files as acquired, splits that share
nothing, values a network can take in.

Judged are the raw folder and the prepared sets (`sets.safetensors`, standardised where the problem
asks for it). Two sets are the same when all their numbers are, bit for bit: the same set in two
splits would be an answer known beforehand.
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stages import files, runner
from stages.errors import DataError
from stages.splits import SPLITS
from stages.validation import stage
from stages.validation.rules import MANIFEST, Rule, Table, acquired, both

TABLES = ("context_x", "context_y", "target_x", "target_y")
FAR = (
    20.0  # standard deviations of the training sets, or units of a problem that is not standardised
)

RULES = [
    *MANIFEST,
    Rule(
        "sets.splits",
        "splits",
        "split",
        "critical",
        "a split has no sets: give the problem more data",
        allowed=SPLITS,
    ),
    Rule(
        "sets.finite",
        "splits",
        "not_finite",
        "critical",
        "numbers that are not finite: look at the raw files",
        high=0,
    ),
    Rule(
        "sets.leak",
        "splits",
        "elsewhere",
        "critical",
        "sets that stand in another split too: the raw files repeat themselves, split them "
        "otherwise",
        high=0,
    ),
    *both(
        "sets.repeated",
        "splits",
        "repeated",
        "sets that stand twice in a split: look at the raw files",
        warn=0.0,
        stop=0.5,
    ),
    *both(
        "sets.far",
        "splits",
        "far",
        f"values beyond {FAR:g} standard deviations of the training sets",
        warn=0.001,
        stop=0.1,
    ),
    Rule(
        "sets.spread",
        "splits",
        "spread",
        "warning",
        "a split's targets vary much more or less than the training sets'",
        low=0.2,
        high=5.0,
    ),
]


def plan(asked: runner.Asked) -> runner.Work:
    """Judge data/P/raw/D and data/P/prepared/D. InputError for a data set of another family."""
    where = f"profiles.{asked['profile']}.problems"
    runner.known("problem", asked["dataset"], asked.profile.problems, where)
    return stage.work(asked, "stages.fields.validate", "prepared", gather, {})


def gather(
    raw: Path, prepared: Path, judged: dict[str, str]
) -> tuple[dict[str, Table], list[Rule]]:
    """The summaries of a data set and the rules on them."""
    return tables(raw, prepared, judged), RULES


def tables(raw: Path, prepared: Path, judged: dict[str, str]) -> dict[str, Table]:
    """Summaries of the raw folder and of each split. `judged` is the SHA-256 of each file by
    path, taken from disk."""
    manifest = files.read_json(raw / "manifest.json")
    try:
        found = load_file(prepared / "sets.safetensors")
        split, arrays = found["split"], {name: found[name] for name in TABLES}
    except (SafetensorError, KeyError, OSError) as error:
        raise DataError(
            "prepared sets cannot be read",
            where=str(prepared / "sets.safetensors"),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    return {**acquired(raw, manifest, judged), "splits": Table(rows(split, arrays), "split")}


def rows(split: np.ndarray, arrays: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """A row a split that has sets: how many, and the shares of what the rules bound."""
    digests = np.array(
        [
            hashlib.sha256(b"".join(array[k].tobytes() for array in arrays.values())).hexdigest()
            for k in range(len(split))
        ]
    )
    held = [set(digests[split == k]) for k in range(len(SPLITS))]
    spread = float(arrays["target_y"][split == 0].std()) if (split == 0).any() else 0.0
    told = []
    for k, name in enumerate(SPLITS):
        here = split == k
        if not here.any():
            continue
        values = np.concatenate([arrays[part][here].ravel() for part in ("context_y", "target_y")])
        others = set().union(*(held[other] for other in range(len(SPLITS)) if other != k))
        told.append(
            {
                "split": name,
                "sets": int(here.sum()),
                "not_finite": int(
                    sum((~np.isfinite(array[here])).sum() for array in arrays.values())
                ),
                "elsewhere": int(np.isin(digests[here], list(others)).sum()),
                "repeated": 1 - len(held[k]) / int(here.sum()),
                "far": float((np.abs(values) > FAR).mean()),
                "spread": float(arrays["target_y"][here].std()) / spread if spread else 0.0,
            }
        )
    return told


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Judge the prepared sets of a problem."
    return runner.command("stages.fields.validate", about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
