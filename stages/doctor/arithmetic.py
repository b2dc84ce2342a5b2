"""The check of the arithmetic, and `tradewind doctor --arithmetic`: each probed operation's answer.

The check is quick: it asks the processor and NumPy's operations, and loads no torch. The long
answer (`--arithmetic`) loads torch and names every operation. Both speak of this process.
"""

import json
import os
from typing import Any

from stages.arithmetic import COMMON, NATIVE, VARIABLE, able, asked, name, probe, processor
from stages.doctor.environment import INSTALL, named
from stages.doctor.finding import OK, WARN, Finding, Place

JUDGED = "numbers are judged by the tolerance (`tradewind compare`)"


def differing(answers: dict[str, str]) -> list[str]:
    """The operations whose hash is not the reference's."""
    known = probe.reference()
    return [operation for operation, hashed in answers.items() if known.get(operation) != hashed]


def chosen() -> str:
    """The arithmetic of this process, and why where it is the native one."""
    if name() == COMMON:
        return COMMON
    if asked(os.environ) == NATIVE:
        return f"{NATIVE}, as {VARIABLE} asks"
    return f"{NATIVE}, for " + (
        "the environment was changed after the start"
        if able()
        else "this processor is none of x86-64 with AVX2 and FMA"
    )


def arithmetic(place: Place) -> Finding:
    """The arithmetic by its name and NumPy's operations; `doctor --arithmetic` asks torch's too."""
    if name() != COMMON:
        remedy = f"unset {VARIABLE}" if able() else "run on such a processor to get the same bytes"
        return Finding("arithmetic", WARN, f"{chosen()}: {JUDGED}", remedy)
    answers = probe.numpy_operations()
    if other := differing(answers):
        text = f"{COMMON}, but other than the reference in {named(other)}: {JUDGED}"
        return Finding(
            "arithmetic",
            WARN,
            text,
            f"{INSTALL}; `tradewind doctor --arithmetic` lists every operation",
        )
    text = f"{COMMON}; all {len(answers)} operations of NumPy as the reference"
    return Finding("arithmetic", OK, text)


def report() -> dict[Any, Any]:
    """What `--arithmetic` tells: line, arithmetic, processor, numba, each operation's hash."""
    answers, known = probe.numpy_operations() | probe.torch_operations(), probe.reference()
    rows = [
        {"operation": operation, "hash": hashed, "as_reference": known.get(operation) == hashed}
        for operation, hashed in answers.items()
    ]
    return {
        "line": probe.line(),
        "arithmetic": chosen(),
        "processor": processor()["model"],
        "able": able(),
        "numba": probe.target(),
        "operations": rows,
    }


def render(told: dict[Any, Any]) -> str:
    """The report as text; under the common arithmetic each operation that differs is marked."""
    rows, common = told["operations"], told["arithmetic"] == COMMON
    wide = max(len(row["operation"]) for row in rows)
    other = [row["operation"] for row in rows if not row["as_reference"]]
    lines = [
        f"line        {told['line']}",
        f"arithmetic  {told['arithmetic']}",
        f"processor   {told['processor'] or 'unknown'}: it can"
        + ("" if told["able"] else "not")
        + " compute in the common arithmetic",
        f"numba       compiles for {told['numba']}",
        "",
    ]
    for row in rows:
        mark = "  other than the reference" if common and not row["as_reference"] else ""
        lines.append(f"{row['operation']:{wide}}  {row['hash']}{mark}")
    end = f"{len(rows)} operations, {len(other)} other than the reference"
    return "\n".join([*lines, end + (f": {JUDGED}" if other else "")])


def main(machine_readable: bool) -> int:
    """Print the report; 0 whatever it says, for another arithmetic is no failure."""
    told = report()
    print(json.dumps(told, indent=2, ensure_ascii=False) if machine_readable else render(told))
    return 0
