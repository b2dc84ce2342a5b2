"""Aircraft state to Mode-S frames, columns at a time (ICAO Doc 9871 for the registers, RTCA DO-260B
for ADS-B).

Every field is rounded to its register's step, packed into a 56-bit word, framed with its header and
closed with the 24-bit parity: plain for DF17 and DF11 (interrogator code 0), overlaid with the
address for DF20 and DF21.
Shapes: N frames; a word is uint64 (N,) with the 56 bits in its low end; a frame is uint8 (N, 14),
short ones in the first 7.
Units: degrees, ft, kt, ft/min, Mach 1.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

GENERATOR = 0xFFF409  # the parity polynomial without its leading one
CHARACTERS = (
    {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1)}
    | {" ": 32}
    | {d: ord(d) for d in "0123456789"}
)
LONG, SHORT = 14, 7
NL_LATITUDES = np.degrees(
    np.arccos(np.sqrt((1 - np.cos(np.pi / 30)) / (1 - np.cos(2 * np.pi / np.arange(59, 1, -1)))))
)


def pack(*fields: "tuple[ArrayLike, int]") -> np.ndarray:
    """Join (value, bits) pairs, first field highest, into uint64 words; negative values become
    two's complement."""
    word: Any = np.uint64(0)
    for value, bits in fields:
        value = (np.asarray(value).astype(np.int64) & ((1 << bits) - 1)).astype(np.uint64)
        word = (word << np.uint64(bits)) | value
    return word


def steps(value: "ArrayLike", step: float, low: int, high: int) -> np.ndarray:
    """`value` in whole steps, held inside [low, high]."""
    return np.clip(np.rint(np.asarray(value) / step), low, high).astype(np.int64)


def angle(degrees: "ArrayLike") -> np.ndarray:
    """An angle in the registers' 90/512 degrees, 11 bits two's complement."""
    return np.rint(np.asarray(degrees) / (90 / 512)).astype(np.int64) % 2048


def _table() -> np.ndarray:
    crc = np.arange(256, dtype=np.uint32) << 16
    for _ in range(8):
        crc = np.where(crc & 0x800000, (crc << 1) ^ GENERATOR, crc << 1) & 0xFFFFFF
    return crc.astype(np.uint32)


TABLE = _table()


def parity(octets: np.ndarray) -> np.ndarray:
    """The 24 parity bits of uint8 (N, B), as uint32 (N,)."""
    crc = np.zeros(len(octets), np.uint32)
    for column in octets.T:
        crc = TABLE[(crc >> 16) ^ column] ^ ((crc << 8) & 0xFFFFFF)
    return crc


def frames(header: np.ndarray, word: np.ndarray, overlay: np.ndarray) -> np.ndarray:
    """112-bit frames, uint8 (N, 14), from a 32-bit header, a 56-bit word and the address to
    overlay (0 for none)."""
    out = np.empty((len(header), LONG), np.uint8)
    out[:, :4] = header.astype(">u4").view(np.uint8).reshape(-1, 4)
    out[:, 4:11] = word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 1:]
    out[:, 11:] = (
        (parity(out[:, :11]) ^ overlay.astype(np.uint32))
        .astype(">u4")
        .view(np.uint8)
        .reshape(-1, 4)[:, 1:]
    )
    return out


def all_call(address: np.ndarray) -> np.ndarray:
    """DF11 frames, 56 bits in the first 7 octets of uint8 (N, 14): level-2 transponder in the
    air, interrogator code 0."""
    out = np.zeros((len(address), LONG), np.uint8)
    out[:, :4] = pack((11, 5), (5, 3), (address, 24)).astype(">u4").view(np.uint8).reshape(-1, 4)
    out[:, 4:7] = parity(out[:, :4]).astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    return out


def squitter(address: np.ndarray, word: np.ndarray) -> np.ndarray:
    """DF17 frames, uint8 (N, 14)."""
    return frames(pack((17, 5), (5, 3), (address, 24)), word, np.zeros(len(address)))


def reply(
    address: np.ndarray, word: np.ndarray, code13: np.ndarray, identity: np.ndarray
) -> np.ndarray:
    """Comm-B replies, uint8 (N, 14): DF21 where `identity`, else DF20, with its 13-bit code;
    parity overlaid with the address."""
    return frames(
        pack((np.where(identity, 21, 20), 5), (0, 3), (0, 5), (0, 6), (code13, 13)), word, address
    )


