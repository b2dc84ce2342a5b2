"""What a tabulation wrote, derived again: metrics.json and claims.json from the evaluations,
table.md from metrics.json.

The code is that which wrote them (tabulate and its kin), so that equality is to the byte; that this
code is what the record names is checked elsewhere (checks.code). Evaluations may not be here; the
table needs none: metrics.json, the printed values beside it, chosen settings and benchmarks, all in
git, are enough for it. Paths are told from the project's root, as those modules read them.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages.audit.finding import Problem
from stages.errors import TradewindError
from stages.fields import results as set_results
from stages.files import json_text, read_json
from stages.neighbours.experiment import results as searches
from stages.sequences.reporting import results as order_results
from stages.sequences.reporting import texts as order_texts
from stages.winds import tabulate

HERE = "derived again from"


def metrics(experiment: str, profile: str) -> dict[str, Any]:
    """The content of metrics.json, from the evaluations."""
    home, prepared = Path("reports") / experiment / profile, Path("data") / profile / "prepared"
    cells = tabulate.gather(home)
    content = {
        "experiment": experiment,
        "profile": profile,
        "cells": cells,
        "arms": tabulate.over_seeds(cells),
    }
    if experiment == searches.EXPERIMENT:
        sets, bound = searches.described(home)
        return content | {"sets": sets} | ({"bound": bound} if bound else {})
    if experiment in order_results.EXPERIMENTS:
        about = order_results.described(home)
        return content | {
            "about": about,
            "texts": order_texts.gathered(home, prepared, cells, about),
        }
    return content


def claims(experiment: str, profile: str) -> dict[str, Any]:
    """The content of claims.json, from the evaluations."""
    home = Path("reports") / experiment / profile
    if experiment == searches.EXPERIMENT:
        from stages.neighbours.experiment import claims as search_claims

        return search_claims.check(home)
    if experiment in order_results.EXPERIMENTS:
        from stages.sequences import claims as order_claims

        return order_claims.check(home)
    if experiment in set_results.EXPERIMENTS:
        from stages.fields import claims as set_claims

        return set_claims.check(home, experiment)
    from stages.winds import claims as wind_claims

    return wind_claims.check(home, experiment)


def table(experiment: str, profile: str, content: dict[str, Any]) -> str:
    """The text of table.md, from metrics.json and what stands in git beside it."""
    cells, arms = content["cells"], content["arms"]
    if experiment == searches.EXPERIMENT:
        return searches.table(
            profile,
            searches.read(Path("reports") / experiment / profile),
            content["sets"],
            content.get("bound"),
        )
    if experiment in order_results.EXPERIMENTS:
        return order_results.table(experiment, profile, content)
    if experiment in set_results.EXPERIMENTS:
        return set_results.table(experiment, profile, arms, cells)
    return tabulate.table(experiment, profile, arms, cells)


def derived(root: Path, path: str, evaluated: bool) -> Iterator[Problem]:
    """What differs between a published table's files and the same derived again; `path` is its
    metrics.json.

    Without its evaluations here (`evaluated`), arms are derived from cells, the table from
    metrics.json, and claims are left.
    """
    _, experiment, profile, _ = path.split("/")
    home = path.rpartition("/")[0]
    with contextlib.chdir(root):
        try:
            content = read_json(path)
            if evaluated:
                yield from told(path, json_text(metrics(experiment, profile)), "the evaluations")
                yield from told(
                    f"{home}/claims.json", json_text(claims(experiment, profile)), "the evaluations"
                )
            else:
                yield from told(
                    path,
                    json_text(content | {"arms": tabulate.over_seeds(content["cells"])}),
                    "its own cells",
                )
            yield from told(f"{home}/table.md", table(experiment, profile, content), path)
        except (TradewindError, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            said = (
                " ".join(str(error).split())
                if isinstance(error, TradewindError)
                else f"{type(error).__name__}: {error}"
            )
            yield Problem("FAIL", path, f"what rests on it cannot be {HERE} it: {said}")


def told(path: str, again: str, source: str) -> Iterator[Problem]:
    """FAIL with the first line that differs, where a file is not the text derived for it."""
    try:
        now = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return  # presence says so
    except UnicodeDecodeError:
        now = "(no text)"
    if now != again:
        yield Problem("FAIL", path, f"it is not what is {HERE} {source}: {differing(now, again)}")


def differing(now: str, again: str) -> str:
    """The first line that differs: what is written and what should be."""
    pairs = zip([*now.split("\n"), None], [*again.split("\n"), None], strict=False)
    number, (left, right) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    at = next(
        (
            n
            for n, pair in enumerate(zip(left or "", right or "", strict=False))
            if pair[0] != pair[1]
        ),
        0,
    )
    show = lambda line: "nothing" if line is None else repr(line[max(0, at - 40) :][:100])  # noqa: E731
    return f"line {number} is {show(left)}, not {show(right)}"
