"""What an audit says: the steps of the chain, what is wrong with them, and the verdict.

A problem is FAIL where bytes, names or numbers contradict each other; INCONCLUSIVE where the audit
could not compare like with like (another library version, a file that is not here); STALE where the
number is of another profile than the chosen one, and the code of an earlier commit made it. FAIL
outweighs INCONCLUSIVE, that STALE, that PASS. Problems carry the path of the file they concern and
the stage that produced it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

EXIT_CODES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3, "STALE": 3}


@dataclass(frozen=True)
class Problem:
    """One thing wrong: `broken` says that the bytes of `path` are not those recorded, so that
    all resting on it is void."""

    verdict: str  # FAIL | INCONCLUSIVE | STALE | NOTE, which counts for nothing
    path: str
    text: str
    producer: str = ""
    broken: bool = False


@dataclass(frozen=True)
class Step:
    """One line of the chain: stage, the file or folder, ok or the worst verdict of its problems,
    and what is known of it."""

    stage: str
    path: str
    status: str
    detail: str = ""


@dataclass
class Finding:
    """The result of one audit. `files` are all files of the chain, `resting` the metrics that
    rest on a broken one."""

    metric: str
    depth: str
    value: dict[Any, Any] = field(default_factory=dict)  # value, unit, low, high, n as published
    steps: list[Step] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """PASS, FAIL, INCONCLUSIVE or STALE."""
        return worst(self.problems)

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE and STALE."""
        return EXIT_CODES[self.verdict]


def worst(problems: Iterable[Problem]) -> str:
    """The verdict of a set of problems."""
    verdicts = {problem.verdict for problem in problems} - {"NOTE"}
    return next((one for one in ("FAIL", "INCONCLUSIVE", "STALE") if one in verdicts), "PASS")
