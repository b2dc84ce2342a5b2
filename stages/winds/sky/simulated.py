"""The simulated data set: a seeded sky, flown through and heard as raw Mode-S.

`simulate` writes frames_00.csv, frames_01.csv, ... (one an hour; lines `ts_s,HEX`, no header,
sorted by time) and truth.parquet: the wind and the aircraft's state at the moment of every heading
report (register 6,0), whether it was received or not, with the parameters in its metadata. Each
aircraft is updated every `update_s`: an ADS-B position and velocity at random moments, and, while
the radar's beam is on it, replies with 5,0, 6,0 and one other register, and every other time an
all-call (else it names itself by squitter).
Sensor errors: heading noise (deg) and true-airspeed noise (kt), normal, new at each update; a bias
of each that an aircraft keeps, uniform up to `heading_bias_deg` and `airspeed_bias_kt` either way
(none where those are 0); then the registers' steps. Position, altitude and ground vector are free
of error but for their steps.
Flights are simulated in blocks of entry time, so memory does not grow with the hours. Numbers are
rounded before they are packed or written: the bytes depend on the parameters alone.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from stages import params
from stages.files import atomic_file, sha256
from stages.seeds import stream
from stages.units import FOOT_M, KNOT_M_S
from stages.winds.sky import encode, flight, traffic
from stages.winds.sky.airspace import Sky, declination_at, sky
from stages.winds.sky.sent import CALL, HEADING, POSITION, VELOCITY, Fleet, fleet, frames

BLOCK_S = 6 * 3600
HOUR_MS = 3_600_000
FADE_S = 6.0  # mean length of a spell in which nothing of an aircraft is received
# The order of what is sent while the radar's beam is on the aircraft.
SLOT = np.array([0, 0, 0, 1, 2, 3])
DECIMALS = {
    "lat_deg": 6,
    "lon_deg": 6,
    "alt_ft": 1,
    "u_true_m_s": 4,
    "v_true_m_s": 4,
    "gs_kt": 3,
    "trk_deg": 4,
    "tas_kt": 3,
    "hdg_true_deg": 4,
    "roll_deg": 3,
}
TRUTH = pa.schema(
    [("ts_s", pa.float64()), ("icao", pa.string())] + [(name, pa.float64()) for name in DECIMALS]
)


def faded(
    rng: np.random.Generator,
    tracks: traffic.Tracks,
    of: np.ndarray,
    since_s: np.ndarray,
    dropout: float,
) -> np.ndarray:
    """Which of N moments of flights `of` fall in a fade; fades come at random and fill the share
    `dropout` of the time.

    One alternating renewal process is laid over all flights, end to end.
    """
    if dropout == 0 or not len(of):
        return np.zeros(len(of), bool)
    begin = np.concatenate([[0], np.cumsum(tracks.duration_s)])
    cycles = int(1.5 * begin[-1] * dropout / FADE_S) + 100
    spells = np.stack(
        [
            rng.exponential(FADE_S * (1 - dropout) / dropout, cycles),
            rng.exponential(FADE_S, cycles),
        ],
        axis=1,
    )
    return np.searchsorted(np.cumsum(spells.ravel()), begin[of] + since_s) % 2 == 1


def moments(
    rng: np.random.Generator, world: Sky, tracks: traffic.Tracks
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Updates of all flights of a block: flight (U,), number in its flight (U,), and the times
    (U, 6) of its frames, ms."""
    update = world.config.update_s
    number = np.maximum(tracks.duration_s // update, 0).astype(np.int64)
    of = np.repeat(np.arange(len(number)), number)
    k = np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number)
    beam = np.ones((len(of), len(SLOT)), bool)
    beam[:, [POSITION, VELOCITY]] = False
    beam[:, CALL] = k % 2 == 0  # every other time the aircraft names itself by squitter instead
    offset = rng.random((len(of), len(SLOT)))
    offset = np.where(beam, 0.002 + 0.005 * SLOT + 0.003 * offset, offset)
    seconds = tracks.entry_s[of][:, None] + (k[:, None] + offset) * update
    return of, k, np.rint(seconds * 1000).astype(np.int64)


