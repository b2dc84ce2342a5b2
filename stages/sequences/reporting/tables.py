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

import math
import re
from collections.abc import Iterable
from statistics import fmean, stdev
from typing import Any

import polars as pl

from stages.fields.claims import leaf
from stages.fields.tables import digits
from stages.sequences import claims
from stages.tables.published import Printed, listed, named, read
from stages.winds.tables import Table, arm_of, label

NONE = "–"
METRICS = ("accuracy", "mse", "perplexity", "training_length_to_reference")
DOCUMENTS = {
    "maze": "maze",
    "climb": "vertical_rate",
    "text": "text",
    "grammar": "text",
}  # kinds as printed
TEXTS = {"wikitext103": "WikiText-103", "openwebtext": "OpenWebText"}
RANKS = (
    "uniform",
    "marginals",
    "persistence",
    "constant_rate",
    "left_to_right",
    "random",
    "fractal",
    "curriculum",
    "diffusion",
)
PROMPTS = {"0": "first altitude", "10": "10 %", "50": "50 %", "mid_climb": "half the first climb"}
# By kind: metric of the samples, its title, and what it is multiplied by.
SHOWN = {
    "maze": (
        ("correct", "correct [%]", 100),
        ("optimal", "shortest [%]", 100),
        ("copied", "maze copied [%]", 100),
    ),
    "climb": (
        ("mse_levels", "MSE [FL²]", 1),
        ("mse", "MSE [ft²]", 1),
        ("rmse", "RMSE [ft]", 1),
        ("smooth", "without a jump [%]", 100),
    ),
    "product": (("valid", "valid [%]", 100), ("ones", "ones [%]", 100)),
    "step": (("valid", "valid [%]", 100), ("begins", "p of uniform begins", 1)),
    "permutation": (("valid", "valid [%]", 100), ("different", "different tokens [%]", 100)),
    "walk": (
        ("valid", "valid [%]", 100),
        ("steps", "legal steps [%]", 100),
        ("stays", "stays [%]", 100),
    ),
    "grammar": (("valid", "valid [%]", 100), ("legal", "legal before the first error [%]", 100)),
    "text": (),
}
Cells, About = dict[str, Any], dict[str, dict[str, Any]]
Companions = dict[tuple[str, str], dict[str, Printed]]
Told = tuple[Table, str]


def companions(experiment: str) -> Companions:
    """For each (data set as printed, arm) of companions.csv: metric -> the printed number; the
    first table that prints one counts.

    An arm is an order's name or diffusion; `ORDER-SIZE-PROMPT` of table D.1. DataError for a row
    that finds none, or stands twice.
    """
    rows, found = read().filter(pl.col("metric").is_in(METRICS)), {}
    for row in listed(experiment, ("arm", "dataset", "table")):
        for r in named(rows, row, ("dataset", "variant", "size"), experiment).iter_rows(named=True):
            one = Printed(r["table"], r["dataset"], r["mean"], r["std"], r["note"] or "")
            found.setdefault((r["dataset"], row["arm"]), {}).setdefault(r["metric"], one)
    return found


def open_in(printed: Printed) -> bool:
    """Whether a printed number's note says that the document leaves something open."""
    return bool(re.search("not stated|without|not comparable|says", printed.note))


def theirs(printed: Printed | None) -> str:
    """'98.3 ± 0.67‡ (thesis 4.2)'."""
    if printed is None:
        return NONE
    wide = f" ± {spread(printed.std)}" if printed.std is not None else ""
    return f"{digits(printed.mean)}{wide}{'‡' if open_in(printed) else ''} ({printed.table})"


def notes(rows: Iterable[Printed | None]) -> str:
    """What ‡ means under a table of these printed numbers, each note once; '' without any."""
    found = dict.fromkeys(
        (row.table, re.sub(r"; row printed \"\w+\"", "", row.note))
        for row in rows
        if row and open_in(row)
    )
    return "; ".join(f"‡ {table}: {note}" for table, note in found)


