"""What is not here, or not of today's code, told once a profile instead of file by file."""

import re
from collections import Counter

from stages.audit.case import PULL, Case
from stages.audit.finding import Problem


def missing(case: Case, problems: list[Problem]) -> list[Problem]:
    """INCONCLUSIVE problems, those of absent files gathered: one a profile, with the count and the
    command that brings them.

    Of a profile that params.yaml does not run and of whose data nothing at all is here, only that
    is told: a note.
    """
    away: dict[str, dict[str, Problem]] = {}
    others: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.verdict == "STALE":
            others.setdefault(("STALE", problem.text), []).append(problem)
        elif PULL not in problem.text:
            others.setdefault((problem.verdict, problem.text), []).append(problem)
        elif problem.path not in case.bytes.stead:
            away.setdefault(profile_of(problem.path), {})[problem.path] = problem
    told = earlier(others)
    for profile, paths in sorted(away.items()):
        size = sum((case.file_record(path) or {}).get("bytes", 0) for path in paths)
        gone = sum(not (case.root / path).exists() for path in paths)
        text = (
            f"{gone:,} of its files and folders are neither on disk nor in DVC's cache"
            if gone
            else f"{len(paths):,} have no copy in DVC's cache"
        )
        verdict = "NOTE" if elsewhere(case, profile) else "INCONCLUSIVE"
        told.append(
            Problem(
                verdict,
                f"profile {profile}",
                f"{text} ({size / 1e6:,.1f} MB recorded), so nothing is known of them; `python -m "
                f"flows.profiles {profile} -- dvc pull` brings them, `make repro "
                f"PROFILE={profile}` makes them anew",
            )
        )
    for (verdict, text), alike in others.items():
        more = f" (and of {len(alike) - 1} more)" if len(alike) > 1 else ""
        told.append(Problem(verdict, alike[0].path + more, text, alike[0].producer))
    return told


def earlier(others: dict[tuple[str, str], list[Problem]]) -> list[Problem]:
    """Of what earlier code made, taken out of `others`: one note a profile and commit."""
    counted: Counter[tuple[str, str]] = Counter()
    for key in [key for key in others if key[0] == "STALE"]:
        for problem in others.pop(key):
            counted[profile_of(problem.path), key[1]] += 1
    return [
        Problem("NOTE", f"profile {profile}", f"{count:,} of its stages were {text}")
        for (profile, text), count in sorted(counted.items())
    ]


def elsewhere(case: Case, profile: str) -> bool:
    """Whether params.yaml runs another profile and no data, trained cell or evaluation of this
    one is here."""
    kinds = [
        *(f"data/{profile}/{kind}/" for kind in ("raw", "decoded", "prepared", "contexts")),
        *(f"/{profile}/{kind}/" for kind in ("runs", "evaluated")),
    ]
    mine = [
        path
        for path in case.chain.files
        if any(path.startswith(kind) or (kind[0] == "/" and kind in path) for kind in kinds)
    ]
    return case.params.get("run", {}).get("profile") not in (None, profile) and not any(
        (case.root / path).exists() for path in mine
    )


def profile_of(path: str) -> str:
    """The profile whose data or results a path is of; the path where it is of none."""
    if summary := re.fullmatch(r"reports/(?:summary|curves)-(\w+)\.\w+", path):
        return summary[1]
    parts = path.split("/")
    place = {"data": 1, "reports": 2}.get(parts[0], len(parts))
    return parts[place] if place < len(parts) else path
