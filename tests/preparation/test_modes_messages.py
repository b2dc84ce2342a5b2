"""Frames to columns.

Oracles: golden_v2.json (pyModeS 2) and rs1090; the real captures; every reason of a drop; any text
at all.
"""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import rs1090
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.winds.modes import crc, frames, identify, messages

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s/pyModeS"
FIELDS = {
    "df": "df",
    "icao": "icao",
    "typecode": "typecode",
    "altitude": "altitude_ft",
    "callsign": "callsign",
    "cpr_format": "cpr_odd",
    "track": "trk_deg",
    "vertical_rate": "vertical_rate_fpm",
    "bds": "bds",
    "roll": "roll_deg",
    "true_track": "trk50_deg",
    "track_rate": "track_rate",
    "true_airspeed": "tas_kt",
    "magnetic_heading": "hdg_mag_deg",
    "indicated_airspeed": "ias_kt",
    "mach": "mach",
    "baro_vertical_rate": "vr_baro",
    "inertial_vertical_rate": "vr_ins",
    "selected_altitude_mcp": "sel_mcp_ft",
    "selected_altitude_fms": "sel_fms_ft",
    "baro_pressure_setting": "qnh_hpa",
}
KLM = "8D4840D6202CC371C32CE0576098"


def mirror(name: str) -> Path:
    path = MIRROR / name
    if not path.exists():
        pytest.skip(f"{name} is not in the mirror")
    return path


def seal(head: str, overlay: int = 0) -> str:
    """A frame from all but its parity; overlay: address or interrogator to put on the parity."""
    octets = np.frombuffer(bytes.fromhex(head.rjust(22, "0") + "000000"), np.uint8)
    return head + f"{int(crc.remainder(octets[:, None])[0]) ^ overlay:06X}"


def plain(name: str, value):
    """Golden values in our spelling: register names, callsigns padded with underscores,
    lower-case addresses."""
    if name == "bds":
        return value.replace("BDS", "").replace(",", "|")
    return {"callsign": lambda text: text.rstrip("_"), "icao": str.upper}.get(
        name, lambda other: other
    )(value)


def compare(golden: dict) -> tuple[int, Counter]:
    """Number of fields both define and the differences: name, or for registers (theirs, ours)."""
    table = messages.decode(np.array(list(golden)))
    compared, different = 0, Counter()
    for expected, row in zip(golden.values(), table.iter_rows(named=True), strict=True):
        ours = FIELDS | {"groundspeed": "gs_kt" if expected["df"] == 17 else "gs50_kt"}
        for name in expected.keys() & ours.keys():
            theirs, found = expected[name], row[ours[name]]
            if theirs is None:
                continue
            compared += 1
            theirs = plain(name, theirs)
            same = (
                found == theirs
                if isinstance(theirs, str)
                else found is not None and abs(found - theirs) < 1e-9
            )
            if not same:
                different[(theirs, found) if name == "bds" else name] += 1
                if name == "groundspeed":
                    assert int(found) == theirs, "they cut off the fraction, nothing else"
    return compared, different


def test_golden():
    """3,937 fields; 20 registers that they leave open and we decide by physics, always for one
    of theirs; 14 speeds they cut off."""
    golden = json.loads(mirror("golden_v2.json").read_text())
    compared, different = compare(golden)
    assert compared == 3937
    assert different == {
        "groundspeed": 14,  # we keep the fraction
        ("40|45", "40"): 8,  # 4,5's static pressure is not that of the altitude
        ("45|60", "60"): 2,  # the same
        ("50|60", "50"): 9,  # 6,0's two vertical rates, or airspeed and Mach, contradict each other
        ("50|60", "60"): 1,  # 5,0's bank does not fly 5,0's turn
    }
    assert sum(different.values()) / compared < 0.01
    table = messages.decode(np.array(list(golden)))
    nameless = pl.Series(
        [expected["df"] > 17 and not expected.get("bds") for expected in golden.values()]
    )
    assert table.filter(nameless)["drop"].to_list() == ["bds_none"]


@pytest.mark.parametrize(
    ("name", "same", "counts"),
    [
        ("df20", 0.9994, {"10": 98, "20": 123, "40": 1912, "50": 680, "60": 1637}),
        ("df21", 1.0, {"20": 199, "40": 851, "50": 1699, "60": 1795}),
    ],
)
def test_real_comm_b(name, same, counts):
    """Address as in the file (the data README's share) and at least as many registers as pyModeS
    2 found there."""
    path = mirror(f"sample_data_commb_{name}.csv")
    lines = pl.read_csv(
        path, has_header=False, schema={"ts": pl.Float64, "icao": pl.String, "hex": pl.String}
    )
    table = messages.decode(lines["hex"])
    assert (table["icao"] == lines["icao"]).mean() == pytest.approx(same, abs=1e-9)
    found = dict(table["bds"].value_counts().iter_rows())
    assert all(found[register] >= number for register, number in counts.items())
    drop = dict(table["drop"].value_counts().iter_rows())
    assert drop["bds_ambiguous"] < 250 and drop.get("bds_none", 0) <= 4 and drop[None] > 4600


