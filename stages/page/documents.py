"""The five documents that the project re-does, introduced: documents.csv.

A row is a document: its key, the letter that texts call it by, authors, title, kind, what it is
about, and links that it names itself (ADDRESS WORDS, parted by '; '). A test holds titles to
data/README.md.
"""

from pathlib import Path
from typing import Any

import polars as pl

from stages.page.result import DOCUMENTS

INTRODUCED = Path(__file__).with_name("documents.csv")


def introduced(views: list[dict[str, Any]], path: Path = INTRODUCED) -> list[dict[str, Any]]:
    """The documents in their order, each with `links` [(address, words)] and the experiments that
    re-do it, {name: page}."""
    rows = pl.read_csv(path, infer_schema_length=0).fill_null("")
    found = {row["document"]: row for row in rows.iter_rows(named=True)}
    return [
        found[key]
        | {
            "links": [one.split(" ", 1) for one in found[key]["links"].split("; ") if one],
            "experiments": redone(views, key),
        }
        for key in DOCUMENTS
    ]


def redone(views: list[dict[str, Any]], document: str) -> dict[str, str]:
    """The experiments that are compared with a document, or check its claims, and the page of each
    in its first profile."""
    pages: dict[str, str] = {}
    for view in views:
        if document in view["documents"]:
            pages.setdefault(view["experiment"], view["page"])
    return pages
