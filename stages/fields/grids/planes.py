"""Maps of one task in the plane: above, the cells, and the points and targets of the other
function; then of every model what it answers and how far it spreads. No dimension."""

from typing import Any

import numpy as np

from stages.fields.grids.tables import called
from stages.figures.drawing import plt

PAIRS = 2  # models side by side


def maps(told: dict[str, np.ndarray], named: dict[str, str]) -> Any:
    """The figure; `named` a model's arm -> its cell."""
    rows, columns = 1 + -(-len(named) // PAIRS), 2 * PAIRS
    figure, panels = plt.subplots(rows, columns, figsize=(3.2 * columns, 2.7 * rows),
                                  layout="constrained", sharex=True, sharey=True)  # fmt: skip
    values = np.concatenate([told[name].ravel() for name in ("grid_y", "context_y", "target_y")])
    low, high = float(values.min()), float(values.max())
    most = max(float(told[f"{cell}.sd"].max()) for cell in named.values())

    def shaded(panel: Any, title: str, values: np.ndarray, scale: tuple[str, float, float]) -> None:
        end, side = told["places"].max(), int(np.sqrt(values.size))
        image = panel.imshow(
            values.reshape(side, side).T, origin="lower", extent=(-end, end, -end, end),
            cmap=scale[0], vmin=scale[1], vmax=scale[2],
        )  # fmt: skip
        figure.colorbar(image, ax=panel, shrink=0.9)
        panel.plot(*told["context_x"].T, ".", ms=4, color="black")
        panel.set_title(title, fontsize=9)

    shaded(panels[0, 0], "the cells: one function", told["grid_y"], ("RdYlBu_r", low, high))
    known = (("points: the other function", "context"), ("its targets", "target"))
    for panel, (title, which) in zip(panels[0, 1:], known, strict=False):
        x, y = told[f"{which}_x"], told[f"{which}_y"]
        dots = panel.scatter(*x.T, c=y, s=14, cmap="RdYlBu_r", vmin=low, vmax=high)
        figure.colorbar(dots, ax=panel, shrink=0.9)
        panel.set_title(title, fontsize=9)
        panel.set_aspect("equal")
    free = iter(panels[1:].flat)
    for arm, cell in named.items():
        mean, sd = (told[f"{cell}.{part}"] for part in ("mean", "sd"))
        shaded(next(free), f"{called(arm)}: answer", mean, ("RdYlBu_r", low, high))
        shaded(next(free), "its spread", sd, ("viridis", 0.0, most))
    for panel in (*panels[0, 1 + len(known) :], *free):
        panel.axis("off")
    for panel in panels.flat:
        panel.grid(False)
    return figure
