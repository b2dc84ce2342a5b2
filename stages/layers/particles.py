"""The particles of the Meteo-Particle model (Sun et al. 2017): which reports make them, where they
walk, what wind they carry.

In every step each aircraft's latest report is accepted with probability exp(-0.5 m^2), m its
Mahalanobis distance from the winds of the particles around it (sd times `accept`); always where
fewer than one is expected there. It makes `particles` of them, spread by half a walk.
Then all walk: N(0, walk^2) plus 10 s of wind; and survive, inside the area, with probability
exp(-0.5 age^2 / ageing^2), this step counted. The constants are those of the authors' code; two
shorter roads lead to the same law. Death by age asks for no position: lifetimes come first, and
only who lives to the end is walked. A cloud is a Gaussian around its drifting report: the
acceptance reads the expected number of its particles and the expected variance of their winds (a
cloud beyond the area's edge is not cut there).
Shapes: N reports, R reports of one step, J accepted before, P particles, T targets, O values.
Units: km, m/s, s.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from stages.layers.distances import chunks
from stages.layers.kernels import LANES

AREA_KM, CEILING_KM = (
    300.0,
    12.0,
)  # east and north within +- AREA_KM and one neighbourhood, 0 to CEILING_KM up
NEAR_KM, NEAR_UP_KM = 20.0, 0.5  # half-widths of a target's neighbourhood
LEAST = 10  # a wind is given where more particles than this are near
ACCEPT_KM, ACCEPT_UP_KM = 100.0, 0.5  # half-widths of what a new report is compared with
DRIFT_S = 10.0  # a step carries a particle as far as the wind blows in this time
LEVELS = 16  # targets looked at together, of similar heights
FASTEST_KM_S, STEEPEST_KM_S = (
    0.35,
    0.03,
)  # no airliner is faster: two reports further apart are of two aircraft


class Law(NamedTuple):
    """The model's constants; what they are called in models.particle of params.yaml."""

    particles: int
    ageing_s: float
    walk_km: float
    walk_up_km: float
    weight_km: float
    accept: float
    wind_spread_m_s: float
    step_s: float

    def survival(self, steps: int) -> float:
        """Probability of living through the first `steps` steps: the product over ages step_s, 2
        step_s, ..."""
        return math.exp(
            -0.5 * (self.step_s / self.ageing_s) ** 2 * steps * (steps + 1) * (2 * steps + 1) / 6
        )

    def steps(self) -> int:
        """Steps after which less than one particle is left of a million reports: no older report
        need be read."""
        steps = 1
        while self.particles * self.survival(steps) > 1e-6:
            steps += 1
        return steps

    def survivals(self, steps: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """`survival` of each number of steps, float32."""
        table = torch.tensor(
            [self.survival(step) for step in range(int(steps.max()) + 1 if len(steps) else 0)],
            device=steps.device,
        )
        return table[steps]

    def walk(self, like: Tensor) -> Float[Tensor, "3"]:
        """Standard deviation of one step along each axis, km."""
        return like.new_tensor((self.walk_km, self.walk_km, self.walk_up_km))


class Reports(NamedTuple):
    """Oldest first; `step` counts back from the issue time: 0 is the last step before it."""

    place_km: Float[Tensor, "N 3"]
    wind_m_s: Float[Tensor, "N 2"]
    time_s: Float[Tensor, " N"]
    step: Int[Tensor, " N"]

    def of(self, rows: Tensor) -> "Reports":
        """Some of them, by index or mask, in their order."""
        return Reports(*(values[rows] for values in self))

    def drift_km(self) -> Float[Tensor, "N 3"]:
        """How far one step carries a particle that has the report's wind."""
        return functional.pad(self.wind_m_s * (DRIFT_S / 1000), (0, 1))


class Particles(NamedTuple):
    """Where the living are at the issue time and which report each comes from (ascending)."""

    place_km: Float[Tensor, "P 3"]
    report: Int[Tensor, " P"]


def latest(reports: Reports) -> Bool[Tensor, " N"]:
    """False for a report that a later one of the same step supersedes: one that the same aircraft
    can have sent.

    Identities are not known here, but aircraft keep further apart than one flies in a step.
    """
    kept = torch.ones_like(reports.step, dtype=torch.bool)
    for rows in _by_step(reports.step):
        gap = reports.place_km[rows][None] - reports.place_km[rows][:, None]
        later = reports.time_s[rows][None] - reports.time_s[rows][:, None]
        same = (
            (later > 0)
            & (gap[..., :2].norm(dim=2) <= FASTEST_KM_S * later)
            & (gap[..., 2].abs() <= STEEPEST_KM_S * later)
        )
        kept[rows] = ~same.any(1)
    return kept


def _by_step(step: Tensor) -> list[slice]:
    """The runs of equal steps of an ordered list."""
    ends = torch.unique_consecutive(step, return_counts=True)[1].cumsum(0).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def expected(
    places: Float[Tensor, "R 3"], clouds: Reports, age: Int[Tensor, " J"], law: Law
) -> Float[Tensor, "R J"]:
    """Expected number of each report's particles within ACCEPT_KM, ACCEPT_UP_KM of each place,
    `age` steps after the report."""
    centre = clouds.place_km + age[:, None] * clouds.drift_km()
    sd = (age[:, None] + 0.25).sqrt() * law.walk(places)
    half = places.new_tensor((ACCEPT_KM, ACCEPT_KM, ACCEPT_UP_KM))
    gap = places[:, None] - centre
    share = (torch.special.ndtr((gap + half) / sd) - torch.special.ndtr((gap - half) / sd)).prod(2)
    return law.particles * law.survivals(age) * share


def acceptance(
    number: Float[Tensor, "R J"],
    winds: Float[Tensor, "J 2"],
    reported: Float[Tensor, "R 2"],
    law: Law,
) -> Float[Tensor, " R"]:
    """Probability that a report is believed, given the numbers of particles around it and the
    winds (m/s) that they carry."""
    number, winds, reported = number.double(), winds.double(), reported.double()
    total = number.sum(1)
    share = number / total.clamp_min(1)[:, None]
    mean = share @ winds
    # the variance of all particles' winds: between reports and, as each particle's wind is spread,
    # within one
    variance = (share[:, :, None] * (winds[None] - mean[:, None]).square()).sum(1)
    variance += (law.wind_spread_m_s**2 * (1 - 1 / total.clamp_min(1)))[:, None]
    square = ((reported - mean).square() / (law.accept**2 * variance)).sum(1)
    defined = (total >= 1) & (variance > 0).all(1)
    return torch.where(defined, torch.exp(-0.5 * square), 1.0)


def accepted(reports: Reports, law: Law, generator: torch.Generator) -> Bool[Tensor, " N"]:
    """Which reports make particles: step by step, as each is judged by what the earlier ones
    made."""
    chance = torch.rand(len(reports.step), generator=generator, device=reports.step.device)
    kept = torch.zeros_like(reports.step, dtype=torch.bool)
    for rows in _by_step(reports.step):
        before = kept[: rows.start].nonzero()[:, 0]
        clouds = reports.of(before)
        age = clouds.step - reports.step[rows.start]
        for part in chunks(rows.stop - rows.start, 12 * len(before)):
            part = slice(rows.start + part.start, min(rows.start + part.stop, rows.stop))
            number = expected(reports.place_km[part], clouds, age, law)
            kept[part] = chance[part] < acceptance(
                number, clouds.wind_m_s, reports.wind_m_s[part], law
            )
    return kept


def released(reports: Reports, law: Law, generator: torch.Generator) -> Particles:
    """The particles that live at the issue time, of reports that were all accepted; those of the
    oldest reports first."""
    draw: Any
    age, draw = reports.step + 1, {"generator": generator, "device": reports.step.device}
    report = (torch.rand(len(age), law.particles, **draw) < law.survivals(age)[:, None]).nonzero()[
        :, 0
    ]
    walk, drift = law.walk(reports.place_km)[:, None], reports.drift_km().T[:, report]
    place = reports.place_km.T[:, report] + 0.5 * walk * torch.randn(3, len(report), **draw)
    inside = torch.ones_like(report, dtype=torch.bool)
    # how many are at least so old, from the greatest age down to 1: the oldest stand first, and
    # they alone take the first step
    for count in torch.bincount(age[report]).flip(0).cumsum(0).tolist()[:-1]:
        walking = place[:, :count]
        walking += drift[:, :count] + walk * torch.randn(3, count, **draw)
        inside[:count] &= (
            (walking[:2].abs() < AREA_KM + NEAR_KM).all(0)
            & (walking[2] > 0)
            & (walking[2] < CEILING_KM)
        )
    return Particles(place.T[inside], report[inside])


def near(
    particles: Float[Tensor, "P 3"], targets: Float[Tensor, "T 3"]
) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
    """Targets and particles, each less than NEAR_KM, NEAR_UP_KM from the other along every axis,
    as K pairs of indices."""
    box = particles.new_tensor((NEAR_KM, NEAR_KM, NEAR_UP_KM))
    points, order = particles / box, torch.argsort(particles[:, 2])
    places, rising = targets / box, torch.argsort(targets[:, 2])
    points, pairs = points[order].contiguous(), []
    for part in rising.split(LEVELS):
        # only the particles of the targets' levels are looked at
        low, high = torch.searchsorted(
            points[:, 2].contiguous(), places[part[[0, -1]], 2] + places.new_tensor((-1, 1))
        ).tolist()
        target, particle = (
            (torch.cdist(places[part], points[low:high], p=torch.inf) < 1).nonzero().unbind(1)
        )
        pairs.append((part[target], order[low + particle]))
    # pairs are of two
    return tuple(torch.cat(side) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


def local_mean(
    particles: Particles,
    reports: Reports,
    values: Float[Tensor, "N O"],
    targets: Float[Tensor, "T 3"],
    law: Law,
) -> tuple[Float[Tensor, "T O"], Bool[Tensor, " T"]]:
    """Weighted mean of the values that the particles near each target (km) carry, and whether there
    are more than LEAST of them.

    Weight exp(-0.5 (d^2 + d0^2) / weight_km^2), d from the target, d0 from the particle's report,
    both in km along every axis.
    """
    target, particle = near(particles.place_km, targets)
    report = particles.report[particle]
    place = particles.place_km[particle]
    square = (place - targets[target]).square().sum(1) + (
        place - reports.place_km[report]
    ).square().sum(1)
    weight = torch.exp(-0.5 / law.weight_km**2 * square)
    total = weight.new_zeros(len(targets)).index_add(0, target, weight)
    mean = values.new_zeros(len(targets), values.shape[1]).index_add(
        0, target, weight[:, None] * values[report]
    )
    reached = (torch.bincount(target, minlength=len(targets)) > LEAST) & (total > 0)
    return mean / total.clamp_min(torch.finfo(total.dtype).tiny)[:, None], reached


def wide_mean(
    particles: Particles,
    reports: Reports,
    values: Float[Tensor, "N O"],
    targets: Float[Tensor, "T 3"],
    law: Law,
) -> Float[Tensor, "T O"]:
    """The same weights over all the living, wherever they are: attention with the logarithm of
    the weight, so far ones count too."""
    middle = particles.place_km.mean(0)
    place, asked = ((points - middle) / law.weight_km for points in (particles.place_km, targets))
    walked = (particles.place_km - reports.place_km[particles.report]).square().sum(
        1, keepdim=True
    ) / law.weight_km**2
    query = torch.cat((asked, torch.ones_like(asked[:, :1])), 1)
    key = torch.cat((place, -0.5 * (place.square().sum(1, keepdim=True) + walked)), 1)
    filled: Any = (
        functional.pad(part, (0, LANES - part.shape[1]))[None, None]
        for part in (query, key, values[particles.report])
    )
    # mypy takes a star for all that is left
    mean = functional.scaled_dot_product_attention(*filled, scale=1.0)  # type: ignore[misc]
    return mean[0, 0, :, : values.shape[1]]
