"""CONTRIBUTING.md's recipes as what they do to files, and copies of the project in which they are
followed.

`<!-- file: PATH -->` before a fenced block is a new file; `<!-- edit: PATH -->` before a `diff`
block changes one: of each hunk (they are parted by a line `@@`) the lines that stay or go must
stand in the file exactly once, one after the other.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"<!-- (file|edit): (\S+) -->\n```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One file made or edited."""

    kind: str
    path: str
    text: str

    def follow(self, folder: Path) -> None:
        """Do it in a copy of the project; AssertionError where the recipe does not fit."""
        place = folder / self.path
        if self.kind == "file":
            assert not place.exists(), f"{self.path} is there already"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.text, encoding="utf-8")
            return
        lines = place.read_text(encoding="utf-8").split("\n")
        for hunk in re.split(r"(?m)^@@.*\n", self.text):
            told = hunk.rstrip("\n").split("\n")
            assert all(line[:1] in ("+", "-", " ") for line in told) and any(
                line[0] != " " for line in told
            ), f"{self.path}: no diff: {told}"
            old, new = ([line[1:] for line in told if line[0] != other] for other in ("+", "-"))
            at = [i for i in range(len(lines)) if lines[i : i + len(old)] == old]
            assert old and len(at) == 1, (
                f"{self.path}: these lines stand there {len(at)} times: {old}"
            )
            lines[at[0] : at[0] + len(old)] = new
        place.write_text("\n".join(lines), encoding="utf-8")


def recipes(text: str) -> dict[str, list[Step]]:
    """Title of each section with steps -> its steps, in order."""
    found = {}
    for section in re.split(r"(?m)^## ", text)[1:]:
        if steps := [Step(kind, path, body) for kind, path, _, body in STEP.findall(section)]:
            found[section.partition("\n")[0]] = steps
    return found


def copy(folder: Path) -> Path:
    """The project's files, committed in a git repository of their own, without what DVC keeps.

    They keep their time stamps, and what is compiled of them comes along: kernels take a minute.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for compiled in (ROOT / "stages").rglob("__pycache__"):
        if (place := folder / compiled.relative_to(ROOT)).parent.is_dir():
            shutil.copytree(compiled, place)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """All there is, as one commit."""
    git(folder, "add", "--all")
    git(
        folder,
        "-c",
        "user.name=test",
        "-c",
        "user.email=test@example.org",
        "commit",
        "--quiet",
        "--message",
        "all",
    )


def git(folder: Path, *words: str) -> str:
    """What git says."""
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def touched(folder: Path) -> set[str]:
    """The files that differ from the commit, new ones with them."""
    return {
        line[3:]
        for line in git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()
    }


def run(folder: Path, *words: str, **environ: str) -> str:
    """A module's output, run in the copy and with the copy's code; AssertionError with all it
    said when it fails."""
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    quiet = {
        "DVC_NO_ANALYTICS": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
    }
    environment = {
        # a pytest within a pytest has options of its own
        **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        **quiet,
        "PYTHONPATH": str(folder),
        "PATH": paths,
        "TRADEWIND_DEVICE": "cpu",
        **environ,
    }
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
