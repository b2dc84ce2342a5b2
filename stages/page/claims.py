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
from stages.page.result import DOCUMENTS, documents

ERRATA = Path(__file__).with_name("errata.csv")
STAGES = Path(__file__).parents[1]  # a family is a folder of it
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


def ledger(
    experiment: str, profile: str, family: str, arms: dict[str, Any], claims: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Every claim of an experiment and profile as a row; `known` says whether its data set has a
    chain of its own."""
    known, rows = {name.split("/")[0] for name in arms}, []
    for claim in claims:
        seeds = claim.get("seeds")
        rows.append(
            {key: claim[key] for key in ("id", "text", "source", "verdict", "why", "dataset")}
            | {
                "experiment": experiment,
                "profile": profile,
                "family": family,
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
        families = (row["families"] or "").split()
        unknown = [name for name in families if not (STAGES / name).is_dir()]
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


def start(views: list[dict[str, Any]], claims: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Where a new reader looks first: what the experiments name, each title once, and the lists of
    the front page; [] where there is nothing."""
    named: dict[str, dict[str, str]] = {}
    for view in views:
        for one in view["start"]:
            link = {"to": f"{view['page']}#{one['anchor']}", "words": one["words"]}
            named.setdefault(one["title"], {"title": one["title"]} | link)
    known = [view["results"][-1] for view in views if view["results"]]
    real = next((one for one in reversed(known) if one["profile"] == "sample"), None)
    found, raw = list(named.values()), real or (known[0] if known else None)
    if raw:
        chain = "/".join(raw[key] for key in ("experiment", "profile", "dataset", "arm"))
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
        found.append(
            {
                "to": "#errata",
                "title": "What the documents print wrongly",
                "words": "Each with the test or number that shows it.",
            }
        )
    return found
