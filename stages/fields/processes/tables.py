"""The experiment's tables: what table.md and the page show alike."""

import math
import re
from typing import Any

from stages.fields.printed import notes, theirs
from stages.fields.processes.layout import EXACT, PRIOR
from stages.tables.published import Printed
from stages.tables.table import NONE, Table, cells_of, label, number

MAIN = "log_likelihood"
CALLED = {
    EXACT: "the exact law (bound)",
    PRIOR: "the prior, no context",
    "neural_process-conditional": "CNP",
    "neural_process-bound": "latent NP, evidence lower bound",
    "neural_process-weighted": "latent NP, importance-weighted",
    "convcnp-plain": "ConvCNP",
    "tnp-attention": "TNP",
    "tnp-linear": "LinearTNP",
    "tnp-hyper": "HyperMixNP",
    "pseudo_tnp-perceiver": "pseudo-token TNP (perceiver)",
    "pseudo_tnp-induced": "pseudo-token TNP (induced)",
    "pseudo_tnp-te_perceiver": "pseudo-token TETNP (perceiver)",
    "pseudo_tnp-te_induced": "pseudo-token TETNP (induced)",
    "tetnp-post": "TETNP",
    "tetnp-pre": "TETNP, pre-MLP",
    "tetnp-rbf": "TETNP, RBF",
    "tetnp-identity": "TETNP, identity",
    "tetnp-turned": "RE-TETNP",
}
TITLES = (
    "model",
    "log-likelihood [nats a target]",
    "below the exact law [nats]",
    "where context lies [nats]",
    "beyond it [nats]",
    "together [nats a target]",
    "shifted [nats]",
    "turned by 45° [nats]",
    "CRPS",
    "within 50 % interval",
    "within 90 % interval",
    "printed, validation [nats]",
    "weights",
)
Content = dict[str, Any]


def called(arm: str) -> str:
    """A row's name: 'tnp-linear-w32' -> 'LinearTNP w32', for a set may be learned in more sizes."""
    variant, _, size = arm.rpartition("-")
    return CALLED.get(arm) or (f"{CALLED[variant]} {size}" if variant in CALLED else label(arm))


def ranked(content: Content, dataset: str) -> list[str]:
    """The arms of a set, what is trained from the highest likelihood down, then the prior, then
    the bound."""
    names = cells_of(content["arms"], dataset)

    def place(arm: str) -> tuple[int, float]:
        group = {PRIOR: 1, EXACT: 2}.get(arm, 0)
        return group, -content["arms"][f"{dataset}/{arm}"]["metrics"][MAIN]["mean"]

    return sorted(names, key=place)


def share(summary: dict[str, Any] | None) -> str:
    """'91.2 %'."""
    return NONE if summary is None else f"{100 * summary['mean']:.1f} %"


def results(content: Content, dataset: str, printed: dict[str, Printed]) -> tuple[Table, str]:
    """A row an arm, with the 90 % intervals over tasks, and the notes on printed numbers."""
    arms, rows, used = ranked(content, dataset), [], []
    for arm in arms:
        told = content["arms"][f"{dataset}/{arm}"]["metrics"]
        weights = [
            cell["weights"]
            for name, cell in content["cells"].items()
            if name.startswith(f"{dataset}/{arm}-s") and "weights" in cell
        ]
        other = printed.get(f"{dataset}/{arm.rpartition('-')[0]}")
        used += [other] if other else []
        rows.append(
            (
                called(arm),
                number(told[MAIN], True),
                number(told["gap"], True),
                number(told["log_likelihood_near"]),
                number(told.get("log_likelihood_far")),
                number(told.get("log_likelihood_joint")),
                number(told.get("log_likelihood_shifted")),
                number(told.get("log_likelihood_turned")),
                number(told["crps"]),
                share(told["coverage_50"]),
                share(told["coverage_90"]),
                theirs(other),
                f"{weights[0]:,}" if weights else NONE,
            )
        )
    trained = [arm for arm in arms if arm not in (EXACT, PRIOR)]
    best = arms.index(trained[0]) if trained else None
    return Table(dataset, TITLES, tuple(rows), best=best), notes(used)


def exponent(told: dict[str, Any], kind: str, contexts: int | None, targets: int | None) -> str:
    """How memory grows with the number that is None, the other being given: the slope in logarithms
    between its two largest counts; NONE where they were not measured."""
    places = [r"(\d+)" if count is None else str(count) for count in (contexts, targets)]
    form = re.compile(f"{kind}_{places[0]}_{places[1]}")
    found = {int(one[1]): told[one[0]]["mean"] for one in map(form.fullmatch, told) if one}
    if len(found) < 2:
        return NONE
    less, more = sorted(found)[-2:]
    return f"{math.log(found[more] / found[less]) / math.log(more / less):.2f}"


def memory(content: Content, dataset: str) -> Table | None:
    """Bytes of an answer by numbers of points; TETNP's also with all pairs at once, as the document
    makes them. None where nothing was counted."""
    asked = content["about"][dataset]["asked"]
    pairs = [(c, t) for t in asked["targets"] for c in asked["contexts"]]
    rows = []
    for arm in ranked(content, dataset):
        told = content["arms"][f"{dataset}/{arm}"]["metrics"]
        for kind, more in (("memory", ""), ("memory_whole", ", all pairs at once")):
            values = [told.get(f"{kind}_{c}_{t}") for c, t in pairs]
            if not any(values):
                continue
            rows.append(
                (
                    called(arm) + more,
                    *(number(value) for value in values),
                    exponent(told, kind, None, asked["targets"][0]),
                    exponent(told, kind, asked["contexts"][0], None),
                )
            )
    titles = (
        "model",
        *(f"{c:,} / {t:,} [MB]" for c, t in pairs),
        f"exponent of the context, {asked['targets'][0]} targets",
        f"exponent of the targets, {asked['contexts'][0]} context points",
    )
    return Table(f"memory on {dataset}", titles, tuple(rows)) if rows else None


def sentence(about: dict[str, Any]) -> str:
    """What the set is, and its bound."""
    made, bound = about["made"], about["bound"]
    drawn = (
        f"A Gaussian process of the kernel {made['law']}, log10 of its length from {made['low']:g} "
        f"to {made['high']:g}"
        if made["process"] == "gaussian"
        else f"A sawtooth ({made['law']} directions) of frequency {made['low']:g} to "
        f"{made['high']:g}"
    )
    who = (
        "the exact Gaussian process, told the length,"
        if made["process"] == "gaussian"
        else "who knows the function"
    )
    return (
        f"{drawn}, noise {made['noise']:g}, {made['axes']}-D: {about['tasks']} test tasks of 1 to "
        f"{made['context']} context points in [-{made['reach']:g}, {made['reach']:g}] and "
        f"{made['targets']} targets in [-{made['range']:g}, {made['range']:g}]. The bound: {who} "
        f"reaches {bound['value']:.3f} ± {bound['standard_error']:.3f} nats a target. Shifted: all "
        f"points by {about['asked']['shift']:g}."
    )


NOTES = (
    "Intervals are the central 90 % over test tasks, of one training. Log-likelihoods are natural "
    "logarithms of the density of one target given the context, targets each for itself. Below the "
    "exact law: the mean difference on the same targets. Where context lies: targets within its "
    "range alone; beyond it: the others. Together: eight targets of 64 tasks, each told those "
    "before it; the latent process has a law of all at once. Memory is the most bytes that tensors "
    "held at once during an answer to one task, weights and question aside: counted, not timed. "
    "Printed numbers are of 2-D tasks whose "
    "settings the document leaves open: compare their order, not their level."
)
