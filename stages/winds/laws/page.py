"""The page of neural processes on winds: `python -m stages.winds.laws.page EXPERIMENT
PROFILE`. It is the page of winds (stages/winds/page.py) with a table of the laws below that of the
errors."""

import sys
from dataclasses import replace

from stages.page import experiment as page
from stages.page.blocks import Grid, Part
from stages.tables.tabulation import Content
from stages.winds import page as winds
from stages.winds.laws.tables import NOTES, laws

MODULE = "stages.winds.laws.page"


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    told = winds.part(experiment, profile, content)
    sections = []
    for section in told.sections:
        first = next(k for k, block in enumerate(section.blocks) if isinstance(block, Grid)) + 1
        own = Grid(laws(content, section.dataset), "As laws", NOTES)
        blocks = (*section.blocks[:first], own, *section.blocks[first:])
        sections.append(replace(section, blocks=blocks))
    return replace(told, sections=tuple(sections))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, part, argv)


if __name__ == "__main__":
    sys.exit(main())
