"""Arms of models of sequences as the tables and figures tell them: their names, order, numbers over
seeds, and the number that stands for their samples.

A cell is one trained model, an arm the same model over its seeds; `cells` are what evaluation
wrote, by DATASET/CELL, `about` what it wrote of each data set (kind, prompt, numbers of sequences,
entropy, bounds). Units: shares in %, MSE in flight levels squared (FL²) and ft², nats a token.
"""

import re
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeAlias

from stages.claims.levels import leaf
from stages.sequences import comparisons
from stages.tables import table
from stages.tables.table import Table, arm_of, digits, label

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
if TYPE_CHECKING:
    Cells: TypeAlias = dict[str, Any]
    About: TypeAlias = dict[str, dict[str, Any]]
else:
    Cells, About = dict[str, Any], dict[str, dict[str, Any]]
Told = tuple[Table, str]


def order_of(arm: str) -> str:
    """The order of an arm's name, `diffusion`, or a companion's own name:
    'sigma_gpt-random-tiny' -> 'random'."""
    words = arm.split("-")
    return words[1] if words[0] == "sigma_gpt" and len(words) > 1 else words[0]


def varied(arm: str) -> bool:
    """Whether it is diffusion in another variant than the plain one."""
    return order_of(arm) == "diffusion" and "-" in arm and "-plain" not in arm


def called(arm: str) -> str:
    """An arm as people read it: GPT, σ-GPT by its order, diffusion by its variant where it is not
    the plain one, companions, with the size."""
    order, size = order_of(arm), "".join(arm.split("-")[2:]).replace("_", " ")
    told = {"left_to_right": "GPT (left to right)", "diffusion": "discrete diffusion"}.get(
        order, order.replace("_", " ")
    )
    if varied(arm):
        told = f"{told} ({arm.split('-')[1].replace('_', ' ')})"
    told = f"σ-GPT, {told}" if arm.startswith("sigma_gpt") and order != "left_to_right" else told
    return f"{told}, {size}" if size not in ("", "none") else told


def ranked(cells: Cells, dataset: str) -> list[str]:
    """A data set's arms: companions first, then GPT, random, fractal, curriculum, diffusion."""
    mine = {arm_of(name).partition("/")[2] for name in cells if name.startswith(dataset + "/")}

    def rank(arm):
        return next(
            (k for k, name in enumerate(RANKS) if order_of(arm).startswith(name)), len(RANKS)
        )

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
    if asked; each times `scale`."""
    return table.number(summary, interval, scale, plain, spread)


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
    sampler = comparisons.stands(arm, first(cells, dataset, arm).get("samplers", {}))
    return (
        ("samplers", sampler, comparisons.prompt_of(about["kind"]), "metrics") if sampler else None
    )


def rank_of(sampler: str) -> tuple[int, int]:
    """Samplers in the order of the tables: one by one, greedy, bursts by their orders, exact,
    windows and diffusion by their steps."""
    count = re.search(r"_(\d+)$", sampler)
    kinds = ("left_to_right", "own", "greedy", "burst", "exact", "window", "diffusion")
    return next((k for k, kind in enumerate(kinds) if sampler.startswith(kind)), len(kinds)), int(
        count[1]
    ) if count else 0


def shares_of(cells: Cells, dataset: str, compared: str) -> list[str]:
    """The shares (%) of known tokens at which densities were `compared`: that entry of a cell."""
    return sorted(
        {
            share
            for name, content in cells.items()
            if name.startswith(dataset + "/")
            for share in content.get(compared, {})
        },
        key=float,
    )


def short(arm: str) -> str:
    """An arm for the axis of a figure."""
    return label(called(arm))
