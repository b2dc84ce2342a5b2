"""The simulated data set: a seeded sky, flown through and heard as raw Mode-S.

`simulate` writes frames_00.csv, frames_01.csv, ... (one an hour; lines `ts_s,HEX`, no header,
sorted by time) and truth.parquet: the wind and the aircraft's state at the moment of every heading
report (register 6,0), whether it was received or not, with the parameters in its metadata. Each
aircraft is updated every `update_s`: an ADS-B position and velocity at random moments, and, while
the radar's beam is on it, replies with 5,0, 6,0 and one other register, and every other time an
all-call (else it names itself by squitter).
Sensor errors: heading noise (deg) and true-airspeed noise (kt), normal, without bias, new at each
update; then the registers' steps. Position, altitude and ground vector are free of error but for
their steps.
Flights are simulated in blocks of entry time, so memory does not grow with the hours. Numbers are
rounded before they are packed or written: the bytes depend on the parameters alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import ppigrf
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.ndimage import map_coordinates
from tqdm import tqdm

from stages import params
from stages.errors import InputError
from stages.files import atomic_file, sha256
from stages.seeds import stream
from stages.winds.sky import air, encode, flight, traffic, wind

BLOCK_S = 6 * 3600
HOUR_MS = 3_600_000
FADE_S = 6.0  # mean length of a spell in which nothing of an aircraft is received
POSITION, VELOCITY, HEADING, TURN, OTHER, CALL = range(
    6
)  # the six frames of an update; HEADING is 6,0 and TURN is 5,0
SLOT = np.array(
    [0, 0, 0, 1, 2, 3]
)  # the order of what is sent while the radar's beam is on the aircraft
ROTATION = (
    "4,0",
    "2,0",
    "4,0",
    "1,7",
    "4,0",
    "empty",
    "4,0",
    "1,0",
)  # what OTHER holds, update by update
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


@dataclass(frozen=True)
class Sky:
    """What all blocks share: the parameters, the start (Unix ms), airspace, wind, routes,
    arrivals a second, declination."""

    config: params.Simulate
    start_ms: int
    area: traffic.Area
    wind: wind.Wind
    routes: traffic.Routes
    rate_s: float
    declination: np.ndarray  # degrees east, on a 9 x 9 grid from the south-west corner


def sky(config: params.Simulate) -> Sky:
    """Check the parameters and draw the sky. InputError for a start or an area that cannot be
    simulated."""
    try:
        start = datetime.strptime(config.start, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise InputError(
            "the simulation's start is not a date", where="simulate.start", found=str(error)
        ) from None
    if not 2002 <= start.year <= 2029:
        raise InputError(
            "the simulation's start is outside the magnetic model and 13-digit milliseconds",
            where="simulate.start",
            expected="a year from 2002 to 2029",
            found=config.start,
        )
    bottom, top = config.altitude_m
    area = traffic.Area(
        *config.south_west, config.extent_km[0] * 1e3, config.extent_km[1] * 1e3, bottom, top
    )
    north, east = area.degrees(area.east_m, area.north_m)
    if north > 85 or east - area.west > 180:
        raise InputError(
            "the simulated area is too large or too near the pole",
            where="simulate.extent_km",
            expected="north edge below 85 degrees, less than 180 degrees wide",
            found=f"{north:.1f} and {east - area.west:.1f}",
        )
    if not bottom < top <= 15000:
        raise InputError(
            "altitude_m is not a range below 15 km",
            where="simulate.altitude_m",
            found=f"{bottom:g} to {top:g} m",
        )
    routes = traffic.network(config.seed, area)
    lat, lon = np.meshgrid(
        np.linspace(area.south, north, 9), np.linspace(area.west, east, 9), indexing="ij"
    )
    field_east, field_north, _ = ppigrf.igrf(
        lon.ravel(), lat.ravel(), (bottom + top) / 2000, start.replace(tzinfo=None)
    )
    declination = np.degrees(np.arctan2(field_east, field_north)).reshape(lat.shape)
    return Sky(
        config,
        int(start.timestamp()) * 1000,
        area,
        wind.make(config.seed, area.lat0, area.lon0, area.north_m, bottom, top),
        routes,
        config.aircraft / traffic.mean_duration(routes),
        declination,
    )


def declination_at(world: Sky, lat, lon):
    """Magnetic declination in degrees east, bilinear on the grid."""
    north, east = world.area.degrees(world.area.east_m, world.area.north_m)
    row, column = (
        (lat - world.area.south) / (north - world.area.south) * 8,
        (lon - world.area.west) / (east - world.area.west) * 8,
    )
    return map_coordinates(world.declination, [row, column], order=1, mode="nearest")


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


@dataclass(frozen=True)
class Fleet:
    """Who the F flights of a block are: 24-bit address, callsign as 48 bits, squawk."""

    address: np.ndarray
    callsign: np.ndarray
    squawk: np.ndarray


def fleet(rng: np.random.Generator, first: int, n: int) -> Fleet:
    """Identities of flights number `first` to `first + n`; no address comes twice within 262,144
    flights."""
    number = np.arange(first, first + n)
    names = [f"TW{'ABCDEFGH'[i % 8]}{1 + i * 37 % 9973}" for i in number]
    return Fleet(
        0x3C0000 + (number * 40503 + 7919) % 2**18,
        encode.characters(names),
        rng.integers(0o1000, 0o7000, n),
    )


def words(
    kind: int, k: np.ndarray, s: dict[str, np.ndarray], who: Fleet, sensed: dict[str, np.ndarray]
) -> np.ndarray:
    """The 56-bit words of N frames of one kind, from true state `s`, update numbers k and what
    the sensors read."""
    knots, feet, rate = 1 / air.KNOT_M_S, s["alt"] / air.FOOT_M, s["vs"] / flight.FT_MIN
    if kind == POSITION:
        return encode.position(s["lat"], s["lon"], feet, k % 2)
    if kind == VELOCITY:
        return encode.velocity(s["east"] * knots, s["north"] * knots, rate)
    if kind == HEADING:
        cas, mach = (
            air.cas_of_tas(sensed["tas"], s["alt"]) * knots,
            sensed["tas"] / air.sound_speed(s["alt"]),
        )
        return encode.bds60(sensed["heading"], cas, mach, rate, rate)
    if kind == TURN:
        turn = np.degrees(air.G_M_S2 * np.tan(np.radians(s["roll"])) / s["tas"])
        track, speed = (
            np.degrees(np.arctan2(s["east"], s["north"])),
            np.hypot(s["east"], s["north"]),
        )
        return encode.bds50(s["roll"], track, speed * knots, turn, sensed["tas"] * knots)
    if kind == CALL:
        return encode.identification(who.callsign)
    selected = np.rint(s["target"] / air.FOOT_M / 100) * 100
    registers = {
        "4,0": encode.bds40(selected, np.full(len(k), 1013.2)),
        "2,0": encode.bds20(who.callsign),
        "1,7": encode.bds17(len(k)),
        "1,0": encode.bds10(len(k)),
        "empty": np.zeros(len(k), np.uint64),
    }
    turns = np.array(ROTATION)[k % len(ROTATION)]
    return np.select([turns == name for name in registers], list(registers.values()))


def frames(
    kind: int, k: np.ndarray, s: dict[str, np.ndarray], who: Fleet, sensed: dict[str, np.ndarray]
):
    """N frames of one kind, uint8 (N, 14), and which of them are short, bool (N,)."""
    word = words(kind, k, s, who, sensed)
    short = (k % 2 == 0) if kind == CALL else np.zeros(len(k), bool)
    if kind in (POSITION, VELOCITY, CALL):
        octets = encode.squitter(who.address, word)
        octets[short] = encode.all_call(who.address[short])
        return octets, short
    identity = (
        k + k // len(ROTATION) + kind
    ) % 2 == 1  # surveillance asks for altitude and identity in turn
    code = np.where(
        identity, encode.identity13(who.squawk), encode.altitude13(s["alt"] / air.FOOT_M)
    )
    return encode.reply(who.address, word, code, identity), short


def truth(
    world: Sky, s: dict[str, np.ndarray], t_s: np.ndarray, address: np.ndarray, t_ms: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of truth.parquet but for the text of the address: the wind's own value at the
    place and moment, not the track's."""
    u, v = world.wind(s["lat"], s["lon"], s["alt"], t_s)
    east, north = (
        s["tas"] * np.sin(np.radians(s["heading"])) + u,
        s["tas"] * np.cos(np.radians(s["heading"])) + v,
    )
    exact = {
        "lat_deg": s["lat"],
        "lon_deg": traffic.wrap(s["lon"]),
        "alt_ft": s["alt"] / air.FOOT_M,
        "u_true_m_s": u,
        "v_true_m_s": v,
        "gs_kt": np.hypot(east, north) / air.KNOT_M_S,
        "trk_deg": np.degrees(np.arctan2(east, north)) % 360,
        "tas_kt": s["tas"] / air.KNOT_M_S,
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
    noise_tas = rng.normal(0, config.airspeed_noise_kt, len(of)) * air.KNOT_M_S
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
    for block, (begin, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
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
    schema = TRUTH.with_metadata(
        {"simulate": json.dumps(config.model_dump(mode="json"), sort_keys=True)}
    )
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
