"""The two-day weather problem (thesis 3.4, C.1.5): seven variables at C random grid nodes, the 100
m wind at T others 48 h later.

Both times of a pair are found by their time stamps (the public code counts 50 slices; the text says
48 h), variables by name and unit. A pair's nodes are drawn once, without replacement, uniformly in
index space, from those where everything that is needed has a value; context and targets share none.
Positions are index / size * 2 - 1, columns (east) then rows (north, from the south). Splits. Where
the times fall apart into stretches more than 60 days from each other, as the documents' do: the
first stretch trains, later Januaries select and later Septembers test (the documents selected and
reported on both months together). Else every 60 days hold a run of training times, one to select
and one to test, 48 h between them; a pair lies inside one run, so no time serves two splits.
Shapes: S pairs, C context nodes, T targets, p rows, q columns, 2 axes. m/s, Pa, K, share.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import files
from stages.errors import DataError, InputError
from stages.fields import gridded
from stages.fields.problem import Counts, Sets
from stages.seeds import stream

INPUTS = ("u10", "v10", "u100", "v100", "sp", "t2m", "tcc")
OUTPUTS = ("u100", "v100")
SUFFIXES = (".nc", ".nc4", ".grib", ".grib1", ".grib2", ".grb", ".grb2")
HOUR = np.timedelta64(1, "h").astype("timedelta64[ns]")
LEAD, EMBARGO, CYCLE = 48 * HOUR, 48 * HOUR, 60 * 24 * HOUR
SHARES = (38, 8, 8)  # of a cycle without its three gaps: train, val, test
UNUSED = -1


@dataclass(frozen=True)
class Archive:
    """All files of a raw folder on one grid: at[k] = (file, index in it) of time[k]."""

    sources: tuple[gridded.Opened, ...]
    names: tuple[str, ...]
    time: np.ndarray
    at: tuple[tuple[int, int], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.sources[0].lat), len(self.sources[0].lon)

    def table(self, names: tuple[str, ...], k: int) -> np.ndarray:
        """(nodes, variables) float64 at time[k], node = row * q + column."""
        source, index = self.at[k]
        return np.stack(
            [self.sources[source].field(name, index).ravel() for name in names], 1
        ).astype(np.float64)


def open_archive(raw: Path) -> Archive:
    """All weather files of `raw`. DataError where they disagree in grid or variables, share a
    time, or miss what the manifest promises."""
    manifest = raw / "manifest.json"
    told = files.read_json(manifest)["files"] if manifest.is_file() else {}
    paths = sorted(path for path in raw.rglob("*") if path.suffix in SUFFIXES)
    if not paths:
        raise DataError(
            "there is no weather file",
            where=str(raw),
            expected="files ending in " + ", ".join(SUFFIXES),
        )
    sources = []
    for path in paths:
        entry = told.get(path.relative_to(raw).as_posix(), {})
        source = gridded.open_grid(path, entry.get("variables", OUTPUTS), entry.get("messages"))
        first = sources[0] if sources else source
        if source.names != first.names or not (
            np.array_equal(source.lat, first.lat) and np.array_equal(source.lon, first.lon)
        ):
            raise DataError(
                "weather files differ in grid or variables",
                where=f"{first.path.name}, {path.name}",
                expected=f"{', '.join(first.names)} at {len(first.lat)} x {len(first.lon)} nodes",
                found=f"{', '.join(source.names)} at {len(source.lat)} x {len(source.lon)} nodes",
            )
        sources.append(source)
    time = np.concatenate([source.time for source in sources])
    at = [(number, k) for number, source in enumerate(sources) for k in range(len(source.time))]
    order = np.argsort(time, kind="stable")
    if (twice := np.flatnonzero(np.diff(time[order]) == 0 * HOUR)).size:
        both = sorted({paths[at[order[k]][0]].name for k in (twice[0], twice[0] + 1)})
        raise DataError(
            "two weather files hold the same time",
            where=", ".join(both),
            found=str(time[order][twice[0]]),
        )
    return Archive(
        tuple(sources),
        tuple(name for name in INPUTS if name in sources[0].names),
        time[order],
        tuple(at[k] for k in order),
    )


def runs(time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The split of each time (n,), 0 train, 1 val, 2 test, -1 between them, and the number of
    its run (n,); `time` ascends."""
    stretch = np.concatenate([[0], np.cumsum(np.diff(time) > CYCLE)])
    if stretch[-1]:
        month = time.astype("datetime64[M]").astype(int) % 12
        later = np.select([month == 0, month == 8], [1, 2], UNUSED)
        return np.where(stretch == 0, 0, later), stretch * 12 + month * (stretch > 0)
    step = np.diff(time).min() if len(time) > 1 else HOUR
    cycle = min(CYCLE, time[-1] - time[0] + step)
    number, inside = np.divmod(time - time[0], cycle)
    ends = np.cumsum(SHARES) / sum(SHARES) * (cycle - 3 * EMBARGO) / HOUR + np.arange(3) * (
        EMBARGO / HOUR
    )
    since = inside / HOUR
    part = np.searchsorted(ends, since, side="right")
    begins = np.concatenate([[0.0], ends + EMBARGO / HOUR])[:3]
    split = np.where((part < 3) & (since >= begins[np.minimum(part, 2)]), part, UNUSED)
    return split, number * 3 + np.maximum(split, 0)


