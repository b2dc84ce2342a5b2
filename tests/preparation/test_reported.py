"""Register 4,4: its fields against rs1090, and which words of a capture count as reports."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rs1090

import stages.api as tradewind
from stages import params
from stages.errors import DataError, InputError
from stages.units import KNOT_M_S
from stages.winds.decoding import atmosphere
from stages.winds.modes import bds44, bits, identify
from stages.winds.nowcast import capture, reported
from stages.winds.sky import encode

SETTINGS = params.inference().decode
BEGIN, FEET = 1_768_456_800.0, 35_000.0
ONE, TWO = 0x4B1805, 0x3C6586
STANDARD_C = float(atmosphere.temperature_k(FEET)) - 273.15
KNOWN = "A0001692185BD5CF400000DFC696"  # of pyModeS's documentation: 22 kn from 344.5, -48.75 C


def word(wind_kt, from_deg, celsius, pressure=None, turbulence=None, humidity=None, source=1):
    """4,4 as Doc 9871 table A-2-68 lays it out."""

    def optional(value, step, size):
        told = value is not None
        return (told, 1), (round(value / step) if told else 0, size)

    return encode.pack(
        (source, 4),
        *optional(wind_kt, 1, 9),
        (0 if wind_kt is None else round(from_deg / (180 / 256)) % 512, 9),
        (round(celsius / 0.25), 11),
        *optional(pressure, 1, 11),
        *optional(turbulence, 1, 2),
        *optional(humidity, 100 / 64, 6),
    )


def replies(address, words, feet=FEET):
    """DF20 replies as hexadecimal text."""
    mb = np.array(words, np.uint64)
    code = encode.altitude13(np.full(len(mb), feet))
    octets = encode.reply(np.full(len(mb), address), mb, code, np.zeros(len(mb), bool))
    return [row.tobytes().hex().upper() for row in octets]


def squitters(address, seconds, feet=FEET):
    """(ts_s, frame) of positions at 46.5 N 7.2 E, even and odd in turn."""
    words = [encode.position(46.5, 7.2, feet, k % 2) for k in range(len(seconds))]
    octets = encode.squitter(np.full(len(words), address), np.array(words, np.uint64))
    return [(t, row.tobytes().hex().upper()) for t, row in zip(seconds, octets, strict=True)]


def heard(words, address=ONE, feet=FEET, every_s=4.0):
    """A capture of one aircraft's positions and of these words, one every few seconds."""
    times = BEGIN + 3.0 + every_s * np.arange(len(words))
    places = squitters(address, BEGIN + 0.5 * np.arange(2 * int(every_s * len(words) + 8)), feet)
    return sorted(places + list(zip(times.tolist(), replies(address, words, feet), strict=True)))


def steady(count=6):
    """Words of an aircraft in a wind from the north-west that changes by a step now and then."""
    return [word(60 + k, 315, STANDARD_C + 4 + 0.25 * k) for k in range(count)]


def told(frames, tmp_path):
    """What `reports` makes of (ts_s, frame) pairs."""
    file = tmp_path / "capture.csv"
    pl.DataFrame(frames, schema=["ts_s", "frame"], orient="row").write_csv(file)
    return reported.reports(file, SETTINGS)


# --- the register


def test_every_field_is_what_another_decoder_reads():
    rng = np.random.default_rng(0)
    words = [
        word(
            int(rng.integers(0, 251)),
            float(rng.uniform(0, 359)),
            float(rng.uniform(-80, 60)),
            *(None if rng.random() < 0.3 else value for value in (int(rng.integers(1, 1100)),)),
            turbulence=None if rng.random() < 0.5 else int(rng.integers(0, 4)),
            humidity=None if rng.random() < 0.5 else float(rng.uniform(0, 98)),
        )
        for _ in range(1500)
    ]
    ours = bds44.decode(np.array(words, np.uint64))
    compared = 0
    for i, frame in enumerate(replies(ONE, words)):
        theirs = rs1090.decode(frame).get("bds44")
        if theirs is None:  # rs1090 holds it to be another register
            continue
        compared += 1
        pairs = {
            "wind_kt": "wind_speed",
            "from_deg": "wind_direction",
            "pressure_hpa": "pressure",
            "humidity_percent": "humidity",
        }
        for name, their in pairs.items():
            value = theirs[their]
            assert np.isnan(ours[name][i]) if value is None else ours[name][i] == value, name
        assert ours["temperature_k"][i] - 273.15 == pytest.approx(theirs["temperature"], abs=1e-9)
    assert compared > 100


def test_the_reply_of_the_books_is_read_and_can_be_no_other_register():
    octets, _ = bits.parse_hex(bits.characters(pl.Series([KNOWN]), 28))
    mb = bits.words(octets)
    found = {name: float(value[0]) for name, value in bds44.decode(mb).items()}
    assert (found["wind_kt"], found["from_deg"]) == (22.0, 344.53125)
    assert found["temperature_k"] == 273.15 - 48.75 and np.isnan(found["pressure_hpa"])
    assert identify.candidates(mb, np.array([35_050.0])) == identify.BIT["44"]


