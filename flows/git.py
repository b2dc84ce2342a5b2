"""What the flows ask of git: a commit of exactly the given paths, which leaves alone what the user
has staged or changed elsewhere.

A commit is not started on a leash: git ends in a moment, while a git that is killed in between
leaves its index locked for good.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from flows.process import FlowError

ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
IDENTITY = {
    "user.name": "Tradewind",
    "user.email": "retraining@localhost",
}  # where none is configured
UNDER_WAY = {  # what stands in git's folder meanwhile
    "a merge is under way": "MERGE_HEAD",
    "a cherry-pick is under way": "CHERRY_PICK_HEAD",
    "a revert is under way": "REVERT_HEAD",
    "a rebase is under way": "rebase-merge",
    "git's index is locked": "index.lock",
}


def git(*arguments: str) -> subprocess.CompletedProcess[Any]:
    """A git command in the current directory, with its output as text."""
    try:
        return subprocess.run(
            ["git", *arguments],
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise FlowError("git is not installed", 2) from None


class Repository:
    """The git repository of the current directory."""

    def head(self) -> str:
        """The commit, "" where there is none."""
        try:
            return git("rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
        except FlowError:
            return ""

    def check(self) -> None:
        """FlowError 2 unless a commit can be made on a branch, now."""
        remedy = "or set retraining.commit in params.yaml to false"
        inside = git("rev-parse", "--is-inside-work-tree")
        if inside.returncode and "not a git repository" not in inside.stderr:
            raise FlowError(f"git cannot be asked here:\n{inside.stderr.strip()[-2000:]}", 2)
        if inside.stdout.strip() != "true":
            raise FlowError(
                f"no git repository here to commit the results to\n  remedy: `git init`, {remedy}",
                2,
            )
        for what, name in UNDER_WAY.items():
            if (place := Path(git("rev-parse", "--git-path", name).stdout.strip())).exists():
                raise FlowError(
                    f"{what}, so that nothing can be committed: {place}\n"
                    f"  remedy: end it (a lock that no git holds is removed), {remedy}",
                    2,
                )
        if git("symbolic-ref", "--quiet", "HEAD").returncode:
            raise FlowError(
                "git is on no branch (detached HEAD): a commit would be lost\n"
                f"  remedy: `git switch BRANCH`, {remedy}",
                2,
            )

    def commit(self, paths: list[str], message: str) -> bool:
        """Commit what has changed under the paths, and nothing else; False when nothing has.
        FlowError with what git says."""
        changed = self.do(
            "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *paths
        ).split("\0")[:-1]
        if not changed:
            return False
        top = Path(self.do("rev-parse", "--show-toplevel").rstrip("\n"))
        names = [os.path.relpath(top / line[3:]) for line in changed]
        who = [
            word
            for key, value in IDENTITY.items()
            if git("config", key).returncode
            for word in ("-c", f"{key}={value}")
        ]
        if unstaged := [name for name, line in zip(names, changed, strict=True) if line[1] != " "]:
            self.do("--literal-pathspecs", "add", "-A", "--", *unstaged)
        self.do(
            *who, "--literal-pathspecs", "commit", "--quiet", "--only", "-m", message, "--", *names
        )
        return True

    def do(self, *arguments: str) -> str:
        """A git command's output. FlowError when it fails."""
        done = git(*arguments)
        if done.returncode:
            verb = next(word for word in arguments if not word.startswith("-") and "=" not in word)
            raise FlowError(f"`git {verb}` failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
        return done.stdout
