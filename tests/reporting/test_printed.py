"""What the documents print is listed whole, and what is named as ours is there."""

from pathlib import Path

import polars as pl
import pytest

from stages.errors import DataError
from stages.page import printed

ROOT = Path(__file__).resolve().parents[2]
ITEMS = printed.items(())


def test_what_is_named_as_ours_is_there_and_linked_where_its_experiment_is_shown():
    names = [name for row in ITEMS for _, name in row["links"]]
    assert len(names) > 60
    for name in names:
        home = ROOT if name.startswith("data/") else ROOT / "reports"
        assert (home / name).is_file(), name
    links = [link for row in printed.items({"chaos/mini"}) for link, _ in row["links"] if link]
    assert links and all(link.startswith("chaos/mini/") for link in links)
    assert {link for row in ITEMS for link, _ in row["links"]} == {None}


def test_no_item_stands_twice_and_every_transcribed_table_of_the_chapters_redone_is_listed():
    listed = {(row["document"], row["item"].lower()) for row in ITEMS}
    assert len(listed) == len(ITEMS)
    tables = [file.stem for file in (ROOT / "data/published").glob("thesis_table_*.csv")]
    numbers = {name.removeprefix("thesis_table_").replace("_", ".") for name in tables}
    chapters = {number for number in numbers if number[0] in "134acd"}
    assert len(chapters) > 20
    assert {("thesis", f"table {number}") for number in chapters} <= listed
    last = {"1": 5, "3": 6, "4": 6, "c": 7, "d": 1}  # the last figure of each chapter; A has none
    figures = {f"figure {part}.{n}" for part, count in last.items() for n in range(1, count + 1)}
    assert {("thesis", figure) for figure in figures} <= listed


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
