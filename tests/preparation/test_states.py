"""States: the newest of everything at each 6,0, and every reply that another fact contradicts
dropped under its reason."""

import numpy as np
import polars as pl
import pytest
from flown import ADDRESS, START_S, STATE, decoded, fifty, lines, place, reply, sixty, squitters

from stages import params
from stages.winds.decoding import atmosphere, control, states
from stages.winds.modes import messages
from stages.winds.sky import encode

DECODE = params.load("params.yaml").decode


def assembled(rows, **changes):
    checked, _ = states.confirm(decoded(sorted(rows)), frozenset())
    return states.assemble(checked, DECODE.model_copy(update=changes))


def dropped(rows, level="registers"):
    return assembled(rows).levels[level]["dropped"]


def test_a_state_holds_what_was_flown():
    found = assembled(lines())
    table = found.states
    assert dict(table.schema) == states.COLUMNS
    assert found.levels["states"] == {
        "read": 20,
        "kept": 19,
        "dropped": {"no_position": 1},
    }  # the first has no pair yet
    steps = {
        "gs_kt": 1.0,
        "trk_deg": 0.2,
        "hdg_mag_deg": 0.1,
        "ias_kt": 0.5,
        "alt_ft": 12.5,
        "roll_deg": 0.1,
    }
    for name, step in steps.items():
        assert (table[name] - STATE[name]).abs().max() <= step, name
    assert (
        table["mach"] - float(atmosphere.mach_from_cas(STATE["ias_kt"], STATE["alt_ft"]))
    ).abs().max() <= 0.0021
    assert table["record"].to_list() == list(range(7, 80, 4)) and set(table["file"]) == {
        "a.csv"
    }  # the 6,0's own line
    for row in table.iter_rows(named=True):
        lat, lon = place(np.floor(row["ts_s"] - START_S))  # where the newest position said it was
        assert abs(row["lat_deg"] - lat) < 1e-4 and abs(row["lon_deg"] - lon) < 1e-4


@pytest.mark.parametrize(
    ("silent", "level", "reason"),
    [("position", "states", "no_position"), ("velocity", "states", "no_velocity")],
)
def test_what_is_too_old_is_not_used(silent, level, reason):
    rows = [(START_S + t, frame) for t in range(4) for frame in squitters(t, bool(t % 2))]
    rows += [(START_S + 3 + age, sixty()) for age in (1.0, 5.9, 6.1)]
    rows += [
        (START_S + t, squitters(t, bool(t % 2))[silent == "position"]) for t in range(4, 10)
    ]  # the other one goes on
    counts = assembled(rows).levels[level]
    assert counts == {"read": 3, "kept": 2, "dropped": {reason: 1}}


def test_an_old_roll_is_no_roll():
    rows = lines(4) + [
        (START_S + t, frame) for t in range(4, 12) for frame in squitters(t, bool(t % 2))
    ]
    rows += [(START_S + 8.0, sixty()), (START_S + 10.5, sixty())]
    table = assembled(rows).states.sort("ts_s")
    assert (
        table["roll_deg"][-2] is not None
        and table["roll_deg"][-1] is None
        and table["tas_kt"][-1] is None
    )


@pytest.mark.fault("F12")
def test_an_address_nobody_vouches_for():
    """A damaged reply names another aircraft: it must not become that aircraft's state, and it
    is counted."""
    stranger = [(START_S + 5.5, sixty(address=ADDRESS ^ 0x10))]
    checked, known = states.confirm(decoded(sorted(lines() + stranger)), frozenset())
    assert checked["drop"].value_counts().drop_nulls().rows() == [("address_unconfirmed", 1)]
    assert known == {f"{ADDRESS:06X}"}
    again, known = states.confirm(
        decoded(stranger), frozenset([f"{ADDRESS ^ 0x10:06X}"])
    )  # seen in the file before
    assert again["drop"].null_count() == 1


@pytest.mark.fault("F12")
def test_a_capture_of_replies_alone_needs_repetition():
    rows = [(START_S, sixty()), (START_S + 1, fifty()), (START_S + 2, sixty(address=0xABCDEF))]
    checked, known = states.confirm(decoded(rows), frozenset())
    assert checked["drop"].to_list() == [None, None, "address_unconfirmed"] and not known


