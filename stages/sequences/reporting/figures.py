"""The figures of sequences in any order: mazes, bursts as a strip, flights, quality against passes,
learning, densities (thesis 4.3, D.1).

PNGs with fixed metadata (figures.save): the same numbers give the same bytes. Samples are those
that evaluation kept of a few test prompts (samples.safetensors: CELL/SAMPLER/PROMPT/tokens and
order; where they were kept, `round`, the burst that accepted each step of the order, and
CELL/density (S, R K), learned chances of the path). Shapes: S shown sequences, T tokens, R rows and
K columns of a maze. Units: nats a token, ft, s; passes of a burst are rounds, as the thesis counts
them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap

from stages.fields.figures import curves, numbered
from stages.sequences import claims
from stages.sequences.evaluation import maze, vertical
from stages.sequences.reporting import sizes as order_sizes
from stages.sequences.reporting.tables import (
    PROMPTS,
    RANKS,
    SHOWN,
    Cells,
    at,
    first,
    order_of,
    rank_of,
    ranked,
    shares_of,
    short,
)
from stages.winds.figures import plt, save
from stages.winds.tables import arm_of

DPI = 100  # pixels an inch: small enough for the page
MAZES = 3  # mazes of a figure
STAGES = 8  # pictures of a strip at most
COLOURS = {
    "left_to_right": "#1d6fa5",
    "random": "#c1121f",
    "fractal": "#c9a227",
    "curriculum": "#2a9d8f",
    "diffusion": "#7b5ea7",
}
CELLS = ListedColormap(
    ["#ffffff", "#39414d", "#2a9d8f", "#e07a1f", "#6baed6"]
)  # empty, wall, start, goal, path
WAITING = "#d5d8dc"
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


def panels(rows: int, columns: int, width: float, height: float):
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
        ("random", ("own", claims.TRIED, "exact")),
        ("diffusion", ("",)),
    ):
        arm = next((arm for arm in ranked(cells, dataset) if order_of(arm) == order), None)
        cell = next((cell for cell, _ in kept if arm_of(cell) == arm), None)
        for sampler in samplers if cell else ():
            sampler = sampler or claims.stands(arm, first(cells, dataset, arm)["samplers"])
            found += [(cell, sampler)] if (cell, sampler) in kept else []
    return found


# --- mazes


def draw_maze(panel, grid: np.ndarray, given: np.ndarray | None = None) -> None:
    """A maze (R, K); crosses where what was given (R, K) was changed into something else than
    path."""
    panel.imshow(grid, cmap=CELLS, vmin=0, vmax=4, interpolation="nearest")
    if given is not None:
        wrong = np.argwhere(np.where(grid == maze.PATH, given != maze.EMPTY, grid != given))
        panel.plot(wrong[:, 1], wrong[:, 0], "x", color="#c1121f", ms=5, mew=1.6)


def draw_density(panel, given: np.ndarray, chance: np.ndarray) -> None:
    """Chances of the path (R, K) on a maze's empty cells."""
    panel.imshow(given, cmap=CELLS, vmin=0, vmax=4, interpolation="nearest")
    shown = np.ma.masked_where((given != maze.EMPTY) | (chance <= 0), chance)
    panel.imshow(shown, cmap="Blues", vmin=-0.15, vmax=1, interpolation="nearest")


