"""The tables of an experiment each of whose data sets is told by one table, the best arm first."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from stages.files import atomic_folder, read_json
from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered, home_of

Printed = TypeVar("Printed")  # what a family knows of printed numbers
Drawn = Callable[[Path, Path, Content, str], None]  # evaluated set, folder, content, set


def content_of(experiment: str, profile: str, main: Sequence[str]) -> Content:
    """The content of metrics.json; `main` names the numbers of the summary."""
    home = home_of(experiment, profile)
    about = {
        name: read_json(home / "evaluated" / name / "metrics.json")["about"]
        for name in evaluated(experiment, profile)
    }
    return gathered(experiment, profile) | {"main": list(main), "about": about}


def tabulation(
    main: str,
    notes: str,
    companions: Callable[[str], Printed],
    lines: Callable[[Content, str, Printed], list[str]],
    claims: Callable[[Path], list[dict[str, Any]]],
    draw: Callable[[], Drawn],
    inputs: Callable[[str, str], Sequence[Path]],
) -> Tabulation:
    """What a family tells: `main` is its number, `lines` say a data set and show its table, given
    the printed numbers of `companions`; `claims` checks a home; `draw` brings what draws a set,
    with matplotlib, which the tables do not need."""

    def table(experiment: str, profile: str, content: Content) -> str:
        found, printed = (
            [f"# {experiment}, profile {profile}", "", notes, ""],
            companions(experiment),
        )
        for dataset in datasets_of(content["arms"]):
            found += [f"## {dataset}", "", *lines(content, dataset, printed)]
            found += [addresses(experiment, profile, content["cells"], dataset, main), ""]
        return "\n".join(found)

    def figures(experiment: str, profile: str, content: Content) -> None:
        home, one = home_of(experiment, profile), draw()
        with atomic_folder(home / "figures") as folder:
            for dataset in datasets_of(content["arms"]):
                one(home / "evaluated" / dataset, folder, content, dataset)

    return Tabulation(
        lambda experiment, profile: content_of(experiment, profile, [main]),
        table,
        lambda experiment, profile: claims(home_of(experiment, profile)),
        figures,
        inputs,
    )
