"""Whether what was prepared and evaluated of neural processes says one thing (stages/audit/
agreeing.py): fields/bounded.py, and what is drawn is a kept task. No stage runs this."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stages import params
from stages.audit import agreeing, apiece
from stages.audit.agreeing import Found
from stages.fields import bounded
from stages.fields.processes.layout import BANDS, EXACT, PRIOR
from stages.fields.processes.settings import FAMILY, Processes
from stages.files import read_json
from stages.scores.scores import crps

ROUNDED = 1e-3  # relative: bands are kept with four digits


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    told = agreeing.parameters(Path.cwd() / params.WHOLE).family(home.parts[2], FAMILY, Processes)
    mean = apiece.resampled(FAMILY, told.asked.resamples if told.asked else 0)
    yield from bounded.evaluated(
        home, {EXACT: "exact"}, PRIOR, lambda law, y: {"crps": crps(*law, y).mean(1)}, mean
    )
    cells = read_json(home / "metrics.json")["cells"]
    where, drawn = (home / BANDS).as_posix(), read_json(home / BANDS)
    trained = {name for name, entry in cells.items() if "weights" in entry}
    for name in sorted(trained ^ drawn["cells"].keys()):
        yield where, f"{name} stands in one of it and metrics.json alone"
    if drawn["truth"].get("target_x"):
        kept = bounded.Kept.open(Path("data", home.parts[2], "prepared", home.name), "test")
        shown = {name: np.array(drawn["truth"][name]) for name in ("target_x", "target_y")}
        if not bounded.task_of(kept, shown, ROUNDED):
            yield where, "the task that is drawn is none of the prepared ones"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": bounded.prepared, "evaluated": evaluated}
    return agreeing.main("stages.fields.processes.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