def mazes(tensors: Tensors, cells: Cells, dataset: str, law: dict[str, Any], path: Path) -> bool:
    """A row a maze: its true path, the exact density of shortest paths, the learned one, how
    often samples pass a cell, some samples."""
    shape, chosen_ones = (law["rows"], law["columns"]), chosen(tensors, cells, dataset)
    size, kept = shape[0] * shape[1], sampled(tensors, "prompt")
    ours = [made for (cell, _), made in kept.items() if order_of(arm_of(cell)) == "random"]
    dense = next(
        (name for name in sorted(tensors) if name.endswith("/density") and "random" in name), None
    )
    if not chosen_ones:
        return False
    count = min(MAZES, len(tensors["truth"]))
    titles = [
        "true path",
        "exact density\nof shortest paths",
        *(["learned density"] if dense else []),
        *([f"share of {len(ours)} samples\nin random order"] if ours else []),
    ]
    titles += [f"{short(arm_of(cell))}\n{worded(sampler)}" for cell, sampler in chosen_ones]
    figure, axes = panels(count, len(titles), 1.75, 1.75 * shape[0] / shape[1] + 0.42)
    for row in range(count):
        given, true = (part.reshape(shape) for part in np.split(tensors["truth"][row], 2))
        draw_maze(axes[row, 0], true)
        exact = maze.density(given, given, np.zeros(shape, bool))
        draw_density(axes[row, 1], given, exact[..., maze.PATH])
        if dense:
            draw_density(axes[row, 2], given, tensors[dense][row].reshape(shape))
        if ours:
            passed = np.mean([one[row, size:].reshape(shape) == maze.PATH for one in ours], axis=0)
            draw_density(axes[row, 2 + bool(dense)], given, passed)
        for panel, key in zip(
            axes[row, len(titles) - len(chosen_ones) :], chosen_ones, strict=True
        ):
            made = kept[key][row, size:].reshape(shape)
            draw_maze(panel, made, given)
            verdict = maze.judge(made, given)
            panel.set_xlabel(
                "shortest" if verdict.optimal else "correct" if verdict.correct else "wrong",
                fontsize=8,
                color="#1d6f42" if verdict.correct else "#c1121f",
            )
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def accepted(
    tensors: Tensors, cell: str, sampler: str, row: int, known: int
) -> tuple[np.ndarray, bool]:
    """When the token at each position (T) of a sample came: by the burst that accepted it (from 1;
    0 given), where that was kept (`round`, by the order's steps); else by its place in the
    order. And whether by bursts."""
    rounds, order = (tensors.get(f"{cell}/{sampler}/prompt/{part}") for part in ("round", "order"))
    when = np.empty(len(order[row]), np.int64)
    when[order[row]] = (
        rounds[row] if rounds is not None else np.maximum(np.arange(len(order[row])) + 1 - known, 0)
    )
    return when, rounds is not None


def strip(
    tensors: Tensors,
    cells: Cells,
    dataset: str,
    about: dict[str, Any],
    law: dict[str, Any],
    path: Path,
) -> bool:
    """A burst as it goes: after each picture's burst (or number of tokens) what is accepted, the
    newest dotted; grey waits.

    Of the bursts of the arm in random order that with the fewest orders, which takes most
    rounds."""
    key = next(
        (
            (cell, sampler)
            for cell, sampler in chosen(tensors, cells, dataset)
            if sampler == claims.TRIED
        ),
        None,
    )
    if key is None:
        return False
    key = (
        key[0],
        claims.tried(sampler for cell, sampler in sampled(tensors, "prompt") if cell == key[0])[0],
    )
    shape, known = (law["rows"], law["columns"]), about["prompt"]
    size, rows = shape[0] * shape[1], min(2, len(tensors["truth"]))
    whens = [accepted(tensors, *key, row, known) for row in range(rows)]
    most = max(int(when.max()) for when, _ in whens)
    ends = np.unique(
        np.linspace(most / STAGES if most > STAGES else 1, most, min(most, STAGES))
        .round()
        .astype(int)
    )
    figure, axes = panels(rows, len(ends), 1.55, 1.55 * shape[0] / shape[1] + 0.3)
    waiting = ListedColormap([WAITING])
    for row, (when, by_round) in enumerate(whens):
        made, when = (
            tensors["/".join((*key, "prompt/tokens"))][row, size:].reshape(shape),
            when[size:].reshape(shape),
        )
        for panel, end, before in zip(axes[row], ends, (0, *ends[:-1]), strict=True):
            draw_maze(panel, made)
            panel.imshow(
                np.ma.masked_where(when <= end, np.zeros(shape)),
                cmap=waiting,
                interpolation="nearest",
            )
            fresh = np.argwhere((when > before) & (when <= end) & (when > 0))
            panel.plot(fresh[:, 1], fresh[:, 0], ".", color="#c1121f", ms=5, mec="white", mew=0.5)
            if row == 0:
                panel.set_title(f"after {'burst' if by_round else 'token'} {end}", fontsize=8)
            if end >= when.max() > before:
                panel.set_xlabel("all accepted", fontsize=8)
    save(figure, path, dpi=DPI)
    return True


# --- flights


def flight_of(truth: np.ndarray, law: dict[str, Any]) -> int:
    """The shown flight that climbs or descends most."""
    altitude, _ = vertical.feet(truth, law)
    return int(np.ptp(altitude, axis=1).argmax())