@pytest.mark.fault("F12")
def test_every_flipped_bit_is_caught():
    """Any one flipped bit of a reply or a squitter leaves no state: the CRC or the address gives
    it away."""
    frames = [squitters(5, True)[0], sixty()]
    for frame in frames:
        flipped = [f"{int(frame, 16) ^ 1 << bit:028X}" for bit in range(112)]
        rows = decoded(
            [(START_S + 5, squitters(5, False)[0])]
            + [(START_S + 5 + i / 1000, f) for i, f in enumerate(flipped)]
        )
        checked, _ = states.confirm(rows, frozenset())
        kept = checked.filter(pl.col("drop").is_null() | pl.col("drop").str.starts_with("bds"))
        # what is left is the good squitter and what no longer claims to be this aircraft's reply or
        # position
        assert kept.filter(
            (pl.col("icao") == f"{ADDRESS:06X}") & (pl.col("ts_s") > START_S + 5)
        ).is_empty()


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (sixty(alt_ft=36_000.0), "altitude_contradicts_adsb"),
        (fifty(trk_deg=75.0), "velocity_contradicts_adsb"),
        (fifty(gs_kt=480.0, tas_kt=470.0), "velocity_contradicts_adsb"),
        (sixty(identity=True, mach=0.68), "airspeed_contradicts_mach"),
        (sixty(ias_kt=240.0), "tas_contradicts_50"),
    ],
)
@pytest.mark.fault("F12")
def test_contradicted_replies_are_dropped(frame, reason):
    assert dropped([*lines(), (START_S + 10.5, frame)]) == {reason: 1}


def test_agreement_at_the_limits_is_kept():
    good = [sixty(alt_ft=34_400.0), fifty(trk_deg=68.0), fifty(gs_kt=466.0), sixty(ias_kt=262.0)]
    assert (
        dropped(lines() + [(START_S + 10.5 + i / 100, frame) for i, frame in enumerate(good)]) == {}
    )


def ambiguous(kind: str, count: int = 300_000):
    """Replies (at least 100) that protocol cannot tell apart, with what was flown: (frame,
    ground speed, track, altitude)."""
    draw = np.random.default_rng(7)
    alt = draw.uniform(5000, 39_000, count)
    tas = draw.uniform(150, 480, count)
    track = draw.uniform(0, 360, count)
    roll = draw.normal(0, 8, count)
    gs = tas + draw.normal(0, 40, count)
    if kind == "50":
        word = encode.bds50(roll, track, gs, roll / 10, tas)
    else:
        mach = tas / atmosphere.sound_kt(alt)
        word = encode.bds60(
            track + draw.normal(0, 5, count),
            atmosphere.cas_from_mach(mach, alt),
            mach,
            *draw.normal(0, 1500, (2, count)),
        )
    frames = encode.reply(
        np.full(count, ADDRESS), word, encode.altitude13(alt), np.ones(count, bool)
    )
    digits = frames.tobytes().hex().upper()
    hexes = pl.Series([digits[i : i + 28] for i in range(0, len(digits), 28)])
    chosen = np.flatnonzero((messages.decode(hexes)["bds"] == "50|60").to_numpy())[:400]
    assert len(chosen) >= 100
    return [(hexes[int(i)], gs[i], track[i], alt[i]) for i in chosen]


@pytest.mark.parametrize("kind", ["50", "60"])
@pytest.mark.fault("F12")
def test_ambiguous_replies_are_decided_rightly_or_not_at_all(kind):
    """Each ambiguous reply comes from its own aircraft with its ADS-B beside it; a few per
    thousand may be read wrongly, no more."""
    rows = []
    for i, (frame, gs, track, alt) in enumerate(ambiguous(kind)):
        t = START_S + 100.0 * i
        rows += [(t, f) for f in squitters(0, False, gs_kt=gs, trk_deg=track, alt_ft=alt)] + [
            (t + 0.5, frame)
        ]
    found = assembled(rows).registers
    decided = found.filter(pl.col("drop").is_null())["bds"].value_counts()
    right = decided.filter(pl.col("bds") == kind)["count"].sum()
    assert len(found) - decided["count"].sum() == sum(
        n
        for reason, n in found["drop"].drop_nulls().value_counts().iter_rows()
        if reason.startswith("ambiguous_")
    )
    assert right >= 0.5 * len(found), decided
    assert decided["count"].sum() - right <= 0.005 * len(found), decided


