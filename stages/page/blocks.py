"""What a page is made of: words, tables, figures and sections, which a family fills and the engine
shows.

A section with a data set's name has its address (data-at), so that a row of its tables opens the
chain of that number.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from stages.tables.table import Table


@dataclass(frozen=True)
class Words:
    """A paragraph; `quiet` ones are notes, `code` is shown as it is."""

    text: str
    quiet: bool = False
    code: bool = False


@dataclass(frozen=True)
class Grid:
    """A table with its title and the sentence below it; `folded` it stands behind its title."""

    table: Table
    title: str = ""
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure: its file below the page's folder, and what it says."""

    file: str
    caption: str


@dataclass(frozen=True)
class Line:
    """One series of a chart: places and values, the ends of its band, if any; `dashed` it is a
    second line of its colour."""

    name: str
    colour: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Series that are compared, drawn in the page itself (stages/page/charts.py).

    x and y: the axes' titles; levels: (name, value) of horizontal lines; names: words for the
    places 0, 1, ... where x is no number; log: which axes are logarithmic, "x", "y" or "xy";
    picture: the figure that shows the same, for those who keep one.
    """

    caption: str
    x: str
    y: str
    lines: tuple[Line, ...]
    levels: tuple[tuple[str, float], ...] = ()
    names: tuple[str, ...] = ()
    log: str = ""
    picture: Picture | None = None


@dataclass(frozen=True)
class Pair:
    """Figures that stand side by side where there is room."""

    pictures: tuple[Picture | Chart, ...]


@dataclass(frozen=True)
class Drawing:
    """SVG with a name."""

    name: str
    svg: Markup


@dataclass(frozen=True)
class Cells:
    """How to audit a number: what follows CELL in its address, the cells, and words after them."""

    address: str
    names: tuple[str, ...]
    also: str = ""


Block = Words | Grid | Picture | Chart | Pair | Drawing | Cells


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; `anchor` ends its id, `dataset` names what it is of."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]
    dataset: str = ""
    prose: bool = False


@dataclass(frozen=True)
class Link:
    """Where a new reader looks first: a title, words, and the end of the target's id."""

    title: str
    words: str
    anchor: str


@dataclass(frozen=True)
class Short:
    """A data set's table as the findings show it: what it is of, and the table."""

    dataset: str
    about: str
    table: Table


@dataclass(frozen=True)
class Opening:
    """What the front page may open with: a data set's short table beside one of its figures, a
    file of figures/, and what is seen in it."""

    dataset: str
    figure: str
    words: str


@dataclass(frozen=True)
class Part:
    """What a family tells of an experiment in a profile.

    results: its main numbers with their companions; intro: what stands above the sections; labels:
    data set -> arm -> what the tables call it, where that is another word.
    """

    family: str
    results: list[Any]
    intro: tuple[Block, ...]
    sections: tuple[Section, ...]
    labels: dict[str, dict[str, str]]
    start: tuple[Link, ...] = ()
    opening: Opening | None = None
    short: tuple[Short, ...] = ()
    wraps: bool = False  # long titles of columns are broken


def heading(block: Block) -> str:
    """What stands above a block in a section, and in the list of contents; "" of those without."""
    if isinstance(block, Drawing):
        return "Lineage"
    return block.title if isinstance(block, Grid) and not block.folded else ""


def pictures(home: Path, named: dict[str, str]) -> tuple[Picture, ...]:
    """The figures of an experiment that were drawn: name of the file -> caption, in that order."""
    return tuple(
        Picture(f"figures/{name}.png", caption)
        for name, caption in named.items()
        if (home / "figures" / f"{name}.png").exists()
    )


def grids(found: Any) -> tuple[Grid, ...]:
    """(title, table, words) as blocks; words become a sentence."""
    return tuple(
        Grid(table, title, f"{words[:1].upper()}{words[1:]}." if words else "")
        for title, table, words in found
    )


def lineage_block(dataset: str, where: str, svg: Markup) -> Drawing:
    """The lineage of a data set."""
    return Drawing(f"lineage of {dataset} ({where})", svg)
