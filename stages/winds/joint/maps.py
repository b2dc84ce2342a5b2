"""A map of one task of a real sky: the wind as the reanalysis has it, the late grid, what the
network of both sources and kriging of the increments say, and the network's error and spread. Speed
is shading, arrows are the wind, dots the reports, lines the coasts; km about the area's middle,
m/s."""

from typing import Any

import numpy as np

from stages.figures import coast
from stages.figures.drawing import plt
from stages.winds.joint.layout import INCREMENTS, LINEAR
from stages.winds.joint.reanalysis import DEGREE_KM

BOTH = "joint_tnp-both"  # how the cell that is shown begins; its first seed
EVERY = 4  # arrows: one place in so many, along either axis


def drawn(told: dict[str, np.ndarray]) -> Any:
    """The figure of picture.npz (measure.py)."""
    across = round(len(told["x"]) ** 0.5)
    shape = (across, across)
    east, north = (told["x"][:, axis].reshape(shape) for axis in (0, 1))
    extent = (east.min(), east.max(), north.min(), north.max())
    both = min(name.removesuffix(".mean") for name in told if name.startswith(BOTH))
    moment = np.datetime64(round(60 * told["where"][2]), "m")
    lead, up = told["x"][0, 3], told["x"][0, 2]
    true, said = told["true"], told[f"{both}.mean"]
    error = np.sqrt(np.square(said - true).mean(1))
    winds = {
        f"reanalysis, {moment + np.timedelta64(int(lead), 'm')} UTC, {up:g} km": true,
        f"the grid, {float(told['age']):.1f} hours old": told[f"{LINEAR}.mean"],
        f"network of both, {lead:g} min ahead": said,
        "grid + increments by kriging": told[f"{INCREMENTS}.mean"],
    }
    speeds = {name: np.hypot(*wind.T) for name, wind in winds.items()}
    low, high = (float(edge([edge(one) for one in speeds.values()])) for edge in (np.min, np.max))
    rest = {"network: error [m/s a component]": error,
            "network: spread [m/s a component]": told[f"{both}.sd"].mean(1)}  # fmt: skip
    most = float(max(one.max() for one in rest.values()))
    figure, panels = plt.subplots(2, 3, figsize=(11.5, 7.2), layout="constrained", sharex=True,
                                  sharey=True)  # fmt: skip
    for panel, name in zip(panels.flat, (*winds, *rest), strict=True):
        values, colours, ends = (
            (speeds[name], "YlGnBu", (low, high)) if name in winds
            else (rest[name], "viridis", (0.0, most))
        )  # fmt: skip
        image = panel.imshow(values.reshape(shape).T, origin="lower", extent=extent, cmap=colours,
                             vmin=ends[0], vmax=ends[1])  # fmt: skip
        figure.colorbar(image, ax=panel, shrink=0.85)
        if name in winds:
            some = (slice(2, None, EVERY), slice(2, None, EVERY))
            u, v = (winds[name][:, axis].reshape(shape)[some] for axis in (0, 1))
            panel.quiver(east[some], north[some], u, v, color="#333333", width=0.004)
        coast.draw(panel, lambda line: about(line, told["where"][:2]))
        panel.plot(told["reports"][:, 0], told["reports"][:, 1], ".", ms=3, color="#c1121f")
        panel.set_title(name if name in rest else f"{name} [m/s]", fontsize=9)
        panel.grid(False)
    for panel in panels[:, 0]:
        panel.set_ylabel("north [km]")
    for panel in panels[-1]:
        panel.set_xlabel("east [km]")
    return figure


def about(line: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Degrees (N, 2) of longitude and latitude as km east and north of a middle, as tasks of a real
    sky have them; `middle` latitude and longitude."""
    north = (line[:, 1] - middle[0]) * DEGREE_KM
    east = (line[:, 0] - middle[1]) * DEGREE_KM * np.cos(np.radians(line[:, 1]))
    return np.stack((east, north), 1)
