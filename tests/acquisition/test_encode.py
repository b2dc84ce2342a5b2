"""Frames are what an independent decoder (rs1090) reads as the quantised state, with the right
parity."""

import re

import numpy as np
import pytest

from stages.winds.sky import encode

rs1090 = pytest.importorskip("rs1090")
N = 60


def text(octets, short=None):
    """Frames as hex strings."""
    lines = encode.lines(
        np.full(len(octets), 1700000000123),
        octets,
        np.zeros(len(octets), bool) if short is None else short,
    )
    return [line.split(",")[1] for line in lines.decode().splitlines()]


def rounded(values, step):
    return np.rint(np.asarray(values) / step) * step


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def decoded(word, rng, identity=False, squawk=0o1234, alt_ft=30000.0):
    address = rng.integers(0x3C0000, 0x3FFFFF, len(word))
    code = np.full(
        len(word), (encode.identity13(squawk) if identity else encode.altitude13(alt_ft))
    )
    messages = [
        rs1090.decode(frame)
        for frame in text(encode.reply(address, word, code, np.full(len(word), identity)))
    ]
    assert [int(m["icao24"], 16) for m in messages] == list(
        address
    )  # the overlaid parity gives the address back
    return messages


def test_parity_of_frames_from_the_air():
    for known in (
        "8D406B902015A678D4D220AA4BDA",
        "8D40621D58C382D690C8AC2863A7",
        "8D485020994409940838175B284F",
    ):
        octets = np.frombuffer(bytes.fromhex(known), np.uint8)[None]
        assert encode.parity(octets[:, :11])[0] == int(known[-6:], 16)
        assert encode.parity(octets)[0] == 0


def test_register_60(rng):
    heading, ias, mach = rng.uniform(0, 360, N), rng.uniform(200, 330, N), rng.uniform(0.5, 0.86, N)
    baro, inertial = rng.uniform(-2500, 2500, N), rng.uniform(-2500, 2500, N)
    read = [m["bds60"] for m in decoded(encode.bds60(heading, ias, mach, baro, inertial), rng)]
    assert [m["heading"] for m in read] == pytest.approx(list(rounded(heading, 90 / 512) % 360))
    assert [m["IAS"] for m in read] == list(np.rint(ias))
    assert [m["Mach"] for m in read] == pytest.approx(list(rounded(mach, 0.004)))
    for name, rate in (
        ("vrate_barometric", rounded(baro, 32)),
        ("vrate_inertial", rounded(inertial, 32)),
    ):
        assert [m[name] for m in read] == pytest.approx(
            list(np.where(rate == -32, 0, rate))
        )  # the oracle shows -32 as 0


def test_register_50(rng):
    roll, track, rate = rng.uniform(-25, 25, N), rng.uniform(-180, 180, N), rng.uniform(-3, 3, N)
    speed = rng.uniform(300, 500, N)
    tas = speed + rng.uniform(-50, 50, N)
    rate = np.copysign(rate, roll)
    messages = list(decoded(encode.bds50(roll, track, speed, rate, tas), rng, identity=True))
    assert {m["squawk"] for m in messages} == {"1234"}
    read = [m["bds50"] for m in messages]
    assert [m["roll"] for m in read] == pytest.approx(list(rounded(roll, 45 / 256)))
    assert [m["track"] for m in read] == pytest.approx(list(rounded(track, 90 / 512) % 360))
    assert [m["groundspeed"] for m in read] == list(rounded(speed, 2))
    assert [m["track_rate"] for m in read] == pytest.approx(list(rounded(rate, 8 / 256)))
    assert [m["TAS"] for m in read] == list(rounded(tas, 2))


def test_angles_go_round():
    assert list(encode.angle(np.array([0.0, 359.99, 180.0, -180.0, 90.0, -90.0]))) == [
        0,
        0,
        1024,
        1024,
        512,
        1536,
    ]


def test_register_40(rng):
    selected = rng.integers(130, 400, N) * 100.0
    read = [m["bds40"] for m in decoded(encode.bds40(selected, np.full(N, 1013.2)), rng)]
    assert (
        np.abs(np.array([m["selected_mcp"] for m in read]) - selected).max() <= 8
    )  # rs1090 gives whole hundreds
    assert [m["barometric_setting"] for m in read] == pytest.approx([1013.2] * N)


def test_callsigns_in_register_20_and_squitter(rng):
    names = ["TWA123", "KLM1", "ABCDEFGH", "Z9", "NOPQ78XY"] * 12
    word = encode.characters(names)
    assert [m["bds20"]["callsign"].strip() for m in decoded(encode.bds20(word), rng)] == names
    assert [
        rs1090.decode(f)["callsign"].strip()
        for f in text(encode.squitter(np.arange(1, N + 1), encode.identification(word)))
    ] == names


def test_registers_without_wind_are_not_taken_for_one(rng):
    for word in (encode.bds10(3), encode.bds17(3), np.zeros(3, np.uint64)):
        for message in decoded(word, rng):
            assert not {"bds40", "bds50", "bds60", "bds20"} & set(message)