# --- the reports of a capture


def test_wind_and_temperature_are_told_where_and_when_they_were_measured(tmp_path):
    table, dropped = told(heard(steady()), tmp_path)
    assert len(table) == 6 and dropped == {} and set(table["icao"]) == {f"{ONE:06X}"}
    first = table.row(0, named=True)
    speed = 60 * KNOT_M_S
    # from the north-west: it blows towards the south-east
    assert (first["u_m_s"], first["v_m_s"]) == pytest.approx((speed * 0.5**0.5, -speed * 0.5**0.5))
    assert (first["lat_deg"], first["lon_deg"]) == pytest.approx((46.5, 7.2), abs=1e-3)
    assert first["alt_ft"] == FEET and first["ts_s"] == BEGIN + 3.0
    assert first["temperature_k"] == pytest.approx(STANDARD_C + 273.15 + 4, abs=0.13)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([word(60, 315, STANDARD_C)] * 6, "bds44_unrepeated"),  # a constant, bit by bit
        ([word(60, 315, STANDARD_C)], "bds44_unrepeated"),
        ([word(k * 40, 315, STANDARD_C) for k in range(1, 6)], "bds44_unrepeated"),
        ([word(60 + k, 315, STANDARD_C + 40) for k in range(6)], "bds44_temperature_impossible"),
        ([word(None, 0, STANDARD_C + k / 4, source=2) for k in range(6)], "bds44_no_wind"),
        ([word(60 + k, 315, STANDARD_C, source=0) for k in range(6)], "bds44_source_invalid"),
    ],
)
def test_what_is_no_report_is_counted_by_its_reason(tmp_path, words, reason):
    table, dropped = told(heard(words), tmp_path)
    assert table.is_empty() and dropped[reason] == len(words)


def test_an_aircraft_that_never_sent_a_checked_frame_or_a_position_tells_nothing(tmp_path):
    strange = list(zip((BEGIN + 4.0 * np.arange(6)).tolist(), replies(TWO, steady()), strict=True))
    table, dropped = told(sorted(squitters(ONE, BEGIN + np.arange(9.0)) + strange), tmp_path)
    assert table.is_empty() and dropped == {"bds44_address_unconfirmed": 6}
    late = [(t + 3600, frame) for t, frame in strange]
    table, dropped = told(sorted(squitters(TWO, BEGIN + np.arange(9.0)) + late), tmp_path)
    assert table.is_empty() and dropped == {"bds44_no_position": 6}


def test_damaged_words_hardly_ever_pass_for_reports(tmp_path):
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 56, 20_000, dtype=np.uint64)
    table, _ = told(heard(words, every_s=0.05), tmp_path)
    assert table.is_empty()


def test_a_capture_s_winds_hold_those_that_aircraft_reported(tmp_path):
    frames = heard(steady())
    file = tmp_path / "capture.csv"
    pl.DataFrame(frames, schema=["ts_s", "frame"], orient="row").write_csv(file)
    winds, dropped = capture.read(file, SETTINGS)
    assert len(winds) == 6 and dropped.get("bds_other", 0) == 0
    told = tradewind.decode(frames, reports=True)
    assert told.select(winds.columns).equals(winds) and tradewind.decode(file).equals(winds)
    assert tradewind.decode(told_frames(frames), reports=True).shape == told.shape


def told_frames(frames):
    """The frames as a pandas table."""
    return pl.DataFrame(frames, schema=["ts_s", "frame"], orient="row").to_pandas()


def test_frames_with_datetimes_are_those_with_unix_seconds():
    frames = heard(steady())
    table = told_frames(frames)
    expected = tradewind.decode(table)
    assert len(expected) == 6
    moments = pd.to_datetime(table["ts_s"], unit="s", utc=True)
    for times in (moments, moments.dt.tz_convert("Asia/Tokyo"), moments.dt.tz_localize(None)):
        found = tradewind.decode(table.assign(ts_s=times))
        assert found["ts_s"].to_list() == pytest.approx(expected["ts_s"].to_list(), abs=1e-3)
        assert found["u_m_s"].to_list() == expected["u_m_s"].to_list()
    pairs = [(moment, frame) for moment, frame in zip(moments, table["frame"], strict=True)]
    assert len(tradewind.decode(pairs, reports=True)) == 6


@pytest.mark.parametrize(
    "frames", [5, [5], [(0.0, 5)], [(0.0,)], pl.DataFrame({"ts_s": [0.0], "frame": [5]})]
)
def test_what_is_no_frame_is_refused(frames):
    with pytest.raises(InputError):
        tradewind.decode(frames)


def test_no_reports_are_looked_for_in_a_table_of_winds(tmp_path):
    winds = tradewind.decode(heard(steady()))
    winds.write_csv(tmp_path / "winds.csv")
    winds.write_parquet(tmp_path / "winds.parquet")
    for name in ("winds.csv", "winds.parquet"):
        with pytest.raises(DataError, match="no frames to find reports in"):
            tradewind.decode(tmp_path / name, reports=True)
        assert tradewind.decode(tmp_path / name).equals(winds)
