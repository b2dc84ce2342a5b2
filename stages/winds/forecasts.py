"""What a model answers: its forecasts of whole slices, and its wind at any places, as a nowcast or
a level of the airspace to look at.

Slices are asked one by one, each with all its targets, as in training. Only where targets cannot
see each other (a "recent" context) are they asked together: a slice at one lead and a later one at
a longer lead are forecast from the same moment and the same winds, so what a model makes of these
winds is made once for all leads.
Shapes: N places, C context winds. Units: degrees, feet, m/s towards east and north.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import nn

from stages import seeds
from stages.batches import Batch, collate, single
from stages.errors import DataError, DivergedError
from stages.fields.models.particle import Particle
from stages.scores.hull import Hull
from stages.winds import breakdown
from stages.winds.contexts.cache import Asker
from stages.winds.contexts.dealt import dealt
from stages.winds.contexts.given import Contexts, Given
from stages.winds.contexts.nearby import Nearby
from stages.winds.pairs import Pairs

Answer = tuple[np.ndarray, np.ndarray | None]  # mean and standard deviation (N, 2), m/s
PLACE = ("lat_deg", "lon_deg", "alt_ft")
TOKENS = 20_000  # context and target points given to the model at once
GRID = (15, 18)  # places of a level, north-south and east-west
SHARED = 1 << 28  # bytes of neighbours that are kept for other models
Reached = dict[float, list[int]]  # lead_s -> slices


@dataclass(frozen=True)
class Forecast:
    """A model's answers for N targets in m/s, in slice order; None for what was not asked or is
    not known."""

    row: np.ndarray  # (N,) row numbers in rows.parquet
    mean: np.ndarray  # (N, 2)
    scale: np.ndarray | None  # (N, 2)
    outside: np.ndarray | None  # (N,) bool
    outside_measured: np.ndarray | None  # (N,) bool
    permuted: (
        np.ndarray | None
    )  # (N, 2), the mean from values that have changed places among the context's own points


class Shared(Nearby):
    """Local contexts that remember which neighbours the project's own metric chose: all models
    that use it are given the same."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.found: dict[bytes, np.ndarray] = {}
        self.held = 0  # bytes

    def neighbours(
        self, places: np.ndarray, t_s: np.ndarray, issue_s: float, model: Any
    ) -> np.ndarray:
        """As of `Nearby`; fewer neighbours are the first of more."""
        most = self.settings.places
        if (
            model.places > most
            or model.metric(torch.zeros(1, 4)) is not None
            or self.held + 4 * most * len(t_s) > SHARED
        ):
            return super().neighbours(places, t_s, issue_s, model)
        key = blake2b(
            b"".join(
                np.ascontiguousarray(part).tobytes() for part in (places, t_s, np.float64(issue_s))
            )
        ).digest()
        found = self.found.get(key)
        if found is None:
            found = super().neighbours(places, t_s, issue_s, Asker(most)).astype(np.int32)
            self.found[key], self.held = found, self.held + found.nbytes
        return found[:, : model.places].astype(np.int64)


def due(model: nn.Module, reached: Reached, lead_s: float) -> Reached:
    """The leads to ask for together with `lead_s`: all where they share contexts, else that one."""
    return {
        lead: slices
        for lead, slices in reached.items()
        if lead == lead_s or (slices and model.context == "recent")
    }


@torch.no_grad()
def forecasts(
    model: nn.Module,
    contexts: Contexts,
    reached: Reached,
    device: str = "cpu",
    main: float | None = None,
    permute: int = 0,
) -> dict[float, Forecast]:
    """The forecasts of slices from contexts of each lead: lead_s -> Forecast. DivergedError for an
    answer that is not finite.

    At the lead `main` also the hulls, and the forecast from permuted values, by a stream of each
    slice with the seed `permute`.
    """
    scaler = contexts.pairs.meta["scaler"]
    y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("y_mean", "y_std"))
    parts: dict[float, list[tuple[Any, ...]]] = {lead: [] for lead in reached}
    hulls = Hulls(contexts.pairs, y_mean, y_std)
    for given, asked in together(model, contexts, reached):
        for (lead, j, own), (mean, scale) in zip(
            asked, answers(model, given.batch.to(device), [own for *_, own in asked]), strict=True
        ):
            refuse_infinite(mean, j, lead)
            mean = mean * y_std + y_mean
            outside = outside_measured = permuted = None
            if lead == main:
                hull = hulls.of(given)
                measured = flat(of(given.batch, own).target_y) * y_std + y_mean
                outside, outside_measured = (
                    hull.outside(values, breakdown.HULL_TOLERANCE_M_S)
                    for values in (mean, measured)
                )
                anew = dealt(given, seeds.stream(permute, "permute", j))
                permuted = flat(model(of(anew.batch, own).to(device)).mean)
                refuse_infinite(permuted, j, lead)
                permuted = permuted * y_std + y_mean
            scale = None if scale is None else scale * y_std
            parts[lead].append(
                (given.target_rows[own], mean, scale, outside, outside_measured, permuted)
            )
    return {
        lead: Forecast(
            *(
                None if column[0] is None else np.concatenate(column)
                for column in zip(*some, strict=True)
            )
        )
        for lead, some in parts.items()
    }


