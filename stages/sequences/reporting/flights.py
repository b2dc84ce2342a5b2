"""The figure of flights: samples by what is given, as density (thesis 4.3, table D.1). Units:
ft, s."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.figures.drawing import plt, save
from stages.sequences import comparisons
from stages.sequences.evaluation import vertical
from stages.sequences.reporting.arms import PROMPTS, Cells, first, ranked, short
from stages.sequences.reporting.canvas import DPI, Tensors, colour, sampled
from stages.tables.table import arm_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def flight_of(truth: np.ndarray, law: dict[str, Any]) -> int:
    """The shown flight that climbs or descends most."""
    altitude, _ = vertical.feet(truth, law)
    return int(np.ptp(altitude, axis=1).argmax())


def shade(
    panel: "Axes",
    lines: np.ndarray,
    minutes: np.ndarray,
    start: int,
    span: tuple[float, float],
    tint: str,
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
            own = comparisons.stands(
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
