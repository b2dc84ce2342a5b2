"""Checks of an installed package in a folder that is no clone of the project: what a nowcast, a fit
or a decode needs. What concerns data, results, DVC, Prefect and git needs a clone, and is left out.
"""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from stages import files, params
from stages.doctor import arithmetic, environment, machine
from stages.doctor.finding import FAIL, OK, WARN, Finding, Place
from stages.errors import TradewindError

MARKS = ("params.yaml", "dvc.yaml", "pyproject.toml", ".dvc")  # of a clone, whole or damaged
PACKAGE = "tradewind"
EXAMPLE = Path("data/mini/example")
INSTALL = f"pip install --force-reinstall {PACKAGE}, or the wheel that you were given"


def alone(place: Place) -> bool:
    """Whether nothing of a clone is in the folder."""
    return not any((place.root / name).exists() for name in MARKS)


def folder(place: Place) -> Finding:
    """That this is no clone, and what is therefore not looked at."""
    return Finding(
        "folder",
        WARN,
        f"{place.root} is no clone of the project: what concerns data, results, DVC, Prefect and "
        "git is left out",
        "run from the project's root to look at all",
    )


def package(place: Place) -> list[Finding]:
    """The interpreter and the packages against what the installed package asks for."""
    try:
        told = metadata.metadata(PACKAGE)
    except metadata.PackageNotFoundError:
        return [Finding("package", FAIL, f"{PACKAGE} is not installed", INSTALL)]
    wanted = told["Requires-Python"]
    texts = metadata.requires(PACKAGE) or []
    needed = [one for one in map(Requirement, texts) if "extra" not in str(one.marker or "")]
    wrong = environment.unmet(needed)
    return [
        environment.interpreter(wanted, f"install {PACKAGE} with a Python {wanted}"),
        Finding(
            "package",
            FAIL if wrong else OK,
            f"{PACKAGE} {told['Version']}; "
            + (environment.named(wrong) or f"its {len(needed)} packages are within their bounds"),
            INSTALL,
        ),
    ]


def example(place: Place) -> Finding:
    """The small model that is installed, loaded."""
    from stages.training import store

    home = params.home() / EXAMPLE
    try:
        told = files.read_json(home / "example.json")
        cell = home / "runs" / str(told["dataset"]) / str(told["cell"])
        _, meta = store.load(str(cell / "weights.safetensors"))
    except TradewindError as error:
        return Finding("example", FAIL, str(error), INSTALL)
    return Finding("example", OK, f"{meta['model']} is loaded; `{PACKAGE} try` asks it")


def disk(place: Place) -> list[Finding]:
    """Room for temporary files, the only ones that are written but for those that are asked for."""
    return [one for one in machine.disk(place) if one.name.endswith("temporary files")]


CHECKS: dict[str, Callable[[Place], "Finding | list[Finding]"]] = {
    "folder": folder,
    "package": package,
    "variables": environment.variables,
    "arithmetic": arithmetic.arithmetic,
    "example": example,
    "disk": disk,
    "memory": machine.memory,
    "gpu": machine.gpu,
    "clock": machine.clock,
}
