"""A comparison as text: a short table, what moved and by how much, the verdicts that changed,
where to look."""

from stages.audit.comparison import FAR, RATE, Comparison, Judged, Moved
from stages.tables import parts

FEW = 8  # numbers that are named of a table
VERDICTS = {
    "identical": "IDENTICAL: every number to the last bit.",
    "reproduced": "REPRODUCED: what differs is what training does by itself where rounding or the "
    "seed changes.",
    "edited": "OTHER CODE OR PARAMETERS: numbers moved, and records name an edit; `tradewind why` "
    "tells which.",
    "moved": f"MOVED: more than {RATE:.0%} of the numbers that differ are beyond the spread of "
    f"training, or one is {FAR:g} times beyond it.",
    "FAIL": "FAIL: something differs that no arithmetic explains.",
}


def render(found: Comparison, every: bool = False) -> str:
    """The comparison; all that moved where `every`, else the farthest of each table."""
    lines = [f"{found.names[1]} compared with {found.names[0]}"]
    there, here = (", ".join(lines) for lines in found.arithmetic)
    if there or here:
        lines.append(f"arithmetic of what differs: there {there or 'none'}; here {here or 'none'}")
    lines += ["", *counts(found.tables), ""]
    for table in found.tables:
        lines += told_of(table, every)
    lines += absent(found.tables, found.names)
    if found.edited:
        more = f" and {len(found.edited) - 3} more" if len(found.edited) > 3 else ""
        lines += [
            (
                f"{len(found.edited)} records name other code or parameters: "
                f"{', '.join(found.edited[:3])}{more}"
            ),
            "",
        ]
    lines.append(VERDICTS[found.verdict])
    if found.verdict != "identical":
        lines.append(
            "`tradewind audit NUMBER` walks to a number's bytes, `git diff` shows the files."
        )
    return "\n".join(lines)


def counts(tables: list[Judged]) -> list[str]:
    """A row an experiment and profile; profiles without any difference in one row."""
    rows: list[tuple[str, ...]] = [
        ("experiment", "profile", "numbers", "identical", "reproduced", "moved", "claims changed")
    ]
    tables = [table for table in tables if table.count or table.failures]
    same = [
        table
        for table in tables
        if not (table.reproduced or table.moved or table.failures or table.claims)
    ]
    for table in tables:
        if table not in same:
            counted = (
                table.count,
                table.identical,
                table.reproduced,
                len(table.moved),
                len(table.claims),
            )
            rows.append((table.experiment, table.profile, *(f"{count:,}" for count in counted)))
    if same:
        total = f"{sum(table.count for table in same):,}"
        rows.append(
            (
                f"{len(same)} {'others' if len(same) < len(tables) else 'tables'}",
                "",
                total,
                total,
                "0",
                "0",
                "0",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [
        f"{cell:<{width}}" if place < 2 else f"{cell:>{width}}"
        for row in rows
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    size = len(widths)
    return [
        "  ".join(aligned[start : start + size]).rstrip() for start in range(0, len(aligned), size)
    ]


def told_of(table: Judged, every: bool) -> list[str]:
    """What fails, what moved, farthest first, and which verdicts changed."""
    name = f"{table.experiment}/{table.profile}"
    lines = [f"FAIL {name}: {failure}" for failure in table.failures]
    farthest = sorted(table.moved, key=lambda one: (-one.times, one.address))
    lines += [f"moved {name}/{line(one)}" for one in (farthest if every else farthest[:FEW])]
    if len(farthest) > FEW and not every:
        lines.append(f"  and {len(farthest) - FEW} more (--every names all)")
    lines += [f"claim {name}: {claim} {there} -> {here}" for claim, there, here in table.claims]
    return [*lines, ""] if lines else []


def absent(tables: list[Judged], names: tuple[str, str]) -> list[str]:
    """What cannot be compared, a line a profile and side: whose parts of tables are not here."""
    sides = dict(zip(("there", "here"), names, strict=True))
    grouped: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        if table.apart:
            gone = " and ".join(f"in {sides[side]}" for side in table.apart)
            grouped.setdefault((table.profile, gone), []).append(table.experiment)
    return [
        f"not compared: {parts.BREAKDOWNS} of {profile}'s {', '.join(experiments)} "
        f"{'is' if len(experiments) == 1 else 'are'} missing {gone}; "
        f"`make repro PROFILE={profile}` makes {'it' if len(experiments) == 1 else 'them'}, or "
        "`dvc pull`\n"
        for (profile, gone), experiments in grouped.items()
    ]


def line(one: Moved) -> str:
    """'cells/simulated/.../value: 13.88 -> 14.91, 1.7 times the tolerance of 0.6'."""
    if one.there is None or one.here is None:
        return (
            f"{one.address}: {'not there' if one.there is None else f'{one.there:.6g}'} -> "
            f"{'gone' if one.here is None else f'{one.here:.6g}'}"
        )
    known = (
        f"{one.times:.3g} times the tolerance of {one.tolerance:.3g}"
        if one.tolerance
        else "no spread was measured for its kind"
    )
    return f"{one.address}: {one.there:.6g} -> {one.here:.6g}, {known}"