def test_decided_registers_agree_with_their_aircraft():
    """False acceptance, from outside: a speed read from 5,0 or 6,0 is near the one before or
    after of the same aircraft."""
    tables = []
    for name in ("df20", "df21"):
        reading = frames.read(mirror(f"sample_data_commb_{name}.csv")).frames
        tables.append(pl.concat([reading, messages.decode(reading["hex"])], how="horizontal"))
    table = pl.concat(tables).filter(pl.col("drop").is_null()).sort("icao", "ts_s")
    for register, speed, number in (("50", "gs50_kt", 2000), ("60", "ias_kt", 2700)):
        part = table.filter(
            (pl.col("bds") == register) & (pl.len().over("icao", "bds") >= 3)
        ).drop_nulls(speed)
        steps = [
            (part[speed] - part.select(pl.col(speed).shift(way).over("icao")).to_series()).abs()
            for way in (1, -1)
        ]
        apart = pl.select(pl.min_horizontal(*steps)).to_series().drop_nulls()
        assert len(apart) > number and (apart > 15).sum() == 0, register


def test_real_adsb_as_rs1090():
    reading = frames.read(mirror("sample_data_adsb.csv")).frames
    table = messages.decode(reading["hex"])
    assert (
        table["crc_ok"].all()
        and set(table["typecode"]) == {4, 11, 19}
        and table["drop"].null_count() == len(table)
    )
    for row, theirs in zip(
        table.iter_rows(named=True), rs1090.decode(reading["hex"].to_list()), strict=True
    ):
        assert row["icao"].lower() == theirs["icao24"]
        if row["typecode"] == 19:
            assert (row["gs_kt"], row["trk_deg"]) == (
                pytest.approx(theirs["groundspeed"]),
                pytest.approx(theirs["track"]),
            )
            assert row["vertical_rate_fpm"] == theirs.get("vertical_rate")
        elif row["typecode"] == 11:
            assert (row["altitude_ft"], row["cpr_odd"]) == (
                theirs["altitude"],
                theirs["parity"] == "odd",
            )
            assert (row["cpr_lat"], row["cpr_lon"]) == (theirs["lat_cpr"], theirs["lon_cpr"])
        else:
            assert row["callsign"] == theirs["callsign"]


def test_every_flipped_bit_of_a_squitter_is_caught():
    value = int(KLM, 16)
    table = messages.decode(np.array([f"{value ^ (1 << bit):028X}" for bit in range(112)]))
    other_format = pl.Series(
        np.arange(112) >= 107
    )  # the first five bits: then it is another kind of frame
    assert (table.filter(~other_format)["drop"] == "bad_crc").all() and not table.filter(
        ~other_format
    )["crc_ok"].any()
    assert table.filter(~other_format).select(pl.col("callsign", "icao").is_null().all()).row(
        0
    ) == (True, True)
    # as a reply of another format (DF16, 21) it has no check of its own, but its address is not the
    # aircraft's
    assert not (table["icao"] == "4840D6").any()


@pytest.mark.parametrize(
    ("text", "df", "drop"),
    [
        ("", None, "not_hex"),
        (None, None, "not_hex"),
        ("XYZ", None, "not_hex"),
        (KLM[:-1] + "é", None, "not_hex"),
        (KLM[:-2] + "é", None, "not_hex"),
        (KLM[:-1] + "G", None, "not_hex"),
        ("8D", None, "wrong_length"),
        (KLM + "00", None, "wrong_length"),
        (KLM[:14], 17, "wrong_length"),
        ("02E197B00179C3" * 2, 0, "wrong_length"),
        (seal("8D4840D6" + "28" + "00" * 6), 17, "typecode_not_used"),
        (seal("904840D6202CC371C32CE0"), 18, None),
        (seal("924840D6202CC371C32CE0"), 18, "df_not_used"),
        (seal("984840D6202CC371C32CE0"), 19, "df_not_used"),
        ("C0" + "00" * 13, 24, "df_not_used"),
        ("FF" + "11" * 13, 24, "df_not_used"),
        (seal("2000171806"[:8], 0x4840D6), 4, None),
        (seal("28001718", 0x4840D6), 5, "df_not_used"),
        (seal("5D4840D6", 35), 11, None),
        (seal("5D4840D6", 80), 11, "bad_crc"),
        (seal("02E19710", 0x4840D6), 0, None),
        (seal("80E19710" + "00" * 7, 0x4840D6), 16, None),
        (seal("A0000000" + "00" * 7, 0x4840D6), 20, "bds_empty"),
        (seal("A0000000" + "FA81C100000000", 0x4840D6), 20, "bds_other"),
        (seal("A0000000" + "58CD81D99DE53C", 0x4840D6), 20, "bds_none"),
        (seal("A8000000" + "C0780000000000", 0x4840D6), 21, "bds_ambiguous"),
        ("08" + "00" * 6, 1, "df_not_used"),
    ],
)
def test_reasons(text, df, drop):
    row = messages.decode(pl.Series([text], dtype=pl.String)).row(0, named=True)
    assert (row["df"], row["drop"]) == (df, drop)
    if df in (0, 4, 5, 11, 16, 20, 21) and drop not in ("wrong_length", "bad_crc"):
        assert row["icao"] == "4840D6"
    assert drop in (*messages.DROPS, None)