class Hulls:
    """The hulls of contexts' values in m/s, of all targets of a slice together; the last one is
    kept, as many slices may share it."""

    def __init__(self, pairs: Pairs, y_mean: np.ndarray, y_std: np.ndarray):
        self.pairs, self.y_mean, self.y_std = pairs, y_mean, y_std
        self.last: tuple[tuple[Any, ...], Hull] | None = None

    def of(self, given: Given) -> Hull:
        """The hull of what was given; without any wind that of the mean."""
        known = given.context_rows[0]
        if len(given.context_rows) > 1:
            known = np.unique(given.context_rows[given.context_rows >= 0])
        extent = (*known[[0, -1]], len(known)) if len(known) else ()
        if self.last is None or extent != self.last[0]:
            values = self.pairs.winds(known).astype(np.float64) * self.y_std + self.y_mean
            self.last = extent, Hull(values if len(values) else self.y_mean[None])
        return self.last[1]


def together(
    model: nn.Module, contexts: Contexts, reached: Reached
) -> Iterator[tuple[Given, list[tuple[float, int, slice]]]]:
    """What to ask at once, and of its targets (lead_s, slice number, which): one slice, or all
    that are forecast at one moment."""
    if model.context != "recent":
        yield from (
            (contexts.given(j, model, lead), [(lead, j, slice(None))])
            for lead, slices in reached.items()
            for j in slices
        )
        return
    pairs, nearby, moments = contexts.pairs, contexts.nearby, {}
    for lead, slices in reached.items():
        for j in slices:
            moments.setdefault(pairs.issue_s(j, lead), []).append((lead, j))
    for issue_s, asked in sorted(moments.items()):
        rows = [np.arange(*pairs.rows_of(j)) for _, j in asked]
        ends = np.cumsum([len(part) for part in rows]).tolist()
        targets = np.concatenate(rows)
        places, t_s = pairs.places(targets), pairs.t_s[targets]
        known = nearby.rows(places, t_s, issue_s, model)
        yield (
            Given(nearby.batch(known, places, t_s, issue_s, pairs.winds(targets)), targets, known),
            [
                (*one, slice(start, end))
                for one, start, end in zip(asked, [0, *ends], ends, strict=False)
            ],
        )


