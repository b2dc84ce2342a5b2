"""What a nowcast is asked with in a clone and in any other folder: there the parameters, the
example and the simulated sky are those of the installed package."""

from pathlib import Path

from stages import files, params
from stages.errors import InputError
from stages.params import Inference, Simulate

EXAMPLE = "example"  # the name of the small model that is installed, too
PROFILE, SKY = "mini", "simulated"


def in_clone() -> bool:
    """Whether the working folder has parameters of its own."""
    return Path(params.reading.WHOLE).is_file()


def settings() -> Inference:
    """How frames become winds and contexts are found: as this folder says, or the package."""
    return params.load() if in_clone() else params.inference()


def sky() -> Simulate:
    """The plan of the simulated sky. InputError where the parameters have none."""
    if not in_clone():
        file = Path(params.__file__).parent / "datasets" / "winds.yaml"
        told = params.read_yaml(file)[SKY]["simulate"]
        plain = {key: tuple(v) if isinstance(v, list) else v for key, v in told.items()}
        return params.checked(Simulate, plain, str(file))
    known = params.load().datasets
    plan = known[SKY].simulate if SKY in known else None
    if plan is None:
        raise InputError(
            "there is no simulated sky to capture",
            where=params.reading.WHOLE,
            expected=f"a data set `{SKY}` of kind simulate",
        )
    return plan


def example() -> Path:
    """The folder of the example: example.json, winds.parquet and the cell in runs/. InputError
    where it was not made yet."""
    homes = (Path(), params.home()) if in_clone() else (params.home(),)
    found = [home / "data" / PROFILE / EXAMPLE for home in homes]
    for home in found:
        if (home / "example.json").is_file():
            return home
    raise InputError("there is no example here", where=str(found[0]), remedy="run it in a clone")


def example_cell() -> Path:
    """The folder of the example's weights. InputError as `example`."""
    home = example()
    told = files.read_json(home / "example.json")
    return home / "runs" / str(told["dataset"]) / str(told["cell"])