def test_altitude_of_every_kind_of_reply():
    code = "1718"  # 0x1718 & 0x1FFF: 25 ft steps
    n = (0x1718 & 0x1F80) >> 2 | (0x1718 & 0x20) >> 1 | 0x1718 & 0xF
    for head in ("0200", "2000", "8000", "A000"):
        text = seal(head + code + ("00" * 7 if head[0] in "8A" else ""), 0xABCDEF)
        row = messages.decode(np.array([text])).row(0, named=True)
        assert (
            row["altitude_ft"] == 25 * n - 1000
            and row["icao"] == "ABCDEF"
            and row["crc_ok"] is None
        )


def test_both_fields_of_an_ambiguous_reply_are_given():
    text = "A8000BA4903A2F2B618000FEC057"  # roll 22.7 with gs 346, or ias 279 with Mach 0.692
    row = messages.decode(np.array([text])).row(0, named=True)
    assert (row["bds"], row["drop"], row["gs50_kt"], row["ias_kt"]) == (
        "50|60",
        "bds_ambiguous",
        346,
        279,
    )


def test_empty_columns_types_and_order():
    empty = messages.decode(np.array([], dtype=str))
    table = messages.decode(pl.Series(["zz", KLM, "", KLM.lower(), "02E197B00179C3"]))
    assert (
        empty.columns == list(messages.COLUMNS) and empty.schema == table.schema and len(empty) == 0
    )
    assert table["df"].to_list() == [None, 17, None, 17, 0] and table["callsign"].to_list() == [
        None,
        "KLM1023",
        None,
        "KLM1023",
        None,
    ]
    text = {"icao", "callsign", "bds", "drop"}
    expected = {
        name: pl.String
        if name in text
        else pl.Boolean
        if name in ("crc_ok", "cpr_odd")
        else pl.Int32
        if name in ("df", "typecode")
        else pl.Float64
        for name in messages.COLUMNS
    }
    assert table.schema == expected


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(3)
    text = [rng.bytes(14 if i % 3 else 7).hex() for i in range(300)] + ["x"] * 5
    whole = messages.decode(np.array(text))
    monkeypatch.setattr(messages, "BLOCK", 17)
    assert messages.decode(np.array(text)).equals(whole)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=30),
            st.binary(min_size=14, max_size=14).map(bytes.hex),
            st.binary(min_size=7, max_size=7).map(bytes.hex),
            st.tuples(
                st.sampled_from(["8D", "A0", "A8", "90", "80"]), st.binary(min_size=10, max_size=10)
            ).map(lambda pair: seal(pair[0] + pair[1].hex())),
        ),
        max_size=30,
    )
)
def test_any_text_gives_a_row_and_never_crashes(texts):
    table = messages.decode(pl.Series(texts, dtype=pl.String))
    assert len(table) == len(texts)
    unusable = table.filter(pl.col("drop").is_in(["not_hex", "wrong_length", "bad_crc"]))
    assert unusable.select(pl.col(*messages.FLOATS, "callsign", "icao").is_null().all()).row(0) == (
        True,
    ) * (len(messages.FLOATS) + 2)
    numbers = table.select(messages.FLOATS).to_numpy()
    assert not np.isinf(numbers).any()
    limits = dict.fromkeys(("trk_deg", "trk50_deg", "hdg_mag_deg"), (0, 360)) | {
        "altitude_ft": (-1200, 126_700)
    }
    for column, (low, high) in limits.items():
        assert table[column].drop_nulls().is_between(low, high).all()
    single = table.filter(pl.col("drop").is_null() & pl.col("df").is_in([20, 21]))
    assert set(single["bds"]) <= set(identify.REGISTERS)