@pytest.mark.fault("F12")
def test_ambiguous_without_evidence_is_dropped():
    frame = ambiguous("50")[0][0]
    assert dropped([(START_S, squitters(0, False)[0]), (START_S + 60, frame)]) == {
        "ambiguous_unknown": 1
    }


def test_carried_messages_are_evidence_but_not_counted():
    rows = decoded(lines())
    whole = states.assemble(rows, DECODE)
    early = pl.col("ts_s") < START_S + 10
    first = states.assemble(rows.filter(early), DECODE)
    second = states.assemble(
        pl.concat([rows.filter(early).with_columns(carried=pl.lit(True)), rows.filter(~early)]),
        DECODE,
    )
    assert pl.concat([first.states, second.states]).sort("ts_s").equals(whole.states.sort("ts_s"))
    for level, counts in whole.levels.items():
        assert counts["read"] == first.levels[level]["read"] + second.levels[level]["read"]


def test_the_negative_controls_tell_a_lax_decoder_from_a_strict_one():
    flight = lines(100)
    strict = controlled(flight)
    assert (
        strict["random_payload"]["frames"] == 200 and strict["random_payload"]["accepted_50"] == 0
    )
    lax = DECODE.model_copy(
        update={"track_difference_max_deg": 360.0, "groundspeed_difference_max_kt": 2000.0}
    )
    many = [(t + 100 * turn, f) for turn in range(20) for t, f in flight]
    loose, tight = controlled(many, lax)["random_payload"], controlled(many)["random_payload"]
    assert loose["accepted_50"] > tight["accepted_50"] == 0


def test_swapped_payloads_are_judged_as_what_they_were():
    """Two aircraft side by side, each reply sent beside one of register 1,7: half the payloads are
    no 5,0 or 6,0.

    Whoever flies exactly alike is taken for the other every time, so the share is 1 whatever else
    is in the air; who flies elsewhere and otherwise is never taken for the other.
    """
    empty = reply(np.zeros(1, np.uint64))
    twin = ADDRESS ^ 0x00F0F0
    both = lines(60) + [
        (t + 0.01, frame) for second in range(60) for t, frame in of_the_second(second, twin)
    ]
    padding = [(START_S + t + 0.5 + 0.01 * i, empty) for t in range(60) for i in range(4)]
    numbers = controlled(sorted(both + padding))["swapped_payload"]
    for register in ("50", "60"):
        assert 20 < numbers[f"payloads_{register}"] < numbers["frames"] / 2
        assert numbers[f"accepted_{register}"] >= 0.9 * numbers[f"payloads_{register}"]
    other = [
        (t + 0.01, frame)
        for second in range(60)
        for t, frame in of_the_second(
            second, twin, gs_kt=300.0, trk_deg=250.0, hdg_mag_deg=245.0, ias_kt=180.0
        )
    ]
    apart = controlled(sorted(lines(60) + other + padding))["swapped_payload"]
    assert apart["payloads_50"] > 20 and apart["accepted_50"] == 0


def of_the_second(t: int, address: int, **state) -> list[tuple[float, str]]:
    """What another aircraft, at the same place, sends in one second."""
    at = [(START_S + t, frame) for frame in squitters(t, bool(t % 2), address, **state)]
    return [
        *at,
        (START_S + t + 0.2, fifty(address, **state)),
        (START_S + t + 0.3, sixty(address, **state)),
    ]


def controlled(rows, decode=DECODE) -> dict:
    """The negative controls of a flight's lines."""
    confirmed = states.confirm(decoded(rows), frozenset())[0]
    return control.run(confirmed, states.assemble(confirmed, decode).registers, decode)


def test_empty_and_useless_input():
    assert assembled([(START_S, reply(np.zeros(1, np.uint64))), (START_S, "XYZ")]).states.is_empty()
    nothing = states.assemble(decoded([(START_S, "")])[:0], DECODE)
    assert nothing.states.is_empty() and nothing.levels["registers"] == {
        "read": 0,
        "kept": 0,
        "dropped": {},
    }
    assert control.run(decoded([(START_S, "")])[:0], nothing.registers, DECODE) == {}
