"""Checks of the interpreter, the installed packages and the environment variables.

Three questions are asked of the packages: are they those of constraints.txt, do they satisfy
pyproject.toml, and are there two that break each other when they run although the installer is
content.
"""

import platform
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import stages
from stages.arithmetic import CHOSEN
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place

INSTALL = "make setup, or: pip install -c constraints.txt -e '.[lab,test]'"
SHOWN = 8  # differences that are named
# (package, its versions) beside (package, its versions): what happens. The installer finds no
# conflict between them.
BROKEN = (
    (
        "prefect",
        ">=3.8,<3.9",
        "fastapi",
        ">=0.151",
        "every flow dies with `Body() got an unexpected keyword argument 'min_items'`",
    ),
    (
        "prefect",
        ">=3.8,<3.9",
        "sqlalchemy",
        ">=2.1",
        "the server looks healthy and never starts a run by its schedule",
    ),
)
RESULTS = (
    "TRADEWIND_ARITHMETIC",
    "TRADEWIND_DEVICE",
    "TRADEWIND_JOBS",
    "TRADEWIND_KERNELS",
    "TRADEWIND_PROCESSES",
    "TRADEWIND_SWEEP_WORKERS",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "PYTHONPATH",
    "PYTHONHASHSEED",
)
PLACES = (
    "TRADEWIND_MIRROR",
    "TRADEWIND_SWEEPS_URL",
    "PREFECT_API_URL",
    "PREFECT_SERVER_DATABASE_CONNECTION_URL",
    "PREFECT_API_DATABASE_CONNECTION_URL",
    "PREFECT_HOME",
    "HTTPS_PROXY",
    "https_proxy",
)
PERILOUS = {
    "FAULT": "stages kill themselves where it says (it is for tests)",
    "TRADEWIND_FLOW": "flows take it for granted that the lock is theirs (they set it themselves)",
}


def installed(name: str) -> str | None:
    """A package's version without its local part (+cpu), None where it is not installed."""
    try:
        return metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        return None


def named(items: list[str]) -> str:
    """The first few, and how many more."""
    return ", ".join(items[:SHOWN]) + (
        f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    )


def declared(place: Place) -> dict[Any, Any]:
    """pyproject.toml's section `project`."""
    return tomllib.loads((place.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def interpreter(wanted: str, remedy: str) -> Finding:
    """This interpreter's version against the ones that are wanted."""
    version = platform.python_version()
    good = SpecifierSet(wanted).contains(version, prereleases=True)
    told = f"{version}; {wanted} is needed ({sys.executable})"
    return Finding("python", OK if good else FAIL, told, remedy)


def unmet(requirements: Iterable[Requirement]) -> list[str]:
    """Which packages are missing or out of bounds: what is there, and what is needed."""
    found = ((one, installed(one.name)) for one in requirements)
    return [
        f"{one.name} {version or 'missing'} (needs {one.specifier})"
        for one, version in found
        if version is None or not one.specifier.contains(version, prereleases=True)
    ]


def python(place: Place) -> list[Finding]:
    """The interpreter's version, and whether the code that it imports is this folder's."""
    wanted = declared(place)["requires-python"]
    remedy = f"make the environment anew with a Python {wanted}: make setup VENV=... PYTHON=..."
    home = Path(stages.__file__).resolve().parents[1]
    here = home == place.root.resolve()
    return [
        interpreter(wanted, remedy),
        Finding(
            "code",
            OK if here else WARN,
            f"`stages` is imported from {home}",
            "use the environment of this folder (make setup), else another folder's code runs",
        ),
    ]


def packages(place: Place) -> Finding:
    """The installed versions against constraints.txt."""
    lines = (
        line.partition("#")[0].strip()
        for line in (place.root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    )
    listed = dict(line.split("==", 1) for line in lines if "==" in line)
    found = {name: installed(name) for name in listed}
    other = [
        f"{name} {found[name]} (not {version})"
        for name, version in listed.items()
        if found[name] not in (None, version.partition("+")[0])
    ]
    missing = [name for name in listed if found[name] is None]
    told = [f"{len(other)} differ: {named(other)}"] if other else []
    told += [f"{len(missing)} are not installed: {named(missing)}"] if missing else []
    return Finding(
        "packages",
        WARN if told else OK,
        "; ".join([f"{len(listed)} in constraints.txt", *(told or ["all as listed"])]),
        f"{INSTALL} (other versions may give other numbers: audits then end INCONCLUSIVE)",
    )


def pins(place: Place) -> Finding:
    """What pyproject.toml asks for, to ask a model and to make results: each package there, within
    its bounds."""
    project = declared(place)
    texts = (*project["dependencies"], *project.get("optional-dependencies", {}).get("lab", ()))
    wanted = [Requirement(text) for text in texts]
    wrong = unmet(wanted)
    return Finding(
        "pins",
        FAIL if wrong else OK,
        named(wrong) or f"{len(wanted)} packages of pyproject.toml, all within their bounds",
        INSTALL,
    )


def pairs(place: Place) -> Finding:
    """Two packages that the installer takes together and that break when they run."""
    wrong, mended = [], []
    for one, mine, other, theirs, effect in BROKEN:
        versions = installed(one), installed(other)
        if (
            None not in versions
            and SpecifierSet(mine).contains(versions[0], prereleases=True)
            and SpecifierSet(theirs).contains(versions[1], prereleases=True)
        ):
            wrong.append(f"{one} {versions[0]} with {other} {versions[1]}: {effect}")
            mended.append(f"'{canonicalize_name(other)}{theirs.replace('>=', '<')}'")
    return Finding(
        "pairs",
        FAIL if wrong else OK,
        "; ".join(wrong) if wrong else f"none of the {len(BROKEN)} known to break when they run",
        f"pip install {' '.join(mended)}",
    )


def variables(place: Place) -> Finding:
    """Environment variables that change results or places, by name; their values are never
    shown."""

    def is_set(names):
        return [name for name in names if place.environ.get(name)]

    bad = is_set(PERILOUS)
    others = tuple(name for name, value in CHOSEN.items() if place.environ.get(name) != value)
    kinds = (("change how it runs", RESULTS + others), ("change where it looks", PLACES))
    told = [f"{what}: {', '.join(found)}" for what, names in kinds if (found := is_set(names))]
    told += [f"{name}: {PERILOUS[name]}" for name in bad]
    return Finding(
        "variables",
        WARN if bad else OK,
        "; ".join(told) or "none is set that changes results or places",
        f"unset {' '.join(bad)}",
    )
