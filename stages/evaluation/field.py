"""A model's wind at any places, from one context: what a nowcast answers, and a whole level of the airspace to look at.

Shapes: N places, C context winds. Units: degrees, feet, m/s towards east and north.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
import torch

from stages.batches import collate, single
from stages.contexts.nearby import Nearby
from stages.errors import DataError

Answer = tuple[np.ndarray, np.ndarray | None]  # mean and standard deviation (N, 2), m/s
PLACE = ("lat_deg", "lon_deg", "alt_ft")
TOKENS = 20_000  # context and target points given to the model at once
GRID = (15, 18)  # places of a level, north-south and east-west


@torch.no_grad()
def ask(net: torch.nn.Module, winds: pl.DataFrame, here: np.ndarray, *, scaler: dict) -> Answer:
    """Mean and, from a Gaussian head, standard deviation (N, 2) in m/s at places (N, 3), from context winds.

    In MSA targets attend to each other: what else is asked moves an answer. So each place is asked by itself in the company
    of the context's own places, which makes the answer a function of place and context alone, and the set as large as in training.
    """
    x_mean, x_std, y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("x_mean", "x_std", "y_mean", "y_std"))
    x = standard(winds.select(PLACE).to_numpy(), x_mean, x_std)
    y = standard(winds.select("u_m_s", "v_m_s").to_numpy(), y_mean, y_std)
    company = x if net.context == "slice" else x[:0]
    means, scales = [], []
    for places in standard(here, x_mean, x_std).split(max(1, TOKENS // (len(x) + len(company) + 1))):
        answer = net(collate([single(x, y, torch.cat((place[None], company))) for place in places]))
        means.append(answer.mean[:, 0].double().numpy() * y_std + y_mean)
        scales.append(None if answer.scale is None else answer.scale[:, 0].double().numpy() * y_std)
    return finite(np.concatenate(means)), None if scales[0] is None else np.concatenate(scales)


def local(net: torch.nn.Module, nearby: Nearby, scaler: dict, t_s: float | np.ndarray, issue_s: float) -> Callable[[np.ndarray], Answer]:
    """`ask` for a model of local contexts: the wind at places (N, 3) and `t_s`, one time or (N,), as forecast at `issue_s`."""
    y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("y_mean", "y_std"))

    @torch.no_grad()
    def answer(here: np.ndarray) -> Answer:
        found = net(nearby.at(here, np.broadcast_to(t_s, len(here)), issue_s, net))
        mean, scale = (None if part is None else part.reshape(-1, part.shape[-1]).double().numpy() * y_std
                       for part in (found.mean, found.scale))
        return finite(mean + y_mean), scale
    return answer


def finite(mean: np.ndarray) -> np.ndarray:
    """The answer; DataError where it is none."""
    if not np.isfinite(mean).all():
        raise DataError("the model's answer is not a finite number", remedy="choose another trained cell with --model")
    return mean


def standard(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> torch.Tensor:
    """Values (N, k) standardised as prepared rows are: stored as float32 first."""
    return torch.from_numpy(((np.float32(values).astype(np.float64) - mean) / std).astype(np.float32))


def level(answer: Callable[[np.ndarray], Answer], targets: pl.DataFrame, meta: dict) -> pl.DataFrame:
    """The wind over the whole area at the targets' usual altitude, a row a place: PLACE, u_m_s, v_m_s, u_scale_m_s, v_scale_m_s.

    `answer` is a model with its context; `targets` are rows of one slice; the altitude is their median, to 1,000 ft.
    """
    axes = (np.linspace(*meta["area"][name], count) for name, count in zip(PLACE[:2], GRID, strict=True))
    lat, lon = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    alt = np.full(len(lat), np.round(targets["alt_ft"].median() / 1000) * 1000)
    mean, scale = answer(np.stack([lat, lon, alt], axis=1))
    found = {"lat_deg": lat, "lon_deg": lon, "alt_ft": alt, "u_m_s": mean[:, 0], "v_m_s": mean[:, 1]}
    for i, name in enumerate(("u_scale_m_s", "v_scale_m_s")):
        found[name] = np.full(len(lat), np.nan) if scale is None else scale[:, i]
    return pl.DataFrame(found).with_columns(pl.all().cast(pl.Float32)).fill_nan(None)
