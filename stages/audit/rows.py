"""Questions about rows, answered from provenance (`tradewind rows`): which were trained on, from
which files; which are on both sides.

A prepared row, set or sequence carries the source file and the record of it that it came from; two
are the same where these are, whatever their values (rows_read.py). Winds are split by time, so an
aircraft may fly on both sides: that is told apart from a row that stands on both.
Units: s since 1970 (UTC).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from stages.audit.rows_read import PreparedRows
from stages.errors import InputError
from stages.params import nearest
from stages.splits import SPLITS


@dataclass(frozen=True)
class Place:
    """How many of the rows asked for stand in a split in a role, from which files, and when."""

    split: str
    role: str
    count: int
    files: dict[str, int]
    times: tuple[float, float] | None


@dataclass
class Shared:
    """What stands in train and in another split: the very rows, groups (a trajectory, a layout, an
    aircraft of a split by aircraft) as leaks; flights, aircraft and files as facts. `examples`
    names some."""

    held: PreparedRows
    leaks: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 where something leaks."""
        return int(any(self.leaks.values()))


def ask(
    held: PreparedRows,
    *,
    day: str | None = None,
    aircraft: str | None = None,
    flight: int | None = None,
    file: str | None = None,
) -> list[Place]:
    """Where the rows asked for stand: one Place a split and role (and `none`: prepared, but of no
    split). All that is asked must hold.

    InputError for what the data set does not store, for an unknown aircraft or file, and for a day
    that is none.
    """
    chosen = np.ones(len(held.source), bool)
    if day is not None:
        chosen &= on(held, day)
    if aircraft is not None:
        stored(held, "aircraft", held.aircraft)
        if (name := aircraft.strip().upper()) not in set(held.aircraft.tolist()):
            raise InputError(
                "no prepared row is of that aircraft",
                where=held.dataset,
                found=hint(aircraft, set(held.aircraft.tolist())),
            )
        chosen &= held.aircraft == name
    if flight is not None:
        stored(held, "flight", held.flight)
        chosen &= held.flight == flight
    if file is not None:
        if Path(file).name not in held.files:
            raise InputError(
                "no prepared row is of that file", where=held.dataset, found=hint(file, held.files)
            )
        chosen &= held.source == held.files.index(Path(file).name)
    roles = sorted(held.roles.items(), key=lambda item: SPLITS.index(item[0][0]))
    places = [place(held, split, role, mask & chosen) for (split, role), mask in roles]
    outside = chosen & ~np.logical_or.reduce(list(held.roles.values()))
    return [*places, place(held, "none", held.noun, outside)]


def stored(held: PreparedRows, what: str, array: np.ndarray | None) -> None:
    """InputError, by name, where the data set does not store what is asked."""
    if array is None:
        raise InputError(
            f"this data set cannot be asked by {what}",
            where=held.dataset,
            found=held.missing.get(what, "it is not stored"),
            remedy="ask by --file",
        )


def hint(word: str, known: Iterable[str]) -> str:
    """The word with the nearest known one, without listing all."""
    return word + nearest(word, known).split(" (known:")[0]


def on(held: PreparedRows, day: str) -> np.ndarray:
    """N bool: the rows of a UTC day."""
    stored(held, "day", held.time_s)
    try:
        start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    except ValueError:
        raise InputError("that is no day", found=day, expected="YYYY-MM-DD (UTC)") from None
    return (held.time_s >= start.timestamp()) & (
        held.time_s < (start + timedelta(days=1)).timestamp()
    )


def place(held: PreparedRows, split: str, role: str, mask: np.ndarray) -> Place:
    """The rows of a mask, by file."""
    count = (
        np.bincount(held.source[mask], minlength=len(held.files))
        if mask.any()
        else np.zeros(len(held.files), int)
    )
    times = (
        (float(held.time_s[mask].min()), float(held.time_s[mask].max()))
        if held.time_s is not None and mask.any()
        else None
    )
    return Place(
        split,
        role,
        int(mask.sum()),
        {name: int(n) for name, n in zip(held.files, count, strict=True) if n},
        times,
    )


def both(held: PreparedRows) -> Shared:
    """What stands in train and in val or test: the very rows, groups; flights, aircraft and
    files."""
    found = Shared(held)
    train, other = held.side("train"), held.side("val") | held.side("test")
    keys = held.source.astype(np.int64) << 40 | held.record.astype(np.int64)
    counted = {
        f"identical {held.noun} (one record of one file)": (keys, True),
        "groups": (held.group, True),
        "flights": (held.flight, False),
        "aircraft": (held.aircraft, held.time_s is None),
        "files": (held.source, False),
    }
    for name, (values, leak) in counted.items():
        if values is not None:
            common = np.intersect1d(values[train], values[other])
            common = common[common != ""] if common.dtype.kind == "U" else common
            (found.leaks if leak else found.facts)[name] = len(common)
            found.examples[name] = [named(held, name, value) for value in common[:5].tolist()]
    return found


def named(held: PreparedRows, name: str, value: Any) -> str:
    """An example in words: of a row its file and record."""
    if name.startswith("identical"):
        return f"{held.files[value >> 40]} record {value & (1 << 40) - 1}"
    return held.files[value] if name == "files" else str(value)


def render(held: PreparedRows, places: list[Place], question: bool = True) -> str:
    """The answer to `ask` as lines of text: whether it is in training, then split by split.
    Without a `question` the table alone."""
    total: Counter[Any] = Counter()
    lines = []
    for one in places:
        total[one.split] += one.count
        when = f"   {moment(one.times[0])} to {moment(one.times[1])}" if one.times else ""
        if one.count or one.split != "none":
            lines.append(
                f"  {one.split:6} {one.role:10} {one.count:>12,}{when}{sources(one.files)}"
            )
    verdict = "yes, in training" if total["train"] else "no, not in training"
    if not sum(total.values()):
        verdict = f"no {held.noun} of {held.dataset} are of that"
    return "\n".join(
        [*([verdict] if question else []), f"  {held.dataset}, {held.noun} by split", *lines]
    )


def sources(files: dict[str, int], most: int = 4) -> str:
    """'   from a.csv (12), b.csv (3)'."""
    told = [
        f"{name} ({n:,})" for name, n in sorted(files.items(), key=lambda item: (-item[1], item[0]))
    ]
    return (
        f"   from {', '.join(told[:most])}"
        + (f" and {len(told) - most} more files" if len(told) > most else "")
        if told
        else ""
    )


def moment(seconds: float) -> str:
    """UTC to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_both(found: Shared) -> str:
    """The answer to `both` as lines of text: what leaks first."""
    held, lines = found.held, []
    for title, counted in (("must not be", found.leaks), ("may be", found.facts)):
        for name, count in counted.items():
            examples = f"   for example {', '.join(found.examples[name])}" if count else ""
            lines.append(
                f"  {title:11}  {name:42} "
                f"{count:>8,}{examples if count and title == 'must not be' else ''}"
            )
    for text in dict.fromkeys(held.missing.values()):
        lines.append(
            "  not stored   "
            f"{', '.join(name for name, why in held.missing.items() if why == text)}: {text}"
        )
    verdict = "LEAK: something stands" if found.exit_code else "clean: nothing that must not stands"
    verdict += " in train and in val or test"
    return "\n".join([verdict, f"  {held.dataset}, in train and in val or test", *lines])
