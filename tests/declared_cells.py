"""What a test's project declares as trained: the cells whose folders lie in it, and others."""

import json
from pathlib import Path

from stages import params
from stages.training import cells


def of(runs: Path, *more: str) -> params.Cells:
    """The cells of a data set's folder of runs and `more`, under the profile mini."""
    names = {*more, *(path.name for path in runs.iterdir() if not path.name.startswith("."))}
    told = {name: cells.parse(name) for name in sorted(names)}
    parts = ("model", "arm", "size", "seed")
    declared = {
        f"mini-{runs.name}-{name}": params.Declared(
            dataset=runs.name, **{part: vars(cell)[part] for part in parts}
        )
        for name, cell in told.items()
    }
    return params.Cells(cells=declared)


def write(root: Path, experiment: str, runs: Path, *more: str) -> None:
    """The same as the experiment's cells.yaml in a project; the other profiles have none."""
    told = json.dumps(of(runs, *more).model_dump(exclude_none=True))
    others = "".join(f"{name}: &{name} {{cells: {{}}}}\n" for name in ("sample", "full", "live"))
    file = root / "reports" / experiment / "cells.yaml"
    file.write_text(f"mini: &mini {told}\n{others}run: *mini\n", encoding="utf-8")
