"""reports/index.html, pages beside it and reports/README.md: every result beside what it must be
compared with, and where it came from.

A page is one file: styles, pictures and a small script inside, no network, whole without the
script. The same inputs give the same bytes. It is read from what is in git (metrics.json,
claims.json, benchmarks.json, sweeps, figures, records), so every profile that has been run stands
in it. A page stays below 2 MB: experiments of many pictures have a page of their own (PAGES), and
figures that are not embedded lie in the experiment's folder.
"""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from PIL import Image

from stages.fields import costs
from stages.fields import results as set_results
from stages.files import atomic_file, read_json
from stages.neighbours.experiment import results as searches
from stages.neighbours.experiment import tables as search_tables
from stages.page import chains as page_chains
from stages.page import claims as page_claims
from stages.page import promotions
from stages.page import results as page_results
from stages.page.lineage import UNDECODED, lineage
from stages.sequences.reporting import results as order_results
from stages.sequences.reporting import texts as order_texts
from stages.tables.published import companions, epochs, weather
from stages.winds import tables
from stages.winds.tabulate import OPTIMUM

EXPERIMENTS = {
    "wind_nowcast": "Who nowcasts the wind best, from what aircraft measured half an hour ago?",
    "wind_baselines": "How far do the winds measured near a place carry, and who averages them "
    "best?",
    **set_results.EXPERIMENTS,
    **order_results.EXPERIMENTS,
    searches.EXPERIMENT: "How many points must a search for the nearest neighbours look at, and "
    "how long does it take?",
}
PROFILES = ("mini", "sample", "full")
INDEX = "index.html"
PAGES = dict.fromkeys(set_results.EXPERIMENTS, "fields.html") | {  # the others stand on the index
    experiment: f"{experiment}.html" for experiment in order_results.EXPERIMENTS
}
FIGURES = {
    "nowcast": "One test minute: the winds known at issue time, and the forecast over what was "
    "measured. Arrows point where the wind blows to; red lines are the model's own spread.",
    "errors": "Where the error of the wind vector lies, over all test minutes.",
    "by_lead": "Error against lead time: the same held-out targets, older and older contexts. "
    "Bands are 90 % bootstrap intervals.",
    "by_distance": "Error by distance from the nearest measurement the model was given.",
    "sweeps": "The sweeps, on validation slices: each draw's error and the least so far; the best "
    "to be expected of k draws (Dodge et al. 2019); what the error depends on; error by argument. "
    "Draws at the upper edge lie beyond it; ticks at the foot have no error.",
}
EMBEDDED = {
    "wind_nowcast": ("nowcast", "errors", "by_lead", "by_distance"),
    "wind_baselines": ("by_lead", "sweeps"),
}
OTHERS = ("by_lead", "errors")  # of an experiment that is not named above
WIDE = ("nowcast", "errors", "sweeps")
LARGE = 50_000  # bytes of an embedded figure
SURFACE = "TNN by points a segment (K) and segments a fetch (F): the thesis' figure 1.4."
SPEED = (
    "Time a query over the yardstick's, side by side in one run; the black line is the yardstick, "
    "a short bar the goal of the method in its colour. Filled: isotropic scale; hollow: (1, 1, 4, "
    "9)."
)
SETS = {
    "learning": "Left: validation loss against steps, the mean over seeds with their range "
    "(dashed: another arm of the model in that colour). Right: MSE of the test sets with 90 % "
    "intervals; stars are printed values, of the document's validation sets.",
    "example": "One test set: what was given, what was to be found, and what two models say.",
    "planted": "One planted error: how many latents its gradient touches (dashed: fewer count as "
    "one; dotted: more count as many), and how many updates undo it.",
    "sensitivity": "Above (or left): MSE of the test sets with 90 % intervals by layers, hidden "
    "dimension or GeoFNO's width, each size at its best learning rate; beside each point the count "
    "of parameters. Below (or right): the least validation loss against the learning rate, a line "
    "a size.",
    "overlap": "MSE against the share of the context that comes from the targets' region.",
}
COPYING = (
    "Handing on the context's own values, by the frequency of their function; 'random values' "
    "follow none."
)
COSTS = (
    "A training step by the context's size: time and peak memory, with the exponents fitted to the "
    "larger sizes (1: linear, 2: quadratic). Dotted: single layers of attention."
)
BOUND = (
    "The counterexample: the run A–B, the query (star), and how near the printed bound (red) and "
    "the mended one (green) say that the run can be."
)


