"""Challenger against champion on one evaluation set: the test slices that neither was trained or
selected on.

A slice counts when it begins at least one lead after all that both have seen. The set's hash is the
SHA-256 over its bytes in physical units: slices, times, places and winds of targets and of the
slice contexts; an answer that was not given for exactly these rows in this order, or is not finite,
decides nothing. Each model reads its inputs through its own scaler and answers in m/s, so that a
champion of last month is compared as it was. The difference of the RMSE per component, challenger -
champion in kn, has a 90 % interval, Student's over six runs of slices (stages/scores/runs.py) that
both answered. Shapes: N targets, S slices.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from stages import files, params
from stages.errors import DataError, DivergedError
from stages.scores import runs
from stages.units import KNOT_M_S
from stages.winds import forecasts as field
from stages.winds import slices
from stages.winds.contexts.given import Contexts
from stages.winds.nowcast.choice import LEAST
from stages.winds.pairs import Pairs


@dataclass(frozen=True)
class Prepared:
    """A prepared data set in memory: prepared.json, the times (N,) and columns (N,) of
    rows.parquet in physical units."""

    meta: dict[str, Any]
    t_s: np.ndarray
    columns: dict[str, np.ndarray]

    @classmethod
    def open(cls, folder: Path) -> "Prepared":
        """Read data/P/prepared/D. DataError if a file is missing or both do not belong together."""
        meta, rows = files.read_json(folder / "prepared.json"), folder / "rows.parquet"
        if not rows.exists():
            raise DataError(
                "a file is missing", where=str(rows), remedy="run `dvc repro` (or `dvc pull`)"
            )
        table = pl.read_parquet(rows, columns=["t_s", *meta["columns_x"], "u_m_s", "v_m_s"])
        if len(table) != meta["kept"]:
            raise DataError(
                "rows.parquet and prepared.json do not belong together",
                where=str(folder),
                expected=f"{meta['kept']} rows",
                found=str(len(table)),
                remedy="run `dvc repro`",
            )
        return cls(
            meta,
            table["t_s"].to_numpy(),
            {name: table[name].to_numpy() for name in table.columns if name != "t_s"},
        )

    def pairs(self, scaler: dict[str, Any]) -> Pairs:
        """Contexts and targets of these rows, standardised with that scaler."""
        return Pairs(self.meta | {"scaler": scaler, "truth": False}, self.t_s, self.columns)

    def rows(self, begin_s: float, end_s: float = np.inf) -> slice:
        """The rows measured at begin_s <= t < end_s."""
        return slice(*map(int, np.searchsorted(self.t_s, (begin_s, end_s))))

    def edges(self, number: int) -> tuple[float, float]:
        """Begin and end of a slice, Unix seconds."""
        begin = self.meta["t0_s"] + self.meta["slice_s"] * number
        return begin, begin + self.meta["slice_s"]

    def of(self, split: str) -> np.ndarray:
        """Row numbers of all targets of a split, ascending."""
        found = [
            np.arange(rows.start, rows.stop)
            for rows in (self.rows(*self.edges(j)) for j in self.meta["slices"][split])
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def until(self, split: str) -> float:
        """The end of the last target slice of a split, Unix seconds."""
        return self.edges(max(self.meta["slices"][split]))[1]

    def bytes_of(self, rows: slice) -> bytes:
        """Times, places and winds of rows as they are stored, column after column, little
        endian."""
        parts = [
            self.t_s[rows].astype("<f8"),
            *(self.columns[name][rows].astype("<f4") for name in sorted(self.columns)),
        ]
        return b"".join(part.tobytes() for part in parts)


@dataclass(frozen=True)
class Evaluation:
    """The slices on which two models are compared: their numbers, the targets' row numbers (N,)
    and slices (N,), and the set's hash."""

    numbers: tuple[int, ...]
    row: np.ndarray
    slice: np.ndarray
    hash: str


def evaluation(data: Prepared, seen_until_s: float, split: str = "test") -> Evaluation:
    """The slices of a split that begin at least one lead after `seen_until_s`, the end of all that
    either model was trained or selected on."""
    lead, w = data.meta["lead_s"], data.meta["slice_s"]
    numbers = [j for j in data.meta["slices"][split] if data.edges(j)[0] >= seen_until_s + lead]
    found = hashlib.sha256(
        (
            f"slice_s {w:.10g} lead_s {lead:.10g} columns t_s {' '.join(sorted(data.columns))}\n"
        ).encode()
    )
    row, of = [], []
    for j in numbers:
        targets = data.rows(*data.edges(j))
        context = data.rows(*slices.context_window(data.meta["t0_s"], j, w, lead, "slice"))
        found.update(
            (
                f"{round(data.edges(j)[0] / w)} {targets.stop - targets.start} "
                f"{context.stop - context.start}\n"
            ).encode()
        )
        found.update(data.bytes_of(targets) + data.bytes_of(context))
        row.append(np.arange(targets.start, targets.stop))
        of.append(np.full(targets.stop - targets.start, j))
    empty = [np.empty(0, np.int64)]
    return Evaluation(
        tuple(numbers), np.concatenate(row or empty), np.concatenate(of or empty), found.hexdigest()
    )


@dataclass(frozen=True)
class Answers:
    """A model's winds (N, 2) in m/s for the rows (N,) of an evaluation set, told by its hash; and
    what they would be had the winds of its contexts changed places."""

    hash: str
    row: np.ndarray
    mean: np.ndarray
    shuffled: np.ndarray | None = None


