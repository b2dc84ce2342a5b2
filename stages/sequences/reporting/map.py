"""Generated sequences beside held-out ones (thesis 4.3.4, figure 4.4): the map of their embeddings,
and numbers that a look cannot give.

A panel a method: validation sequences green, this method's coloured, all other methods' light grey,
on the one plane that t-SNE laid all of them out on (evaluation/generations.py: tensors
map/val and map/CELL/SAMPLER (n, 2), without unit). Beside each stands how often a sequence's
nearest other is of its own kind; the table has that and the discrepancy of every sampler, between
the floor (test against validation sequences) and the companions. Shapes: n sequences of a method.
Units: shares in %, squared MMD of embeddings of length 1.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stages.claims.levels import leaf
from stages.sequences.reporting.arms import (
    Cells,
    Told,
    at,
    called,
    first,
    members,
    number,
    plain,
    rank_of,
    ranked,
    short,
)
from stages.tables.table import NONE, Table, arm_of

DPI = 80  # pixels an inch: small enough for the page
ACROSS = 4  # panels in a row at most
HELD_OUT, GREEN, GREY = "val", "#9bcf53", "#d5d8dc"
PROMPT = "prompt"  # the one prompt of texts and grammars
TITLE = "Generated sequences against validation sequences, by their embeddings (thesis, figure 4.4)"
WORDS = (
    "nearest other of its own kind: 50 % where the two cannot be told apart, 100 % where they "
    "always can, less than 50 % where validation sequences are copied; p: of a permutation test, "
    "one a seed; squared MMD x 1000: 0 in the mean where they are drawn alike. Embedding: "
    "{pieces:,} pieces of one to three tokens, tf-idf, {dimensions} directions of the training "
    "sequences, which hold {share:.3g} % of them; it sees spelling and the choice of words, no "
    "meaning. {n} sequences a side: small differences escape them. The floor of a text lies above "
    "50 % where its parts have other speakers or subjects"
)
CAPTION = (
    "A panel a method: its sequences coloured, validation sequences green, all other methods' "
    "grey, laid out together by t-SNE. Distances and densities on it say little; the share above "
    "each panel is of the embedding itself: how often the nearest other sequence is of the same "
    "kind (50 %: cannot be told apart)."
)


def table(cells: Cells, about: dict[str, Any], dataset: str) -> Told | None:
    """A row a sampler of each arm, after the floor; None where nothing was compared. `about` has
    the evaluation's `generations`."""
    made = about.get("generations")
    if not made or not made["floor"]:
        return None
    floor = made["floor"]
    rows = [
        (
            "test sequences (floor)",
            NONE,
            NONE,
            plain(100 * floor["neighbour"]["value"]),
            plain(floor["neighbour_p"]["value"]),
            plain(1000 * floor["mmd"]["value"]),
            plain(floor["mmd_p"]["value"]),
        )
    ]
    for arm in ranked(cells, dataset):
        for sampler in sorted(first(cells, dataset, arm).get("samplers", {}), key=rank_of):
            path = ("samplers", sampler, PROMPT, "metrics")
            shown = [
                number(at(cells, dataset, arm, *path, name), scale)
                for name, scale in (("neighbour", 100), ("mmd", 1000))
            ]
            found = [
                [leaf(one, (*path, name)) for one in members(cells, dataset, arm)]
                for name in ("neighbour_p", "mmd_p")
            ]
            p = [", ".join(plain(one["value"]) for one in some if one) or NONE for some in found]
            if shown != [NONE, NONE]:
                rows.append(
                    (
                        called(arm),
                        str(len(members(cells, dataset, arm))),
                        sampler,
                        shown[0],
                        p[0],
                        shown[1],
                        p[1],
                    )
                )
    titles = (
        "sequences",
        "seeds",
        "sampler",
        "nearest other of its own kind [%]",
        "p",
        "squared MMD x 1000",
        "p",
    )
    words = WORDS.format(
        **made["embedding"]
        | {"share": 100 * made["embedding"]["share"], "n": floor["neighbour"]["n"]}
    )
    return Table(f"generations on {dataset}", titles, tuple(rows), frozenset({0, 2})), words


def draw(
    tensors: dict[str, np.ndarray],
    cells: Cells,
    dataset: str,
    path: Path,
    colour: Callable[[str], str],
    worded: Callable[[str], str],
) -> bool:
    """The map; `colour` of an arm and `worded` sampler are the other figures'. False where
    nothing was laid out."""
    from stages.figures.drawing import plt, save  # with matplotlib

    planes = {name: plane for name, plane in tensors.items() if name.startswith("map/")}
    parts = {name.removeprefix("map/"): plane for name, plane in planes.items()}
    held = parts.pop(HELD_OUT, None)
    arms = ranked(cells, dataset)
    names = sorted(
        parts,
        key=lambda name: (arms.index(arm_of(name.split("/")[0])), rank_of(name.split("/")[1])),
    )
    if held is None or not names:
        return False
    down = math.ceil(len(names) / ACROSS)
    across = math.ceil(len(names) / down)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(2.5 * across, 2.75 * down),
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[], aspect="equal")
        panel.grid(False)
        panel.spines[:].set_visible(False)
    for panel, name in zip(axes.flat, names, strict=False):
        cell, sampler = name.split("/")
        others = np.concatenate(
            [plane for other, plane in parts.items() if other != name] or [np.empty((0, 2))]
        )
        for plane, tint, size in (
            (others, GREY, 3),
            (held, GREEN, 7),
            (parts[name], colour(arm_of(cell)), 7),
        ):
            panel.scatter(*plane.T, s=size, color=tint, lw=0)
        share = leaf(
            cells[f"{dataset}/{cell}"], ("samplers", sampler, PROMPT, "metrics", "neighbour")
        )
        of = f": {100 * share['value']:.0f} % of its own kind" if share else ""
        panel.set_title(
            f"{short(arm_of(cell))}\n{worded(sampler) if sampler != cell else 'no model'}{of}",
            fontsize=8,
        )
    save(figure, path, dpi=DPI)
    return True
