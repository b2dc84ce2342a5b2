"""What a verdict covers: of each profile, how many of its stages have all that they wrote here.

What lies in git is in every clone; it says that a project was cloned, no more. A verdict rests on
the bytes of data, trained cells and evaluations, read from disk or from DVC's cache: where none of
them is here, nothing was covered, and nothing can pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stages.audit.case import PULL, Case
from stages.audit.chain import Node
from stages.audit.finding import Problem


@dataclass(frozen=True)
class Cover:
    """Of one profile: its stages with outputs outside git, and those whose every byte was read."""

    profile: str
    stages: int
    whole: int

    def __str__(self) -> str:
        return f"profile {self.profile}, {self.whole:,} of {self.stages:,} stages"


def profile_of(node: Node) -> str:
    """The profile of a record."""
    return node.path.split("/")[-3]


def heavy(case: Case, node: Node) -> list[str]:
    """What a stage wrote that git does not hold."""
    made = node.record.get("outputs", {})
    return [path for path in made if node.owns(path) and not case.kept(path)]


def covers(case: Case) -> list[Cover]:
    """What was covered of each profile that any record is of."""
    whole: dict[str, list[bool]] = {}
    for node in case.chain.nodes:
        if made := heavy(case, node):
            read = all(case.bytes.sha256(path) is not None for path in made)
            whole.setdefault(profile_of(node), []).append(read)
    return [Cover(name, len(found), sum(found)) for name, found in sorted(whole.items())]


def nothing(found: Iterable[Cover]) -> list[Problem]:
    """INCONCLUSIVE where not one stage was covered."""
    if any(one.whole for one in found):
        return []
    text = f"nothing was covered: no stage has all that it wrote here; {PULL}"
    return [Problem("INCONCLUSIVE", ".", text)]


def coverage_line(found: Iterable[Cover]) -> str:
    """What was covered, in one line."""
    return "covered: " + ("; ".join(map(str, found)) or "nothing")
