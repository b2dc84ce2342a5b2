"""A Finding as text for a person: the chain, what is wrong, what rests on it, the verdict.

Whatever looks like a credential is struck out: user names, passwords and query strings of URLs, and
KEY=value pairs whose key names a secret. Records hold none by design; a source that came from a
private mirror's URL might.
"""

import re

from stages.audit.finding import Finding

STRUCK = (
    (re.compile(r"(?<=://)[^/\s@]+@"), "***@"),
    (re.compile(r"(\b\w+://[^\s?#,;]+)[?#][^\s,;]*"), r"\1?***"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|credential)[\w-]*\s*[=:]\s*)"
            r"[^\s,;&]+"
        ),
        r"\1***",
    ),
)
MARKS = {"ok": "ok  ", "FAIL": "FAIL", "INCONCLUSIVE": "?   ", "STALE": "old "}


def redact(text: str) -> str:
    """The text without credentials."""
    for pattern, replacement in STRUCK:
        text = pattern.sub(replacement, text)
    return text


def render(finding: Finding) -> str:
    """The finding as lines of text, the verdict last."""
    lines = [f"{finding.metric}   (verified by {finding.depth}, {len(finding.files)} files)", ""]
    for step in finding.steps:
        arrow = f"<- {step.stage}" if step.stage not in ("value", "") else step.stage
        path = step.path if step.stage else "  " + step.path.rpartition("/")[2]
        lines.append(
            f"{MARKS[step.status]} {arrow:12} {path}" + (f"   {step.detail}" if step.detail else "")
        )
    for problem in finding.problems:
        lines += ["", f"{problem.verdict}: {problem.path}", f"  {problem.text}"]
        lines += [f"  made by: {problem.producer}"] if problem.producer else []
    if finding.resting:
        lines += [
            "",
            (
                f"{len(finding.resting)} published numbers rest on a file whose bytes are not "
                "those recorded:"
            ),
        ]
        lines += [
            f"  {cell}: {', '.join(names)}" for cell, names in grouped(finding.resting).items()
        ]
    lines += [f"note: {note}" for note in finding.notes]
    return redact("\n".join([*lines, "", finding.verdict]))


def grouped(metrics: list[str]) -> dict[str, list[str]]:
    """Metric names by their cell."""
    cells: dict[str, list[str]] = {}
    for metric in metrics:
        cell, _, name = metric.rpartition("/")
        cells.setdefault(cell, []).append(name)
    return cells
