"""What the figures of sequences share: colours, words, panels without axes, and the samples that
are shown.

Samples are those that evaluation kept of a few test prompts (samples.safetensors:
CELL/SAMPLER/PROMPT/tokens and order; where they were kept, `round`, the burst that accepted each
step of the order, and CELL/density (S, R K), learned chances of the path). Shapes: S shown
sequences, T tokens, R rows and K columns of a maze.
"""

from typing import TYPE_CHECKING

import numpy as np

from stages.figures.drawing import plt
from stages.sequences import comparisons
from stages.sequences.reporting.arms import Cells, first, order_of, ranked
from stages.tables.table import arm_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 100  # pixels an inch: small enough for the page
COLOURS = {
    "left_to_right": "#1d6fa5",
    "random": "#c1121f",
    "fractal": "#c9a227",
    "curriculum": "#2a9d8f",
    "diffusion": "#7b5ea7",
}
MARKS = {
    "left_to_right": "s",
    "own": "o",
    "greedy": "*",
    "burst": "^",
    "exact": "D",
    "window": "v",
    "diffusion": "P",
}
SAMPLERS = {
    "left_to_right": "left to right",
    "own": "in its own order",
    "greedy": "likeliest tokens",
    "exact": "exact bursts",
    "burst": "bursts by orders tried",
    "window": "exact by windows of steps",
    "diffusion": "by steps",
}
Tensors = dict[str, np.ndarray]


def colour(arm: str) -> str:
    """One colour an order; companions are grey."""
    return COLOURS.get(
        order_of(arm).split("_")[0] if "left" not in order_of(arm) else order_of(arm), "#8a929c"
    )


def worded(sampler: str) -> str:
    """A sampler in words: 'burst_5' -> 'bursts, 5 orders'."""
    kind, _, count = sampler.rpartition("_")
    if kind in ("burst", "window", "diffusion"):
        many = "s" * (count != "1")
        return {
            "burst": f"bursts, {count} order{many}",
            "window": f"windows of {count} step{many}",
            "diffusion": f"{count} step{many}",
        }[kind]
    return SAMPLERS.get(sampler, sampler.replace("_", " "))


def panels(rows: int, columns: int, width: float, height: float) -> "tuple[Figure, np.ndarray]":
    """A figure of small pictures without axes; width and height of each in inches."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
        panel.grid(False)
        panel.spines[:].set_visible(False)
    return figure, axes


def sampled(
    tensors: Tensors, prompt: str, part: str = "tokens"
) -> dict[tuple[str, str], np.ndarray]:
    """(cell, sampler) -> what was kept (S, T) at a prompt."""
    names = (name.split("/") for name in sorted(tensors))
    return {
        (words[0], words[1]): tensors["/".join(words)]
        for words in names
        if len(words) == 4 and words[2:] == [prompt, part]
    }


def chosen(tensors: Tensors, cells: Cells, dataset: str) -> list[tuple[str, str]]:
    """The samples to look at: GPT's, random order's one by one, by bursts and by exact ones,
    diffusion's; of each arm the first cell."""
    found, kept = [], sampled(tensors, "prompt")
    for order, samplers in (
        ("left_to_right", ("left_to_right",)),
        ("random", ("own", comparisons.TRIED, "exact")),
        ("diffusion", ("",)),
    ):
        arm = next((arm for arm in ranked(cells, dataset) if order_of(arm) == order), None)
        cell = next((cell for cell, _ in kept if arm_of(cell) == arm), None)
        for sampler in samplers if cell else ():
            sampler = sampler or comparisons.stands(arm, first(cells, dataset, arm)["samplers"])
            found += [(cell, sampler)] if (cell, sampler) in kept else []
    return found
