"""What was probed of models of fields, over the seeds of each arm."""

from statistics import fmean, stdev
from typing import Any

from stages.tables.table import arm_of


def leaves(
    content: dict[str, Any], path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Every {"value", ...} in nested mappings by its path."""
    if "value" in content:
        return {path: content}
    return {
        key: one
        for name, below in content.items()
        if isinstance(below, dict)
        for key, one in leaves(below, (*path, name)).items()
    }


def probed(cells: dict[str, Any], dataset: str, group: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Arm -> name -> mean (and std) over its seeds of one group of probes; a name that a seed
    lacks is left out."""
    members: dict[str, list[dict]] = {}
    for name, content in cells.items():
        if name.startswith(dataset + "/") and group in content.get("probes", {}):
            members.setdefault(arm_of(name).partition("/")[2], []).append(
                leaves(content["probes"][group])
            )
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for arm, rows in sorted(members.items()):
        found[arm] = {}
        for path in (path for path in rows[0] if all(path in row for row in rows)):
            values = [row[path]["value"] for row in rows]
            found[arm]["/".join(path)] = {
                "mean": fmean(values),
                "seeds": len(values),
                "capped": any(row[path].get("capped") for row in rows),
            } | ({"std": stdev(values)} if len(values) > 1 else {})
    return found
