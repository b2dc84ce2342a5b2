"""Kalman filter on a coarse grid: the classical nowcast that no document compares with (space-time
field, linear and Gaussian).

wind(x, t) = m + g(x, t) + e: an unknown constant m ~ N(0, mean_sd^2); a smooth field g with
squared-exponential lengths and variance sd^2, known at the nodes of a grid, that forgets as
exp(-time / time_min); a measurement's error e ~ N(0, noise^2). This is Gaussian-process regression
with kernel mean_sd^2 + exp(-|dt| / time) f(a)'f(b) (layers/kalman_filter.py has f), at a cost
linear in the reports. Reports are gathered into steps of `step_s`, each taken as made in its
middle, and there into cells, a quarter of a length wide: a cell's reports count as one, at their
mean place with their mean wind. Its variance is noise^2 / count + sd^2 - f'f: what the nodes cannot
resolve is an error too, one that a cell's reports share. The forecast is for a measurement: m +
decay g, its variance with noise^2. Height 0 is the mean altitude; the outer nodes lie on the area's
edges. Shapes: B C T as in batches.py; D cells.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from stages.batches import Batch
from stages.contracts import FieldModel
from stages.errors import InputError
from stages.layers.heads import Gaussian
from stages.layers.kalman_filter import State, features, relax, update
from stages.layers.local import HORIZONTAL_KM, TIME_MIN, VERTICAL_KM

CELLS = 4  # a length holds so many cells: the field hardly bends within one
FARTHEST = 1 << 14  # cells from the middle; what lies beyond is counted to the last


class Kalman(FieldModel):
    """Lengths, time and noise are to be tuned; sd, mean_sd and noise are in units of the
    standardised wind."""

    context, learns = "recent", "nothing"
    window_s = 10800.0

    def __init__(
        self,
        x_dim: int,
        i_dim: int,
        o_dim: int,
        horizontal_km: float = 150.0,
        vertical_km: float = 5.0,
        time_min: float = 600.0,
        noise: float = 0.2,
        sd: float = 1.0,
        mean_sd: float = 1.0,
        nodes_east: int = 6,
        nodes_north: int = 6,
        nodes_up: int = 3,
        half_extent_km: float = 300.0,
        down_km: float = 5.0,
        up_km: float = 2.0,
        step_s: float = 600.0,
    ):
        super().__init__()
        self.lengths = (
            horizontal_km / HORIZONTAL_KM,
            horizontal_km / HORIZONTAL_KM,
            vertical_km / VERTICAL_KM,
        )
        self.time, self.step = time_min / TIME_MIN, step_s / (60 * TIME_MIN)
        self.noise, self.sd, self.mean_sd = noise, sd, mean_sd
        half = half_extent_km / HORIZONTAL_KM
        self.axes = (
            (-half, half, nodes_east),
            (-half, half, nodes_north),
            (-down_km / VERTICAL_KM, up_km / VERTICAL_KM, nodes_up),
        )
        numbers = (
            *self.lengths,
            self.time,
            self.step,
            noise,
            sd,
            mean_sd,
            half,
            *(count for _, _, count in self.axes),
        )
        if (
            not all(0 < number < float("inf") for number in numbers)
            or min(numbers[-3:]) < 2
            or x_dim != 4
            or i_dim != o_dim
        ):
            raise InputError(
                "no Kalman filter can be made of this",
                where="models.kalman",
                found=f"x_dim {x_dim}, i_dim {i_dim}, o_dim {o_dim}, {numbers}",
                expected="4 axes (east, north, up, t), as many values out as in, numbers above 0, "
                "2 nodes or more an axis",
            )

    @torch.no_grad()
    def forward(self, batch: Batch) -> Gaussian:
        """Mean and standard deviation of a measurement at every target, B T O; the prior's for
        an empty context."""
        with torch.autocast(batch.context_x.device.type, enabled=False):
            found = [
                self._forecast(
                    batch.context_x[row, real].double(),
                    batch.context_y[row, real].double(),
                    batch.target_x[row].double(),
                )
                for row, real in enumerate(batch.context_mask)
            ]
        mean, variance = (torch.stack(parts) for parts in zip(*found, strict=True))
        dtype = batch.context_y.dtype
        return Gaussian(mean.to(dtype), variance.sqrt()[:, :, None].expand_as(mean).to(dtype))

    def _forecast(
        self, x: Tensor, y: Tensor, targets: Tensor
    ) -> tuple[Float[Tensor, "T O"], Float[Tensor, " T"]]:
        nodes = self._nodes(x)
        state, time = self._filtered(x, y, nodes)
        seen = features(targets[:, :3] / x.new_tensor(self.lengths), nodes, self.sd)
        decay = torch.exp(-(targets[:, 3] - time).abs() / self.time)[:, None]
        design = torch.cat((decay * seen, torch.ones_like(decay)), 1)
        variance = (
            ((design @ state.covariance) * design).sum(1)
            + self.sd**2
            - (decay * seen).square().sum(1)
            + self.noise**2
        )
        return design @ state.mean, variance

    def _filtered(self, x: Tensor, y: Tensor, nodes: Tensor) -> tuple[State, float]:
        """What is known after the last step that has reports, and when that was (local time)."""
        prior = torch.ones(len(nodes) + 1, dtype=x.dtype, device=x.device)
        prior[-1] = self.mean_sd**2
        forgets = torch.ones_like(prior)
        forgets[-1] = 0  # the constant does not
        step, place, value, count = self._cells(x, y)
        seen = features(place / x.new_tensor(self.lengths), nodes, self.sd)
        design = torch.cat((seen, torch.ones_like(seen[:, :1])), 1)
        variance = (self.sd**2 - seen.square().sum(1)).clamp_min(0) + self.noise**2 / count
        steps, sizes = torch.unique_consecutive(step, return_counts=True)
        times, sizes = ((steps + 0.5) * self.step).tolist(), sizes.tolist()
        state = State(y.new_zeros(len(prior), y.shape[1]), torch.diag(prior))
        now = times[0] if times else 0.0
        for then, *reports in zip(
            times, *(values.split(sizes) for values in (design, value, variance)), strict=True
        ):
            state = update(
                relax(state, torch.exp(-(then - now) / self.time * forgets), prior), *reports
            )
            now = then
        return state, now

    def _cells(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Step (D,) ascending in time, mean place (D, 3) in local units, mean value (D, O),
        number of reports (D,) of the cells in use."""
        cell = (x[:, :3] * CELLS / x.new_tensor(self.lengths)).floor().clamp(
            -FARTHEST, FARTHEST - 1
        ).long() + FARTHEST
        key = (x[:, 3] / self.step).floor().long()
        for axis in range(3):
            key = key * (2 * FARTHEST) + cell[:, axis]
        key, which = torch.unique(key, return_inverse=True)
        sums = x.new_zeros(len(key), 4 + y.shape[1]).index_add(
            0, which, torch.cat((torch.ones_like(x[:, :1]), x[:, :3], y), 1)
        )
        count, place, value = sums.split((1, 3, y.shape[1]), 1)
        return (
            key.div((2 * FARTHEST) ** 3, rounding_mode="floor"),
            place / count,
            value / count,
            count[:, 0],
        )

    def _nodes(self, like: Tensor) -> Float[Tensor, "N 3"]:
        """The nodes in units of the lengths."""
        axes = [torch.linspace(*axis, dtype=like.dtype, device=like.device) for axis in self.axes]
        return torch.cartesian_prod(*axes) / like.new_tensor(self.lengths)
