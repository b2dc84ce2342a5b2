"""The page of neural processes on winds: `python -m stages.winds.laws.page EXPERIMENT
PROFILE`. It is the page of winds (stages/winds/page.py) with tables of the laws and of how levels
flow below that of the errors, and the picture of a stream that is followed."""

import sys
from dataclasses import replace
from pathlib import Path

from stages.page import experiment as page
from stages.page.blocks import Grid, Part, Picture
from stages.tables.tabulation import Content, home_of
from stages.winds import page as winds
from stages.winds.laws.tables import FLOWS, NOTES, flows, laws

MODULE = "stages.winds.laws.page"
FILM = (
    "A stream of raw frames, followed: what the model says every six minutes of a level's wind "
    "half an hour ahead, from the winds known then. Dots are those of the last ten minutes."
)


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    told = winds.part(experiment, profile, content)
    sections = []
    for section in told.sections:
        first = next(k for k, block in enumerate(section.blocks) if isinstance(block, Grid)) + 1
        own = (
            Grid(laws(content, section.dataset), "As laws", NOTES),
            Grid(flows(content, section.dataset), "How they flow", FLOWS),
        )
        film = Path("film", f"{section.dataset}.gif")
        # the record is what the page rests on: a film changes with it
        moving = (home_of(experiment, profile) / f"records/{section.dataset}.film.json").is_file()
        shown = (Picture(film.as_posix(), FILM),) if moving else ()
        blocks = (*section.blocks[:first], *own, *shown, *section.blocks[first:])
        sections.append(replace(section, blocks=blocks))
    return replace(told, sections=tuple(sections))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command(MODULE, part, argv)


if __name__ == "__main__":
    sys.exit(main())
