"""The claims ledger and the errata of the documents, as rows of text for the page.

A claim is one entry of an experiment's claims.json in one profile; its interval is the 90 % one of
the difference, share or ratio that `why` names with its unit. An erratum is a row of errata.csv:
document, where, printed, right, how (we know), evidence (tests as PATH::NAME and figures under
reports/, parted by '; '), families (for the filter). `errata` is held to its form; a test holds its
evidence to the project.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.page.results import DOCUMENTS, FAMILIES, documents, family

ERRATA = Path(__file__).with_name("errata.csv")
COLUMNS = ["document", "where", "printed", "right", "how", "evidence", "families"]


def verdicts(claims: list[dict[str, Any]]) -> str:
    """'2 hold, 1 fails, 3 undecided', or that there is none."""
    found = Counter(claim["verdict"] for claim in claims)
    words = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "undecided": ("undecided", "undecided"),
    }
    return (
        ", ".join(
            f"{count} {words.get(name, (name, name))[count != 1]}"
            for name, count in sorted(found.items())
        )
        or "none"
    )


def interval(claim: dict[str, Any]) -> str:
    """'[-1.85, -1.04]', or in words that there is none."""
    ends = claim.get("interval")
    return f"[{ends[0]:.3g}, {ends[1]:.3g}]" if ends else "none: counted"


def ledger(views: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every claim of these views as a row; `known` says whether its data set has a chain of its
    own."""
    rows = []
    for view in views:
        known = {name.split("/")[0] for name in view["content"]["arms"]}
        for claim in view["claims"]:
            seeds = claim.get("seeds")
            rows.append(
                {key: claim[key] for key in ("id", "text", "source", "verdict", "why", "dataset")}
                | {
                    "experiment": view["experiment"],
                    "profile": view["profile"],
                    "family": family(view["experiment"]),
                    "documents": " ".join(documents("", [claim["source"]])),
                    "known": claim["dataset"] in known,
                    "interval": interval(claim),
                    "seeds": str(seeds) if seeds else "no training",
                }
            )
    return rows


def errata(path: Path = ERRATA) -> list[dict[str, Any]]:
    """The errata in the order of the documents; DataError for a row that lacks a part or names a
    document or family that there is not."""
    rows = pl.read_csv(path, infer_schema_length=0)
    if rows.columns != COLUMNS:
        raise DataError(
            "the errata have other columns",
            where=str(path),
            expected=", ".join(COLUMNS),
            found=", ".join(rows.columns),
        )
    for number, row in enumerate(rows.iter_rows(named=True), 2):
        unknown = set((row["families"] or "").split()) - set(FAMILIES.values())
        if row["document"] not in DOCUMENTS or unknown or not all(row.values()):
            raise DataError(
                "an erratum lacks a part or names what there is not",
                where=f"{path}: line {number}",
                found=str(row),
            )
    order = list(DOCUMENTS)
    found = sorted(rows.iter_rows(named=True), key=lambda row: order.index(row["document"]))
    return [
        row | {"called": DOCUMENTS[row["document"]], "shown_by": row["evidence"].split("; ")}
        for row in found
    ]


def start(
    views: list[dict[str, Any]], claims: list[dict[str, Any]], index: bool
) -> list[dict[str, str]]:
    """Where a new reader looks first: links to what is on this page, [] where there is nothing."""
    winds = [view for view in views if view["kind"] == "wind"]
    bound = next((view for view in views if view["kind"] == "search" and view["bound"]), None)
    raw = next((view["results"][-1] for view in views if view["results"]), None)
    real = next(
        (one for view in winds if view["profile"] == "sample" for one in reversed(view["results"])),
        raw,
    )
    found = []
    if winds:
        first = winds[0]
        found.append(
            {
                "to": f"#{first['id']}-{first['datasets'][0]['name']}",
                "title": "Who nowcasts the wind best?",
                "words": "The wind table: every model beside the printed value, the hour's average "
                "and the noise of the sensors.",
            }
        )
    if bound:
        found.append(
            {
                "to": "#bound",
                "title": "Why the printed neighbour bound fails",
                "words": "Squares are subtracted where lengths must be: a picture, and how often "
                "it loses a neighbour.",
            }
        )
    if real:
        chain = "/".join((real.experiment, real.profile, real.dataset, real.arm))
        found.append(
            {
                "to": "#results",
                "open": chain,
                "title": "The raw file behind a number",
                "words": "One example, opened. The same opens from the name in any row: click it, "
                "then ‘Raw files’.",
            }
        )
    if views:
        found.append(
            {
                "to": "#claims",
                "title": "What holds of what the documents claim",
                "words": f"{verdicts(claims)}; sort and filter them.",
            }
        )
    if views and index:
        found.append(
            {
                "to": "#errata",
                "title": "What the documents print wrongly",
                "words": "Each with the test or number that shows it.",
            }
        )
    return found
