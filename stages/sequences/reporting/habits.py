"""Whether climbs repeat themselves: shares of steps held and of jumps, of models and of the flights
(thesis 4.1, D.4).

A model that goes from left to right and has repeated an altitude may stay there though the cleared
level is far: the thesis' reason for other orders, which it does not measure. Shares are in %, of
the steps produced where the first altitude is given.
"""

from typing import Any

from stages.sequences import comparisons
from stages.sequences.evaluation.vertical import HABITS
from stages.sequences.reporting.arms import (
    Cells,
    Told,
    at,
    called,
    members,
    number,
    ranked,
    standing,
)
from stages.tables.table import NONE, Table

TITLE = "Repetition: steps that stay, and jumps (thesis 4.1 and D.4)"
TITLES = (
    "model",
    "seeds",
    "sampler",
    "steps held [%]",
    "held away from the level [%]",
    "jumps [%]",
)
WORDS = (
    "held: the altitude of the step before; away: more than three bins from the cleared level; a "
    "jump is faster than 6,000 ft/min"
)


def table(cells: Cells, about: dict[str, Any], dataset: str) -> Told | None:
    """The flights themselves first, then a row a model; None for what is no flight."""
    prompt = comparisons.prompt_of(about["kind"])
    truth = about.get("habits", {}).get(prompt)
    if not truth:
        return None

    def share(one: dict[str, Any] | None) -> str:
        return number(one, 100, interval=True)

    known = [truth.get(name) for name in HABITS]
    own = [{"mean": one["value"], "seeds": 1, **one} if one else None for one in known]
    rows = [("the flights themselves", NONE, NONE, *map(share, own))]
    for arm in ranked(cells, dataset):
        path = standing(cells, about, dataset, arm)
        found = [at(cells, dataset, arm, *path, name) if path else None for name in HABITS]
        if path and any(found):
            seeds = str(len(members(cells, dataset, arm)))
            rows.append((called(arm), seeds, path[1], *map(share, found)))
    return Table(f"repetition on {dataset}", TITLES, tuple(rows), frozenset({0, 2})), WORDS
