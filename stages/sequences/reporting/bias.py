"""The bias of Algorithm 3 as printed against the number of orders tried, as a table and a figure
(thesis 4.2.4, D.3; see the errata).

What evaluation/bias.py measured with perfect models of laws that can be listed: law ->
{sequences, draws, floor, burst {N_o}, exact, sequential}. Total variation is half the sum of
absolute differences of chances: 0 is the law itself, 1 no overlap. The floor is what as many
independent draws of the law show; no sampler is below it but by luck. No units.
"""

from pathlib import Path
from typing import Any

from stages.tables.table import Table

DPI = 80
COLOURS = {"correlated": "#c1121f", "step": "#1d6fa5", "permutation": "#2a9d8f"}
LAWS = {
    "correlated": "4 correlated bits",
    "step": "a step in 5 bits",
    "permutation": "permutations of 4",
}
SAMPLERS = {"exact": "exact bursts", "sequential": "one by one"}
CAPTION = (
    "The bias of Algorithm 3 as printed, with perfect models: total variation of its samples from "
    "the law, by the orders tried; the exact sampler's as crosses at the right; shaded, up to what "
    "95 of 100 sets of independent draws of the law show."
)
Bias = dict[str, dict[str, Any]]


def worded(law: str) -> str:
    """A law in words."""
    return LAWS.get(law, law.replace("_", " "))


def row(law: str, sampler: str, found: dict[str, Any], floor: dict[str, float]) -> tuple[str, ...]:
    """A sampler of a law in the table."""
    p = "below 0.0001" if found["p"] < 1e-4 else f"{found['p']:.2g}"
    return (
        law,
        sampler,
        f"{found['total_variation']:.4f}",
        f"{floor['mean']:.4f} ({floor['high']:.4f})",
        f"{found['chi_square']:,.1f}",
        str(found["degrees"]),
        p,
        f"{found['passes']:.2f}",
    )


def table(bias: Bias) -> tuple[Table, str]:
    """A row a law and sampler, and the sentence below the table."""
    rows = []
    for law, found in bias.items():
        named = {
            f"Algorithm 3, {count} order{'s' * (count != '1')}": one
            for count, one in sorted(found["burst"].items(), key=lambda pair: int(pair[0]))
        }
        named |= {words: found[name] for name, words in SAMPLERS.items()}
        rows += [row(worded(law), words, one, found["floor"]) for words, one in named.items()]
    titles = (
        "law",
        "sampler",
        "total variation",
        "of independent draws: mean (95 % below)",
        "chi-square",
        "degrees of freedom",
        "p",
        "passes of the network",
    )
    draws = sorted({found["draws"] for found in bias.values()})
    words = (
        f"perfect models, {', '.join(f'{count:,}' for count in draws)} draws a row; renaming the "
        "tokens of a uniform permutation changes neither the law nor the algorithm, so that there "
        "no bias is possible"
    )
    return Table("bias of Algorithm 3", titles, tuple(rows), frozenset({0, 1})), words


def figure(bias: Bias, path: Path) -> bool:
    """Total variation against the orders tried, a colour a law; False where nothing was
    measured."""
    from stages.figures.drawing import numbered, plt, save  # with matplotlib

    if not bias:
        return False
    picture, axes = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
    for law, found in bias.items():
        counts = sorted(found["burst"], key=int)
        x, tint = [int(count) for count in counts], COLOURS.get(law, "#333333")
        axes.axhspan(0, found["floor"]["high"], color=tint, alpha=0.10, lw=0)
        axes.plot(
            x,
            [found["burst"][count]["total_variation"] for count in counts],
            "o-",
            color=tint,
            lw=1.5,
            ms=5,
            label=worded(law),
        )
        axes.plot(
            [1.35 * x[-1]],
            [found["exact"]["total_variation"]],
            "x",
            color=tint,
            ms=7,
            mew=1.6,
            clip_on=False,
        )
    axes.plot([], [], "x", color="black", label="exact bursts")
    axes.fill_between([], [], color="black", alpha=0.15, label="independent draws")
    axes.set(xlabel="orders tried (N_o)", ylabel="total variation from the law", xscale="log")
    axes.set_ylim(bottom=0)
    numbered(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(picture, path, dpi=DPI)
    return True
