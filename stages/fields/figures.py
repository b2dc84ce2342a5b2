"""The figures of the experiments on sets: learning curves and errors, one set as two models see it,
and the failure modes (thesis 3.4-3.6, C.8).

PNGs with fixed metadata (figures.save): the same numbers give the same bytes. Curves are of the
validation loss (its own unit: MSE, or RMSE in the problem's units) against steps; bands span the
seeds. Errors are MSE of test sets with 90 % intervals over sets, stars the printed values.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from safetensors.numpy import load_file

from stages.fields import tables as set_tables
from stages.fields.claims import MANY, ONE, SOLVED
from stages.fields.printed import Companions
from stages.fields.probe_means import probed
from stages.fields.tables import MEAN, MSE
from stages.figures import colours
from stages.figures.curves import curves
from stages.figures.drawing import numbered, plt, save
from stages.files import atomic_folder, read_json
from stages.tables.table import arm_of, datasets_of, label

DPI = 80  # pixels an inch: small enough for the page
STYLES = (
    ("-", "o", 1.0),
    ((0, (4, 2)), "s", 0.6),
    ((0, (1, 1)), "^", 0.8),
    ((0, (6, 2, 1, 2)), "D", 0.5),
    ((0, (3, 1, 1, 1, 1, 1)), "v", 0.7),
)


def colour(arm: str) -> str:
    """One colour a model, whatever its arm."""
    return colours.colour(arm.split("-", maxsplit=1)[0])


def styles(arms: Iterable[str]) -> dict[str, tuple[Any, str, float]]:
    """Arm -> line, mark and opacity that set it apart from the other arms of its model, in their
    order by name."""
    of_model: dict[str, list[str]] = {}
    for arm in sorted(arms):
        of_model.setdefault(arm.split("-")[0], []).append(arm)
    return {
        arm: STYLES[k % len(STYLES)] for mine in of_model.values() for k, arm in enumerate(mine)
    }


def errors(
    right: Axes,
    arms: dict[str, Any],
    names: list[str],
    style: dict[str, tuple[Any, str, float]],
    printed: Companions,
) -> None:
    """A bar an arm: its MSE on test sets with its interval, and what the document prints."""
    for place, name in enumerate(names):
        one, arm = arms[name]["metrics"][MSE], name.split("/")[1]
        right.barh(place, one["mean"], color=colour(arm), alpha=style[arm][2], height=0.72)
        if "low" in one:
            right.plot([one["low"], one["high"]], [place, place], color="black", lw=1.2)
        other = set_tables.beside(printed, name).get(MSE)
        if other:
            right.plot(
                other.mean,
                place,
                "*",
                color="white",
                mec="black",
                ms=9,
                mew=0.9,
                label="printed (validation)",
            )
    unit = arms[names[0]]["metrics"][MSE]["unit"]
    right.set_yticks(range(len(names)), [label(name.split("/")[1]) for name in names], fontsize=8)
    right.set(xlabel="MSE, test sets" + ("" if unit == "1" else f" [{unit}]"))
    right.set_xscale("log")
    printed_here = [
        one.mean for name in names if (one := set_tables.beside(printed, name).get(MSE))
    ]
    right.set_xlim(
        left=0.5
        * min(
            one
            for one in (*printed_here, *(arms[name]["metrics"][MSE]["mean"] for name in names))
            if one > 0
        )
    )
    numbered(right.xaxis)
    handles = dict(zip(*reversed(right.get_legend_handles_labels()), strict=True))
    if handles:
        right.legend(
            handles.values(),
            handles.keys(),
            fontsize=8,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
        )


def learning(
    arms: dict[str, Any],
    cells: dict[str, Any],
    dataset: str,
    printed: Companions,
    loss: str,
    path: Path,
) -> None:
    """Left: validation loss against steps, a line an arm. Right: the MSE of each arm, and what
    the document prints."""
    names = set_tables.ordered(arms, dataset)
    found, height = curves(cells, dataset), max(3.4, 0.8 + 0.21 * len(names))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, height), layout="constrained")
    style = styles(name.split("/")[1] for name in names)
    for arm, (steps, losses) in found.items():
        if len(steps) > 1:
            left.plot(steps, losses.mean(0), lw=1.5, color=colour(arm), ls=style[arm][0])
            left.fill_between(
                steps, losses.min(0), losses.max(0), color=colour(arm), alpha=0.12, lw=0
            )
    left.set(xlabel="step", ylabel=f"validation {loss}")
    left.set_yscale("log")
    numbered(left.yaxis)
    errors(right, arms, names, style, printed)
    save(figure, path, dpi=DPI)


def shown_cells(predicted: dict[str, np.ndarray], arms: dict[str, Any], dataset: str) -> list[str]:
    """Two cells for the example: the first of the best MSA (else of the best model) and of the
    best model of another kind."""
    ranked = [
        name.split("/")[1]
        for name in reversed(set_tables.ordered(arms, dataset))
        if not name.endswith(f"/{MEAN}")
    ]
    ranked = sorted(ranked, key=lambda arm: arm.split("-")[0] != "msa")
    cells = [
        next((cell for cell in sorted(predicted) if arm_of(cell) == arm), None) for arm in ranked
    ]
    found = [cell for cell in cells if cell]
    return found[:1] + [cell for cell in found if cell.split("-")[0] != found[0].split("-")[0]][:1]


def values_of(context: np.ndarray, names: dict[str, list[str]]) -> tuple[np.ndarray, str]:
    """What of a context's values (C, I) is drawn: the quantity of the targets where it is among
    them; else the sum of what is not a flag."""
    shared = [k for k, name in enumerate(names["i"]) if name == names["o"][0]]
    if shared or context.shape[1] == 1:
        column = shared[0] if shared else 0
        return context[:, column], names["i"][column]
    flags = [k for k in range(context.shape[1]) if set(np.unique(context[:, k])) <= {0.0, 1.0}]
    kept = [k for k in range(context.shape[1]) if k not in flags] or [0]
    if len(kept) > 2:
        kept = kept[:1]
    return context[:, kept].sum(1), " or ".join(names["i"][k] for k in kept)


def example(
    tensors: dict[str, np.ndarray], cells: list[str], meta: dict[str, Any], path: Path
) -> None:
    """One test set: what was known, what was to be found, and what each of these cells says of
    it (first quantity, problem's units)."""
    names, units = meta["names"], meta["units"]
    known, quantity = values_of(tensors["context_y"][0], names)
    truth = tensors["target_y"][0, :, 0]
    panels = [
        (tensors["context_x"][0], known, f"known: {quantity}"),
        (tensors["target_x"][0], truth, f"to be found: {names['o'][0]}"),
    ]
    panels += [
        (tensors["target_x"][0], tensors[cell][0, :, 0], label(arm_of(cell))) for cell in cells
    ]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.1 * len(panels), 3.1), layout="constrained", squeeze=False
    )
    low, high = truth.min(), truth.max()
    across, up = (1, 0) if names["x"][0].startswith("lat") else (0, 1)
    for place, (panel, (points, values, title)) in enumerate(zip(axes[0], panels, strict=True)):
        ends = {} if place == 0 else {"vmin": low, "vmax": high}
        drawn = panel.scatter(
            points[:, across], points[:, up], c=values, cmap="viridis", s=14, lw=0, **ends
        )
        panel.set_title(title, fontsize=9)
        panel.set_xlabel(worded(names["x"][across], units["x"][across]), fontsize=8)
        panel.set_ylabel(worded(names["x"][up], units["x"][up]) if place == 0 else "", fontsize=8)
        panel.tick_params(labelsize=7)
        if place in (0, len(panels) - 1):
            unit = (
                units["i"][names["i"].index(quantity)]
                if place == 0 and quantity in names["i"]
                else units["o"][0]
            )
            bar = figure.colorbar(drawn, ax=panel, shrink=0.85)
            bar.set_label(worded(quantity if place == 0 else names["o"][0], unit), fontsize=8)
            bar.ax.tick_params(labelsize=7)
    save(figure, path, dpi=DPI)


