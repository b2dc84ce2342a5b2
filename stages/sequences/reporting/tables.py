"""The tables of sequences in any order (thesis 4.2-4.5, D.1, figure 4.6), a printed number, bound
or trivial companion beside each of ours.

A cell is one trained model, an arm the same model over its seeds; `cells` are what evaluation
wrote, by DATASET/CELL, `about` what it wrote of each data set (kind, prompt, numbers of sequences,
entropy, bounds), `printed` what `companions` found. ± is over seeds, [ ] the 90 % interval within
them. ‡ marks a printed number about which the document leaves something open; the notes stand below
the table.
Units: shares in %, MSE in flight levels squared (FL²) and ft², nats a token; passes of a burst are
rounds, as the thesis counts them.
"""

from typing import Any

from stages.sequences import comparisons
from stages.sequences.reporting.arms import (
    DOCUMENTS,
    PROMPTS,
    RANKS,
    SHOWN,
    TEXTS,
    About,
    Cells,
    Told,
    at,
    called,
    first,
    members,
    number,
    order_of,
    rank_of,
    ranked,
    shares_of,
    standing,
)
from stages.sequences.reporting.printed import Companions, beside, notes, theirs
from stages.tables.table import NONE, Table


def results(cells: Cells, about: dict[str, Any], dataset: str, printed: Companions) -> Told:
    """Table 4.2 for one data set: a row an arm, what its samples are worth, its likelihood, and
    the printed number."""
    kind, rows, used = about["kind"], [], []
    text = kind in ("text", "grammar")
    metric = {"maze": "accuracy", "climb": "mse"}.get(kind)
    names = ranked(cells, dataset)
    for arm in names:
        path = standing(cells, about, dataset, arm)

        def score(*keys: str, arm: str = arm) -> str:
            return number(at(cells, dataset, arm, "metrics", *keys))

        other = beside(printed, about, arm).get(metric) if metric else None
        used.append(other)
        shown = tuple(
            number(at(cells, dataset, arm, *path, key), scale, interval=place == 0)
            if path
            else NONE
            for place, (key, _, scale) in enumerate(SHOWN[kind])
        )
        bound = at(cells, dataset, arm, "metrics", "nats_bound")
        nats = f"at most {number(bound)}" if bound else score("nats")
        rows.append(
            (
                called(arm),
                str(len(members(cells, dataset, arm))),
                f"{first(cells, dataset, arm)['parameters']:,}",
                path[1] if path else NONE,
                *shown,
                *((theirs(other),) if metric else ()),
                nats,
                score("nats_left_to_right"),
                *(
                    (score("perplexity_left_to_right"), score("bits_per_character_left_to_right"))
                    if text
                    else ()
                ),
            )
        )
    titles = (
        "model",
        "seeds",
        "parameters",
        "sampler",
        *(title for _, title, _ in SHOWN[kind]),
        *(
            (f"printed {'accuracy [%]' if metric == 'accuracy' else 'MSE [unit not stated]'}",)
            if metric
            else ()
        ),
        "nats, own order",
        "nats, left to right",
        *(("perplexity, left to right", "bits/character") if text else ()),
    )
    return Table(f"results on {dataset}", titles, tuple(rows), frozenset({0, 3})), notes(used)


