"""A figure that differs is drawn again as its stage draws it, before anything is said of it."""

from pathlib import Path

import pytest

from stages.audit import derive
from stages.audit.commands import Command

COMMAND = Command("stages.winds.tabulate", ("wind_baselines", "mini"))


class Drawn:
    """A laid project whose command writes a table, and a figure by what draws it."""

    def __init__(self, place: Path, **kept: str):
        self.root, self.folder, self.ways = place / "kept", place / "laid", []
        (self.root / "figures").mkdir(parents=True)
        (self.folder / "figures").mkdir(parents=True)
        (self.root / "constraints.txt").write_text("")
        (self.root / "table.md").write_text(kept.get("table", "1.0\n"))
        (self.root / "figures/a.png").write_text(kept.get("figure", "plain"))

    def run(self, command: Command, alone: bool = False) -> None:
        """What the command writes, drawn quicker but for `alone`."""
        self.ways.append("plain" if alone else "quicker")
        (self.folder / "table.md").write_text("1.0\n")
        (self.folder / "figures/a.png").write_text(self.ways[-1])


@pytest.mark.parametrize(
    "kept, ways, paths",
    [
        ({"figure": "quicker"}, ["quicker"], []),
        ({"figure": "plain"}, ["quicker", "plain"], []),
        ({"figure": "forged"}, ["quicker", "plain"], ["figures/a.png"]),
        ({"figure": "quicker", "table": "2.0\n"}, ["quicker"], ["table.md"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_what_differs_is_told_of_what_its_stage_writes(tmp_path, kept, ways, paths):
    laid = Drawn(tmp_path, **kept)
    found = derive.written(laid, COMMAND, ["table.md", "figures"])
    assert laid.ways == ways
    assert [problem.path for problem in found] == paths
    assert all(problem.verdict == "FAIL" for problem in found)
