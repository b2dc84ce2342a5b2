"""What aircraft send: the six frames of an update, from the true state and what sensors read.

Registers as in encode.py. Shapes: N frames of one kind; F flights of a block.
"""

from dataclasses import dataclass

import numpy as np

from stages.units import FOOT_M, KNOT_M_S
from stages.winds.sky import air, encode, flight

# The six frames of an update; HEADING is 6,0 and TURN is 5,0.
POSITION, VELOCITY, HEADING, TURN, OTHER, CALL = range(6)
# What OTHER holds, update by update.
ROTATION = ("4,0", "2,0", "4,0", "1,7", "4,0", "empty", "4,0", "1,0")


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
    knots, feet, rate = 1 / KNOT_M_S, s["alt"] / FOOT_M, s["vs"] / flight.FT_MIN
    if kind == POSITION:
        return encode.position(s["lat"], s["lon"], feet, k % 2)
    if kind == VELOCITY:
        return encode.velocity(s["east"] * knots, s["north"] * knots, rate)
    if kind == HEADING:
        cas = air.cas_of_tas(sensed["tas"], s["alt"]) * knots
        mach = sensed["tas"] / air.sound_speed(s["alt"])
        return encode.bds60(sensed["heading"], cas, mach, rate, rate)
    if kind == TURN:
        turn = np.degrees(air.G_M_S2 * np.tan(np.radians(s["roll"])) / s["tas"])
        track = np.degrees(np.arctan2(s["east"], s["north"]))
        speed = np.hypot(s["east"], s["north"])
        return encode.bds50(s["roll"], track, speed * knots, turn, sensed["tas"] * knots)
    if kind == CALL:
        return encode.identification(who.callsign)
    selected = np.rint(s["target"] / FOOT_M / 100) * 100
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
) -> tuple[np.ndarray, np.ndarray]:
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
    code = np.where(identity, encode.identity13(who.squawk), encode.altitude13(s["alt"] / FOOT_M))
    return encode.reply(who.address, word, code, identity), short
