"""The answer of `tradewind why` as text: the number on the first line, then the causes, each with
the stage where it enters.

Long lists of one kind at one stage are cut, so that a wide change stays readable.
"""

from typing import Any

from stages.audit.amiss import few
from stages.audit.causes import PROOFLESS, Change
from stages.audit.render import redact
from stages.audit.why import Why, main

MOST = 10  # lines of one kind at one stage
WIDE = 64  # letters, beyond which the column of stages is not moved further


def render(answer: Why) -> str:
    """The answer as lines of text."""
    a, b = (commit[:12] for commit in answer.commits)
    if answer.absent:
        side, entry = (b, answer.new) if answer.new else (a, answer.old)
        first = f"{number(main(entry))} {unit(entry)}".rstrip() + f", at {side} only"
        return redact(
            "\n".join([first, f"{answer.metric}   {a}..{b}", f"the other: {answer.absent}"])
        )
    lines = [headline(answer), f"{answer.metric}   {a}..{b}", ""]
    if answer.moved:
        proved = [cause for cause in answer.causes if cause.kind not in PROOFLESS]
        lines += table("cause" if len(proved) == 1 else "causes", proved)
        lines += [
            f"FAIL: {cause.what} ({cause.stage}): {cause.how}"
            for cause in answer.causes
            if cause.kind in PROOFLESS
        ]
        lines += table("raw files that are other by that", answer.followed)
    lines += table(
        "changed in its cone" + (" without effect on it" if answer.moved else ""), answer.idle
    )
    if not answer.moved and not answer.idle:
        lines.append("nothing changed in its cone")
    return redact("\n".join([*lines, *(f"stale: {text}" for text in answer.stale)]).rstrip())


def headline(answer: Why) -> str:
    """'7.42 → 7.51 kn (+0.09)', or '7.42 kn, unchanged'."""
    old, new = main(answer.old), main(answer.new)
    if not answer.moved:
        rest = sorted(
            key
            for key in answer.old.keys() | answer.new.keys()
            if answer.old.get(key) != answer.new.get(key)
        )
        return (
            f"{number(new)} {unit(answer.new)}".rstrip()
            + ", unchanged"
            + (f" (but its {', '.join(rest)} changed)" if rest else "")
        )
    digits = next((d for d in range(4, 18) if f"{old:.{d}g}" != f"{new:.{d}g}"), 17)
    digits = min(17, digits + 1)
    text = (
        f"{old:.{digits}g} → {new:.{digits}g} {unit(answer.new)}".rstrip() + f" ({new - old:+.3g})"
    )
    return (
        text
        if unit(answer.old) == unit(answer.new)
        else text + f", its unit was {unit(answer.old) or 'none'}"
    )


def number(value: float) -> str:
    """A number with as many digits as tell it."""
    return f"{value:.6g}"


def unit(entry: dict[Any, Any]) -> str:
    """The unit; nothing for a pure number."""
    return "" if entry.get("unit") in (None, "1") else str(entry["unit"])


def table(title: str, changes: list[Change]) -> list[str]:
    """Changes as aligned lines under a title, at most MOST of one kind at one stage; nothing for
    none."""
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for change in changes:
        groups.setdefault((change.kind, place(change)), []).append(
            (change.kind, f"{change.what}: {change.how}", place(change))
        )
    rows = []
    for (kind, where), lines in groups.items():
        rows += (
            lines
            if len(lines) <= MOST
            else [*lines[: MOST - 1], (kind, f"and {len(lines) - MOST + 1} more", where)]
        )
    wide = min(WIDE, max((len(text) for _, text, _ in rows), default=0))
    return (
        [
            title,
            *(f"  {kind:11}  {text:{wide}}  {where}".rstrip() for kind, text, where in rows),
            "",
        ]
        if rows
        else []
    )


def place(change: Change) -> str:
    """The stage where a change enters, and which others have it."""
    return change.stage + (f"  (also {few(list(change.also), 1)})" if change.also else "")