def pairs(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All pairs 48 h apart inside one run: index of the context's time and of the targets',
    split, and run, (S,) each."""
    split, run = runs(time)
    later = np.searchsorted(time, time + LEAD)
    found = later < len(time)
    target = np.where(found, later, 0)
    good = (
        found
        & (time[target] == time + LEAD)
        & (split != UNUSED)
        & (split[target] == split)
        & (run[target] == run)
    )
    context = np.flatnonzero(good)
    return context, target[context], split[context], run[context]


def order(seed: int, time: np.datetime64, side: str, nodes: int) -> np.ndarray:
    """The order in which a side of the pair that begins at `time` takes its nodes: from the
    seed, the time and the side alone."""
    return stream(
        seed, "weather", side, int(time.astype("datetime64[s]").astype(np.int64))
    ).permutation(nodes)


def positions(nodes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(..., 2) in [-1, 1): index / size * 2 - 1, east then north."""
    row, column = np.divmod(nodes, shape[1])
    return np.stack([column / shape[1], row / shape[0]], -1) * 2 - 1


def draw(
    archive: Archive, seed: int, counts: Counts, context: np.ndarray, target: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """Nodes and values of each pair, reading every time once and in order; which pairs (S,) have
    enough nodes with values; and how many nodes were passed over for want of one."""
    nodes, begins, ends = archive.shape[0] * archive.shape[1], {}, {}
    for s, (a, b) in enumerate(zip(context, target, strict=True)):
        begins[a], ends[b] = s, s
    made = {
        "context_n": np.zeros((len(context), counts.context), np.int64),
        "target_n": np.zeros((len(context), counts.targets), np.int64),
        "context_y": np.zeros((len(context), counts.context, len(archive.names))),
        "target_y": np.zeros((len(context), counts.targets, len(OUTPUTS))),
    }
    full, skipped = np.zeros((len(context), 2), bool), 0

    def take(s: int, k: int, part: int, table: np.ndarray, ranked: np.ndarray) -> None:
        """Fill one side of pair s with the first nodes of `ranked` that have all values at time
        k."""
        nonlocal skipped
        word, size = ("context", "target")[part], (counts.context, counts.targets)[part]
        places = np.flatnonzero(np.isfinite(table[ranked]).all(1))[:size]
        chosen = ranked[places]
        skipped += (int(places[-1]) + 1 if len(places) == size else len(ranked)) - len(places)
        if len(chosen) == size:
            made[f"{word}_n"][s], made[f"{word}_y"][s], full[s, part] = chosen, table[chosen], True

    for k in sorted({*begins, *ends}):
        if k in begins:
            take(
                begins[k],
                k,
                0,
                archive.table(archive.names, k),
                order(seed, archive.time[k], "context", nodes),
            )
        if k in ends and full[s := ends[k], 0]:
            ranked = order(seed, archive.time[context[s]], "target", nodes)
            taken = np.zeros(nodes, bool)
            taken[made["context_n"][s]] = True
            take(s, k, 1, archive.table(OUTPUTS, k), ranked[~taken[ranked]])
    return made, full.all(1), skipped  # type: ignore[return-value]  # a row holds many


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """The pairs of all weather files in `raw`, or `counts.sets` of them drawn at random; positions
    (S, C, 2), values (S, C, I).

    InputError where a set needs more nodes than the grid has; DataError where the files are unsound
    or hold no pair.
    A variable other than the targets' may be absent (then of all files; `facts` names it), unless
    the manifest promises it.
    """
    archive = open_archive(raw)
    enough(raw, archive, counts)
    context, target, split, run = pairs(archive.time)
    found = len(context)
    if not found:
        raise DataError(
            "no two times lie 48 h apart in one split",
            where=str(raw),
            found=f"{len(archive.time)} times",
            expected="three weeks of times or more",
            remedy="give the problem more data",
        )
    if counts.sets is not None and counts.sets < found:
        chosen = np.sort(stream(seed, "weather", "pairs").choice(found, counts.sets, replace=False))
        context, target, split, run = (array[chosen] for array in (context, target, split, run))
    made, full, skipped = draw(archive, seed, counts, context, target)
    if not full.any():
        raise DataError(
            "no pair of times has enough nodes with values",
            where=str(raw),
            found=f"{len(full)} pairs, all with gaps",
            expected=f"{counts.context} and {counts.targets} nodes",
            remedy="lower both, or look at the files",
        )
    units = {name: gridded.VARIABLES[name].unit for name in INPUTS}
    at = np.array(archive.at)[context[full]]
    return Sets(
        positions(made["context_n"][full], archive.shape),
        made["context_y"][full],
        positions(made["target_n"][full], archive.shape),
        made["target_y"][full],
        split[full].astype(np.int8),
        at[:, 0].astype(np.int32),
        at[:, 1].astype(np.int64),
        tuple(source.path.relative_to(raw).as_posix() for source in archive.sources),
        units={
            "x": ("1", "1"),
            "i": tuple(units[name] for name in archive.names),
            "o": tuple(units[name] for name in OUTPUTS),
        },
        names={"x": ("east", "north"), "i": archive.names, "o": OUTPUTS},
        loss="rmse",
        standardise=True,
        facts=facts(archive, found, full, skipped),
        group=run[full],
    )


def enough(raw: Path, archive: Archive, counts: Counts) -> None:
    """InputError where a set needs more nodes than the grid has."""
    nodes = archive.shape[0] * archive.shape[1]
    if counts.context + counts.targets > nodes:
        raise InputError(
            "a set needs more nodes than the grid has",
            where=str(raw),
            expected=f"context + targets up to {nodes}",
            found=f"{counts.context} + {counts.targets}",
            remedy="lower `context` and `targets` of it in stages/params/budgets/PROFILE/sets.yaml",
        )


def facts(archive: Archive, found: int, full: np.ndarray, skipped: int) -> dict[str, Any]:
    """What was counted: times, nodes, pairs found, those with gaps, variables absent and unused;
    nodes that were drawn and passed over because a value is missing there, where there are some."""
    gaps = {"nodes_without_values": skipped} if skipped else {}
    return gaps | {
        "lead_h": int(LEAD / HOUR),
        "times": len(archive.time),
        "rows": archive.shape[0],
        "columns": archive.shape[1],
        "pairs": found,
        "pairs_with_gaps": int((~full).sum()),
        "absent": [name for name in INPUTS if name not in archive.names],
        "unused": sorted({name for source in archive.sources for name in source.unused}),
    }
