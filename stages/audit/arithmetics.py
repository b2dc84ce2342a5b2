"""The environments and arithmetics of two runs: what of them is compared, and when they are alike.

Of Python the minor version counts, of a library the version without its build: what else differs
changes no bit, and older records name it. A record's arithmetic is a line
(stages/arithmetic/probe.py): its name, and a digest for each library that was loaded. Two lines
are alike where all parts are that both have, because a process that never loaded torch says
nothing of it. A record without a line is `unrecorded`, which is like no other.
"""

from typing import Any

UNRECORDED = "unrecorded"


def comparable(environment: dict[str, Any]) -> dict[str, Any]:
    """An environment without what changes no bit; its arithmetic is judged apart."""
    libraries = environment.get("libraries")
    versions = {
        name: version.partition("+")[0] if isinstance(version, str) else version
        for name, version in (libraries if isinstance(libraries, dict) else {}).items()
    }
    rest = {key: value for key, value in environment.items() if key != "arithmetic"}
    python = ".".join(str(environment.get("python")).split(".")[:2])
    return rest | {"python": python, "libraries": versions}


def line_of(environment: dict[str, Any]) -> str:
    """The arithmetic that an environment names, with its device where that is no processor."""
    line, device = environment.get("arithmetic"), environment.get("device") or "cpu"
    text = line if isinstance(line, str) and line.strip() else UNRECORDED
    return text if device == "cpu" else f"{text} device:{device}"


def parts(line: str) -> dict[str, str]:
    """The name of an arithmetic and what it says of each library."""
    words = line.split()
    pairs = (word.partition(":") for word in words[1:])
    return {"name": words[0], "device": "cpu"} | {key: value for key, _, value in pairs}


def alike(one: str, other: str) -> bool:
    """Whether two lines tell of one arithmetic. A graphics card adds in no fixed order: never."""
    a, b = parts(one), parts(other)
    if UNRECORDED in (a["name"], b["name"]) or {a["device"], b["device"]} != {"cpu"}:
        return False
    return all(a[key] == b[key] for key in a.keys() & b.keys())


def numpy_alike(one: str, other: str) -> bool:
    """Whether NumPy computed alike, whatever torch did: all that a stage without torch rests on."""
    a, b = parts(one), parts(other)
    return "numpy" in a and a.get("numpy") == b.get("numpy")


def quoted(lines: set[str], most: int = 2) -> str:
    """Lines in words: of those that are alike only the longest, and not too many."""
    chosen: list[str] = []
    for line in sorted(lines, key=lambda line: (-len(line), line)):
        if not any(alike(line, longer) for longer in chosen):
            chosen.append(line)
    more = f" and {len(chosen) - most} more" if len(chosen) > most else ""
    names = [line if line == UNRECORDED else f"`{line}`" for line in chosen[:most]]
    return ", ".join(names) + more