def embedded(path: Path, words: str) -> list[dict[str, str]]:
    """A figure as a data URI with its caption; [] where it was not drawn.

    Lossless WebP: the same pixels in two thirds of a PNG's bytes; of a map in many colours a lossy
    one where that is smaller.
    """
    if not path.exists():
        return []
    packed = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").save(
            packed, format="WEBP", lossless=True, quality=100, method=4, exact=True
        )
        if packed.tell() > LARGE:
            lossy = io.BytesIO()
            picture.convert("RGB").save(lossy, format="WEBP", quality=90, method=4)
            packed = min(packed, lossy, key=lambda one: one.tell())
    return [
        {
            "title": words,
            "data": "data:image/webp;base64," + base64.b64encode(packed.getvalue()).decode(),
        }
    ]


def questions() -> dict[str, str]:
    """What each experiment asks: those above first, then every other folder of reports/ that
    declares stages, by its README's question."""
    found = dict(EXPERIMENTS)
    for declared in sorted(Path("reports").glob("*/dvc.yaml")):
        readme = declared.with_name("README.md")
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
        said = re.search(r"(?s)\*\*Question\.\*\*\s+(.+?)(?:\n\n|\Z)", text)
        found.setdefault(
            declared.parent.name, " ".join(said[1].split()) if said else declared.parent.name
        )
    return found


def durations(experiment: str, profile: str) -> tuple[dict[str, dict[str, str]], str]:
    """The columns of epoch durations (s) of table 1.2, ours where `make bench-neighbours` timed
    one, and a sentence on where."""
    file = Path("reports", searches.EXPERIMENT, profile, "benchmarks.json")
    times, printed = read_json(file) if file.exists() else {}, epochs(experiment)
    ours = {
        arm: f"{times['epoch']['seconds']:.0f}"
        for arm in printed
        if times.get("epoch") and arm.startswith("gka_mlp_tnn-cached")
    }
    columns = {"epoch [s]": ours} if ours else {}
    said = (
        (
            f"{search_tables.epoch(times)} Printed epochs: the document's machine, one day of a "
            "million points."
        )
        if ours
        else "Printed epochs: one day of a million points, on the document's machine."
    )
    return columns | {
        "printed epoch [s]": {arm: f"{seconds:,.0f}" for arm, seconds in printed.items()}
    }, said


def dataset_view(
    experiment: str, profile: str, content: dict[str, Any], dataset: str
) -> dict[str, Any]:
    """Everything the page shows of one data set of forecasts in one profile."""
    home, arms, cells, printed = (
        Path("reports", experiment, profile),
        content["arms"],
        content["cells"],
        companions(experiment),
    )
    columns, said = durations(experiment, profile)
    more = [
        (
            "By day, beside the document's three (thesis, table 1.2)",
            tables.by_day(arms, cells, dataset, printed, columns),
            said,
        ),
        ("Kernel averaging by lead (thesis, figure 3.3)", tables.by_lead(arms, cells, dataset), ""),
        (
            (
                "By the weather service's metrics; the printed rows (about 100,000 parameters; "
                "thesis, table 3.3) below"
            ),
            tables.weather(arms, dataset, weather()),
            "",
        ),
        (
            "What the sweeps chose",
            tables.sweeps(home / "sweeps" / dataset, dataset),
            "On validation slices: not the numbers of the test above.",
        ),
    ]
    figures = {
        name: embedded(home / "figures" / f"{dataset}-{name}.png", FIGURES[name])
        for name in EMBEDDED.get(experiment, OTHERS)
    }
    best = tables.ordered(arms, dataset)[-1]
    return {
        "name": dataset,
        "table": tables.results(arms, dataset, printed),
        "floor": tables.floor_of(arms, dataset),
        "optimum": OPTIMUM.replace("`", "")
        if tables.error_of(arms, dataset, tables.OPTIMUM)
        else "",
        "n": arms[best]["metrics"][tables.RMSE]["n"],
        "more": [one for one in more if one[1]],
        "wide": [figure for name, found in figures.items() if name in WIDE for figure in found],
        "narrow": [
            figure for name, found in figures.items() if name not in WIDE for figure in found
        ],
        "cells": sorted(name.partition("/")[2] for name in cells if name.startswith(dataset + "/")),
        "lineage": lineage(experiment, profile, dataset),
    }


