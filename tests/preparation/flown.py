"""Frames of a straight, level flight for the decode tests: every register of every second, from
a stated state."""

import numpy as np
import polars as pl

from stages.winds.decoding import atmosphere
from stages.winds.modes import messages
from stages.winds.sky import encode

START_S = 1_768_460_400.0
ADDRESS = 0x3C1234
STATE = {
    "gs_kt": 450.0,
    "trk_deg": 60.0,
    "hdg_mag_deg": 55.0,
    "ias_kt": 270.0,
    "alt_ft": 34_000.0,
    "roll_deg": 0.0,
}


def text(octets: np.ndarray) -> list[str]:
    return [row.tobytes().hex().upper() for row in octets]


def one(value) -> np.ndarray:
    return np.atleast_1d(np.asarray(value, float))


def sixty(address=ADDRESS, identity=False, **state) -> str:
    """A reply with register 6,0."""
    s = STATE | state
    mach = s.get("mach", float(atmosphere.mach_from_cas(s["ias_kt"], s["alt_ft"])))
    word = encode.bds60(one(s["hdg_mag_deg"]), one(s["ias_kt"]), one(mach), one(0), one(0))
    return reply(word, address, identity, s["alt_ft"])


def fifty(address=ADDRESS, identity=False, **state) -> str:
    """A reply with register 5,0; its true airspeed is the standard one of the state's airspeed
    unless given."""
    s = STATE | state
    tas = s.get("tas_kt", float(atmosphere.tas_from_cas(s["ias_kt"], s["alt_ft"])))
    word = encode.bds50(one(s["roll_deg"]), one(s["trk_deg"]), one(s["gs_kt"]), one(0), one(tas))
    return reply(word, address, identity, s["alt_ft"])


def reply(word: np.ndarray, address=ADDRESS, identity=False, alt_ft=34_000.0) -> str:
    code = encode.identity13(np.array([0o1234])) if identity else encode.altitude13(one(alt_ft))
    return text(encode.reply(np.array([address]), word, code, np.array([identity])))[0]


def place(t: float) -> tuple[float, float]:
    """Where the flight is t seconds after the start."""
    metres = STATE["gs_kt"] * 1852 / 3600 * t
    track = np.radians(STATE["trk_deg"])
    return 46.0 + np.degrees(metres * np.cos(track) / 6.371e6), 6.0 + np.degrees(
        metres * np.sin(track) / 6.371e6 / np.cos(np.radians(46))
    )


def squitters(t: float, odd: bool, address=ADDRESS, **state) -> list[str]:
    """An ADS-B position and velocity at t."""
    s = STATE | state
    lat, lon = place(t)
    speed, track = s["gs_kt"], np.radians(s["trk_deg"])
    words = (
        encode.position(one(lat), one(lon), one(s["alt_ft"]), one(odd)),
        encode.velocity(one(speed * np.sin(track)), one(speed * np.cos(track)), one(0)),
    )
    return [text(encode.squitter(np.array([address]), word))[0] for word in words]


def lines(seconds: int = 20) -> list[tuple[float, str]]:
    """(time, frame) of the flight: each second position and velocity, then 5,0, then 6,0."""
    result = []
    for t in range(seconds):
        result += [(START_S + t, frame) for frame in squitters(t, bool(t % 2))]
        result += [(START_S + t + 0.2, fifty()), (START_S + t + 0.3, sixty())]
    return result


def decoded(rows: list[tuple[float, str]], file: str = "a.csv") -> pl.DataFrame:
    """Lines as `decode` hands them to `states`."""
    frames = pl.DataFrame(
        {
            "ts_s": [t for t, _ in rows],
            "hex": [h for _, h in rows],
            "file": file,
            "record": pl.Series(range(len(rows)), dtype=pl.UInt32),
        }
    )
    return pl.concat([frames, messages.decode(frames["hex"])], how="horizontal").with_columns(
        carried=pl.lit(False)
    )
