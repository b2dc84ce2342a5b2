"""reports/summary-PROFILE.json: the main error of every arm of every experiment, small enough for `dvc metrics diff`."""

from pathlib import Path

from stages.errors import DataError
from stages.files import read_json, write_json

METRIC = "rmse_component_kn"


def summary(profile: str) -> None:
    """Gather {experiment: {data set: {arm: RMSE per component in kn}}} of one profile. DataError where nothing has been tabulated."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for file in sorted(Path("reports").glob(f"*/{profile}/metrics.json")):
        for name, arm in read_json(file)["arms"].items():
            dataset, _, label = name.partition("/")
            found.setdefault(file.parts[1], {}).setdefault(dataset, {})[label] = arm["metrics"][METRIC]["mean"]
    if not found:
        raise DataError("there is nothing to summarise", where=f"reports/*/{profile}/metrics.json", remedy="run `dvc repro`")
    write_json(Path("reports") / f"summary-{profile}.json", {METRIC: found})
