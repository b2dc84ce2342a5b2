"""reports/index.html, the front page; reports/grand.html, every model on every problem;
reports/claims.html, every claim with its reasons; and reports/README.md: every result beside what
it must be compared with, and where it came from.

A page is one file and its figures: styles and a small script inside, no network, whole without the
script. Experiments are found by what they wrote: reports/EXPERIMENT/PROFILE/page.json. The same
inputs give the same bytes.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from stages import files, records
from stages.errors import reported
from stages.files import atomic_file, read_json
from stages.page import claims, documents, grand, printed, promotions, render, words
from stages.page.experiment import DATA

PROFILES = ("mini", "sample", "full")  # in the order that they are shown in; others follow
INDEX, GRAND, CLAIMS = "index.html", "grand.html", "claims.html"
CLAIM_TITLES = (
    *("id", "verdict", "claim", "why", "interval", "seeds"),
    *("data set", "experiment", "profile", "source"),
)
LONG = 160  # letters of a claim's reason that the front page shows
ATTACKS = Path("reports/attacks.json")  # what the audit was tried with (make bench-audit)


def read_views() -> list[dict[str, Any]]:
    """What every experiment wrote for the front page, by its name and profile."""
    views = [read_json(file) for file in sorted(Path("reports").glob(f"[!.]*/*/{DATA}"))]
    rank = {profile: place for place, profile in enumerate(PROFILES)}
    return sorted(
        views, key=lambda view: (view["experiment"], rank.get(view["profile"], len(rank)))
    )


def validations(profile: str) -> list[dict[str, Any]]:
    """The gate's results of every data set of a profile."""
    return [
        read_json(path) for path in sorted((Path("data") / profile / "validated").glob("*.json"))
    ]


def opening(views: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What the page opens with, of the first experiment that offers it: a figure, and the rows of
    the short table beside it, the best last; None where no experiment does."""
    offered = [view for view in views if view.get("opening")]
    if not offered:
        return None
    rank = {profile: place for place, profile in enumerate(PROFILES)}
    view = min(offered, key=lambda one: rank.get(one["profile"], len(rank)))
    asked = view["opening"]
    table = next(one for one in view["short"] if one["dataset"] == asked["dataset"])
    rows = [
        [cell.strip(" *`") for cell in line.strip("|").split("|")]
        for line in table["lines"]
        if line.startswith("|") and "---" not in line
    ]
    folder = f"{view['experiment']}/{view['profile']}"
    return {
        "figure": f"{folder}/figures/{asked['figure']}",
        "words": asked["words"],
        "about": f"{folder}, {table['dataset']}: {table['about']}",
        "titles": rows[0],
        "rows": rows[1:],
        "more": f"{view['page']}#{view['id']}-{asked['dataset']}",
        "address": view["results"][-1]["address"],
    }


def markdown(views: list[dict[str, Any]]) -> str:
    """reports/README.md: the tables, for those who read in the repository."""
    lines = [
        "# Results",
        "",
        (
            "Made by the `report` stage. The same tables with figures, validation and lineage: "
            "`index.html`."
        ),
        "",
    ]
    for view in views:
        folder = f"{view['experiment']}/{view['profile']}"
        table = (Path("reports") / folder / "table.md").read_text(encoding="utf-8")
        figures = f"]({folder}/figures/"
        lines.append("#" + table.replace("\n## ", "\n### ").replace("](figures/", figures))
        lines += [
            "### Claims of the documents",
            "",
            "| claim | data set | verdict | why |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| {c['id']} {c['text']} ({c['source']}) | {c['dataset']} | **{c['verdict']}** | "
            f"{c['why']} |"
            for c in view["claims"]
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def first_reasons(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The claims of the front page: of each `why` its first reason alone, cut at LONG letters, and
    how many follow. All of them stand on the experiment's page and in claims.html."""

    def brief(why: str) -> str:
        first, *others = why.split("; ")
        more = f" (and {len(others)} more)" if others else ""
        return (first if len(first) <= LONG else f"{first[:LONG].rstrip()} …") + more

    return [one | {"why": brief(one["why"])} for one in entries]


def report() -> None:
    """Write the front page, the two tables on pages of their own and reports/README.md from what
    is in git for every profile that has been run."""
    views = read_views()
    entries = [one for view in views for one in view["claims"]]
    profiles = sorted({view["profile"] for view in views})
    text = render.page(
        "front.html",
        title="results",
        front="",
        views=views,
        opening=opening(views),
        claims=first_reasons(entries),
        filters=render.filters(views),
        start=claims.start(views, entries),
        documents=documents.introduced(views),
        validations={profile: validations(profile) for profile in profiles},
        promotions=promotions.view(),
        attacks=read_json(ATTACKS) if ATTACKS.exists() else None,
        errata=claims.errata(),
        printed=printed.items({f"{one['experiment']}/{one['profile']}" for one in views}),
        words=words.numbers(),
        chains=render.scripted(
            {
                "pages": {f"{one['experiment']}/{one['profile']}": one["page"] for one in views},
                "runs": {},
                "spine": {},
            }
        ),
    )
    tables = {
        GRAND: ("the grand table", "The grand table: every model on every problem", grand.TITLES,
                grand.rows(views)),
        CLAIMS: ("the claims", "The claims of the documents, as checks", CLAIM_TITLES, entries),
    }  # fmt: skip
    pages = {INDEX: text, "README.md": markdown(views)} | {
        name: render.page(name, id=name.removesuffix(".html"), title=title, heading=heading,
                          titles=titles, rows=rows)
        for name, (title, heading, titles, rows) in tables.items()
    }  # fmt: skip
    for name, content in pages.items():
        with atomic_file(f"reports/{name}", "w") as stream:
            stream.write(content)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.page.report", description="Write the front page of all results."
    )
    parser.parse_args(argv)

    def work() -> None:
        with files.guard("report"), records.timed("report", "all"):
            report()

    return reported(work)


if __name__ == "__main__":
    sys.exit(main())