def altitude13(alt_ft: "ArrayLike") -> np.ndarray:
    """The 13-bit altitude code in 25-ft steps (M = 0, Q = 1), -1000 to 50,175 ft."""
    n = steps(np.asarray(alt_ft) + 1000, 25, 0, 2047)
    return pack((n >> 5, 6), (0, 1), (n >> 4, 1), (1, 1), (n, 4)).astype(np.int64)


def identity13(squawk: "ArrayLike") -> np.ndarray:
    """The 13-bit identity code of four octal digits ABCD given as one number: C1 A1 C2 A2 C4 A4
    0 B1 D1 B2 D2 B4 D4."""
    a, b, c, d = (np.asarray(squawk) >> shift for shift in (9, 6, 3, 0))
    order = (
        (c, 0),
        (a, 0),
        (c, 1),
        (a, 1),
        (c, 2),
        (a, 2),
        (0, 0),
        (b, 0),
        (d, 0),
        (b, 1),
        (d, 1),
        (b, 2),
        (d, 2),
    )
    return pack(*((digit >> bit, 1) for digit, bit in order)).astype(np.int64)


def zones(lat: "ArrayLike") -> np.ndarray:
    """NL: the number of longitude zones at a latitude, 1 to 59."""
    lat = np.abs(np.asarray(lat, float))
    return np.where(lat > 87, 1, 59 - np.searchsorted(NL_LATITUDES, lat, side="right").clip(0, 57))


def position(
    lat: "ArrayLike", lon: "ArrayLike", alt_ft: "ArrayLike", odd: "ArrayLike"
) -> np.ndarray:
    """ADS-B airborne position, type code 11: barometric altitude, 17-bit compact position, even
    or odd."""
    lat, lon, odd = np.asarray(lat, float), np.asarray(lon, float), np.asarray(odd, np.int64)
    size = 360 / (60 - odd)
    y = np.floor(2**17 * (lat % size) / size + 0.5)
    seen = size * (
        y / 2**17 + np.floor(lat / size)
    )  # the latitude a receiver will read decides the longitude zones
    size = 360 / np.maximum(zones(seen) - odd, 1)
    x = np.floor(2**17 * (lon % size) / size + 0.5)
    code = altitude13(alt_ft)
    altitude = ((code >> 7) << 6) | (code & 0x3F)  # without the M bit
    return pack((11, 5), (0, 2), (0, 1), (altitude, 12), (0, 1), (odd, 1), (y, 17), (x, 17))


def velocity(east_kt: "ArrayLike", north_kt: "ArrayLike", rate_ft_min: "ArrayLike") -> np.ndarray:
    """ADS-B airborne velocity over ground, subtype 1: 1 kt, barometric vertical rate in 64
    ft/min."""
    east = steps(east_kt, 1, -1022, 1022)
    north = steps(north_kt, 1, -1022, 1022)
    rate = steps(rate_ft_min, 64, -510, 510)
    return pack(
        (19, 5),
        (1, 3),
        (0, 1),
        (1, 1),
        (2, 3),
        (east < 0, 1),
        (np.abs(east) + 1, 10),
        (north < 0, 1),
        (np.abs(north) + 1, 10),
        (1, 1),
        (rate < 0, 1),
        (np.abs(rate) + 1, 9),
        (0, 2),
        (0, 1),
        (0, 7),
    )


def characters(text: list[str]) -> np.ndarray:
    """Callsigns as one 48-bit word each: eight 6-bit characters, padded with spaces, uint64
    (N,)."""
    codes = np.array([[CHARACTERS[c] for c in name.ljust(8)] for name in text], np.int64).reshape(
        -1, 8
    )
    return pack(*((codes[:, i], 6) for i in range(8)))


def identification(callsign48: "ArrayLike") -> np.ndarray:
    """ADS-B identification, type code 4, category 3 (large)."""
    return pack((4, 5), (3, 3), (callsign48, 48))


def bds20(callsign48: "ArrayLike") -> np.ndarray:
    """Register 2,0: aircraft identification."""
    return pack((0x20, 8), (callsign48, 48))


def bds10(n: int) -> np.ndarray:
    """Register 1,0: data-link capability (Mode-S specific services, aircraft identification)."""
    return np.repeat(pack((0x10, 8), (0, 9), (3, 7), (1, 1), (0, 7), (1, 1), (0, 23)), n)


