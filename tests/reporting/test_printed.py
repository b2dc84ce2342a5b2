"""What the documents print is listed whole, and what is named as ours is there."""

import re
from pathlib import Path

import polars as pl
import pytest

from stages.errors import DataError
from stages.page import printed

ROOT = Path(__file__).resolve().parents[2]
ITEMS = printed.items(())
# the last figure and the last table of each chapter of the thesis, and of each section of N
THESIS = (
    {"1": 5, "2": 4, "3": 6, "4": 6, "b": 1, "c": 7, "d": 1},
    {"1": 4, "2": 3, "3": 4, "4": 5, "a": 3, "b": 4, "c": 10, "d": 1},
)
N = (
    {"1.2": 1, "2.2": 1, "3.2": 1, "4.1": 1, "4.2": 2, "4.3": 1, "5.2": 1, "5.3": 2, "5.4": 2}
    | {"6.2": 1, "6.3": 6, "7.2": 1},
    {"5.4": 1, "6.3": 1, "6.4": 1, "7.5": 2},
)


def test_what_is_named_as_ours_is_there_and_linked_where_its_experiment_is_shown():
    names = [name for row in ITEMS for _, name in row["links"]]
    assert len(names) > 60
    for name in names:
        home = ROOT if name.startswith("data/") else ROOT / "reports"
        assert (home / name).is_file(), name
    links = [link for row in printed.items({"chaos/mini"}) for link, _ in row["links"] if link]
    assert links and all(link.startswith("chaos/mini/") for link in links)
    assert {link for row in ITEMS for link, _ in row["links"]} == {None}


def single(item: str) -> list[str]:
    """The items of a row: 'figures 5.3.1-2' are two, and 'figures 4.2-4.4' three."""
    kind, _, numbers = item.lower().partition(" ")
    if not kind.endswith("s"):
        return [item.lower()]
    home, first, last = re.fullmatch(r"(.*?)(\d+)-\1?(\d+)", numbers).groups()
    return [f"{kind[:-1]} {home}{n}" for n in range(int(first), int(last) + 1)]


def transcribed(document: str) -> set[str]:
    """The tables of a document that data/published has, as the list names them."""
    stem = f"{document}_table_"
    names = [file.stem.removeprefix(stem) for file in (ROOT / "data/published").glob(f"{stem}*")]
    return {f"table {name.replace('_', '.')}" for name in names}


def counted(kind: str, last: dict[str, int]) -> set[str]:
    """All of a kind, by the number of the last in each chapter or section."""
    return {f"{kind} {part}.{n}" for part, count in last.items() for n in range(1, count + 1)}


@pytest.mark.parametrize("document", sorted({row["document"] for row in ITEMS}))
def test_no_item_stands_twice(document):
    listed = [one for row in ITEMS if row["document"] == document for one in single(row["item"])]
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("document", "figures", "tables"), [("thesis", *THESIS), ("tetnp", *N)])
def test_every_figure_and_table_of_the_documents_redone_whole_is_listed(document, figures, tables):
    listed = {one for row in ITEMS if row["document"] == document for one in single(row["item"])}
    printed = counted("figure", figures) | counted("table", tables)
    assert len(transcribed(document)) > 4 and transcribed(document) <= printed
    assert listed == printed


def test_every_table_and_figure_of_the_experiments_of_document_g_is_listed():
    listed = {row["item"] for row in ITEMS if row["document"] == "ongrid"}
    assert {f"table 4.{n}" for n in (1, 2, 3)} <= listed
    assert {f"figure 4.{n}" for n in range(1, 14)} <= listed


@pytest.mark.parametrize("row", ["nobody,table 1,a,b,c", "thesis,table 1,a,,"])
def test_a_row_of_no_document_or_without_an_answer_is_an_error_that_names_its_line(tmp_path, row):
    file = tmp_path / "printed.csv"
    file.write_text(",".join(printed.COLUMNS) + "\n" + row + "\n")
    with pytest.raises(DataError, match="line 2"):
        printed.items((), file)
    pl.DataFrame({"item": ["x"]}).write_csv(file)
    with pytest.raises(DataError, match="other columns"):
        printed.items((), file)
