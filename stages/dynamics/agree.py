"""Whether what was prepared and evaluated of dynamical systems says one thing (stages/audit/
agreeing.py): no state in two parts of a series, one horizon in its three units, no forecast beyond
the solver's. No stage runs this.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.dynamics.layout import ABOUT, SERIES
from stages.files import read_json

SOLVER, VALID = "solver", "valid_time"
ROUNDED = 2e-3  # relative: curves are kept with four digits


def prepared(home: Path) -> Found:
    """States of validation or test that have the values of training ones."""
    series = np.load(home / SERIES, allow_pickle=False)  # (members, times, values)
    parts = read_json(home / ABOUT)["parts"]
    cut = {
        name: series[:, low:high].reshape(-1, series.shape[2])
        for name, (low, high) in parts.items()
    }
    states = np.concatenate([cut["train"], cut["val"], cut["test"]])
    train = np.arange(len(states)) < len(cut["train"])
    pairs = agreeing.alike(states, train, ~train)
    yield from agreeing.leaked((home / SERIES).as_posix(), "states", pairs)


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where = (home / "metrics.json").as_posix()
    told = read_json(home / "metrics.json")
    cells, about = told["cells"], told["about"]
    own = read_json(Path("data", home.parts[2], "prepared", home.name) / ABOUT)
    for key in ("exponent", "step", "system", "printed_exponent", "change"):
        if about[key] != own[key]:
            yield where, f"it tells another {key} of the system than what was prepared"
    for cell, entry in cells.items():
        found = {name: one["value"] for name, one in entry["metrics"].items()}
        time, unit = found.get(VALID), about["unit"]
        others = {} if time is None else {"vpt": time * unit, "vpt_document": time / unit}
        for name, value in others.items():
            if name in found and not near(found[name], value):
                yield where, f"{cell} is valid for {time}, which is not its {name} {found[name]}"
    yield from agreeing.common(home)
    if SOLVER in cells:
        best = cells[SOLVER]["metrics"][VALID]
        for cell, entry in cells.items():
            one = entry["metrics"].get(VALID)
            if one and one["value"] > best["high"] and one["low"] > best["value"]:
                text = (
                    f"{cell} is valid for {one['value']:.6g}, longer than is possible: the solver"
                )
                yield where, f"{text} at a finer step for {best['value']:.6g}"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.dynamics.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