def bds17(n: int) -> np.ndarray:
    """Register 1,7: the registers that are served (0,5 0,6 0,7 0,8 0,9; 2,0; 4,0; 5,0; 6,0)."""
    served = [i in (0, 1, 2, 3, 4, 6, 8, 15, 23) for i in range(24)]
    return np.repeat(pack(*((bit, 1) for bit in served), (0, 32)), n)


def bds40(selected_ft: "ArrayLike", pressure_hpa: "ArrayLike") -> np.ndarray:
    """Register 4,0: selected altitude of the autopilot panel and of the flight management system
    (16 ft), pressure setting."""
    alt = steps(selected_ft, 16, 0, 4095)
    return pack(
        (1, 1),
        (alt, 12),
        (1, 1),
        (alt, 12),
        (1, 1),
        (steps(np.asarray(pressure_hpa) - 800, 0.1, 0, 4095), 12),
        (0, 8),
        (1, 1),
        (0, 3),
        (0, 2),
        (1, 1),
        (2, 2),
    )


def bds50(
    roll_deg: "ArrayLike",
    track_deg: "ArrayLike",
    groundspeed_kt: "ArrayLike",
    track_rate_deg_s: "ArrayLike",
    tas_kt: "ArrayLike",
) -> np.ndarray:
    """Register 5,0: roll 45/256 deg, track 90/512 deg, ground speed 2 kt, track rate 8/256
    deg/s, true airspeed 2 kt."""
    return pack(
        (1, 1),
        (steps(roll_deg, 45 / 256, -512, 511), 10),
        (1, 1),
        (angle(track_deg), 11),
        (1, 1),
        (steps(groundspeed_kt, 2, 0, 1023), 10),
        (1, 1),
        (steps(track_rate_deg_s, 8 / 256, -512, 511), 10),
        (1, 1),
        (steps(tas_kt, 2, 0, 1023), 10),
    )


def bds60(
    heading_deg: "ArrayLike",
    ias_kt: "ArrayLike",
    mach: "ArrayLike",
    baro_ft_min: "ArrayLike",
    inertial_ft_min: "ArrayLike",
) -> np.ndarray:
    """Register 6,0: magnetic heading 90/512 deg, indicated airspeed 1 kt, Mach 2.048/512,
    vertical rates 32 ft/min."""
    return pack(
        (1, 1),
        (angle(heading_deg), 11),
        (1, 1),
        (steps(ias_kt, 1, 0, 1023), 10),
        (1, 1),
        (steps(mach, 2.048 / 512, 0, 1023), 10),
        (1, 1),
        (steps(baro_ft_min, 32, -512, 511), 10),
        (1, 1),
        (steps(inertial_ft_min, 32, -512, 511), 10),
    )


def flip(
    octets: np.ndarray, which: np.ndarray, short: np.ndarray, rng: np.random.Generator
) -> None:
    """Flip one, two or three different random bits of the frames numbered `which`, in place."""
    size = np.where(short[which], SHORT * 8, LONG * 8)
    one, two, three = ((rng.random(len(which)) * (size - i)).astype(np.int64) for i in range(3))
    two += two >= one
    low, high = np.minimum(one, two), np.maximum(one, two)
    three += three >= low
    three += three >= high
    hits = rng.integers(1, 4, len(which))
    for i, bit in enumerate((one, two, three)):
        rows, bit = which[hits > i], bit[hits > i]
        octets[rows, bit // 8] ^= (0x80 >> (bit % 8)).astype(np.uint8)


def lines(time_ms: np.ndarray, octets: np.ndarray, short: np.ndarray) -> bytes:
    """The text `seconds.mmm,HEX` and a line feed for each frame; times are Unix milliseconds of
    13 digits."""
    digits = np.frombuffer(b"0123456789ABCDEF", np.uint8)
    out = np.empty((len(time_ms), 10 + 1 + 3 + 1 + 2 * LONG + 1), np.uint8)
    rest = time_ms.astype(np.int64)
    for column in (13, 12, 11, *range(9, -1, -1)):
        rest, digit = rest // 10, rest % 10
        out[:, column] = digits[digit]
    out[:, 10], out[:, 14], out[:, -1] = ord("."), ord(","), ord("\n")
    out[:, 15:-1:2], out[:, 16:-1:2] = digits[octets >> 4], digits[octets & 15]
    keep = np.ones(out.shape, bool)
    keep[short, 15 + 2 * SHORT : -1] = False
    return out[keep].tobytes()
