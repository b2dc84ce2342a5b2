"""What differs between two records of one stage: parameters, code, environment, arithmetic, seed;
and how a cause is told.

A record is compared with itself at another commit, key by key and file by file, so only what the
stage read or declared is asked. A setting that several stages read (`decode.wind_max_m_s`, and
`wind_max_m_s` in the next record) is one change, told where it enters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stages.audit import arithmetics

Meaning = Callable[[str, str], str | None]
ABSENT = "absent"
KINDS = (
    "data",
    "parameter",
    "code",
    "environment",
    "arithmetic",
    "seed",
    "stage",
    "edit",
    "unexplained",
)
PROOFLESS = ("edit", "unexplained")  # of these no honest run is the reason


@dataclass(frozen=True)
class Change:
    """One difference: what kind, of what (a file, a dotted key), how, the stage where it first
    enters, and which others have it."""

    kind: str
    what: str
    how: str
    stage: str
    also: tuple[str, ...] = field(default=())

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two changes one."""
        return self.kind, self.what, self.how


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys; lists are leaves."""
    if not isinstance(value, dict) or not value:
        return {prefix: value} if prefix else {}
    return {
        key: leaf
        for name, inner in value.items()
        for key, leaf in flat(inner, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def keys(old: dict[Any, Any], new: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    """Every dotted key that differs, with 'old → new'."""
    old, new = flat(old), flat(new)
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new or old[key] != new[key]:
            yield key, f"{value_text(old.get(key, ABSENT))} → {value_text(new.get(key, ABSENT))}"


def value_text(value: Any) -> str:
    """A value on one line."""
    text = (
        value
        if isinstance(value, str)
        else repr(value).replace("True", "true").replace("False", "false").replace("None", "null")
    )
    return text if len(text) <= 70 else text[:67] + "..."


def unknown(path: str, sha256: str) -> None:
    """The meaning of a version of a file whose bytes nobody asks for."""


def recoded(
    old: dict[Any, Any], new: dict[Any, Any], meaning: Meaning
) -> Iterator[tuple[str, str]]:
    """The files of code that mean something else in the other record, and how. What was moved
    and means the same is no difference; a version of unknown meaning is, where its bytes are
    others."""
    if old.get("modules") is not None and old.get("digest") == new.get("digest"):
        return
    sides = old["files"], new["files"]
    gone, come = (
        {path: side[path] for path in sorted(side.keys() - other.keys())}
        for side, other in (sides, sides[::-1])
    )
    left, arrived = (
        {path: told for path, sha in side.items() if (told := meaning(path, sha))}
        for side in (gone, come)
    )
    moved = {*left.values()} & {*arrived.values()}
    for path in sorted(sides[0].keys() | sides[1].keys()):
        if path in gone or path in come:
            if (left.get(path) or arrived.get(path)) not in moved:
                yield path, "removed" if path in gone else "added"
        elif sides[0][path] != sides[1][path]:
            before, after = (meaning(path, side[path]) for side in sides)
            if before is None or before != after:
                yield path, "changed"


def differences(
    old: dict[Any, Any], new: dict[Any, Any], stage: str, meaning: Meaning = unknown
) -> list[Change]:
    """Every difference of two records of a stage but their inputs and outputs; `meaning` digests
    a version of a file of code (its path and SHA-256), None where it is not known."""
    found = []
    for key, how in keys(old["params"], new["params"]):
        found.append(
            Change("seed" if key.split(".")[-1] == "seed" else "parameter", key, how, stage)
        )
    if old.get("seed") != new.get("seed"):
        how = f"{value_text(old.get('seed'))} → {value_text(new.get('seed'))}"
        if not any(change.kind == "seed" and change.how == how for change in found):
            found.append(Change("seed", "seed", how, stage))
    found += [
        Change("code", path, how, stage) for path, how in recoded(old["code"], new["code"], meaning)
    ]
    for key, how in keys(*(arithmetics.comparable(side["environment"]) for side in (old, new))):
        found.append(
            Change(
                "environment",
                key.removeprefix("libraries."),
                "changed" if key == "constraints" else how,
                stage,
            )
        )
    lines = [arithmetics.line_of(side["environment"] | {"device": "cpu"}) for side in (old, new)]
    if not arithmetics.alike(*lines) and lines[0] != lines[1]:
        found.append(Change("arithmetic", "kernels", " → ".join(lines), stage))
    return found


def merged(changes: list[Change]) -> list[Change]:
    """Each change once, told of its first stage; a key that ends another's dotted key with the
    same values is the same setting."""
    found: list[Change] = []
    for change in changes:
        for place, known in enumerate(found):
            if same(known, change):
                names = dict.fromkeys((*known.also, *({change.stage} - {known.stage})))
                what, how = (
                    max(pair, key=len)
                    for pair in ((known.what, change.what), (known.how, change.how))
                )
                found[place] = replace(known, what=what, how=how, also=tuple(names))
                break
        else:
            found.append(change)
    return sorted(found, key=lambda change: KINDS.index(change.kind))


def same(a: Change, b: Change) -> bool:
    """Whether two stages tell of one change."""
    if a.key == b.key:
        return True
    if a.kind == b.kind == "arithmetic":  # a stage without torch says less of it
        pairs = zip(a.how.split(" → "), b.how.split(" → "), strict=True)
        return all(one == other or arithmetics.alike(one, other) for one, other in pairs)
    suffix = a.what.endswith("." + b.what) or b.what.endswith("." + a.what)
    return a.kind == b.kind and a.kind in ("parameter", "seed") and a.how == b.how and suffix


def unpinned(changes: list[Change], old: bytes, new: bytes) -> list[Change]:
    """Without the change of constraints.txt (`old`, `new`: its bytes) where it only pins
    libraries that are named; else with its lines."""
    libraries = {change.what for change in changes if change.kind == "environment"}
    before, after = (set(text.decode("utf-8", "replace").split("\n")) for text in (old, new))
    rest = [
        change for change in changes if (change.kind, change.what) != ("environment", "constraints")
    ]
    pins = [line for line in sorted(before ^ after) if line.strip() and not line.startswith("#")]
    moved = [line for line in pins if line.split("==")[0].split("[")[0] not in libraries]
    if len(rest) == len(changes) or (before != after and not moved and libraries - {"constraints"}):
        return rest
    lines = ", ".join(("−" if line in before else "+") + line for line in moved[:3])
    lines += f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    told = [
        replace(change, what="constraints.txt", how=lines or change.how)
        for change in changes
        if change not in rest
    ]
    return rest + told