def ask(
    net: torch.nn.Module,
    meta: dict[str, Any],
    data: Prepared,
    chosen: Evaluation,
    nearby: params.Contexts,
    device: str = "cpu",
) -> Answers:
    """The winds of a model for the set, its inputs standardised with the scaler of its own
    checkpoint `meta`. DivergedError for NaN."""
    contexts = Contexts(data.pairs(meta["prepared"]["scaler"]), nearby)
    lead = data.meta["lead_s"]
    reached = {lead: list(chosen.numbers)}
    given = field.forecasts(net.to(device).eval(), contexts, reached, device, lead)[lead]
    return Answers(chosen.hash, given.row, given.mean, given.permuted)


def unlike(sides: dict[str, dict[str, Any]], data: Prepared) -> list[str]:
    """Sentences on every lead or slice length, in s, that a checkpoint was trained for and the
    prepared data do not have."""
    return [
        f"The {name} was trained for {key} {meta['prepared'].get(key)}, the evaluation set has "
        f"{data.meta[key]:g}: they cannot be compared."
        for name, meta in sides.items()
        for key in ("lead_s", "slice_s")
        if meta["prepared"].get(key) != data.meta[key]
    ]


def problems(name: str, given: Answers, chosen: Evaluation) -> list[str]:
    """Sentences on why answers cannot be compared on this set: another set, fewer or other rows,
    numbers that are not finite."""
    found = []
    if given.hash != chosen.hash:
        found.append(
            f"The {name} was evaluated on another set ({given.hash[:12]} instead of "
            f"{chosen.hash[:12]})."
        )
    if len(given.row) != len(chosen.row) or len(given.mean) != len(chosen.row):
        found.append(
            f"The {name} answered {min(len(given.row), len(given.mean))} of {len(chosen.row)} "
            "targets."
        )
    elif not np.array_equal(given.row, chosen.row):
        found.append(f"The {name} answered the targets in another order, or other targets.")
    if not np.isfinite(given.mean).all():
        found.append(
            f"The {name} gave {int((~np.isfinite(given.mean)).sum())} numbers that are not finite."
        )
    return found


def squared(mean: np.ndarray, measured: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Squared error over both components in m²/s², summed within each slice: (S,)."""
    return np.bincount(np.unique(of, return_inverse=True)[1], ((mean - measured) ** 2).sum(1))


def indifferent(given: Answers, data: Prepared, chosen: Evaluation) -> list[str]:
    """A sentence on a challenger whose error hardly grows when the winds of its contexts change
    places: it does not use where they were measured, whatever it errs."""
    measured = measured_of(data, chosen)
    error, shuffled = (
        float(np.sqrt(((winds - measured) ** 2).mean())) / KNOT_M_S
        for winds in (given.mean, given.shuffled)
    )
    if shuffled >= LEAST * error:
        return []
    told = (
        f"The challenger does not use where winds were measured: it errs {error:.2f} kn, and "
        f"{shuffled:.2f} kn when its context's winds change places."
    )
    return [told]


def measured_of(data: Prepared, chosen: Evaluation) -> np.ndarray:
    """The winds (N, 2), m/s, of the set's targets."""
    return np.stack(
        [data.columns[name][chosen.row].astype(np.float64) for name in ("u_m_s", "v_m_s")], 1
    )


def decide(
    challenger: Answers, against: Answers, data: Prepared, chosen: Evaluation, margin_kn: float
) -> dict[str, Any]:
    """Both RMSEs per component [kn], the difference challenger - against with its 90 % interval,
    and whether it lies below -margin_kn.

    The answers must have passed `problems`; at least six slices.
    """
    measured = measured_of(data, chosen)
    count = np.unique(chosen.slice, return_counts=True)[1].astype(np.float64)
    sums = np.stack(
        [count, *(squared(side.mean, measured, chosen.slice) for side in (challenger, against))], 1
    )

    def errors(table):
        return np.sqrt(table[..., 1:] / (2 * table[..., :1])) / KNOT_M_S

    ours, theirs = errors(sums.sum(0))
    without = errors(runs.without_each(sums))
    low, high = runs.interval(ours - theirs, without[:, 0] - without[:, 1])

    def digits(value):
        return round(float(value), 6)

    return {
        "rmse_component_kn": {"challenger": digits(ours), "against": digits(theirs)},
        "difference_kn": {
            "value": digits(ours - theirs),
            "low": digits(low),
            "high": digits(high),
            "level": runs.LEVEL,
            "runs": runs.RUNS,
        },
        "better": bool(high < -margin_kn),
    }


def errors_m_s(given: Answers, data: Prepared) -> dict[str, dict[str, Any]]:
    """RMSE of u and of v, m/s: what a model without a spread of its own is told to err by."""
    columns = zip(("east", "north"), ("u_m_s", "v_m_s"), given.mean.T, strict=True)
    return {
        f"rmse_{axis}_m_s": {
            "value": round(
                float(
                    np.sqrt(((mean - data.columns[name][given.row].astype(np.float64)) ** 2).mean())
                ),
                6,
            ),
            "unit": "m/s",
        }
        for axis, name, mean in columns
    }


def asked(
    name: str,
    net: torch.nn.Module,
    meta: dict[str, Any],
    data: Prepared,
    chosen: Evaluation,
    nearby: params.Contexts,
    device: str,
) -> tuple[Answers | None, list[str]]:
    """`ask`, and the sentences of `problems` on what came; no answers where they are not finite."""
    try:
        given = ask(net, meta, data, chosen, nearby, device)
    except DivergedError as error:
        return None, [f"The {name} gave {error.found} that are not finite numbers ({error.where})."]
    return given, problems(name, given, chosen)