def curriculum(
    cells: Cells, about: dict[str, Any], dataset: str, printed: Companions
) -> Told | None:
    """Table 4.4: perplexity from left to right with a curriculum and without; None for what is
    no text."""
    if about["kind"] not in ("text", "grammar"):
        return None

    def of(name, text):
        return printed.get((text, name), {}).get("perplexity")

    rows, told = [], []
    for arm in ranked(cells, dataset):
        if order_of(arm).split("_")[0] in ("diffusion", "fractal"):
            continue
        # a curriculum begins from left to right if nothing else is said
        name = "curriculum_100" if order_of(arm) == "curriculum" else order_of(arm)
        told.append(name)
        # companions know one order only: theirs is also from left to right
        shown = [
            number(
                at(cells, dataset, arm, "metrics", key)
                or (
                    at(cells, dataset, arm, "metrics", key.replace("_left_to_right", ""))
                    if arm in RANKS[:2]
                    else None
                ),
                interval=place == 0,
            )
            for place, key in enumerate(
                ("perplexity_left_to_right", "perplexity_left_to_right_val", "perplexity")
            )
        ]
        rows.append(
            (
                called(arm),
                str(len(members(cells, dataset, arm))),
                *shown,
                *(theirs(of(name, text)) for text in TEXTS),
            )
        )
    for name in dict.fromkeys(arm for text, arm in printed if text in TEXTS and arm not in told):
        rows.append(
            (
                f"printed: {name.replace('_', ' ')}" + (" %" if name[-1].isdigit() else ""),
                *[NONE] * 4,
                *(theirs(of(name, text)) for text in TEXTS),
            )
        )
    titles = (
        "model",
        "seeds",
        "test perplexity, left to right",
        "the same, validation",
        "own order",
        *(f"printed, {text} validation" for text in TEXTS.values()),
    )
    used = (one.get("perplexity") for (text, _), one in printed.items() if text in TEXTS)
    return Table(f"curriculum on {dataset}", titles, tuple(rows)), notes(used)


def fractal(cells: Cells, about: About, printed: Companions) -> Told | None:
    """Table 4.5: random against fractal order over data sets, each in its own; None where no
    fractal order was learned."""
    rows, used = [], []
    for dataset, one in about.items():
        arms = [arm for arm in ranked(cells, dataset) if order_of(arm) in ("random", "fractal")]
        if not any(order_of(arm) == "fractal" for arm in arms):
            continue
        text = one["kind"] in ("text", "grammar")
        key, title, scale = ("perplexity", "perplexity", 1) if text else SHOWN[one["kind"]][0]
        metric = {"maze": "accuracy", "climb": "mse"}.get(one["kind"], "perplexity")
        for arm in arms:
            path = ("metrics",) if text else standing(cells, one, dataset, arm)
            other = printed.get((DOCUMENTS.get(one["kind"], ""), order_of(arm)), {}).get(metric)
            used.append(other)
            rows.append(
                (
                    dataset,
                    called(arm),
                    str(len(members(cells, dataset, arm))),
                    title,
                    number(at(cells, dataset, arm, *path, key), scale, True),
                    number(at(cells, dataset, arm, "metrics", "nats")),
                    theirs(other),
                )
            )
    titles = ("data set", "model", "seeds", "measure", "ours", "nats, own order", "printed")
    return (
        (Table("fractal order", titles, tuple(rows), frozenset({0, 1, 3})), notes(used))
        if rows
        else None
    )


def prompts(cells: Cells, about: dict[str, Any], dataset: str, printed: Companions) -> Told | None:
    """Table D.1: the MSE of flights by what is given of them, and the printed rows; None for
    what is no flight."""
    if about["kind"] != "climb":
        return None
    rows, used = [], []
    for arm in ranked(cells, dataset):
        sampler = comparisons.stands(arm, first(cells, dataset, arm).get("samplers", {}))
        found = [
            at(cells, dataset, arm, "samplers", sampler or "", prompt, "metrics", "mse_levels")
            for prompt in PROMPTS
        ]
        if any(found):
            rows.append(
                (
                    called(arm),
                    str(len(members(cells, dataset, arm))),
                    sampler,
                    *(number(one, interval=True) for one in found),
                )
            )
    for name in dict.fromkeys(
        arm.rpartition("-")[0]
        for text, arm in printed
        if text == DOCUMENTS["climb"] and arm.count("-") == 2
    ):
        order, size = name.split("-")
        row = [
            printed.get((DOCUMENTS["climb"], f"{name}-{prompt}"), {}).get("mse")
            for prompt in PROMPTS
        ]
        used += row
        model = called(order if order == "diffusion" else f"sigma_gpt-{order}")
        rows.append((f"printed: {model}, {size}", NONE, NONE, *(theirs(one) for one in row)))
    titles = (
        "model",
        "seeds",
        "sampler",
        *(f"given: {words}, MSE [FL²]" for words in PROMPTS.values()),
    )
    return Table(f"prompts on {dataset}", titles, tuple(rows), frozenset({0, 2})), notes(used)


