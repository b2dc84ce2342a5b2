"""A project as the doctor meets it, and what it told."""

import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

from stages.doctor import environment
from stages.doctor.finding import Place

ROOT = Path(__file__).parents[2]


def states(told) -> dict[str, str]:
    return {one.name: one.state for one in (told if isinstance(told, list) else [told])}


def told(found) -> str:
    return " ".join(
        f"{one.found} {one.remedy}" for one in (found if isinstance(found, list) else [found])
    )


def write(place: Place, name: str, text: str) -> Path:
    path = place.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def configured(place: Place, text: str = "") -> Place:
    """The place anew, with what `dvc config --list` would say there (one test asks DVC itself)."""
    said = subprocess.CompletedProcess([], 0, text, "")
    return Place(
        place.root, place.environ, {(sys.executable, "-m", "dvc", "config", "--list"): said}
    )


def pretend(place: Place, monkeypatch, **other: str | None) -> None:
    """Let what constraints.txt lists be installed, but for `other`."""
    lines = (place.root / "constraints.txt").read_text().splitlines()
    known = {
        canonicalize_name(name): version
        for name, version in (line.split("==") for line in lines if "==" in line)
    } | other
    monkeypatch.setattr(environment, "installed", lambda name: known.get(canonicalize_name(name)))
