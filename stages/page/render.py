"""Pages from their templates: what all of them need, and nothing that a family knows."""

import json
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from stages.page import blocks, charts
from stages.page.result import DOCUMENTS

VERDICTS = ("holds", "fails", "undecided")


def page(template: str, **told: Any) -> str:
    """A page's text; every name that a template uses must be told."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        lstrip_blocks=True,
    )
    environment.tests["kind"] = is_kind
    environment.filters |= {
        "drawn": charts.drawn,
        "heading": blocks.heading,
        "legend": charts.legend,
    }
    return environment.get_template(template).render(**told) + "\n"


def is_kind(block: blocks.Block, name: str) -> bool:
    """Whether a block is of the class of that name (a test of the templates)."""
    return type(block).__name__ == name


def filters(views: list[dict[str, Any]]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """What can be chosen among: (name, title, [(value, words)]); every document, and the
    families and profiles that there are."""

    def filter_options(key: str) -> list[tuple[str, str]]:
        return [(value, value) for value in dict.fromkeys(view[key] for view in views)]

    return [
        ("document", "document", list(DOCUMENTS.items())),
        ("family", "family", filter_options("family")),
        ("profile", "profile", filter_options("profile")),
        ("verdict", "verdict of a claim", [(word, word) for word in VERDICTS]),
    ]


def scripted(found: dict[str, Any]) -> Markup:
    """JSON that may stand inside a script element: no '<' that could end it."""
    return Markup(
        json.dumps(found, separators=(",", ":"), ensure_ascii=False, sort_keys=True).replace(
            "<", "\\u003c"
        )
    )