def worded(name: str, unit: str) -> str:
    """A name with its unit, none for the dimensionless."""
    return name if unit in ("", "1") else f"{name} [{unit}]"


def copying(arms: dict[str, Any], path: Path) -> bool:
    """Figure 3.4: MSE of handing on the context's values, against the frequency of the function.
    False where no such set was learned."""
    sets = set_tables.copying_sets(arms)
    models = sorted(
        {name.split("/")[1] for name in arms if name.split("/")[0] in sets} - {MEAN, "nearest"}
    )
    if not models:
        return False
    figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    style = styles(models)
    for k, model in enumerate(models):
        found = [
            (place, arms[f"{name}/{model}"]["metrics"][MSE])
            for place, name in enumerate(sets)
            if MSE in arms.get(f"{name}/{model}", {}).get("metrics", {})
        ]
        x = [place + 0.5 * (k / max(1, len(models) - 1) - 0.5) for place, _ in found]
        axes.plot(
            x,
            [one["mean"] for _, one in found],
            style[model][1],
            ms=6,
            ls=":",
            lw=0.8,
            color=colour(model),
            label=label(model),
        )
        ends: Any = [[one.get(end, one["mean"]) for _, one in found] for end in ("low", "high")]
        axes.vlines(x, *ends, color=colour(model), lw=1.5)
    axes.axhline(SOLVED, color="black", lw=1, ls="--", label="the document's bar")
    called = [
        "random\nvalues" if name.startswith("copies") else f"f = {set_tables.frequency(name)[0]:g}"
        for name in sets
    ]
    axes.set_xticks(range(len(sets)), called)
    axes.set(ylabel="MSE, test sets", yscale="log", xlim=(-0.5, len(sets) - 0.5))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def planted(cells: dict[str, Any], dataset: str, path: Path) -> bool:
    """Figures 3.5 and 3.6: latents touched by a planted error, and updates that undo it. False
    where neither was probed."""
    touched = {
        arm: found["effective"]
        for arm, found in probed(cells, dataset, "latents").items()
        if "effective" in found
    }
    steps = {
        arm: found["steps"]
        for arm, found in probed(cells, dataset, "correction").items()
        if "steps" in found
    }
    panels = [
        (touched, "latents touched by one planted error (effective number)"),
        (steps, "updates until it is undone (▸ cut off)"),
    ]
    panels = [one for one in panels if one[0]]
    if not panels:
        return False
    height = 1.2 + 0.26 * max(len(found) for found, _ in panels)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.6 * len(panels), height), layout="constrained", squeeze=False
    )
    for panel, (found, title) in zip(axes[0], panels, strict=True):
        for place, (arm, one) in enumerate(found.items()):
            panel.barh(
                place, one["mean"], xerr=one.get("std"), color=colour(arm), height=0.72, capsize=2
            )
            if one["capped"]:
                panel.plot(one["mean"], place, ">", color="black", ms=6)
        panel.set_yticks(range(len(found)), [label(arm) for arm in found], fontsize=8)
        panel.set_xlabel(title, fontsize=9)
        if found is touched:
            panel.axvline(ONE, color="black", lw=0.8, ls="--")
            panel.axvline(MANY, color="black", lw=0.8, ls=":")
    save(figure, path, dpi=DPI)
    return True


