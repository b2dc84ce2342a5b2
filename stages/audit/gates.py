"""The gates of a chain: each stands open, says what its own results say, and judged these bytes.

A gate's file holds every expectation with what was observed, and from these what failed and what
warned (stages/validation/gate.py). Whoever trims a warning has to drop its expectation, too; what
was then expected of the data no longer is what the gate's code expects, which `raw` makes again.
"""

from collections.abc import Iterator
from typing import Any

from stages.audit.case import Case
from stages.audit.finding import Problem
from stages.errors import DataError
from stages.files import read_json

BELOW = "nothing below it holds"


def gates(case: Case) -> Iterator[Problem]:
    """Each gate of the chain is open and agrees with itself and with the records."""
    for node in case.chain.nodes:
        for home in node.homes if node.stage == "validate" and not node.error else ():
            if not (case.root / home).is_file():
                continue  # presence says so
            try:
                texts = [*shut(read_json(case.root / home)), *elsewhere(case, home)]
            except (DataError, KeyError, TypeError, AttributeError, ValueError) as error:
                texts = [f"it is no gate's file ({' '.join(str(error).split())})"]
            yield from (case.fails(home, f"{text}: {BELOW}", broken=True) for text in texts)


def shut(gate: dict[str, Any]) -> Iterator[str]:
    """Why a gate is not open, or says otherwise than its own expectations."""
    results = gate["expectations"]
    for name, severity in (("critical_failed", "critical"), ("warnings", "warning")):
        failed = [r["name"] for r in results if r["severity"] == severity and not r["success"]]
        if gate[name] != failed:
            yield f"its {name} are {gate[name]}, by its expectations they are {failed}"
    for one in results:
        if one["success"] and within(one["observed"], one["limit"]) is False:
            yield f"{one['name']} observed {one['observed']}, which is not {one['limit']}"
    if not results:
        yield "it expects nothing"
    if gate["success"] is not True or gate["critical_failed"] or gate["internal_errors"]:
        yield "it is shut"


def within(observed: Any, limit: str) -> bool | None:
    """Whether what was observed is within a limit told in words; None where it is of another kind.

    Limits are told with six digits.
    """
    words = limit.split()
    if words[0] == "exactly":
        return sorted(observed) == sorted(limit.removeprefix("exactly ").split(", "))
    values = observed if isinstance(observed, list) else [observed]
    if not values or not all(isinstance(one, (int, float)) for one in values):
        return None
    near = 1e-5 * max(1.0, *map(abs, values))
    if words[:2] == ["at", "least"]:
        return min(values) >= float(words[2]) - near
    if words[:2] == ["at", "most"]:
        return max(values) <= float(words[2]) + near
    if len(words) == 3 and words[1] == "to":
        return float(words[0]) - near <= min(values) and max(values) <= float(words[2]) + near
    return None


def elsewhere(case: Case, home: str) -> Iterator[str]:
    """Files that the gate judged as other bytes than their records tell."""
    for path, sha in read_json(case.root / home)["judged"].items():
        owner = case.ledger.owner(path)
        made = owner.record["outputs"].get(path) if owner and not owner.error else None
        if made is None or made["sha256"] != sha:
            said = made["sha256"][:12] if made else "nothing"
            yield f"it judged {path} as {sha[:12]}, its record tells {said}"


ALL = (gates,)
