"""An experiment's page in a profile: reports/EXPERIMENT/PROFILE/page.html, and page.json, which
says what the front page shows of it.

Both are made from numbers (stages/tables/parts.py), claims.json, figures and records, so that a
profile whose evaluations are not here has its page, too. The same inputs give the same bytes.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stages import files, records, runner
from stages.files import atomic_file, read_json, write_json
from stages.page import chains, claims, render
from stages.page.blocks import Part, Short
from stages.page.result import documents, rerun
from stages.tables import parts
from stages.tables.table import datasets_of
from stages.tables.tabulation import home_of

PAGE, DATA = "page.html", "page.json"
FRONT = "../../index.html"
About = Callable[[str, str, dict[str, Any]], Part]


def question(experiment: str) -> str:
    """What an experiment asks, from its README.md; its name where that has no question."""
    readme = Path("reports", experiment, "README.md")
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    said = re.search(r"(?s)\*\*Question\.\*\*\s+(.+?)(?:\n\n|\Z)", text)
    return " ".join(said[1].replace("`", "").split()) if said else experiment


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def view(experiment: str, profile: str, content: dict[str, Any], part: Part) -> dict[str, Any]:
    """What the front page shows of an experiment, as JSON: results, claims, links. `table` is the
    digest of table.md, so that who rests on this rests on that."""
    home = home_of(experiment, profile)
    entries = read_json(home / "claims.json", list)
    name = f"{experiment}-{profile}"
    return {
        "experiment": experiment,
        "profile": profile,
        "id": name,
        "page": f"{experiment}/{profile}/{PAGE}",
        "question": question(experiment),
        "family": part.family,
        "documents": documents(experiment, [entry["source"] for entry in entries]),
        "verdicts": claims.verdicts(entries),
        "rerun": rerun(experiment, profile),
        "datasets": datasets_of(content["arms"]),
        "results": [asdict(one) | {"address": one.address} for one in part.results],
        "claims": claims.ledger(experiment, profile, part.family, content["arms"], entries),
        "start": [asdict(one) | {"anchor": f"{name}-{one.anchor}"} for one in part.start],
        "short": [short(one) for one in part.short],
        "opening": part.opening and asdict(part.opening),
        "table": digest(home / "table.md"),
    }


def short(one: Short) -> dict[str, Any]:
    """A table of reports/FINDINGS.md as JSON."""
    return {"dataset": one.dataset, "about": one.about, "lines": one.table.markdown()}


def write(experiment: str, profile: str, about: About) -> None:
    """Write page.html and page.json of an experiment and profile; `about` is its family's."""
    home = home_of(experiment, profile)
    content = parts.read(home)
    part = about(experiment, profile, content)
    shown = view(experiment, profile, content, part)
    found = chains.chains(experiment, profile, content, part)
    text = render.page(
        "experiment.html",
        title=f"{experiment}, {profile}",
        front=FRONT,
        view=shown,
        part=part,
        views=[shown],
        claims=shown["claims"],
        filters=render.filters([shown]),
        chains=render.scripted(found | {"pages": {}}),
    )
    with atomic_file(home / PAGE, "w") as stream:
        stream.write(text)
    write_json(home / DATA, shown)


def command(module: str, about: About, argv: Sequence[str] | None) -> int:
    """The command line of a family's page; its exit code."""

    def plan(asked: runner.Asked) -> runner.Work:
        experiment, profile = asked["experiment"], asked["profile"]

        def do() -> dict[str, Path]:
            cell = f"{experiment}/{profile}"
            with files.guard(f"page/{cell}"), records.timed("page", cell):
                write(experiment, profile, about)
            return {}

        return runner.Work("page", f"{experiment}/{profile}", None, do, [], [module])

    return runner.command(
        module, "Write the page of an experiment.", ("experiment", "profile"), plan, argv
    )