def test_altitude_and_identity_codes(rng):
    alt = np.arange(0, 50000, 175.0)
    empty, address = np.zeros(len(alt), np.uint64), np.full(len(alt), 0x3C1234)
    frames = text(encode.reply(address, empty, encode.altitude13(alt), np.zeros(len(alt), bool)))
    assert [rs1090.decode(f)["altitude"] for f in frames] == list(alt)
    squawk = rng.integers(0, 4096, 200)
    frames = text(
        encode.reply(
            np.full(200, 0x3C1234),
            np.zeros(200, np.uint64),
            encode.identity13(squawk),
            np.ones(200, bool),
        )
    )
    assert [rs1090.decode(f)["squawk"] for f in frames] == [f"{s:04o}" for s in squawk]
    assert list(encode.altitude13(np.array([12012.4, 12012.6]))) == [
        encode.altitude13(12000.0),
        encode.altitude13(12025.0),
    ]


def test_longitude_zones_at_their_published_borders():
    # DO-260B, table A-21: the last latitude of a zone count
    for border, inside in (
        (10.47047130, 59),
        (45.54626723, 42),
        (59.95459277, 30),
        (80.24923213, 10),
        (86.53536998, 3),
        (87.0, 2),
    ):
        assert encode.zones(border - 1e-7) == inside and encode.zones(border + 1e-7) == inside - 1
        assert encode.zones(-border + 1e-7) == inside
    assert encode.zones(0.0) == 59 and encode.zones(89.0) == 1


def test_positions_decode_within_ten_metres(rng):
    lat = np.concatenate([rng.uniform(44, 49.4, 200), rng.uniform(-80, 80, 200)])
    lon = np.concatenate([rng.uniform(4, 10.6, 200), rng.uniform(-180, 180, 200)])
    alt = rng.uniform(13000, 39000, 400)
    address = np.arange(0x3C0001, 0x3C0001 + 400)
    frames = [
        text(encode.squitter(address, encode.position(lat, lon, alt, np.full(400, odd))))
        for odd in (0, 1)
    ]
    read = rs1090.decode(
        [f for pair in zip(*frames, strict=True) for f in pair],
        [1.7e9 + i / 100 for i in range(800)],
    )
    read = [m for m in read if "latitude" in m and m["parity"] == "odd"]
    assert len(read) > 395  # a pair astride a change of zones has no position
    error = []
    for m in read:
        i = int(m["icao24"], 16) - 0x3C0001
        error.append(
            111195
            * np.hypot(
                m["latitude"] - lat[i],
                ((m["longitude"] - lon[i] + 180) % 360 - 180) * np.cos(np.radians(lat[i])),
            )
        )
        assert m["altitude"] == rounded(alt[i], 25)
    assert max(error) < 10


def test_velocity(rng):
    east = rng.uniform(-550, 550, N)
    north = rng.uniform(-550, 550, N)
    rate = rng.uniform(-3000, 3000, N)
    read = [
        rs1090.decode(f)
        for f in text(encode.squitter(np.arange(1, N + 1), encode.velocity(east, north, rate)))
    ]
    east, north = np.rint(east), np.rint(north)
    assert [m["groundspeed"] for m in read] == pytest.approx(list(np.hypot(east, north)))
    assert [m["track"] for m in read] == pytest.approx(
        list(np.degrees(np.arctan2(east, north)) % 360)
    )
    assert [m["vertical_rate"] for m in read] == pytest.approx(list(rounded(rate, 64)))


def test_all_call():
    octets = encode.all_call(np.array([0x3C1234, 0x4B0001]))
    frames = text(octets, np.ones(2, bool))
    assert [len(f) for f in frames] == [14, 14]
    read = [rs1090.decode(f) for f in frames]
    assert [(m["df"], m["icao24"], m["capability"]) for m in read] == [
        ("11", "3c1234", "airborne"),
        ("11", "4b0001", "airborne"),
    ]
    assert encode.parity(octets[:, :7]).tolist() == [0, 0]


def test_flipped_bits_are_one_to_three_and_inside_the_frame(rng):
    octets = np.zeros((9000, 14), np.uint8)
    short = np.arange(9000) % 3 == 0
    which = np.arange(0, 9000, 2)
    encode.flip(octets, which, short, rng)
    bits = np.unpackbits(octets, axis=1)
    count = bits.sum(1)
    assert (count[1::2] == 0).all()
    assert set(count[which]) == {1, 2, 3}
    assert np.bincount(count[which], minlength=4)[1:] == pytest.approx([1500] * 3, rel=0.1)
    assert (bits[short][:, 56:] == 0).all()
    assert bits.sum(0).min() > 0  # every bit can be hit


def test_lines_are_time_and_hex():
    octets = np.arange(42, dtype=np.uint8).reshape(3, 14) * 6
    lines = encode.lines(
        np.array([1768456800003, 1768456800250, 1768456801000]),
        octets,
        np.array([False, True, False]),
    ).decode()
    assert lines.endswith("\n")
    found = [
        re.fullmatch(r"(\d{10}\.\d{3}),([0-9A-F]{14}|[0-9A-F]{28})", line).groups()
        for line in lines.splitlines()
    ]
    assert [t for t, _ in found] == ["1768456800.003", "1768456800.250", "1768456801.000"]
    assert [bytes.fromhex(h) for _, h in found] == [
        octets[0].tobytes(),
        octets[1, :7].tobytes(),
        octets[2].tobytes(),
    ]