def truth(
    world: Sky, s: dict[str, np.ndarray], t_s: np.ndarray, address: np.ndarray, t_ms: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of truth.parquet but for the text of the address: the wind's own value at the
    place and moment, not the track's."""
    u, v = world.wind(s["lat"], s["lon"], s["alt"], t_s)
    east = s["tas"] * np.sin(np.radians(s["heading"])) + u
    north = s["tas"] * np.cos(np.radians(s["heading"])) + v
    exact = {
        "lat_deg": s["lat"],
        "lon_deg": traffic.wrap(s["lon"]),
        "alt_ft": s["alt"] / FOOT_M,
        "u_true_m_s": u,
        "v_true_m_s": v,
        "gs_kt": np.hypot(east, north) / KNOT_M_S,
        "trk_deg": np.degrees(np.arctan2(east, north)) % 360,
        "tas_kt": s["tas"] / KNOT_M_S,
        "hdg_true_deg": s["heading"],
        "roll_deg": s["roll"],
    }
    rounded = {
        name: np.round(exact[name], places) + 0.0 for name, places in DECIMALS.items()
    }  # + 0.0: no negative zeros
    return {"t_ms": t_ms, "address": address} | rounded


def heard(
    world: Sky, block: int, tracks: traffic.Tracks, who: Fleet
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Everything received of a block's flights, and the truth beside it: two dictionaries of
    columns, in no order."""
    config, seed = world.config, world.config.seed
    of, k, t_ms = moments(stream(seed, "simulate", "moments", block), world, tracks)
    rng = stream(seed, "simulate", "sensors", block)
    noise_heading = rng.normal(0, config.heading_noise_deg, len(of))
    noise_tas = rng.normal(0, config.airspeed_noise_kt, len(of)) * KNOT_M_S
    own = stream(seed, "simulate", "biases", block).uniform(-1, 1, (2, len(tracks.duration_s)))
    noise_heading += config.heading_bias_deg * own[0][of]
    noise_tas += config.airspeed_bias_kt * KNOT_M_S * own[1][of]
    radio = stream(seed, "simulate", "radio", block)
    parts: list[dict[str, np.ndarray]] = []
    true: dict[str, np.ndarray] = {}
    for kind in range(t_ms.shape[1]):
        seconds = t_ms[:, kind] / 1000
        since = np.clip(seconds - tracks.entry_s[of], 0, tracks.duration_s[of])
        s = tracks.at(of, since)
        if kind == HEADING:
            true = truth(world, s, seconds, who.address[of], t_ms[:, kind])
        lost = faded(stream(seed, "simulate", "fades", block), tracks, of, since, config.dropout)
        sensed = {
            "heading": s["heading"] + noise_heading - declination_at(world, s["lat"], s["lon"]),
            "tas": s["tas"] + noise_tas,
        }
        octets, short = frames(
            kind, k, s, Fleet(who.address[of], who.callsign[of], who.squawk[of]), sensed
        )
        encode.flip(octets, np.flatnonzero(radio.random(len(of)) < config.bit_error), short, radio)
        parts.append(
            {
                name: column[~lost]
                for name, column in {
                    "t_ms": t_ms[:, kind],
                    "address": who.address[of],
                    "octets": octets,
                    "short": short,
                }.items()
            }
        )
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}, true


def merge(pool: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Two dictionaries of columns, one after the other; an empty pool has no columns yet."""
    return (
        {name: np.concatenate([pool[name], column]) for name, column in new.items()}
        if pool
        else new
    )


def take(
    pool: dict[str, np.ndarray], begin_ms: int, end_ms: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(rows with begin <= t < end by time and address, rows from `end` on); what lies before
    `begin` is dropped."""
    rows = np.flatnonzero((pool["t_ms"] >= begin_ms) & (pool["t_ms"] < end_ms))
    rows = rows[
        np.lexsort((pool["address"][rows], pool["t_ms"][rows]))
    ]  # stable: frames of one moment keep their order of kinds
    later = pool["t_ms"] >= end_ms
    return {name: c[rows] for name, c in pool.items()}, {name: c[later] for name, c in pool.items()}


def table(world: Sky, rows: dict[str, np.ndarray], schema: pa.Schema) -> pa.Table:
    """An hour of truth as an Arrow table."""
    icao = [f"{a:06X}" for a in rows["address"]]
    return pa.table(
        [(world.start_ms + rows["t_ms"]) / 1000, icao] + [rows[name] for name in DECIMALS],
        schema=schema,
    )


def hours(world: Sky) -> Iterator[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """(frames received, truth) of each hour in turn, as columns sorted by time and address; the
    last may be a part of one."""
    config, duration = world.config, world.config.hours * 3600
    # nobody takes longer than this to cross: the slowest type into a strong wind
    warm_s = float(np.hypot(world.area.east_m, world.area.north_m)) / 75
    edges = [-warm_s, *np.arange(BLOCK_S, duration, BLOCK_S), duration]
    step_s = config.update_s / np.ceil(config.update_s / 2)
    received: dict[str, np.ndarray] = {}
    true: dict[str, np.ndarray] = {}
    number = done_s = 0
    for block, (begin, end) in enumerate(itertools.pairwise(edges)):
        flights = traffic.arrivals(
            config.seed, block, world.routes, world.area, begin, end, world.rate_s
        )
        who = fleet(stream(config.seed, "simulate", "fleet", block), number, len(flights.route))
        number += len(flights.route)
        new, new_true = heard(
            world, block, flight.fly(flights, world.routes, world.area, world.wind, step_s), who
        )
        received, true = merge(received, new), merge(true, new_true)
        # every flight that entered before `end` is known, so all hours that end by then are
        # complete
        while done_s < duration and min(done_s + 3600, duration) <= end:
            limits = done_s * 1000, round(min(done_s + 3600, duration) * 1000)
            now, received = take(received, *limits)
            now_true, true = take(true, *limits)
            yield now, now_true
            done_s += 3600


def simulate(config: params.Simulate, folder: Path) -> dict[str, dict[str, Any]]:
    """Write the simulated set into `folder`; returns sha256, bytes and rows of each file.

    InputError when the parameters describe no airspace. Peak memory follows `aircraft`, not
    `hours`.
    """
    world = sky(config)
    n = int(np.ceil(config.hours))
    rows = {"truth.parquet": 0}
    plan = config.model_dump(mode="json", exclude_defaults=True)
    schema = TRUTH.with_metadata({"simulate": json.dumps(plan, sort_keys=True)})
    with (
        atomic_file(folder / "truth.parquet") as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        for hour, (received, true) in enumerate(
            tqdm(hours(world), total=n, unit="h", desc="simulate", disable=None)
        ):
            name = f"frames_{hour:0{max(2, len(str(n - 1)))}d}.csv"
            with atomic_file(folder / name) as text:
                text.write(
                    encode.lines(
                        world.start_ms + received["t_ms"], received["octets"], received["short"]
                    )
                )
            writer.write_table(table(world, true, schema))
            rows[name] = len(received["t_ms"])
            rows["truth.parquet"] += len(true["t_ms"])
    return {
        name: {
            "sha256": sha256(folder / name),
            "bytes": (folder / name).stat().st_size,
            "rows": count,
        }
        for name, count in sorted(rows.items())
    }