def order_of(arm: str) -> str:
    """The order of an arm's name, `diffusion`, or a companion's own name:
    'sigma_gpt-random-tiny' -> 'random'."""
    words = arm.split("-")
    return words[1] if words[0] == "sigma_gpt" and len(words) > 1 else words[0]


def called(arm: str) -> str:
    """An arm as people read it: GPT, σ-GPT by its order, diffusion, companions, with the size."""
    order, size = order_of(arm), "".join(arm.split("-")[2:])
    told = {"left_to_right": "GPT (left to right)", "diffusion": "discrete diffusion"}.get(
        order, order.replace("_", " ")
    )
    told = f"σ-GPT, {told}" if arm.startswith("sigma_gpt") and order != "left_to_right" else told
    return f"{told}, {size}" if size not in ("", "none") else told


def ranked(cells: Cells, dataset: str) -> list[str]:
    """A data set's arms: companions first, then GPT, random, fractal, curriculum, diffusion."""
    mine = {arm_of(name).partition("/")[2] for name in cells if name.startswith(dataset + "/")}
    rank = lambda arm: next(
        (k for k, name in enumerate(RANKS) if order_of(arm).startswith(name)), len(RANKS)
    )  # noqa: E731
    return sorted(mine, key=lambda arm: (rank(arm), arm))


def members(cells: Cells, dataset: str, arm: str) -> list[dict[str, Any]]:
    """The entries of an arm's seeds."""
    return [
        content for name, content in sorted(cells.items()) if arm_of(name) == f"{dataset}/{arm}"
    ]


def at(cells: Cells, dataset: str, arm: str, *path: str) -> dict[str, Any] | None:
    """An arm's number at a path in its cells: mean, n, std over several seeds, the mean ends of
    their intervals; None if a seed lacks it."""
    found = [leaf(content, path) for content in members(cells, dataset, arm)]
    if not found or None in found:
        return None
    summary = {
        "mean": fmean(one["value"] for one in found),
        "n": found[0].get("n", 0),
        "seeds": len(found),
    }
    if len(found) > 1:
        summary["std"] = stdev(one["value"] for one in found)
    if all("low" in one and "high" in one for one in found):
        summary |= {end: fmean(one[end] for one in found) for end in ("low", "high")}
    if all("sd" in one for one in found):
        summary["sd"] = fmean(one["sd"] for one in found)
    return summary


def number(summary: dict[str, Any] | None, scale: float = 1, interval: bool = False) -> str:
    """'98.3 ± 0.4 [97.1, 99.0]': mean, spread over seeds where there are several, 90 % interval
    if asked."""
    if summary is None:
        return NONE
    text = plain(scale * summary["mean"]) + (
        f" ± {spread(scale * summary['std'])}" if "std" in summary else ""
    )
    return text + (
        f" [{plain(scale * summary['low'])}, {plain(scale * summary['high'])}]"
        if interval and "low" in summary
        else ""
    )


def spread(value: float) -> str:
    """Two significant digits, whole numbers from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def plain(value: float) -> str:
    """Three significant digits, and a plain 0."""
    return "0" if value == 0 else digits(value)


def first(cells: Cells, dataset: str, arm: str) -> dict[str, Any]:
    """An arm's first cell."""
    return members(cells, dataset, arm)[0]


def standing(cells: Cells, about: dict[str, Any], dataset: str, arm: str) -> tuple[str, ...] | None:
    """The path to the metrics of the sampler that an arm is told by, at the first prompt; None
    where nothing was sampled."""
    sampler = claims.stands(arm, first(cells, dataset, arm).get("samplers", {}))
    return ("samplers", sampler, claims.prompt_of(about["kind"]), "metrics") if sampler else None


