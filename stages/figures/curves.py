"""Validation losses against steps, of every arm over its seeds."""

from typing import Any

import numpy as np

from stages.tables.table import arm_of


def curves(cells: dict[str, Any], dataset: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Arm -> steps (N,) that all its seeds reached and their validation losses (seeds, N)."""
    members: dict[str, list[dict[int, float]]] = {}
    for name, content in cells.items():
        told = content.get("history", {}).get("val", [])
        if name.startswith(dataset + "/") and len(told) > 1:
            members.setdefault(arm_of(name).partition("/")[2], []).append(
                {int(step): float(loss) for step, loss in told}
            )
    found = {}
    for arm, seeds in members.items():
        steps = sorted(set.intersection(*map(set, seeds)))
        found[arm] = (np.array(steps), np.array([[seed[step] for step in steps] for seed in seeds]))
    return found