def sets_view(experiment: str, profile: str, content: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of an experiment on sets of points in one profile."""
    home, arms, cells = Path("reports", experiment, profile), content["arms"], content["cells"]
    datasets = [
        {
            "name": section.dataset,
            "n": section.n,
            "tables": section.tables,
            "figures": [
                one
                for name, words in SETS.items()
                for one in embedded(home / "figures" / f"{section.dataset}-{name}.png", words)
            ],
            "cells": sorted(
                name.partition("/")[2] for name in cells if name.startswith(section.dataset + "/")
            ),
            "lineage": lineage(experiment, profile, section.dataset, UNDECODED),
        }
        for section in set_results.sections(experiment, profile, arms, cells)
    ]
    return {
        "datasets": datasets,
        "legend": set_results.LEGEND,
        "across": set_results.across(experiment, arms),
        "copying": embedded(home / "figures/copying.png", COPYING),
        "costs": costs_view(experiment, profile),
    }


def costs_view(experiment: str, profile: str) -> dict[str, Any] | None:
    """What the page shows of time and memory in one profile; None of an experiment that is not
    timed."""
    times = set_results.measured(experiment, profile)
    if times is None:
        return None
    return {
        "told": costs.measured_on(times, profile).replace("`", ""),
        "tables": costs.tables(times),
        "yardstick": costs.YARDSTICK if times else "",
        "figures": embedded(Path("reports", experiment, profile, "figures/costs.png"), COSTS),
    }


def orders_view(experiment: str, profile: str, content: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of an experiment on sequences in one profile."""
    home = Path("reports", experiment, profile, "figures")
    shown = lambda dataset, named: [
        one
        for name, words in named.items()
        for one in embedded(home / f"{dataset}-{name}.png", words)
    ]  # noqa: E731
    datasets = [
        {
            "name": one.dataset,
            "told": one.told,
            "address": one.address,
            "tables": (
                *one.tables,
                *order_texts.table(content.get("texts", {}).get(one.dataset, []), one.dataset),
            ),
            "pictures": shown(
                one.dataset, order_results.pictures(content["about"][one.dataset]["kind"])
            ),
            "figures": shown(one.dataset, order_results.FIGURES),
            "cells": order_results.cells_of(content["cells"], one.dataset),
            "lineage": lineage(experiment, profile, one.dataset, UNDECODED),
        }
        for one in order_results.sections(experiment, content)
    ]
    return {
        "datasets": datasets,
        "legend": order_results.LEGEND,
        "across": order_results.across(experiment, content),
    }


def set_view(
    profile: str, found: search_tables.Found, about: dict[str, Any], name: str
) -> dict[str, Any]:
    """Everything the page shows of one point set that was searched."""
    k, home = found.most(name), Path("reports", searches.EXPERIMENT, profile)
    return {
        "name": name,
        "points": about["points"],
        "trajectories": about["trajectories"],
        "tables": [
            (
                f"Tables 1.3 and 1.4: {k} neighbours, scale (1, 1, 4, 9)",
                search_tables.main(found, name),
            ),
            ("Comparisons by k and scale, of what a query sees", search_tables.shares(found, name)),
        ],
        "leaves": (f"Tables A.1–A.3: k-d trees, {k} neighbours", search_tables.leaves(found, name)),
        "figures": embedded(home / "figures" / f"{name}-surface.png", SURFACE),
        "lineage": lineage(searches.EXPERIMENT, profile, name),
    }


def search_view(profile: str, content: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of the search experiment in one profile, beside its point sets."""
    home, bound = Path("reports", searches.EXPERIMENT, profile), content.get("bound")
    found = searches.read(home)
    named = (
        ("Time over the yardstick's", search_tables.speed(found)),
        ("At the document's size", search_tables.large(found)),
    )
    goals = found.times.get("goals", [])
    return {
        "sets": [set_view(profile, found, content["sets"][name], name) for name in found.sets()],
        "measured": search_tables.measured_on(found.times).replace("`", ""),
        "epoch": search_tables.epoch(found.times),
        "times": [one for one in named if one[1]],
        "goals": search_tables.goals(found),
        "met": f"{sum(goal['passed'] for goal in goals)} of {len(goals)} goals met",
        "speed": embedded(home / "figures/speed.png", SPEED),
        "legend": searches.LEGEND,
        "bound": {
            "text": dict(
                zip(("words", "formulas", "meaning"), searches.argument(bound), strict=True)
            ),
            "table": searches.bound_table(bound),
            "run": next(iter(bound["counted"].values()))["run"],
            "figure": embedded(home / "figures/bound.png", BOUND),
        }
        if bound
        else None,
    }


def profile_view(experiment: str, profile: str) -> dict[str, Any] | None:
    """One profile of one experiment, or None where it has not been run."""
    home = Path("reports") / experiment / profile
    if not (home / "metrics.json").exists():
        return None
    content = read_json(home / "metrics.json")
    claims = read_json(home / "claims.json")
    view = {
        "experiment": experiment,
        "profile": profile,
        "id": f"{experiment}-{profile}",
        "page": PAGES.get(experiment, INDEX),
        "claims": claims,
        "verdicts": page_claims.verdicts(claims),
        "content": content,
        "family": page_results.family(experiment),
        "documents": page_results.documents(experiment, [claim["source"] for claim in claims]),
        "results": page_results.results(experiment, profile, content),
        "rerun": page_results.rerun(experiment, profile),
    }
    if experiment == searches.EXPERIMENT:
        return view | {"kind": "search"} | search_view(profile, content)
    if experiment in set_results.EXPERIMENTS:
        return view | {"kind": "sets"} | sets_view(experiment, profile, content)
    if experiment in order_results.EXPERIMENTS:
        return view | {"kind": "orders"} | orders_view(experiment, profile, content)
    names = tables.datasets_of(content["arms"])
    return view | {
        "kind": "wind",
        "datasets": [dataset_view(experiment, profile, content, name) for name in names],
    }


def validations(profile: str) -> list[dict[str, Any]]:
    """The gate's results of every data set of a profile."""
    return [
        read_json(path) for path in sorted((Path("data") / profile / "validated").glob("*.json"))
    ]


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
        table = (Path("reports") / view["experiment"] / view["profile"] / "table.md").read_text(
            encoding="utf-8"
        )
        lines.append(
            "#"
            + table.replace("\n## ", "\n### ").replace(
                "](figures/", f"]({view['experiment']}/{view['profile']}/figures/"
            )
        )
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


def filters(views: list[dict[str, Any]]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """What can be chosen among: (name, title, [(value, words)]); every document, and the
    families and profiles that there are."""
    told = lambda key: [(value, value) for value in dict.fromkeys(view[key] for view in views)]  # noqa: E731
    return [
        ("document", "document", list(page_results.DOCUMENTS.items())),
        ("family", "family", told("family")),
        ("profile", "profile", told("profile")),
        (
            "verdict",
            "verdict of a claim",
            [(word, word) for word in ("holds", "fails", "undecided")],
        ),
    ]


def scripted(found: dict[str, Any]) -> Markup:
    """JSON that may stand inside a script element: no '<' that could end it."""
    return Markup(
        json.dumps(found, separators=(",", ":"), ensure_ascii=False, sort_keys=True).replace(
            "<", "\\u003c"
        )
    )


def report() -> None:
    """Write the pages and reports/README.md from what is in git for every profile that has been
    run."""
    asked = questions()
    views = [
        view
        for experiment in asked
        for profile in PROFILES
        if (view := profile_view(experiment, profile))
    ]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    profiles = [
        profile for profile in PROFILES if any(view["profile"] == profile for view in views)
    ]
    common = {
        "index": INDEX,
        "validations": {profile: validations(profile) for profile in profiles},
        "promotions": promotions.view(),
        "errata": page_claims.errata(),
    }
    for page in dict.fromkeys((INDEX, *PAGES.values())):
        shown = [view for view in views if page in (INDEX, view["page"])]
        here, claims = [view for view in shown if view["page"] == page], page_claims.ledger(shown)
        text = template.render(
            common,
            here=page,
            views=shown,
            title="results" if page == INDEX else page.removesuffix(".html"),
            experiments={view["experiment"]: asked[view["experiment"]] for view in shown},
            claims=claims,
            chains=scripted(page_chains.chains(here) | {"pages": PAGES if page == INDEX else {}}),
            filters=filters(shown),
            start=page_claims.start(here, claims, page == INDEX),
            searched=any(view["kind"] == "search" for view in shown),
        )
        with atomic_file(f"reports/{page}", "w") as stream:
            stream.write(text + "\n")
    with atomic_file("reports/README.md", "w") as stream:
        stream.write(markdown(views))