def overlaps(cells: dict[str, Any], dataset: str, path: Path) -> bool:
    """Table C.8 drawn: MSE against the share of the context from the targets' region. False
    where it was not probed."""
    found = probed(cells, dataset, "overlap")
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    style = styles(found)
    for arm, values in found.items():
        shares = sorted(values, key=float)
        means, spreads = (
            [values[share].get(key, 0.0) for share in shares] for key in ("mean", "std")
        )
        axes.errorbar(
            [float(share) for share in shares],
            means,
            spreads,
            marker=style[arm][1],
            ms=4,
            color=colour(arm),
            ls=style[arm][0],
            capsize=2,
            label=label(arm),
        )
    axes.set(xlabel="share of the context from the targets' region [%]", ylabel="MSE", yscale="log")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def draw(
    home: Path,
    prepared: Path,
    arms: dict[str, Any],
    cells: dict[str, Any],
    printed: Companions,
    more: Callable[[Path], object] = lambda folder: None,
) -> None:
    """All figures of an experiment and profile into `home`/figures; `more` draws others into
    that folder."""
    with atomic_folder(home / "figures") as folder:
        more(folder)
        copying(arms, folder / "copying.png")
        for dataset in datasets_of(arms):
            meta = read_json(prepared / dataset / "sets.json")
            unit = "" if set(meta["units"]["o"]) == {"1"} else f" [{meta['units']['o'][0]}]"
            loss = (
                f"RMSE{unit}"
                if meta["loss"] == "rmse"
                else "MSE" + (" (standardised)" if meta["standardised"] else "")
            )
            learning(arms, cells, dataset, printed, loss, folder / f"{dataset}-learning.png")
            file = home / "evaluated" / dataset / "predictions.safetensors"
            if file.exists():
                tensors = load_file(file)
                predicted = {
                    name: tensor for name, tensor in tensors.items() if f"{dataset}/{name}" in cells
                }
                if predicted and tensors["context_x"].shape[2] > 1:
                    example(
                        tensors,
                        shown_cells(predicted, arms, dataset),
                        meta,
                        folder / f"{dataset}-example.png",
                    )
            planted(cells, dataset, folder / f"{dataset}-planted.png")
            overlaps(cells, dataset, folder / f"{dataset}-overlap.png")
