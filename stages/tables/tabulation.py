"""What a family tells of an experiment, as one object, and the stage that writes it: metrics.json
and breakdowns.json (parts.py), table.md, claims.json, figures/ and the record.

The family's own module hands in a Tabulation; `dvc.yaml` names that module. The audit derives the
same files again from the same object.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages import records, runner
from stages.files import atomic_file, write_json
from stages.tables import parts
from stages.tables.gather import gather, over_seeds
from stages.tables.published import PUBLISHED

Content = parts.Content


def home_of(experiment: str, profile: str) -> Path:
    """The folder of an experiment's results: reports/EXPERIMENT/PROFILE."""
    return Path("reports", experiment, profile)


def gathered(experiment: str, profile: str) -> Content:
    """What every experiment has: cells as evaluated, and their arms over seeds."""
    cells = gather(home_of(experiment, profile))
    return {"experiment": experiment, "profile": profile, "cells": cells, "arms": over_seeds(cells)}


@dataclass(frozen=True)
class Tabulation:
    """What a family tells of an experiment in a profile.

    content: all numbers, from the evaluations; table: the text of table.md, from these and what
    stands in git beside them; claims: the entries of claims.json, from the evaluations; draw:
    writes figures/; inputs: what is read beside evaluated/, companions.csv and the printed numbers;
    kept: what metrics.json keeps of a cell, by place (parts.py).
    """

    content: Callable[[str, str], Content]
    table: Callable[[str, str, Content], str]
    claims: Callable[[str, str], list[dict[str, Any]]]
    draw: Callable[[str, str, Content], None]
    inputs: Callable[[str, str], Sequence[Path]]
    kept: Collection[str] = parts.KEPT

    def write(self, experiment: str, profile: str) -> dict[str, Path]:
        """Write all files of an experiment and profile: path -> path, of every file."""
        home = home_of(experiment, profile)
        content = self.content(experiment, profile)
        numbers = parts.write(home, content, self.kept)
        with atomic_file(home / "table.md", "w") as stream:
            stream.write(self.table(experiment, profile, content))
        write_json(home / "claims.json", self.claims(experiment, profile))
        self.draw(experiment, profile, content)
        outputs = [*numbers, *(home / name for name in ("table.md", "claims.json", "figures"))]
        return {path.as_posix(): path for path in records.files_in(outputs)}

    def work(self, asked: runner.Asked, module: str) -> runner.Work:
        """The work of the stage whose module is `module`."""
        experiment, profile, home = asked["experiment"], asked["profile"], asked.home
        alone = asked.names.get("table")
        if alone:
            return runner.Work(
                stage="tabulate",
                cell=f"{experiment}/{profile}",
                record=None,
                do=lambda: self.again(experiment, profile, Path(alone)),
                inputs=[],
                code=[module],
            )
        return runner.Work(
            stage="tabulate",
            cell=f"{experiment}/{profile}",
            record=records.location("tabulate", profile, experiment=experiment),
            do=lambda: self.write(experiment, profile),
            inputs=[
                home / "evaluated",
                *self.inputs(experiment, profile),
                home.parent / "companions.csv",
                PUBLISHED,
            ],
            code=[module],
        )

    def again(self, experiment: str, profile: str, path: Path) -> dict[str, Path]:
        """Write the text of table.md to a path, from what is written of the numbers."""
        content = parts.read(home_of(experiment, profile))
        with atomic_file(path, "w") as stream:
            stream.write(self.table(experiment, profile, content))
        return {}

    def command(self, module: str, argv: Sequence[str] | None) -> int:
        """The command line of the stage whose module is `module`; its exit code."""
        return runner.command(
            module,
            "Gather an experiment's numbers, claims and figures.",
            ("experiment", "profile"),
            lambda asked: self.work(asked, module),
            argv,
            {
                "--table": {
                    "metavar": "FILE",
                    "help": "write table.md alone, from the written numbers",
                }
            },
        )


def evaluated(experiment: str, profile: str) -> list[str]:
    """The data sets that were evaluated, by name."""
    folder = home_of(experiment, profile) / "evaluated"
    return sorted(file.parent.name for file in folder.glob("[!.]*/metrics.json"))
