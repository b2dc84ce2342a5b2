"""Local contexts: for each target the past winds nearest to it in space and time, or all of the
last hours (thesis section 1.3.3).

Coordinates are those of stages/layers/local.py: east, north, up and time since the issue time, on
the plane that touches the sphere at the training area's centre. What a forecast issued at time s
may see are the rows with t < s, counted in Unix seconds and not in the index's float32: no rounding
lets the future in. An aircraft tells its wind every few seconds, so that its last minutes alone
would fill a context: of each small cell of space and time the first row is a neighbour, no other.
Shapes: N rows, K of them kept, T targets, C context points of each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from stages.batches import Batch
from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM, weights
from stages.params import Contexts as Settings
from stages.units import EARTH_KM, FOOT_KM

if TYPE_CHECKING:
    from stages.neighbours.contract import Index

KINDS = ("neighbours", "recent")


@dataclass(frozen=True)
class MeasuredWinds:
    """Winds in order of time: `t_s` (N,) Unix seconds; `places` and `winds` give rows' (... 3)
    degrees and feet, (... 2) standardised."""

    t_s: np.ndarray
    places: Callable[[np.ndarray | slice], np.ndarray]
    winds: Callable[[np.ndarray | slice], np.ndarray]
    centre: tuple[float, float, float]  # degrees north, degrees east, feet


class Nearby:
    """The local contexts of one set of measured winds; the index is built when the first
    neighbours are asked for."""

    def __init__(self, measured: MeasuredWinds, settings: Settings):
        self.measured, self.settings = measured, settings

    @cached_property
    def points(self) -> np.ndarray:
        """All rows in local coordinates (N, 4), time counted from the first."""
        t_s = self.measured.t_s
        return self.local(self.measured.places(slice(None)), t_s, t_s[0] if len(t_s) else 0.0)

    @cached_property
    def kept(self) -> np.ndarray:
        """Rows (K,) that may be neighbours, ascending: the first of each cell, whatever follows."""
        thin = self.settings.thin
        if thin is None or not len(self.points):
            return np.arange(len(self.points))
        lengths = weights(thin.horizontal_km, thin.vertical_km, thin.time_min).sqrt().numpy()
        cells = np.floor(self.points * lengths).astype(np.int64)
        cells -= cells.min(axis=0)
        number = np.zeros(len(cells), np.int64)
        for column in cells.T:
            number = number * (column.max() + 1) + column
        return np.sort(np.unique(number, return_index=True)[1])

    @cached_property
    def index(self) -> "Index":
        """The neighbour search that params.yaml names, over the rows that are kept."""
        from stages.neighbours import methods  # compiled code and SciPy: only for those who search

        return methods.build(self.settings.method, torch.from_numpy(self.points[self.kept]))

    def local(self, places: np.ndarray, t_s: np.ndarray, origin_s: float) -> np.ndarray:
        """Places (... 3) and times (...) in local coordinates (... 4), float32, time counted
        from `origin_s`."""
        lat, lon, alt_ft = self.measured.centre
        degree = math.radians(1.0) * EARTH_KM / HORIZONTAL_KM
        found = np.empty((*t_s.shape, 4), np.float32)
        found[..., 0] = (places[..., 1] - lon) * degree * math.cos(math.radians(lat))
        found[..., 1] = (places[..., 0] - lat) * degree
        found[..., 2] = (places[..., 2] - alt_ft) * FOOT_KM / VERTICAL_KM
        found[..., 3] = (t_s - origin_s) / (60.0 * TIME_MIN)
        return found

    @torch.no_grad()
    def neighbours(
        self, places: np.ndarray, t_s: np.ndarray, issue_s: float, model: Any
    ) -> np.ndarray:
        """Rows (T, C) nearest to targets (T, 3) at `t_s` (T,) of those measured before
        `issue_s`; -1 where there are fewer."""
        known = int(np.searchsorted(self.measured.t_s[self.kept], issue_s))
        if not known or not len(t_s):
            return np.full((len(t_s), model.places), -1, np.int64)
        asked = torch.from_numpy(self.local(places, t_s, self.measured.t_s[0]))
        scale = model.metric(torch.from_numpy(self.local(places, t_s, issue_s)))
        allowed = torch.full((len(asked),), known)
        found = self.index.query(
            asked,
            model.places,
            scale=self.metric if scale is None else scale.float(),
            allowed=allowed,
        ).index.numpy()
        return np.where(found < 0, -1, self.kept[found])

    @property
    def metric(self) -> Tensor:
        """The project's own metric (4,), under which cached contexts are chosen."""
        return weights(
            self.settings.horizontal_km, self.settings.vertical_km, self.settings.time_min
        )

    def recent(self, issue_s: float, window_s: float) -> np.ndarray:
        """Rows (1, C) of the last `window_s` seconds before `issue_s`."""
        low, high = np.searchsorted(self.measured.t_s, (issue_s - window_s, issue_s))
        return np.arange(low, high)[None]

    def rows(self, places: np.ndarray, t_s: np.ndarray, issue_s: float, model: Any) -> np.ndarray:
        """The rows a model reads: (T, C) neighbours of each target, or (1, C) of the last time."""
        return (
            self.recent(issue_s, model.window_s)
            if model.context == "recent"
            else self.neighbours(places, t_s, issue_s, model)
        )

    def at(self, places: np.ndarray, t_s: np.ndarray, issue_s: float, model: nn.Module) -> Batch:
        """Any places (T, 3; degrees, feet) and times (T,) as asked of a model at `issue_s`."""
        return self.batch(self.rows(places, t_s, issue_s, model), places, t_s, issue_s)

    def batch(
        self,
        rows: np.ndarray,
        places: np.ndarray,
        t_s: np.ndarray,
        issue_s: float,
        winds: np.ndarray | None = None,
    ) -> Batch:
        """Context `rows` (B, C) and targets as a batch: B = T sets of one target each, or one set
        (rows (1, C)) of all targets.

        `winds` (T, 2), standardised, become target_y where given.
        """
        sets, mask = len(rows), rows >= 0
        real = np.where(mask, rows, 0)

        def blank(x):
            return torch.from_numpy(np.where(mask[..., None], x, np.float32(0)))

        if len(self.measured.t_s):
            context_x = blank(
                self.local(self.measured.places(real), self.measured.t_s[real], issue_s)
            )
            context_y = blank(self.measured.winds(real))
        else:
            context_x, context_y = torch.zeros(*rows.shape, 4), torch.zeros(*rows.shape, 2)

        def shape(x):
            return torch.from_numpy(x).reshape(sets, -1, x.shape[-1])

        target_x = shape(self.local(places, t_s, issue_s)) if len(t_s) else torch.zeros(sets, 0, 4)
        target_y = None if winds is None else shape(winds) if len(t_s) else torch.zeros(sets, 0, 2)
        return Batch(
            context_x,
            context_y,
            torch.from_numpy(mask),
            target_x,
            torch.ones(target_x.shape[:2], dtype=torch.bool),
            target_y,
        )
