"""Registers and velocities: words written by the tables of Doc 9871, published frames, limits.

And which register a word can be: what is told apart, what stays ambiguous, how often random words
are accepted.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.winds.decoding import atmosphere
from stages.winds.modes import bds20, bds40, bds50, bds60, identify, messages, velocity

UNKNOWN = float("nan")


def word(*fields: tuple[int, int]) -> np.ndarray:
    """A 56-bit word [1] from (last bit, value) pairs; negative values in two's complement of 11
    bits or fewer."""
    return np.array([sum(value << (56 - last) for last, value in fields)], np.uint64)


def with_status(*fields: tuple) -> np.ndarray:
    """A word of (status bit, last bit, width, value) fields; None: status 0 and no value."""
    known = [
        (status, last, value % (1 << width))
        for status, last, width, value in fields
        if value is not None
    ]
    return word(
        *((status, 1) for status, _, _ in known), *((last, value) for _, last, value in known)
    )


def fifty(roll=0, track=0, ground=225, rate=0, air=230):
    """5,0 with raw counts; None: status bit 0."""
    return with_status(
        (1, 11, 10, roll),
        (12, 23, 11, track),
        (24, 34, 10, ground),
        (35, 45, 10, rate),
        (46, 56, 10, air),
    )


def sixty(heading=100, ias=270, mach=195, baro=0, inertial=0):
    """6,0 with raw counts; None: status bit 0."""
    return with_status(
        (1, 12, 11, heading),
        (13, 23, 10, ias),
        (24, 34, 10, mach),
        (35, 45, 10, baro),
        (46, 56, 10, inertial),
    )


def named(mb, altitude=UNKNOWN) -> str:
    return identify.NAMES[identify.candidates(mb, np.full(len(mb), altitude))[0]]


@given(
    st.integers(-284, 284),
    st.integers(-1024, 1023),
    st.integers(50, 350),
    st.integers(-512, 511),
    st.integers(-100, 100),
)
def test_track_and_turn(roll, track, ground, rate, wind):
    wind = int(np.clip(wind, -ground, 300 - ground))
    mb = fifty(roll, track, ground, rate, ground + wind)
    found = {name: value[0] for name, value in bds50.decode(mb).items()}
    assert found == {
        "roll_deg": roll * 45 / 256,
        "trk50_deg": track * 90 / 512 % 360,
        "gs50_kt": 2 * ground,
        "track_rate": rate * 8 / 256,
        "tas_kt": 2 * (ground + wind),
    }
    assert bds50.possible(mb)[0]


@given(
    st.integers(-1024, 1023),
    st.integers(0, 500),
    st.integers(0, 250),
    st.integers(-187, 187),
    st.integers(-62, 62),
)
def test_heading_and_speed(heading, ias, mach, rate, difference):
    inertial = int(np.clip(rate + difference, -187, 187))
    mb = sixty(heading, ias, mach, rate, inertial)
    found = {name: value[0] for name, value in bds60.decode(mb).items()}
    assert found == {
        "hdg_mag_deg": heading * 90 / 512 % 360,
        "ias_kt": ias,
        "mach": pytest.approx(mach * 0.004),
        "vr_baro": 32 * rate,
        "vr_ins": 32 * inertial,
    }
    assert bds60.possible(mb)[0]


@given(st.integers(0, 4095), st.integers(0, 4095), st.integers(0, 4095))
def test_selected_altitudes(mcp, fms, setting):
    mb = word(
        (1, 1),
        (13, mcp),
        (14, 1),
        (26, fms),
        (27, 1),
        (39, setting),
        (48, 1),
        (51, 5),
        (54, 1),
        (56, 2),
    )
    found = {name: value[0] for name, value in bds40.decode(mb).items()}
    assert found == {
        "sel_mcp_ft": 16 * mcp,
        "sel_fms_ft": 16 * fms,
        "qnh_hpa": pytest.approx(800 + setting / 10),
    }
    assert bds40.possible(mb)[0]
    for bit in [*range(40, 48), 52, 53]:
        assert not bds40.possible(mb | word((bit, 1)))[0]


@pytest.mark.parametrize(
    ("mb", "module"),
    [
        (fifty(roll=285), bds50),
        (fifty(ground=351, air=300), bds50),
        (fifty(ground=300, air=301), bds50),
        (fifty(air=351), bds50),
        (fifty(roll=None) | word((11, 1)), bds50),
        (sixty(ias=501), bds60),
        (sixty(mach=251), bds60),
        (sixty(baro=188, inertial=188), bds60),
        (sixty(baro=-188, inertial=-188), bds60),
        (sixty(baro=60, inertial=-60), bds60),
        (sixty(mach=None) | word((34, 1)), bds60),
        (word((13, 1)), bds40),
        (word(), bds40),
        (word(), bds50),
        (word(), bds60),
    ],
)
def test_impossible_words(mb, module):
    assert not module.possible(mb)[0]


def test_absent_fields_are_nan():
    for module, mb in (
        (bds50, fifty(None, None, None, None, 230)),
        (bds60, sixty(None, None, 195, None, None)),
        (bds40, word((1, 1))),
    ):
        assert sum(np.isfinite(value[0]) for value in module.decode(mb).values()) == 1


def test_published_registers():
    """Frames printed in the field's textbooks and libraries' manuals (values as printed)."""
    table = messages.decode(
        np.array(
            [
                "A000029C85E42F313000007047D3",
                "A000139381951536E024D4CCF6B5",
                "A00004128F39F91A7E27C46ADC21",
                "A000083E202CC371C31DE0AA1CCF",
            ]
        )
    )
    assert table["bds"].to_list() == ["40", "50", "60", "20"] and table["drop"].null_count() == 4
    forty, fifty_, sixty_, twenty = table.rows(named=True)
    assert (forty["sel_mcp_ft"], forty["sel_fms_ft"], forty["qnh_hpa"]) == (3008, 3008, 1020)
    assert (fifty_["roll_deg"], fifty_["gs50_kt"], fifty_["tas_kt"], fifty_["track_rate"]) == (
        pytest.approx(2.109375),
        438,
        424,
        0.125,
    )
    assert fifty_["trk50_deg"] == pytest.approx(114.258, abs=1e-3)
    assert (sixty_["ias_kt"], sixty_["vr_baro"], sixty_["vr_ins"]) == (252, -1920, -1920)
    assert (sixty_["hdg_mag_deg"], sixty_["mach"]) == (42.71484375, pytest.approx(0.42))
    assert twenty["callsign"] == "KLM1017"


def test_published_velocities():
    ground, air = messages.decode(
        np.array(["8D485020994409940838175B284F", "8DA05F219B06B6AF189400CBC33F"])
    ).rows(named=True)
    assert (ground["gs_kt"], ground["trk_deg"]) == pytest.approx((159.20, 182.88), abs=0.005)
    assert air["hdg19_deg"] == pytest.approx(243.98, abs=0.005) and (
        air["tas19_kt"],
        air["ias19_kt"],
    ) == (375, None)
    assert (ground["vertical_rate_fpm"], air["vertical_rate_fpm"]) == (-832, -2304)
    assert ground["hdg19_deg"] is None and air["gs_kt"] is None


@given(
    st.sampled_from([1, 2, 3, 4]),
    st.booleans(),
    st.integers(0, 1023),
    st.booleans(),
    st.integers(0, 1023),
    st.booleans(),
    st.integers(0, 511),
)
def test_velocity_fields(subtype, sign_x, x, sign_y, y, sign_rate, rate):
    me = word(
        (5, 19),
        (8, subtype),
        (14, int(sign_x)),
        (24, x),
        (25, int(sign_y)),
        (35, y),
        (37, int(sign_rate)),
        (46, rate),
    )
    found = {name: value[0] for name, value in velocity.decode(me).items()}
    scale = 4 if subtype in (2, 4) else 1
    expected = dict.fromkeys(found, UNKNOWN)
    if rate:
        expected["vertical_rate_fpm"] = (-64 if sign_rate else 64) * (rate - 1)
    if subtype <= 2 and x and y:
        vector = complex((-1 if sign_y else 1) * (y - 1), (-1 if sign_x else 1) * (x - 1)) * scale
        expected["gs_kt"] = abs(vector)
        expected["trk_deg"] = np.degrees(np.angle(vector)) % 360 if vector else UNKNOWN
    if subtype >= 3:
        expected["hdg19_deg"] = x * 360 / 1024 if sign_x else UNKNOWN
        if y:
            expected["tas19_kt" if sign_y else "ias19_kt"] = scale * (y - 1)
    assert found == pytest.approx(expected, nan_ok=True)


def test_callsigns():
    """Six bits a character: A = 1, space = 32, digits from 48."""

    def code(text):
        return word((8, 0x20), *((8 + 6 * (i + 1), ord(c) & 63) for i, c in enumerate(text)))

    assert (
        bds20.callsigns(code("KLM1023 ")).to_list() == ["KLM1023"]
        and bds20.possible(code("KLM1023 "))[0]
    )
    assert bds20.callsigns(code("        ")).to_list() == [None]
    bad = word((8, 0x20), (14, 27), (56, 1))
    assert bds20.callsigns(bad).to_list() == [None] and not bds20.possible(bad)[0]
    assert bds20.callsigns(np.empty(0, np.uint64)).to_list() == []


@pytest.mark.parametrize(
    ("mb", "altitude", "name"),
    [
        (word(), UNKNOWN, ""),
        (word((8, 0x10), (16, 1), (23, 5)), UNKNOWN, "10"),
        (word((8, 0x30), (10, 1), (28, 1), (30, 1)), 35000.0, "30"),
        (np.array([0xFA81C100000000], np.uint64), UNKNOWN, "17"),
        (fifty(12, 650, 225, 4, 230), UNKNOWN, "50"),
        (sixty(), 33_000.0, "60"),
        (sixty(), 10_000.0, ""),  # 270 kn is not Mach 0.78 there
        (sixty(ias=270, mach=75), UNKNOWN, ""),  # nor Mach 0.3 anywhere
        (
            word((4, 1), (5, 1), (14, 50), (23, 200), (34, -200 % 2048), (35, 1), (46, 250)),
            34_000.0,
            "44",
        ),
        (
            word((4, 1), (5, 1), (14, 50), (23, 200), (34, -200 % 2048), (35, 1), (46, 900)),
            34_000.0,
            "",
        ),  # 900 hPa is not FL340
        (word((16, 1), (26, -150 % 1024), (27, 1), (38, 262)), 33_000.0, "45"),
    ],
)
def test_which_register(mb, altitude, name):
    found = named(mb, altitude)
    assert name in found.split("|") if name == "17" else found == name


def test_ambiguity_between_50_and_60():
    """A word that fits both: left open, unless one reading contradicts itself."""
    rng = np.random.default_rng(0)
    pool = np.concatenate(
        [
            sixty(*row)
            for row in zip(
                rng.integers(0, 2048, 4000),
                rng.integers(90, 400, 4000),
                rng.integers(40, 230, 4000),
                rng.integers(0, 180, 4000),
                rng.integers(0, 180, 4000),
                strict=True,
            )
        ]
    )
    found = identify.candidates(pool, np.full(len(pool), UNKNOWN))
    pair = (found & identify.BIT["50"] != 0) & (found & identify.BIT["60"] != 0)
    assert 0 < pair.sum() < 1000
    assert bds50.turn_possible(pool[pair]).all()
    left = pool[bds50.possible(pool) & (found == identify.BIT["60"])]
    assert len(left) > 10 and not bds50.turn_possible(left).any()


def test_turns():
    """A level turn: rate = g tan(bank) / speed; 25 degrees at 450 kn is 1.13 degrees a second."""
    right = fifty(roll=142, ground=225, rate=36)  # 24.96 degrees, 450 kn, 1.125 degrees a second
    assert bds50.turn_possible(right)[0]
    assert not bds50.turn_possible(fifty(roll=142, ground=225, rate=-36))[0]
    assert bds50.turn_possible(fifty(roll=142, ground=225, rate=-512))[0]  # a default, not a rate
    assert bds50.turn_possible(fifty(roll=142, ground=0, rate=-36, air=0))[0]


def test_random_words_are_rarely_accepted():
    """The protocol's own rate of false acceptance; on 2 million words 1.1e-3, 1.2e-5, 4e-5."""
    mb = np.random.default_rng(0).integers(0, 1 << 56, 300_000, dtype=np.uint64)
    found = identify.candidates(mb, np.full(len(mb), 35_000.0))
    share = {name: (found == bit).mean() for name, bit in identify.BIT.items()}
    assert share["50"] < 1.4e-3 and share["60"] < 1e-4 and share["40"] < 2e-4


def test_consistency_helpers():
    alt = np.array([10_000.0, 35_000.0, 35_000.0, UNKNOWN, 35_000.0])
    mach = np.array([0.45, 0.78, 0.78, 0.78, UNKNOWN])
    ias = atmosphere.cas_from_mach(mach, alt) + np.array([0.0, 19.0, 21.0, 0.0, 0.0])
    assert identify.consistent_60(ias, mach, alt, 20.0).tolist() == [
        True,
        True,
        False,
        False,
        False,
    ]
    limits = SimpleNamespace(track_difference_max_deg=10.0, groundspeed_difference_max_kt=20.0)
    found = identify.consistent_50(
        [400, 400, 400, 421, 400],
        [358, 9, 11, 0, UNKNOWN],
        [400] * 5,
        [0.0, 0.0, 0.0, 0.0, 0.0],
        limits,
    )
    assert found.tolist() == [True, True, False, False, False]
