"""reports/summary-PROFILE.json: the main number of every arm of every experiment, small enough
for `dvc metrics diff`, and reports/curves-PROFILE.csv, every curve: `python -m stages.page.summary
PROFILE`."""

import sys
from pathlib import Path

from stages import files, records, runner
from stages.errors import DataError
from stages.files import write_json
from stages.page import curves
from stages.tables import parts

# The error of a forecast; of a field; of a neighbour search, its share of a linear search's work. A
# family whose main numbers are others names them as `main` in its metrics.json.
METRICS = ("rmse_component_kn", "mse", "nats", "comparisons_share")


def summary(profile: str) -> None:
    """Gather {metric: {experiment: {data set: {arm: mean}}}} of one profile, and its curves.
    DataError where nothing has been tabulated."""
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    contents = {
        file.parts[1]: parts.here(file.parent)
        for file in sorted(Path("reports").glob(f"*/{profile}/{parts.METRICS}"))
    }
    for experiment, content in contents.items():
        for name, arm in content["arms"].items():
            dataset, _, label = name.partition("/")
            for metric in content.get("main", METRICS):
                if metric in arm["metrics"]:
                    of_experiment = found.setdefault(metric, {}).setdefault(experiment, {})
                    of_experiment.setdefault(dataset, {})[label] = arm["metrics"][metric]["mean"]
    if not found:
        raise DataError(
            "there is nothing to summarise",
            where=f"reports/*/{profile}/metrics.json",
            remedy="run `dvc repro`",
        )
    write_json(Path("reports") / f"summary-{profile}.json", found)
    curves.write(Path("reports") / f"curves-{profile}.csv", contents)


def plan(asked: runner.Asked) -> runner.Work:
    """The work of the stage; it leaves no record."""
    profile = asked["profile"]

    def do() -> dict[str, Path]:
        with files.guard(f"summary/{profile}"), records.timed("summary", profile):
            summary(profile)
        return {}

    return runner.Work("summary", profile, None, do, [], ["stages.page.summary"])


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return runner.command(
        "stages.page.summary", "Gather the main numbers of a profile.", ("profile",), plan, argv
    )


if __name__ == "__main__":
    sys.exit(main())
