"""What the documents print, item by item, and where ours is: printed.csv.

A row is a table or figure: document, item, what it shows, ours (files of the project, those of
reports/ from there, parted by '; '; empty where there is none), why (what differs, or why there is
none). `items` is held to its form; a test holds the files to the project.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.page.result import DOCUMENTS

PRINTED = Path(__file__).with_name("printed.csv")
COLUMNS = ["document", "item", "what", "ours", "why"]


def items(shown: Collection[str], path: Path = PRINTED) -> list[dict[str, Any]]:
    """The rows, each with `links` [(where from reports/, name)]: a link where the page shows its
    experiment and profile (`shown`, EXPERIMENT/PROFILE), else None. DataError for a row of no
    document, or that names neither ours nor why there is none."""
    rows = pl.read_csv(path, infer_schema_length=0).fill_null("")
    if rows.columns != COLUMNS:
        raise DataError(
            "the printed items have other columns",
            where=str(path),
            expected=", ".join(COLUMNS),
            found=", ".join(rows.columns),
        )
    found = []
    for number, row in enumerate(rows.iter_rows(named=True), 2):
        ours = [name for name in row["ours"].split("; ") if name]
        if row["document"] not in DOCUMENTS or not (ours or row["why"]):
            raise DataError(
                "a printed item is of no document, or tells neither ours nor why there is none",
                where=f"{path}: line {number}",
                found=str(row),
            )
        links = [(one if "/".join(one.split("/")[:2]) in shown else None, one) for one in ours]
        found.append(row | {"called": DOCUMENTS[row["document"]], "links": links})
    return found
