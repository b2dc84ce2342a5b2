"""The page of the hand-made project."""

from pathlib import Path

import results_project
import stage_runs
from page_reader import Page, read, rows_of
from results_project import CELLS, EXPERIMENT, PROFILE

from stages.page import documents
from stages.winds import figures, page, tabulate

WHERE = f"({EXPERIMENT}, {PROFILE})"
OWN = f"{EXPERIMENT}/{PROFILE}/page.html"


def make(root: Path, patch, cells: dict = CELLS) -> Page:
    """Build the project in `root`, tabulate it and write the page."""
    patch.chdir(root)
    results_project.build(root, cells)
    patch.setattr(figures, "draw", results_project.plain_figures)
    stage_runs.tabulate(tabulate, EXPERIMENT, PROFILE)
    results_project.record("tabulate", experiment=EXPERIMENT)
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    return read(OWN)


def theirs() -> set[str]:
    """The addresses that the documents name and the front page links: nothing else leaves it."""
    return {address for one in documents.introduced([]) for address, _ in one["links"]}


def results(seen: Page, dataset: str) -> list[dict[str, str]]:
    return rows_of(seen, f"results on {dataset} {WHERE}")