def bursts(cells: Cells, about: dict[str, Any], dataset: str) -> Told:
    """Figure 4.6 as numbers: what each sampler of each arm costs, beside the fewest passes there
    can be, and what its samples are worth."""
    kind, prompt, rows = about["kind"], comparisons.prompt_of(about["kind"]), []
    quality = SHOWN[kind][0] if SHOWN[kind] else None
    for arm in ranked(cells, dataset):
        for sampler in sorted(first(cells, dataset, arm).get("samplers", {}), key=rank_of):

            def metric(key: str, arm: str = arm, sampler: str = sampler) -> dict[str, Any] | None:
                return at(cells, dataset, arm, "samplers", sampler, prompt, "metrics", key)

            law, rounds = (
                about.get("bounds", {}).get(sampler.removeprefix("burst_")),
                metric("rounds"),
            )
            if not rounds or not (rounds["mean"] or arm in RANKS):
                continue
            bound = f"{law['mean']:.2f} ± {law['sd']:.2f}" if law else NONE
            cost = number(rounds) + (f" (sd {rounds['sd']:.2g})" if rounds.get("sd") else "")
            rows.append(
                (
                    called(arm),
                    str(rounds["seeds"]),
                    sampler,
                    cost,
                    bound,
                    number(metric("passes")),
                    number(metric("positions")),
                    *((number(metric(quality[0]), quality[2], interval=True),) if quality else ()),
                )
            )
    titles = (
        "model",
        "seeds",
        "sampler",
        "passes, as the thesis counts them",
        "fewest there can be",
        "passes of the network",
        "positions computed",
        *((quality[1],) if quality else ()),
    )
    words = (
        "a burst's draft and check are one pass as the thesis counts, two of the network"
        + (
            "; greedy takes the likeliest token each step and samples no law"
            if any(row[2] == "greedy" for row in rows)
            else ""
        )
        + (
            (
                "; the fewest passes: with a perfect model, mean ± deviation over sequences "
                "(thesis, D.2)"
            )
            if about.get("bounds")
            else ""
        )
    )
    return Table(f"passes on {dataset}", titles, tuple(rows), frozenset({0, 2})), words


def densities(cells: Cells, about: dict[str, Any], dataset: str) -> Told | None:
    """Learned against exact densities at unknown places, by the share of tokens known beside the
    prompt; of mazes first at the cells that copying does not tell. None where none was compared."""
    rows, asked = [], {"posteriors": "total variation"}
    if comparisons.apart_of(about["kind"]) == "path_posteriors":
        asked = {
            "path_posteriors": "total variation a path cell",
            "posteriors": "total variation of all cells",
        }
    columns = [(name, share) for name in asked for share in shares_of(cells, dataset, name)]
    for arm in ranked(cells, dataset):
        found = [at(cells, dataset, arm, *column) for column in columns]
        if any(found):
            seeds = str(len(members(cells, dataset, arm)))
            rows.append((called(arm), seeds, *(number(one, interval=True) for one in found)))
    titles = (f"{share} % known, {asked[name]}" for name, share in columns)
    table = Table(f"densities on {dataset}", ("model", "seeds", *titles), tuple(rows))
    bar = f"'matches' is read as below {comparisons.CLOSE:g}"
    plain = f"0 is the exact density, 1 no overlap; {bar}"
    words = path_words(about, bar) if "path_posteriors" in asked else plain
    return (table, words) if rows else None


def path_words(about: dict[str, Any], bar: str) -> str:
    """What stands below the densities of mazes: what is averaged over, and of how many cells the
    exact chance is no matter of course."""
    told = ", ".join(
        f"{one['between']:,} of {one['cells']:,} such cells with {share} % known"
        for share, one in about.get("uncertain", {}).items()
    )
    words = (
        f"0 is the exact density; {bar} a path cell. A path cell: {comparisons.A_PATH_CELL}; wrong "
        "cells of a path add to it. Of all cells: the mean, 1 is no overlap; nearly all cells "
        "follow from copying the maze"
    )
    return words + (f". Exact chances strictly between 0 and 1: {told}" if told else "")
