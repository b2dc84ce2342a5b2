"""`tradewind doctor`: what is amiss with this machine and this working copy, and what mends each
thing.

A check is a function of the place (the project's folder and the environment) that returns one
Finding or several: ok, warn (works, but look) or fail (something will not work). A check that
breaks is itself a failed finding. No network but loopback, nothing is written, no secret is shown:
every text passes `safe`. Bytes are shown in GiB (2^30).
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.doctor import alone, arithmetic, environment, machine, project, running, sources
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place, safe
from stages.errors import ParamsError

CHECKS: dict[str, Callable[[Place], "Finding | list[Finding]"]] = {
    "python": environment.python,
    "packages": environment.packages,
    "pins": environment.pins,
    "pairs": environment.pairs,
    "variables": environment.variables,
    "arithmetic": arithmetic.arithmetic,
    "disk": machine.disk,
    "memory": machine.memory,
    "gpu": machine.gpu,
    "clock": machine.clock,
    "parameters": project.parameters,
    "git": project.git,
    "dvc": project.dvc,
    "cache": project.cache,
    "remotes": project.remotes,
    "manifests": project.manifests,
    "locks": project.lockfiles,
    "dvc runs": running.dvc_runs,
    "flow": running.flow,
    "left-overs": running.left_over,
    "prefect": running.prefect,
    "mirror": sources.mirror,
}
COLOURS = {OK: "\033[32m", WARN: "\033[33m", FAIL: "\033[31m"}


def examine(
    root: Path, environ: dict[str, str], checks: dict[str, Callable[..., Any]] | None = None
) -> list[Finding]:
    """The findings of every check, in their order, without secrets; outside a clone those of what
    an installed package needs."""
    place, found = Place(Path(root), environ), []
    if checks is None:
        checks = alone.CHECKS if alone.alone(place) else CHECKS
    for name, check in checks.items():
        try:
            told = check(place)
        except ParamsError:  # told once, by the check of the parameters
            told = Finding(
                name,
                WARN,
                "not looked at: the parameters are not right",
                "mend what `parameters` tells above, then ask again",
            )
        except Exception as error:  # a check that breaks says so; the others still speak
            told = Finding(
                name,
                FAIL,
                f"the check itself broke: {type(error).__name__}: {error}",
                "tell the project's makers",
            )
        found += told if isinstance(told, list) else [told]
    return [
        Finding(f.name, f.state, safe(f.found, environ), safe(f.remedy, environ)) for f in found
    ]


def exit_code(findings: list[Finding]) -> int:
    """0 when nothing failed, else 1."""
    return int(any(finding.state == FAIL for finding in findings))


def render(findings: list[Finding], colour: bool = False) -> str:
    """A line a finding, its remedy below it, and a count of what failed and what was warned of."""
    wide, lines = max((len(finding.name) for finding in findings), default=0), []
    for finding in findings:
        state = (
            f"{COLOURS[finding.state]}{finding.state:4}\033[0m" if colour else f"{finding.state:4}"
        )
        lines.append(
            f"{state}  {finding.name:{wide}}  "
            + finding.found.replace("\n", "\n" + " " * (wide + 8))
        )
        if finding.remedy and finding.state != OK:
            lines.append(" " * (wide + 8) + f"remedy: {finding.remedy}")
    states = [finding.state for finding in findings]
    lines.append(
        f"{len(findings)} findings: {states.count(FAIL)} failed, {states.count(WARN)} to look at"
    )
    return "\n".join(lines)


def as_json(findings: list[Finding]) -> str:
    """{"ok": bool, "findings": [{"name", "state", "found", "remedy"}]} as strict JSON."""
    return json.dumps(
        {"ok": not exit_code(findings), "findings": [vars(finding) for finding in findings]},
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def main(root: Path, environ: dict[str, str], machine_readable: bool) -> int:
    """Examine, print, and return the exit code; colours only where a terminal shows them and
    NO_COLOR is not set."""
    findings = examine(root, environ)
    print(
        as_json(findings)
        if machine_readable
        else render(findings, sys.stdout.isatty() and not environ.get("NO_COLOR"))
    )
    return exit_code(findings)
