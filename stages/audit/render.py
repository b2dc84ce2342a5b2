"""A Finding as text for a person: the chain, what is wrong, what rests on it, the verdict.

Whatever looks like a credential is struck out: user names, passwords and query strings of URLs, and
KEY=value pairs whose key names a secret. Records hold none by design; a source that came from a
private mirror's URL might.
"""

import re

from stages.audit.finding import Finding, Problem

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


HIDDEN = {n: f"\\x{n:02x}" for n in (*range(10), *range(11, 32), *range(127, 160))}
HIDDEN |= {n: f"\\u{n:04x}" for n in (*range(0x200B, 0x2010), *range(0x2028, 0x202F))}
HIDDEN |= {n: f"\\u{n:04x}" for n in range(0x2066, 0x206A)}


def one_line(text: str) -> str:
    """Text that came from a file or its name, so that it cannot pass for lines of ours."""
    return text.replace("\n", "\\n").translate(HIDDEN)


def redact(text: str) -> str:
    """The text without credentials, and without what a terminal would obey."""
    text = text.translate(HIDDEN)
    for pattern, replacement in STRUCK:
        text = pattern.sub(replacement, text)
    return text


def render(finding: Finding) -> str:
    """The finding as lines of text, the verdict last."""
    lines = [f"{finding.metric}   (verified by {finding.depth}, {len(finding.files)} files)", ""]
    for step in finding.steps:
        arrow = f"<- {step.stage}" if step.stage not in ("value", "") else step.stage
        path = step.path if step.stage else "  " + step.path.rpartition("/")[2]
        line = f"{MARKS[step.status]} {arrow:12} {path}"
        lines.append(one_line(line + (f"   {step.detail}" if step.detail else "")))
    for problem in finding.problems:
        lines += ["", *problem_lines(problem)]
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
    lines += [one_line(f"note: {note}") for note in finding.notes]
    return redact("\n".join([*lines, "", finding.verdict]))


def problem_lines(problem: Problem) -> list[str]:
    """A problem as lines: its verdict and file, what is wrong, who made it."""
    lines = [f"{problem.verdict}: {problem.path}", f"  {problem.text}"]
    lines += [f"  made by: {problem.producer}"] if problem.producer else []
    return [one_line(line) for line in lines]


def grouped(metrics: list[str]) -> dict[str, list[str]]:
    """Metric names by their cell."""
    cells: dict[str, list[str]] = {}
    for metric in metrics:
        cell, _, name = metric.rpartition("/")
        cells.setdefault(cell, []).append(name)
    return cells
