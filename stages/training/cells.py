"""A cell: one model, arm, size and seed; its name is its folder's name.

Models that come in one form only (arm "plain", no sizes) are named by the model: `knn`; others
`msa-shared-5k-s0`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.errors import InputError
from stages.params import Params, nearest, read_yaml

PLAIN, NONE = "plain", "none"
SWEPT = "swept"  # the arm that takes what the model's sweep found


@dataclass(frozen=True)
class Cell:
    """What is trained. training: settings that its declaration varies, by name; they are no part
    of what it is called."""

    model: str
    arm: str = PLAIN
    size: str = NONE
    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The folder's name."""
        return (
            self.model
            if (self.arm, self.size) == (PLAIN, NONE)
            else f"{self.model}-{self.arm}-{self.size}-s{self.seed}"
        )


def parse(name: str) -> Cell:
    """The cell of a folder's name. InputError when it is none."""
    form = re.fullmatch(r"([a-z0-9_]+)(?:-([a-z0-9_]+)-([a-z0-9_]+)-s(\d+))?", name)
    if not form:
        raise InputError(
            "not the name of a cell",
            found=repr(name),
            expected="MODEL or MODEL-ARM-SIZE-sSEED, as in msa-shared-5k-s0",
        )
    model, arm, size, seed = form.groups()
    return Cell(model) if arm is None else Cell(model, arm, size, int(seed))


def arguments(cell: Cell, params: Params, swept: Path | None = None) -> dict[str, Any]:
    """The arm's and the size's arguments of a cell, from params.yaml; of the arm `swept` also what
    its sweep found.

    InputError with the nearest name for an unknown one, and where a sweep was asked for and its
    best.yaml is missing.
    """

    def entry(what: str, name: str, known: dict[Any, Any]) -> Any:
        if name not in known:
            raise InputError(
                f"unknown {what}",
                found=repr(name),
                expected=nearest(name, known).lstrip("; "),
                remedy="see models in params.yaml",
            )
        return known[name]

    model = entry("model", cell.model, params.models)
    arm = entry(f"arm of {cell.model}", cell.arm, model.arms)
    size = entry(f"size of {cell.model}", cell.size, model.sizes or {NONE: {}})
    if cell.arm != SWEPT or swept is None:
        return {**arm, **size}
    if not swept.exists():
        raise InputError(
            "the model's arguments come from a sweep that has not run",
            where=str(swept),
            remedy="run `dvc repro`",
        )
    return {**arm, **size, **read_yaml(swept)["arguments"]}