def answers(
    model: nn.Module, batch: Batch, parts: list[slice]
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Standardised means and standard deviations (N, 2), float64, of some parts of a batch's
    targets."""
    if len(parts) > 1 and isinstance(model, Particle):
        return walked_once(model, batch, parts)  # type: ignore[return-value]  # None for both
    answer = model(batch)
    mean, scale = flat(answer.mean), None if answer.scale is None else flat(answer.scale)
    return [(mean[part], None if scale is None else scale[part]) for part in parts]


def walked_once(model: Particle, batch: Batch, parts: list[slice]) -> list[tuple[np.ndarray, None]]:
    """Each part asked by itself, of the same particles: a mean over all of them is attention,
    which rounds by what else is asked."""
    walk, found = model.particles, []

    def once(*context: torch.Tensor) -> tuple[Any, ...]:
        if not found:
            found.append(walk(*context))
        return found[0]

    model.particles = once  # type: ignore[assignment, method-assign]  # walked once
    try:
        return [(flat(model(of(batch, part)).mean), None) for part in parts]
    finally:
        del model.particles


def of(batch: Batch, part: slice) -> Batch:
    """The batch with some of its targets; all of them where it is of many sets."""
    if part == slice(None):
        return batch
    return replace(
        batch,
        **{name: getattr(batch, name)[:, part] for name in ("target_x", "target_mask", "target_y")},
    )


def flat(values: torch.Tensor) -> np.ndarray:
    """Values of all targets (N, O), float64, whether they came as one set or as one set each."""
    return values.reshape(-1, values.shape[-1]).double().cpu().numpy()


def refuse_infinite(mean: np.ndarray, j: int, lead_s: float) -> None:
    """DivergedError where a forecast of slice `j` is not finite."""
    if not np.isfinite(mean).all():
        raise DivergedError(
            "a forecast is not a finite number",
            where=f"slice {j}, lead {lead_s:g} s",
            found=f"{(~np.isfinite(mean)).sum()} values",
        )


@torch.no_grad()
def ask(
    net: torch.nn.Module, winds: pl.DataFrame, here: np.ndarray, *, scaler: dict[Any, Any]
) -> Answer:
    """Mean and, from a Gaussian head, standard deviation (N, 2) in m/s at places (N, 3), from
    context winds.

    In MSA targets attend to each other: what else is asked moves an answer. So each place is asked
    by itself in the company of the context's own places, which makes the answer a function of place
    and context alone, and the set as large as in training.
    """
    x_mean, x_std, y_mean, y_std = (
        np.asarray(scaler[name], np.float64) for name in ("x_mean", "x_std", "y_mean", "y_std")
    )
    x = standard(winds.select(PLACE).to_numpy(), x_mean, x_std)
    y = standard(winds.select("u_m_s", "v_m_s").to_numpy(), y_mean, y_std)
    company = x if net.context == "slice" else x[:0]
    means, scales = [], []
    for places in standard(here, x_mean, x_std).split(
        max(1, TOKENS // (len(x) + len(company) + 1))
    ):
        answer = net(collate([single(x, y, torch.cat((place[None], company))) for place in places]))
        means.append(answer.mean[:, 0].double().numpy() * y_std + y_mean)
        scales.append(None if answer.scale is None else answer.scale[:, 0].double().numpy() * y_std)
    return finite(np.concatenate(means)), None if scales[0] is None else np.concatenate(scales)


def local(
    net: torch.nn.Module,
    nearby: Nearby,
    scaler: dict[Any, Any],
    t_s: float | np.ndarray,
    issue_s: float,
) -> Callable[[np.ndarray], Answer]:
    """`ask` for a model of local contexts: the wind at places (N, 3) and `t_s`, one time or
    (N,), as forecast at `issue_s`."""
    y_mean, y_std = (np.asarray(scaler[name], np.float64) for name in ("y_mean", "y_std"))

    @torch.no_grad()
    def answer(here: np.ndarray) -> Answer:
        found = net(nearby.at(here, np.broadcast_to(t_s, len(here)), issue_s, net))
        mean, scale = (
            None if part is None else part.reshape(-1, part.shape[-1]).double().numpy() * y_std
            for part in (found.mean, found.scale)
        )
        return finite(mean + y_mean), scale

    return answer


def finite(mean: np.ndarray) -> np.ndarray:
    """The answer; DataError where it is none."""
    if not np.isfinite(mean).all():
        raise DataError(
            "the model's answer is not a finite number",
            remedy="choose another trained cell with --model",
        )
    return mean


def standard(values: np.ndarray, mean: np.ndarray, std: np.ndarray) -> torch.Tensor:
    """Values (N, k) standardised as prepared rows are: stored as float32 first."""
    return torch.from_numpy(
        ((np.float32(values).astype(np.float64) - mean) / std).astype(np.float32)
    )


def level(
    answer: Callable[[np.ndarray], Answer], targets: Any, meta: dict[Any, Any]
) -> pl.DataFrame:
    """The wind over the whole area at the targets' usual altitude, a row a place: PLACE, u_m_s,
    v_m_s, u_scale_m_s, v_scale_m_s.

    `answer` is a model with its context; `targets` are rows of one slice; the altitude is their
    median, to 1,000 ft.
    """
    axes = (
        np.linspace(*meta["area"][name], count) for name, count in zip(PLACE[:2], GRID, strict=True)
    )
    lat, lon = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    alt = np.full(len(lat), np.round(targets["alt_ft"].median() / 1000) * 1000)
    mean, scale = answer(np.stack([lat, lon, alt], axis=1))
    found = {
        "lat_deg": lat,
        "lon_deg": lon,
        "alt_ft": alt,
        "u_m_s": mean[:, 0],
        "v_m_s": mean[:, 1],
    }
    for i, name in enumerate(("u_scale_m_s", "v_scale_m_s")):
        found[name] = np.full(len(lat), np.nan) if scale is None else scale[:, i]
    return pl.DataFrame(found).with_columns(pl.all().cast(pl.Float32)).fill_nan(None)
