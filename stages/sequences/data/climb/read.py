"""Flights as sequences (thesis 4.3.1, D.4): one token of the aircraft's type, then S cleared
levels, then S altitudes, a step apart.

Two kinds of CSV are read, told apart by their columns. The documents' own: FLIGHT_ID,
AIRCRAFT_TYPE, CFL, TRACK_ALTITUDE (flight levels), a row every 4 s, where a column AIRCRAFT may say
which flights are of one aircraft. And surveillance (a time t or ts in s, icao, alt in ft), which
carries no clearance and no type: there the level that the flight reaches last stands in for the
cleared level, and the type is the first word of the file's name where it is a designator, else
`unknown`. Its rows come at any time: a flight ends at a silence of more than `gap_s` and altitudes
between are interpolated. Splits are drawn by aircraft over all files. What is left out is counted
by reason.
Tokens: 0..B-1 altitude / bin to the nearest, so that a plateau does not flicker; B + number of the
type (names sorted); B + types: nothing follows. Shapes: N sequences, S steps, T = 1 + 2 S, B bins;
the prompt, 2 + S tokens, ends with the first altitude. Units: ft, s.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stages.errors import DataError
from stages.params.sequences import ClimbReading
from stages.seeds import stream
from stages.sequences.tokens import Sequences
from stages.splits import SPLITS

STEP_S, LEVEL_FT, HIGHEST_FT = 4.0, 100.0, 45_000.0
DOCUMENTS = ("FLIGHT_ID", "AIRCRAFT_TYPE", "CFL", "TRACK_ALTITUDE")
DESIGNATOR = re.compile(r"([A-Za-z]{1,2}[0-9]{1,2}[0-9A-Za-z]?)_")
LOWEST_FT = -1500.0  # pressure altitude of a field below sea level on a day of high pressure
# 9000 ft/min: a row that is faster than this from its neighbours on both sides is an error of
# decoding
FASTEST_FT_S = 150.0
LEAST_SHARE = 0.5  # of a sequence that must be altitudes, not its filled end


@dataclass(frozen=True)
class Flight:
    """One flight at equal steps: altitude (K,) and cleared level (K,) in ft."""

    aircraft: str
    kind: str
    source: int
    record: int  # the file's row where it begins
    altitude: np.ndarray
    cleared: np.ndarray


def table(path: Path) -> pl.DataFrame:
    """A CSV with every column as text and its rows' numbers; DataError for a file that is none
    or is empty."""
    try:
        found = pl.read_csv(path, infer_schema=False, row_index_name="row")
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as error:
        raise DataError(
            "a file of flights cannot be read",
            where=path.name,
            found=str(error).split("\n")[0],
            remedy="acquire it again",
        ) from None
    if not len(found):
        raise DataError("a file of flights has no rows", where=path.name, remedy="acquire it again")
    return found


def numbers(rows: pl.DataFrame, names: dict[str, str], path: Path) -> pl.DataFrame:
    """The columns `names` (new: old) as numbers beside the others. DataError for a cell that is
    neither a number nor empty."""
    parsed = rows.with_columns(
        pl.col(old).str.strip_chars().cast(pl.Float64, strict=False).alias(new)
        for new, old in names.items()
    )
    for new, old in names.items():
        text = pl.col(old).str.strip_chars()
        wrong = parsed.filter(pl.col(new).is_null() & text.is_not_null() & (text != ""))
        if len(wrong):
            raise DataError(
                "a cell is no number",
                where=f"{path.name}, row {wrong['row'][0] + 1}, {old}",
                found=repr(wrong[old][0]),
                expected="a number",
            )
    return parsed


def sound(rows: pl.DataFrame, dropped: Counter, path: Path) -> pl.DataFrame:
    """Rows with an altitude between the lowest and the highest; the others are counted."""
    finite = rows.filter(pl.col("altitude").is_not_null() & pl.col("altitude").is_finite())
    dropped["rows without altitude"] += len(rows) - len(finite)
    kept = finite.filter(pl.col("altitude").is_between(LOWEST_FT, HIGHEST_FT, closed="left"))
    dropped["rows out of range"] += len(finite) - len(kept)
    if not len(kept):
        raise DataError(
            "no row has a usable altitude",
            where=path.name,
            expected=f"{LOWEST_FT:.0f} to {HIGHEST_FT:.0f} ft",
        )
    return kept


def documents(path: Path, source: int, config: ClimbReading, dropped: Counter) -> list[Flight]:
    """Flights of a file in the documents' columns; every config.step_s / 4 s-th row is taken."""
    rows = table(path)
    rows = numbers(rows, {"altitude": "TRACK_ALTITUDE", "cleared": "CFL"}, path).with_columns(
        pl.col("altitude") * LEVEL_FT, pl.col("cleared") * LEVEL_FT
    )
    rows = sound(rows, dropped, path)
    clear = rows.drop_nulls(["FLIGHT_ID", "AIRCRAFT_TYPE", "cleared"]).filter(
        pl.col("cleared").is_between(0.0, HIGHEST_FT, closed="left")
    )
    dropped["rows without flight, cleared level or type"] += len(rows) - len(clear)
    stride, flights = int(config.step_s // STEP_S), []
    for _, flight in clear.group_by("FLIGHT_ID", maintain_order=True):
        if flight["AIRCRAFT_TYPE"].n_unique() > 1:
            raise DataError(
                "a flight has two types",
                where=f"{path.name}, FLIGHT_ID {flight['FLIGHT_ID'][0]}",
                found=", ".join(sorted(flight["AIRCRAFT_TYPE"].unique())),
            )
        at, *lines = (flight[name].to_numpy() for name in ("row", "altitude", "cleared"))
        known = flight["AIRCRAFT"][0] if "AIRCRAFT" in flight.columns else None
        name = known.upper() if known else f"{path.name}/{flight['FLIGHT_ID'][0]}"
        pieces = np.split(
            np.arange(len(at)), np.flatnonzero(np.diff(at) > 1) + 1
        )  # a dropped row breaks the step of 4 s
        for piece in pieces:
            span = slice(piece[0], piece[-1] + 1, stride)
            altitude, cleared = (np.ascontiguousarray(line[span]) for line in lines)
            kind, first = flight["AIRCRAFT_TYPE"][0], int(at[piece[0]])
            flights.append(Flight(name, kind, source, first, altitude, cleared))
    return flights


def spikes(time: np.ndarray, altitude: np.ndarray) -> np.ndarray:
    """Which rows (K,) no aircraft flew: faster than any climbs, from the row before and to the
    row after, while those two agree."""
    found = np.zeros(len(time), bool)
    if len(time) > 2:
        fast = np.abs(np.diff(altitude)) > FASTEST_FT_S * np.diff(time) + 2 * LEVEL_FT
        across = (
            np.abs(altitude[2:] - altitude[:-2])
            <= FASTEST_FT_S * (time[2:] - time[:-2]) + 2 * LEVEL_FT
        )
        found[1:-1] = fast[:-1] & fast[1:] & across
    return found


def surveillance(path: Path, source: int, config: ClimbReading, dropped: Counter) -> list[Flight]:
    """Flights of a file of reports, every config.step_s s from their first row; cleared level =
    the last altitude, to 100 ft."""
    rows = table(path)
    clock = "t" if "t" in rows.columns else "ts"
    rows = sound(numbers(rows, {"time": clock, "altitude": "alt"}, path), dropped, path)
    told = rows.filter(
        pl.col("time").is_not_null() & pl.col("time").is_finite() & pl.col("icao").is_not_null()
    )
    dropped["rows without time or aircraft"] += len(rows) - len(told)
    once = told.sort("icao", "time", "row").unique(
        ["icao", "time"], keep="first", maintain_order=True
    )
    dropped["rows of a time told before"] += len(told) - len(once)
    matched = DESIGNATOR.match(path.name)
    kind, flights = matched[1].upper() if matched else "unknown", []
    for (icao,), flight in once.group_by(["icao"], maintain_order=True):
        wild = spikes(flight["time"].to_numpy(), flight["altitude"].to_numpy())
        dropped["rows that no aircraft flew"] += int(wild.sum())
        flight = flight.filter(pl.Series(~wild))
        time, altitude = flight["time"].to_numpy(), flight["altitude"].to_numpy()
        for piece in np.split(
            np.arange(len(time)), np.flatnonzero(np.diff(time) > config.gap_s) + 1
        ):
            when = np.arange(time[piece[0]], time[piece[-1]] + 1e-6, config.step_s)
            level = round(float(altitude[piece[-1]]) / LEVEL_FT) * LEVEL_FT
            line = np.interp(when, time[piece], altitude[piece])
            cleared = np.full(len(when), max(0.0, level))
            flights.append(
                Flight(icao.upper(), kind, source, int(flight["row"][int(piece[0])]), line, cleared)
            )
    return flights


def gather(
    raw: Path, config: ClimbReading, dropped: Counter
) -> tuple[list[Flight], list[Path], dict[str, str]]:
    """All flights of the folder's CSV files, the files in order, and what each file's cleared
    level is."""
    flights, paths, clearance = [], sorted(raw.glob("*.csv")), {}
    for source, path in enumerate(paths):
        columns = table(path).columns
        if set(DOCUMENTS) <= set(columns):
            flights += documents(path, source, config, dropped)
            clearance[path.name] = "given"
        elif {"icao", "alt"} <= set(columns) and {"t", "ts"} & set(columns):
            flights += surveillance(path, source, config, dropped)
            clearance[path.name] = "the level reached last"
        else:
            raise DataError(
                "a file of flights has other columns",
                where=path.name,
                found=", ".join(columns[1:])[:120],
                expected=", ".join(DOCUMENTS) + "; or t (ts), icao, alt",
            )
    if not paths:
        raise DataError(
            "there is no file of flights",
            where=str(raw),
            expected="files ending in .csv",
            remedy="acquire the data set again",
        )
    return flights, paths, clearance


def windows(flight: Flight, config: ClimbReading, dropped: Counter) -> list[int]:
    """Where in the flight its sequences begin; those that are too short or too level are
    counted."""
    begins, steps = [], len(flight.altitude)
    for begin in range(0, max(1, steps), config.stride):
        part = flight.altitude[begin : begin + config.steps]
        if len(part) < max(2, LEAST_SHARE * config.steps):
            dropped["sequences too short"] += 1
        elif np.ptp(part) < config.least_change_ft:
            dropped["sequences too level"] += 1
        else:
            begins.append(begin)
    return begins


def parts(
    aircraft: list[str], weights: tuple[int, int, int], rng: np.random.Generator
) -> np.ndarray:
    """The split of each sequence (N,): aircraft in a random order fill test, then val, until each
    has its share of sequences, rest train.

    Every split gets an aircraft where there are three. DataError where there are fewer.
    """
    count = Counter(aircraft)
    names = [sorted(count)[k] for k in rng.permutation(len(count))]
    if len(names) < 3:
        raise DataError(
            "three splits by aircraft need three aircraft",
            found=f"{len(names)} aircraft, {len(aircraft)} sequences",
            remedy="give the data set more flights, shorter sequences or a lower least_change_ft",
        )
    place, number = {}, 0
    for part, later in ((2, 2), (1, 1)):
        goal, taken = len(aircraft) * weights[part] / sum(weights), 0
        while number < len(names) - later and (
            not taken or taken + count[names[number]] / 2 <= goal
        ):
            place[names[number]], taken = part, taken + count[names[number]]
            number += 1
    return np.array([place.get(name, 0) for name in aircraft], np.int8)


def tokens(chosen: list[tuple[Flight, int]], types: list[str], config: ClimbReading) -> np.ndarray:
    """(N, 1 + 2 S) of flights and where in them each sequence begins."""
    steps, bins = config.steps, int(HIGHEST_FT // config.bin_ft)
    made = np.full((len(chosen), 1 + 2 * steps), bins + len(types), np.int32)

    def binned(feet):
        return np.clip(np.floor(feet / config.bin_ft + 0.5), 0, bins - 1).astype(np.int32)

    for row, (flight, begin) in enumerate(chosen):
        cleared = binned(flight.cleared[begin : begin + steps])
        altitude = binned(flight.altitude[begin : begin + steps])
        made[row, 0] = bins + types.index(flight.kind)
        made[row, 1 : 1 + len(cleared)] = cleared
        made[row, 1 + steps : 1 + steps + len(altitude)] = altitude
    return made


def read(raw: Path, seed: int, config: ClimbReading) -> Sequences:
    """All sequences of the CSV files in `raw`. DataError for files that are damaged, or where
    three splits by aircraft cannot be made."""
    dropped: Counter[str] = Counter()
    flights, paths, clearance = gather(raw, config, dropped)
    chosen = [(flight, begin) for flight in flights for begin in windows(flight, config, dropped)]
    aircraft = [flight.aircraft for flight, _ in chosen]
    split = parts(aircraft, (config.train, config.val, config.test), stream(seed, "climb", "split"))
    types, fleet = sorted({flight.kind for flight in flights}), sorted(set(aircraft))
    bins, number = int(HIGHEST_FT // config.bin_ft), {name: k for k, name in enumerate(fleet)}
    made = tokens(chosen, types, config)
    nothing = bins + len(types)
    flown = {
        name: len({a for a, p in zip(aircraft, split, strict=True) if p == part})
        for part, name in enumerate(SPLITS)
    }
    law = {
        "steps": config.steps,
        "step_s": config.step_s,
        "bin_ft": config.bin_ft,
        "bins": bins,
        "types": types,
        "nothing": nothing,
        "split_by": "aircraft",
        "clearance": clearance,
        "aircraft": flown,
        "filled": round(float((made == nothing).mean()), 6),
    }
    return Sequences(
        kind="climb",
        tokens=made,
        split=split,
        source=np.array([flight.source for flight, _ in chosen], np.int32),
        record=np.array([flight.record for flight, _ in chosen], np.int64),
        files=tuple(path.name for path in paths),
        vocabulary=nothing + 1,
        prompt=2 + config.steps,
        law=law,
        names={"types": types, "unit": "ft"},
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
        group=np.array([number[name] for name in aircraft], np.int64),
    )
