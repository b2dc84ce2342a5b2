"""What a search of the family leaves in git: best.yaml, which training reads; trials.csv, a row a
trial; importance.csv, what the valid time depends on.

A trial's value, in the last column but one, is minus its mean valid time on the part that selects,
in Lyapunov times, since searches minimise. Before it stand its valid times on parts of what trains
and of what tests, its losses, and how far it came. No row tells seconds: the same draws give the
same bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from stages import records
from stages.dynamics.layout import BEST, IMPORTANCE, TRIALS
from stages.dynamics.settings import OF_TRAINING
from stages.params import Sweep
from stages.sweeps import outputs
from stages.sweeps.ledger import Draw
from stages.sweeps.search import best

VALUE = "minus_vpt_val"  # what a search minimises
TOLD = ("vpt_val", "vpt_train", "vpt_test", "loss_train", "loss_val", "weights", "steps")
Row = Mapping[str, Any]


def place(folder: Path, arguments: Mapping[str, Any]) -> Path:
    """Where a trial tells its row until the search's outputs stand."""
    return folder / f"{records.key('trial', dict(arguments))}.json"


def write(folder: Path, draws: list[Draw], wanted: Sweep, rows: Mapping[int, Row]) -> None:
    """The three files; `rows` by draw. DataError when no trial has a finite value."""
    chosen, names = best(draws), list(wanted.space)
    states = [draw.state for draw in draws]
    drawn = {name: chosen.arguments[name] for name in names}
    told = {
        "arguments": {name: one for name, one in drawn.items() if name not in OF_TRAINING},
        "training": {name: one for name, one in drawn.items() if name in OF_TRAINING},
        VALUE: chosen.value,
        "trials": len(draws),
        "sampler": wanted.sampler,
        "finished": states.count("finished"),
        "pruned": states.count("pruned"),
        "not_finite": states.count("not finite"),
    }
    with (folder / BEST).open("w", encoding="utf-8") as stream:
        stream.write(
            f"# Found by the sweep stage: trial {chosen.draw} of {len(draws)}, by its valid time "
            "on the part that selects, in Lyapunov times.\n"
        )
        YAML().dump(told, stream)
    table = [
        [draw.draw, *(draw.arguments[name] for name in names),
         *(rows.get(draw.draw, {}).get(name) for name in TOLD), draw.value, draw.state]
        for draw in draws
    ]  # fmt: skip
    outputs.table(folder / TRIALS, ["draw", *names, *TOLD, VALUE, "state"], table)
    titles = ["argument", "scale", "importance", "by"]
    outputs.table(folder / IMPORTANCE, titles, outputs.importance(draws, wanted))
