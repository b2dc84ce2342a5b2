"""What no audit can judge, with when it was last changed: printed values that claims are held to,
their thresholds, the measured spreads of training, data that are pinned by hand, what was timed.

Whoever owns a repository can commit others. Whoever trusts a commit's name sees here what to read.
"""

from pathlib import Path

from stages.audit.history import git

KINDS = {
    "printed values": ("data/published", ":(glob)reports/*/companions.csv"),
    "thresholds of claims": ("stages/claims", ":(glob)stages/**/*claims*.py"),
    "spreads of training": ("data/spreads",),
    "pins of raw files": ("data/sources", "stages/params/datasets"),
    "counts of memory": (":(glob)reports/*/memory.csv",),
    "timings": (":(glob)reports/*/*/benchmarks.json", "reports/attacks.json"),
}


def lines(root: Path) -> list[str]:
    """A line a kind: how many commits changed its files, and the last one; none without git."""
    found = []
    for kind, places in KINDS.items():
        log = git(root, "log", "--format=%h of %cs", "--", *places)
        commits = (log or "").splitlines()
        if commits:
            last = f"last by {commits[0]}"
            found.append(f"{kind}: changed by {len(commits):,} commits, {last} (git log)")
    return found