def results(cells: Cells, about: dict[str, Any], dataset: str, printed: Companions) -> Told:
    """Table 4.2 for one data set: a row an arm, what its samples are worth, its likelihood, and
    the printed number."""
    kind, rows, used = about["kind"], [], []
    text = kind in ("text", "grammar")
    metric = {"maze": "accuracy", "climb": "mse"}.get(kind)
    names = ranked(cells, dataset)
    for arm in names:
        path, told = (
            standing(cells, about, dataset, arm),
            lambda *keys, arm=arm: number(at(cells, dataset, arm, "metrics", *keys)),
        )
        other = (
            printed.get((DOCUMENTS.get(kind, ""), order_of(arm)), {}).get(metric)
            if metric
            else None
        )
        used.append(other)
        shown = tuple(
            number(at(cells, dataset, arm, *path, key), scale, interval=place == 0)
            if path
            else NONE
            for place, (key, _, scale) in enumerate(SHOWN[kind])
        )
        bound = at(cells, dataset, arm, "metrics", "nats_bound")
        nats = f"at most {number(bound)}" if bound else told("nats")
        rows.append(
            (
                called(arm),
                str(len(members(cells, dataset, arm))),
                f"{first(cells, dataset, arm)['parameters']:,}",
                path[1] if path else NONE,
                *shown,
                *((theirs(other),) if metric else ()),
                nats,
                told("nats_left_to_right"),
                *(
                    (told("perplexity_left_to_right"), told("bits_per_character_left_to_right"))
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


def efficiency(cells: Cells, about: About, printed: Companions) -> Told | None:
    """Table 4.3: steps to the validation loss that an order and left to right both reach; None
    where no data set has both."""
    rows, used = [], []
    for dataset, one in about.items():
        if one.get("held_out"):  # there for its number of training sequences; validated once
            continue
        mine = {
            name.partition("/")[2]: content
            for name, content in cells.items()
            if name.startswith(dataset + "/")
        }
        measured = claims.Ordered(dataset, one | {"cells": mine})
        for order in ("random", "fractal", "curriculum"):
            for gpt, arm in measured.pairs("left_to_right", order):
                found = (
                    claims.steps(measured, gpt, arm)
                    if measured.arm(gpt) and measured.arm(arm)
                    else None
                )
                if found is None:
                    continue
                taken = [fmean(one.step for one in found[1][name]) for name in (gpt, arm)]
                cut = [
                    "at most " if any(one.at_once for one in found[1][name]) else ""
                    for name in (gpt, arm)
                ]
                pair = [
                    printed.get((DOCUMENTS.get(one["kind"], ""), name), {}).get(METRICS[-1])
                    for name in ("left_to_right", order)
                ]
                used += pair if all(pair) else []
                ratio = (
                    NONE
                    if not all(pair)
                    else (
                        f"{pair[1].mean / pair[0].mean:.2f}‡ ({digits(pair[1].mean)} / "
                        f"{digits(pair[0].mean)}, {pair[0].table})"
                    )
                )
                rows.append(
                    (
                        dataset,
                        called(arm),
                        f"{len(measured.arm(gpt))}, {len(measured.arm(arm))}",
                        f"{found[0]:.3g}",
                        f"{cut[0]}{taken[0]:,.0f}",
                        f"{cut[1]}{taken[1]:,.0f}",
                        f"{taken[1] / taken[0]:.2f}",
                        ratio,
                    )
                )
    titles = (
        "data set",
        "model",
        "seeds (GPT, model)",
        "validation loss [nats]",
        "steps of GPT",
        "steps of the model",
        "ratio",
        "printed ratio",
    )
    return (
        (Table("training efficiency", titles, tuple(rows), frozenset({0, 1, 7})), notes(used))
        if rows
        else None
    )


def curriculum(
    cells: Cells, about: dict[str, Any], dataset: str, printed: Companions
) -> Told | None:
    """Table 4.4: perplexity from left to right with a curriculum and without; None for what is
    no text."""
    if about["kind"] not in ("text", "grammar"):
        return None
    of = lambda name, text: printed.get((text, name), {}).get("perplexity")  # noqa: E731
    rows, told = [], []
    for arm in ranked(cells, dataset):
        if order_of(arm).split("_")[0] in ("diffusion", "fractal"):
            continue
        name = (
            "curriculum_100" if order_of(arm) == "curriculum" else order_of(arm)
        )  # it begins from left to right if nothing else is said
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
                NONE,
                NONE,
                NONE,
                NONE,
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
        sampler = claims.stands(arm, first(cells, dataset, arm).get("samplers", {}))
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


def rank_of(sampler: str) -> tuple[int, int]:
    """Samplers in the order of the tables: one by one, greedy, bursts by their orders, exact,
    windows and diffusion by their steps."""
    count = re.search(r"_(\d+)$", sampler)
    kinds = ("left_to_right", "own", "greedy", "burst", "exact", "window", "diffusion")
    return next((k for k, kind in enumerate(kinds) if sampler.startswith(kind)), len(kinds)), int(
        count[1]
    ) if count else 0


def bursts(cells: Cells, about: dict[str, Any], dataset: str) -> Told:
    """Figure 4.6 as numbers: what each sampler of each arm costs, beside the fewest passes there
    can be, and what its samples are worth."""
    kind, prompt, rows = about["kind"], claims.prompt_of(about["kind"]), []
    quality = SHOWN[kind][0] if SHOWN[kind] else None
    for arm in ranked(cells, dataset):
        for sampler in sorted(first(cells, dataset, arm).get("samplers", {}), key=rank_of):
            told = lambda key, arm=arm, sampler=sampler: at(
                cells, dataset, arm, "samplers", sampler, prompt, "metrics", key
            )  # noqa: E731
            law, rounds = (
                about.get("bounds", {}).get(sampler.removeprefix("burst_")),
                told("rounds"),
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
                    number(told("passes")),
                    number(told("positions")),
                    *((number(told(quality[0]), quality[2], interval=True),) if quality else ()),
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


def shares_of(cells: Cells, dataset: str) -> list[str]:
    """The shares (%) of known tokens at which densities were compared."""
    return sorted(
        {
            share
            for name, content in cells.items()
            if name.startswith(dataset + "/")
            for share in content.get("posteriors", {})
        },
        key=float,
    )


def densities(cells: Cells, about: dict[str, Any], dataset: str) -> Told | None:
    """Learned against exact densities at unknown places, by the share of tokens known beside the
    prompt; None where none was compared."""
    rows, shares = [], shares_of(cells, dataset)
    for arm in ranked(cells, dataset):
        found = [at(cells, dataset, arm, "posteriors", share) for share in shares]
        if any(found):
            rows.append(
                (
                    called(arm),
                    str(len(members(cells, dataset, arm))),
                    *(number(one, interval=True) for one in found),
                )
            )
    titles = ("model", "seeds", *(f"{share} % known, total variation" for share in shares))
    words = f"0 is the exact density, 1 no overlap; 'matches' is read as below {claims.CLOSE:g}"
    return (Table(f"densities on {dataset}", titles, tuple(rows)), words) if rows else None


def entropy_of(about: dict[str, Any]) -> str:
    """The sentence on a data set: numbers of sequences, prompt, and the entropy of its law."""
    counts = ", ".join(f"{about['sequences'][name]:,} {name}" for name in ("train", "val", "test"))
    told = f"Sequences: {counts}" + (
        f"; the first {about['prompt']:,} tokens are given" if about["prompt"] else ""
    )
    if "entropy" in about:
        told += (
            f"; entropy of the law {about['entropy']:.4f} nats a token (perplexity "
            f"{math.exp(about['entropy']):.3g}): no model is below it"
        )
    return told


def short(arm: str) -> str:
    """An arm for the axis of a figure."""
    return label(called(arm))