def shade(
    panel, lines: np.ndarray, minutes: np.ndarray, start: int, span: tuple[float, float], tint: str
) -> None:
    """Samples (N, S) in ft as density: 5-95 % and 25-75 % of them at each step from `start` on,
    their median, and single ones thin."""
    x, made = minutes[start:], lines[:, start:] / 1000
    for low, high, alpha in ((5, 95, 0.16), (25, 75, 0.28)):
        panel.fill_between(
            x, *np.percentile(made, (low, high), axis=0), color=tint, alpha=alpha, lw=0
        )
    panel.plot(x, made[:6].T, color=tint, lw=0.6, alpha=0.7)
    panel.plot(x, np.median(made, axis=0), color=tint, lw=1.6)
    panel.set_ylim(*span)


def climbs(tensors: Tensors, cells: Cells, dataset: str, law: dict[str, Any], path: Path) -> bool:
    """One flight: a row an arm, a column a prompt; samples of all its seeds and samplers (of
    diffusion the most steps) as density, the truth in black, the cleared level dashed."""
    arms = [arm for arm in ranked(cells, dataset) if arm.startswith(("sigma_gpt", "diffusion"))]
    by_prompt = {prompt: sampled(tensors, prompt) for prompt in PROMPTS}
    arms = [
        arm
        for arm in arms
        if any(arm_of(cell) == arm for found in by_prompt.values() for cell, _ in found)
    ]
    if not arms:
        return False
    row = flight_of(tensors["truth"], law)
    truth = tensors["truth"][row][None]
    altitude, real = vertical.feet(truth, law)
    ends, level = int(real[0].sum()), vertical.cleared(truth, law)[0] / 1000
    minutes, true = np.arange(law["steps"]) * law["step_s"] / 60, altitude[0] / 1000
    low, high = min(true.min(), level[:ends].min()), max(true.max(), level[:ends].max())
    span = (low - 0.15 * (high - low) - 0.5, high + 0.15 * (high - low) + 0.5)
    figure, axes = plt.subplots(
        len(arms),
        len(PROMPTS),
        figsize=(2.9 * len(PROMPTS), 1.75 * len(arms) + 0.4),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for panels_of, arm in zip(axes, arms, strict=True):
        for panel, (prompt, words) in zip(panels_of, PROMPTS.items(), strict=True):
            own = claims.stands(
                arm, first(cells, dataset, arm).get("samplers", {})
            )  # few steps of diffusion are not its law
            made = [
                one[row]
                for (cell, sampler), one in by_prompt[prompt].items()
                if arm_of(cell) == arm and (own == sampler or arm.startswith("sigma_gpt"))
            ]
            start = int(vertical.given(truth, law, prompt)[0]) - 2 - law["steps"]
            if made:
                lines = vertical.feet(np.array(made), law)[0][:, :ends]
                shade(panel, lines, minutes[:ends], start, span, colour(arm))
            panel.plot(minutes[:ends], level[:ends], "--", color="#8a929c", lw=0.9)
            panel.plot(minutes[:ends], true[:ends], color="black", lw=1.1)
            panel.plot(
                minutes[: start + 1],
                true[: start + 1],
                color="black",
                lw=2.6,
                marker="o" if start == 0 else None,
                ms=4,
            )
            panel.set_title(f"given: {words}" if arm == arms[0] else "", fontsize=9)
            panel.set_xlabel("min" if arm == arms[-1] else "", fontsize=8)
            panel.tick_params(labelsize=7)
        panels_of[0].set_ylabel(f"{short(arm)}\n[1000 ft]", fontsize=8)
    save(figure, path, dpi=DPI)
    return True


# --- numbers


def passes(cells: Cells, about: dict[str, Any], dataset: str, path: Path) -> bool:
    """Figure 4.6: quality of the samples against passes, a mark a sampler; the fewest passes
    there can be; what trivial samplers reach."""
    if not SHOWN[about["kind"]]:
        return False
    key, title, scale = SHOWN[about["kind"]][0]
    figure, axes = plt.subplots(figsize=(8.4, 4.0), layout="constrained")
    drawn, spread = 0, {}
    for arm in ranked(cells, dataset):
        points, samplers = {}, sorted(first(cells, dataset, arm).get("samplers", {}), key=rank_of)
        for sampler in samplers:
            where = ("samplers", sampler, claims.prompt_of(about["kind"]), "metrics")
            cost, worth = (at(cells, dataset, arm, *where, name) for name in ("rounds", key))
            if cost and worth:
                points[sampler] = (
                    cost["mean"],
                    scale * worth["mean"],
                    *(scale * worth.get(end, worth["mean"]) for end in ("low", "high")),
                )
        if arm in RANKS[:4]:
            for one in points.values():
                if one[1] > 0 or about["kind"] != "climb":  # no 0 on a logarithmic axis
                    spread.setdefault(one[1], []).append(short(arm))
            continue
        for kind, mark in MARKS.items():
            some = [
                (sampler, one)
                for sampler, one in points.items()
                if sampler.startswith(kind) and one[0] > 0
            ]
            if not some:
                continue
            x, y, low, high = np.array([one for _, one in some]).T
            axes.plot(
                x,
                y,
                mark,
                ls="-" if len(some) > 1 else "",
                lw=0.9,
                ms=6,
                color=colour(arm),
                mec="white",
                mew=0.5,
                label=f"{short(arm)}: {SAMPLERS[kind]}",
            )
            axes.vlines(x, low, high, color=colour(arm), lw=1.1)
            for (sampler, _), across, up in zip(some, x, y, strict=True):
                if kind in ("burst", "window", "diffusion"):
                    axes.annotate(
                        sampler.rpartition("_")[2],
                        (across, up),
                        xytext=(0, 7 if kind == "burst" else -13),
                        ha="center",
                        textcoords="offset points",
                        fontsize=8,
                        color=colour(arm),
                    )
            drawn += 1
    law = about.get("bounds", {})
    for orders, one in law.items():
        if orders == (
            claims.TRIED.removeprefix("burst_")
            if claims.TRIED.removeprefix("burst_") in law
            else list(law)[-1]
        ):
            axes.axvline(
                one["mean"], color="black", lw=0.9, ls="--", label="the fewest passes there can be"
            )
    for value, names in spread.items():
        axes.axhline(value, color="#8a929c", lw=0.8, ls=":")
        axes.annotate(
            ", ".join(names),
            (0.01, value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=8,
            color="#5f6b7a",
        )
    axes.set(xlabel="passes (of bursts: draft and check together)", ylabel=title, xscale="log")
    if about["kind"] == "climb":
        axes.set_yscale("log")
        numbered(axes.yaxis)
    numbered(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return bool(drawn)


def learning(cells: Cells, about: dict[str, Any], dataset: str, path: Path) -> bool:
    """Validation loss against steps, a line an arm in its own order; the entropy of the law.
    False where there is no history."""
    found = curves(cells, dataset)
    if not found:
        return False
    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for arm in (arm for arm in ranked(cells, dataset) if arm in found):
        steps, losses = found[arm]
        axes.plot(steps, losses.mean(0), lw=1.6, color=colour(arm), label=short(arm))
        axes.fill_between(steps, losses.min(0), losses.max(0), color=colour(arm), alpha=0.15, lw=0)
    if "entropy" in about:
        axes.axhline(about["entropy"], color="black", lw=0.9, ls="--", label="entropy of the law")
    axes.set(xlabel="step", ylabel="validation loss [nats a token]", xscale="log")
    numbered(axes.xaxis)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True


def densities(cells: Cells, dataset: str, arms: Iterable[str], path: Path) -> bool:
    """Distance of learned densities from exact ones, by the share of tokens known; companions
    grey. False where none was compared."""
    shares = shares_of(cells, dataset)
    arms = [arm for arm in arms if shares and at(cells, dataset, arm, "posteriors", shares[0])]
    if not arms:
        return False
    figure, axes = plt.subplots(figsize=(6.6, 3.2), layout="constrained")
    width = 0.8 / len(arms)
    for k, arm in enumerate(arms):
        found = [at(cells, dataset, arm, "posteriors", share) for share in shares]
        places = np.arange(len(shares)) + (k - (len(arms) - 1) / 2) * width
        heights, ends = (
            [one["mean"] for one in found],
            np.array([[one.get(end, one["mean"]) for one in found] for end in ("low", "high")]),
        )
        axes.bar(
            places,
            heights,
            0.92 * width,
            color=colour(arm),
            alpha=0.55 if arm == "uniform" else 1,
            label=short(arm),
        )
        axes.vlines(places, *ends, color="black", lw=1)
    axes.axhline(claims.CLOSE, color="black", lw=0.9, ls="--", label="read as a match below")
    axes.set_xticks(range(len(shares)), [f"{share} % known" for share in shares])
    axes.set(ylabel="total variation from the exact density")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    save(figure, path, dpi=DPI)
    return True
