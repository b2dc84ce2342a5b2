"""What is told of the neighbour search: what each set is, tables, and why the printed bound fails.

`sets` of metrics.json adds what each set is, `bound` the counterexample to the printed bound and
how often the bound fails on each set. Times are read from benchmarks.json, never made here.
"""

from pathlib import Path
from typing import Any

from stages.files import read_json
from stages.neighbours.experiment import tables as search_tables
from stages.neighbours.experiment.printed import searches
from stages.neighbours.experiment.tables import SearchResults
from stages.tables.table import Table
from stages.tables.tabulation import Content, home_of

BENCHMARKS = "benchmarks.json"
LEGEND = (
    "A comparison is a point whose distance to the query was computed; the share is of the points "
    "that the query may see (measured a window before it), which is what linear search looks at. [ "
    "] is the 90 % bootstrap interval over queries. An answer is wrong when it differs from brute "
    "force in any bit. (*) SciPy does not tell what its trees look at: the forest counts the "
    "candidates that came back. Scale (1, 1, 4, 9) weighs squared differences in x, y, z and time."
)
PRINTED = (
    "Printed values are the document's, for a million points on its own machine: a level to "
    "compare with."
)


def found_in(experiment: str, profile: str, content: Content) -> SearchResults:
    """What metrics.json (`content`) and benchmarks.json of a profile hold, and what is printed."""
    file = home_of(experiment, profile) / BENCHMARKS
    times = read_json(file) if file.exists() else {}
    return SearchResults(content["arms"], times, searches(experiment))


def read_descriptions(home: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What each set is, from its evaluation, and the failures of the printed bound; None where
    they were not counted."""
    folders = sorted(file.parent for file in (home / "evaluated").glob("[!.]*/metrics.json"))
    sets = {
        folder.name: {
            key: value
            for key, value in read_json(folder / "metrics.json").items()
            if key != "cells"
        }
        for folder in folders
    }
    counts = {
        folder.name: read_json(folder / "bound.json")
        for folder in folders
        if (folder / "bound.json").exists()
    }
    if not counts:
        return sets, None
    example = next(iter(counts.values()))["counterexample"]
    return sets, {
        "counterexample": example,
        "counted": {name: found["counted"] for name, found in counts.items()},
    }


def bound_table(bound: dict[str, Any]) -> Table:
    """How often the printed bound exceeds what it should stay below, and what that costs; the
    mended ones beside it."""
    rows = []
    for name, found in bound["counted"].items():
        for arm, scale in (("iso", "1, 1, 1, 1"), ("aniso", "1, 1, 4, 9")):
            one = found["scales"][arm]
            share = f"{100 * one['above']['printed'] / one['pairs']:.2f}" if one["pairs"] else "–"
            rows.append(
                (
                    name,
                    scale,
                    share,
                    f"{one['wrong']} of {one['queries']}",
                    str(one["above"]["segment"]),
                    str(one["above"]["box"]),
                )
            )
    k = next(iter(bound["counted"].values()))["k"]
    titles = (
        "set",
        "scale",
        "printed bound too large [% of pairs]",
        f"queries that lose a neighbour by it, k = {k}",
        "mended too large [pairs]",
        "box too large [pairs]",
    )
    return Table("bounds", titles, tuple(rows), frozenset({0, 1}))


def argument(bound: dict[str, Any]) -> tuple[list[str], list[str], str]:
    """Why the printed bound fails: paragraphs of plain words, formulas, and what they mean;
    every number from the counterexample."""
    one = bound["counterexample"]
    line = one["distance_to_line"]
    bend = one["deviation"]
    true = one["true"]
    rival = one["rival_true"]
    said = one["printed"]
    words = [
        (
            "To avoid looking at every point, the search first asks of each piece of a trajectory "
            "(a run): how near can any of its points possibly be? Runs that cannot hold a "
            "neighbour are left unread. An answer that is too small costs time. It must never be "
            "too large: then a neighbour is thrown away unseen, and nothing tells."
        ),
        (
            "The thesis takes the distance to the straight line from the run's first point A to "
            "its last point B, and takes off how far the run strays from that line. But it "
            f"subtracts squares. In the figure the line is {line:g} away and the run strays by "
            f"{bend:g}, towards the query. The printed bound says {line:g}² − {bend:g}² = {said:g} "
            f"of a squared distance that is really {true:g}: 'nothing of the run lies within "
            f"{said**0.5:.2f}', though a point lies {true**0.5:g} away. A search that believes it "
            f"reads the other run first, finds a point at squared distance {rival:g} < {said:g}, "
            "and stops with the wrong neighbour."
        ),
        (
            "What holds is the triangle inequality, and that is one of lengths, not of their "
            f"squares: the nearest point can be no nearer than {line:g} − {bend:g} = "
            f"{line - bend:g}, squared {(line - bend) ** 2:g}."
        ),
    ]
    formulas = [
        "printed: max(0, d(P, AB)² − σ_max E²)",
        "mended:  max(0, d_σ(P, AB) − √(Σ_a σ_a e_a²))² + σ_t gap_t²",
    ]
    meaning = (
        "E is the largest distance of a point of the run to AB, e_a the largest deviation on axis "
        "a, gap_t the time from the query to the run. The mended d_σ projects on AB under the "
        "scale σ itself: Euclid's projection, as printed, is longer there, a second fault. It is "
        "computed in double precision and lowered by more than its own rounding. Beside it stands "
        "the distance to the box of the run's points, which never exceeds theirs, rounding "
        "included."
    )
    return words, formulas, meaning


def bound_section(bound: dict[str, Any]) -> list[str]:
    """The argument against the printed bound in Markdown, with the counts."""
    words, formulas, meaning = argument(bound)
    lines = ["## Why the printed bound fails", "", "![The counterexample](figures/bound.png)", ""]
    lines += [line for text in words for line in (text, "")]
    return [*lines, "```", *formulas, "```", "", meaning, "", *bound_table(bound).markdown()]


def table(experiment: str, profile: str, content: Content) -> str:
    """Markdown: a section a set, then times, then the bound."""
    found, sets = found_in(experiment, profile, content), content["sets"]
    bound = content.get("bound")
    lines = [
        f"# {experiment}, profile {profile}",
        "",
        f"{LEGEND} {PRINTED}",
        "",
        search_tables.measured_on(found.times),
        "",
    ]
    for name in found.sets():
        about, k = sets[name], found.most(name)
        lines += [
            f"## {name}",
            "",
            f"{about['points']:,} points on {about['trajectories']:,} trajectories.",
            "",
        ]
        for title, one in (
            (
                f"Tables 1.3 and 1.4: {k} neighbours, scale (1, 1, 4, 9)",
                search_tables.main(found, name),
            ),
            (
                "Comparisons by k and scale, % of what a query sees",
                search_tables.shares(found, name),
            ),
            (f"Tables A.1-A.3: k-d trees, {k} neighbours", search_tables.leaves(found, name)),
        ):
            lines += [f"{title}:", "", *one.markdown()]
    for title, one in (
        ("Time over the yardstick's", search_tables.speed(found)),
        ("At the document's size", search_tables.large(found)),
        ("Goals", search_tables.goals(found)),
    ):
        lines += [f"## {title}", "", *one.markdown()] if one else []
    lines += [search_tables.epoch(found.times), ""] if found.times.get("epoch") else []
    return "\n".join(lines + (bound_section(bound) if bound else []))
