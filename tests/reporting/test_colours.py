"""Colours that any eye tells apart, marks of arms, and numbers on a logarithmic axis."""

import itertools

import numpy as np
import pytest

from stages.figures import colours, drawing
from stages.figures.colours import colour
from stages.winds import figures as winds_figures

# --- colours and ticks


def seen(colour: str, view: np.ndarray) -> np.ndarray:
    """CIELAB of '#rrggbb' as an eye sees it: `view` acts on linear RGB."""
    part = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.clip(
        view @ np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4), 0, 1
    )
    xyz = (
        np.array(
            [
                [0.4124564, 0.3575761, 0.1804375],
                [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041],
            ]
        )
        @ linear
        / (0.95047, 1, 1.08883)
    )
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


VIEWS = {
    "all cones": np.eye(3),  # Machado et al. 2009, severity 1
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_no_two_models_that_learn_look_alike_to_any_eye(view):
    near = {
        pair: np.linalg.norm(np.subtract(*(seen(colours.LEARNED[name], view) for name in pair)))
        for pair in itertools.combinations(colours.LEARNED, 2)
    }
    assert min(near.values()) > 12, min(
        near, key=near.get
    )  # 2.3 is what an eye just tells apart side by side
    assert (
        max(seen(colour, view)[0] for colour in colours.LEARNED.values()) < 80
    )  # lightness; white is 100


def test_every_model_of_the_wind_figures_has_a_colour_of_its_own_and_arms_have_marks():
    arms = [
        "tfs-shared-20k",
        "gen-shared_wind_small-20k",
        "cnp-shared-20k",
        "hypermixer-shared-20k",
        "msa-shared-20k",
        "msa-traditional-20k",
        "msa-gaussian-20k",
        *winds_figures.PLAIN,
    ]
    assert (
        len({colour(arm) for arm in arms}) == len(arms)
        and colour("unheard-of") not in colours.COLOURS.values()
    )
    assert {winds_figures.dash(arm) for arm in winds_figures.PLAIN} == {":"} and winds_figures.dash(
        "tfs-shared-20k"
    ) == "-"
    assert len(set(drawing.MARKS)) == len(drawing.MARKS) >= len(arms)


@pytest.mark.parametrize("low, high", [(1.4e-6, 2e-3), (0.006, 1.0), (0.02, 0.05), (1e-3, 4e4)])
def test_numbers_on_a_logarithmic_axis_never_run_into_each_other(low, high):
    figure, axes = drawing.plt.subplots(figsize=(4.6, 1))
    axes.set(xscale="log", xlim=(low, high))
    drawing.numbered(axes.xaxis)
    figure.canvas.draw()
    boxes = sorted(
        (
            text.get_window_extent()
            for text in axes.get_xticklabels()
            if low <= text.get_position()[0] <= high
        ),
        key=lambda box: box.x0,
    )
    drawing.plt.close(figure)
    assert len(boxes) >= 2 and all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
