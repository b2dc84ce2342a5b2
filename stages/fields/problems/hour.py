"""One hour of winds as sets: winds of a minute, those of another minute a quarter of an hour later
asked for (thesis 3.3.1, C.1).

Raw: wind.csv, a wind a row: ts (Unix s), icao, lat, lon (degrees), alt (feet), vwx, vwy (m/s,
towards east and north). The nowcasting task on sets of fixed size, so that figure C.7g and h can
train it as the other problems are: minutes, lead and splits are those by which the profile sample
prepares hour_winds, and no minute serves two splits. A pair of minutes makes several sets, each of
C and T rows drawn anew without replacement; sets of a pair belong together. Rows with a gap, out of
range, too fast or met before are left out and counted. Positions are standardised by the training
contexts and targets; values are in kn. A record is the target minute's number in the hour.
Shapes: S sets, C context points, T targets.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.errors import DataError, InputError
from stages.fields.problem import Counts, Sets
from stages.seeds import stream
from stages.splits import SPLITS
from stages.units import KNOT_M_S

FILE = "wind.csv"
X, Y = ("lat", "lon", "alt"), ("vwx", "vwy")
RANGES = {"lat": (-90.0, 90.0), "lon": (-180.0, 180.0), "alt": (-2000.0, 60000.0)}
FASTEST_M_S = 128.61  # 250 kn, the thesis' own limit
SLICE_S, LEAD = 60, 15  # a slice; its context ends so many slices before it
MINUTES = {
    "train": (16, 24),
    "val": (26, 29),
    "test": (47, 60),
}  # target slices, from the first whole one
DRAWS = 32  # sets of a pair of minutes


def rows(path: Path) -> tuple[pl.DataFrame, dict[str, int]]:
    """Usable rows in order of time with their `minute` from the first whole one, and how many
    were left out by reason. DataError for another table."""
    named = ("ts", "icao", *X, *Y)
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (FileNotFoundError, pl.exceptions.PolarsError) as error:
        raise DataError(
            "the winds cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="acquire the data set again",
        ) from None
    if missing := [name for name in named if name not in table.columns]:
        raise DataError(
            "a column of the winds is missing",
            where=str(path),
            expected=", ".join(named),
            found=f"no {', '.join(missing)}",
            remedy="acquire the data set again",
        )
    table = table.with_columns(
        pl.col(name).cast(pl.Float64, strict=False) for name in named if name != "icao"
    )
    gap = pl.col("icao").is_null() | pl.any_horizontal(
        ~pl.col(name).is_finite().fill_null(False) for name in named if name != "icao"
    )
    outside = pl.any_horizontal(~pl.col(name).is_between(*ends) for name, ends in RANGES.items())
    reason = (
        pl.when(gap)
        .then(pl.lit("null"))
        .when(outside)
        .then(pl.lit("outside_range"))
        .when(pl.col("vwx") ** 2 + pl.col("vwy") ** 2 > FASTEST_M_S**2)
        .then(pl.lit("over_wind_max"))
        .when(~pl.struct(named).is_first_distinct())
        .then(pl.lit("duplicate"))
    )
    told = table.with_columns(reason.alias("reason"))
    dropped = dict(
        sorted(told.filter(pl.col("reason").is_not_null())["reason"].value_counts().iter_rows())
    )
    kept = told.filter(pl.col("reason").is_null()).sort("ts", maintain_order=True)
    first = -(-(kept["ts"].min() or 0.0) // SLICE_S)
    return kept.with_columns(minute=(pl.col("ts") // SLICE_S - first).cast(pl.Int64)), dropped


def enough(raw: Path, winds: dict[int, np.ndarray], targets: Iterable[int], counts: Counts) -> None:
    """InputError where a minute of context or targets holds fewer winds than asked."""
    for role, wanted, shift in (
        ("context", counts.context, LEAD + 1),
        ("targets", counts.targets, 0),
    ):
        there = {minute - shift: len(winds.get(minute - shift, ())) for minute in targets}
        least = min(there, key=lambda minute: there[minute])
        if there[least] < wanted:
            raise InputError(
                "a minute holds fewer winds than asked",
                where=str(raw / FILE),
                expected=f"{wanted} winds as {role} in minute {least}",
                found=str(there[least]),
                remedy=f"lower `{role}` of this data set, or take an hour with more winds",
            )


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """The sets of all pairs of minutes (or `counts.sets` of them, drawn at random).

    DataError for a damaged file; InputError where a minute holds fewer winds than asked, as outside
    the hour.
    """
    table, dropped = rows(raw / FILE)
    winds = {
        minute: part.select(*X, *Y).to_numpy()
        for (minute,), part in table.group_by("minute", maintain_order=True)
    }
    targets = {
        minute: split for split, name in enumerate(SPLITS) for minute in range(*MINUTES[name])
    }
    enough(raw, winds, targets, counts)
    asked: Any
    known: Any
    known, asked = [], []
    for minute in targets:
        draw = stream(seed, "hour", "points", minute)
        for part, count, into in (
            (winds[minute - LEAD - 1], counts.context, known),
            (winds[minute], counts.targets, asked),
        ):
            into += [part[draw.choice(len(part), count, replace=False)] for _ in range(DRAWS)]
    kept = np.sort(stream(seed, "hour", "sets").permutation(len(known))[: counts.sets])
    record = np.repeat(list(targets), DRAWS)[kept]
    trained = [
        minute - shift for minute, split in targets.items() if split == 0 for shift in (0, LEAD + 1)
    ]
    places = np.concatenate([winds[minute][:, :3] for minute in sorted(set(trained))])
    known, asked = (np.stack(part)[kept] for part in (known, asked))

    def x(part):
        return (part[..., :3] - places.mean(0)) / places.std(0)

    def y(part):
        return part[..., 3:] / KNOT_M_S

    return Sets(
        context_x=x(known),
        context_y=y(known),
        target_x=x(asked),
        target_y=y(asked),
        split=np.repeat(list(targets.values()), DRAWS)[kept],
        source=np.zeros(len(kept), np.int32),
        record=record,
        group=record,
        files=(FILE,),
        units={"x": ("sd",) * 3, "i": ("kn",) * 2, "o": ("kn",) * 2},
        names={
            "x": ("latitude", "longitude", "altitude"),
            "i": ("east", "north"),
            "o": ("east", "north"),
        },
        loss="rmse",
        standardise=True,
        facts={"rows": len(table), "dropped": dropped, "lead_s": LEAD * SLICE_S},
    )
