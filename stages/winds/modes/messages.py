"""Frames to columns in one call: every downlink format that carries an address, an altitude, a
velocity or a register.

Annex 10 Volume IV 3.1.2. DF0, 4, 5, 16, 20, 21: address and parity are overlaid, so the remainder
of the CRC is the address and cannot be checked by itself. DF11: remainder = interrogator's code.
DF17, 18: remainder 0 or the frame is damaged and nothing of it is used. Frames are worked on in
blocks that fit the processor's cache. N frames in, N rows out, in the same order.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stages.winds.modes import altitude, bds20, bds40, bds50, bds60, bits, crc, identify, velocity

BLOCK = 1 << 14
FLOATS = (
    "altitude_ft",
    "cpr_lat",
    "cpr_lon",
    "gs_kt",
    "trk_deg",
    "vertical_rate_fpm",
    "hdg19_deg",
    "ias19_kt",
    "tas19_kt",
    "roll_deg",
    "trk50_deg",
    "gs50_kt",
    "track_rate",
    "tas_kt",
    "hdg_mag_deg",
    "ias_kt",
    "mach",
    "vr_baro",
    "vr_ins",
    "sel_mcp_ft",
    "sel_fms_ft",
    "qnh_hpa",
)
COLUMNS = (
    "df",
    "icao",
    "crc_ok",
    "altitude_ft",
    "typecode",
    "callsign",
    "cpr_odd",
    "cpr_lat",
    "cpr_lon",
    "gs_kt",
    "trk_deg",
    "vertical_rate_fpm",
    "hdg19_deg",
    "ias19_kt",
    "tas19_kt",
    "bds",
    "roll_deg",
    "trk50_deg",
    "gs50_kt",
    "track_rate",
    "tas_kt",
    "hdg_mag_deg",
    "ias_kt",
    "mach",
    "vr_baro",
    "vr_ins",
    "sel_mcp_ft",
    "sel_fms_ft",
    "qnh_hpa",
    "drop",
)
DROPS = (
    "not_hex",
    "wrong_length",
    "bad_crc",
    "df_not_used",
    "typecode_not_used",
    "bds_empty",
    "bds_none",
    "bds_other",
    "bds_ambiguous",
)
_DROP = {name: index for index, name in enumerate(DROPS)}
_KEPT = len(DROPS)
_LONG, _SHORT = 28, 14  # hexadecimal digits
_OVERLAID = (0, 4, 5, 16, 20, 21)
_INTERROGATORS = 80  # codes: CL 0-4 times IC 0-15
_NONE, _BAD, _GOOD = 2, 0, 1  # crc_ok


class _Table:
    """The output columns of N frames while they are filled, block by block."""

    def __init__(self, count: int):
        self.count = count
        self.float = {name: np.full(count, np.nan) for name in FLOATS}
        self.df, self.typecode = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        self.icao = np.full(count, -1, np.int32)
        self.crc_ok, self.odd = np.full(count, _NONE, np.uint8), np.full(count, 2, np.uint8)
        self.bds = np.zeros(count, np.uint16)
        self.drop = np.full(count, _KEPT, np.uint8)
        self.calls: list[tuple[np.ndarray, np.ndarray]] = []  # rows and their words

    def put(self, row: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Write columns of values at the rows they belong to."""
        for name, value in columns.items():
            self.float[name][row] = value

    def frame(self) -> pl.DataFrame:
        """The finished table; the arrays are handed over, so this can be asked once."""
        columns = {
            name: pl.Series(name, self.float.pop(name), nan_to_null=True) for name in FLOATS
        }  # each array is let go at once
        columns["df"], columns["typecode"] = _nullable(self.df), _nullable(self.typecode)
        columns["icao"] = _nullify(bits.hex_strings(self.icao, 6), self.icao < 0)
        columns["crc_ok"] = _gather([False, True, None], self.crc_ok, pl.Boolean)
        columns["cpr_odd"] = _gather([False, True, None], self.odd, pl.Boolean)
        columns["bds"] = _gather(identify.NAMES, self.bds, pl.String)
        columns["drop"] = _gather([*DROPS, None], self.drop, pl.String)
        columns["callsign"] = self._callsigns()
        return pl.DataFrame({name: columns[name] for name in COLUMNS})

    def _callsigns(self) -> pl.Series:
        row = (
            np.concatenate([row for row, _ in self.calls]) if self.calls else np.empty(0, np.int64)
        )
        words = (
            np.concatenate([word for _, word in self.calls])
            if self.calls
            else np.empty(0, np.uint64)
        )
        place = np.full(self.count, len(row), np.int64)
        place[row] = np.arange(len(row))
        return bds20.callsigns(words).extend(pl.Series([None], dtype=pl.String)).gather(place)


def _nullable(value: np.ndarray) -> pl.Series:
    return _nullify(pl.Series(value), value < 0)


def _nullify(column: pl.Series, absent: np.ndarray) -> pl.Series:
    return column.set(pl.Series(absent), None) if absent.any() else column


def _gather(names: list[Any], code: np.ndarray, dtype) -> pl.Series:
    return pl.Series(names, dtype=dtype).gather(code)


def decode(hex_text: np.ndarray | pl.Series) -> pl.DataFrame:
    """Decode frames given as hexadecimal text [N] (14 or 28 digits) into a table of N rows with the
    columns COLUMNS.

    df i32; icao, callsign, bds, drop str; crc_ok, cpr_odd bool; typecode i32; all others f64; null
    where a frame has none.
    Units: altitude_ft, sel_* ft (pressure altitude); *_kt kn; *_deg degrees; track_rate deg/s;
    vertical_rate_fpm, vr_* ft/min; qnh_hpa hPa; cpr_lat, cpr_lon 17-bit counts. crc_ok is null
    where address and parity are overlaid. bds is one register, several joined by "|" where the
    protocol cannot tell (the fields of every decoded candidate are given), or "". drop says why a
    frame is of no use (one of DROPS), null where it is. Text that is not a frame gives a row of
    nulls, never an error.
    """
    text = (
        hex_text
        if isinstance(hex_text, pl.Series)
        else pl.Series(np.asarray(hex_text).tolist(), dtype=pl.String)
    )
    table = _Table(len(text))
    length = text.cast(pl.String).str.len_bytes().to_numpy(writable=False)
    for digits in (_LONG, _SHORT):
        row = np.flatnonzero(length == digits)
        chosen = text if len(row) == len(text) else text.gather(row)
        for rows, frames in _blocks(table, row, bits.characters(chosen.rename("hex"), digits)):
            _block(table, rows, frames, long=digits == _LONG)
    row = np.flatnonzero(~np.isin(length, (_LONG, _SHORT)))
    plain = text.gather(row).str.contains("^[0-9A-Fa-f]+$").fill_null(False).to_numpy()
    table.drop[row] = np.where(plain, _DROP["wrong_length"], _DROP["not_hex"])
    return table.frame()


def _blocks(
    table: _Table, row: np.ndarray, text: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of (rows [B], bytes [B, 14] uint8) of what is hexadecimal; short frames
    right-aligned. The rest is dropped here."""
    for start in range(0, len(row), BLOCK):
        rows = row[start : start + BLOCK]
        value, good = bits.parse_hex(text[start : start + BLOCK])
        if not good.all():
            table.drop[rows[~good]] = _DROP["not_hex"]
            rows, value = rows[good], value[good]
        if value.shape[1] < crc.LENGTH:
            value = np.pad(value, ((0, 0), (crc.LENGTH - value.shape[1], 0)))
        yield rows, value


def _block(table: _Table, row: np.ndarray, frames: np.ndarray, long: bool) -> None:
    """Decode one block of equally long frames: [B] rows, [B, 14] bytes."""
    first = 0 if long else crc.LENGTH // 2
    df = np.minimum(frames[:, first] >> 3, 24)  # formats from 24 up are all one: Comm-D
    misfit = (df >= 16) != long
    table.df[row] = df
    table.drop[row] = np.where(misfit, _DROP["wrong_length"], _KEPT)
    remainder = crc.remainder(np.ascontiguousarray(frames.T))
    head = frames[:, first : first + 4].astype(np.int32)
    announced = head[:, 1] << 16 | head[:, 2] << 8 | head[:, 3]
    code = (head[:, 2] & 0x1F) << 8 | head[:, 3]  # the 13 bits 20-32 of DF0, 4, 16, 20
    overlaid = np.isin(df, _OVERLAID) & ~misfit
    table.icao[row] = np.where(
        overlaid, remainder.astype(np.int32), np.where(misfit, -1, announced)
    )
    height = altitude.from_ac13(code)
    with_height = (df == 0) | (df == 4) | (df == 16) | (df == 20)
    table.float["altitude_ft"][row] = np.where(with_height & ~misfit, height, np.nan)
    if not long:
        _short(table, row, df, remainder, misfit)
        return
    squitter = np.flatnonzero((df == 17) | (df == 18))
    _squitters(table, row[squitter], frames[squitter], remainder[squitter])
    comm_b = np.flatnonzero((df == 20) | (df == 21))
    _comm_b(table, row[comm_b], bits.words(frames[comm_b]), table.float["altitude_ft"][row[comm_b]])
    _unused(table, row[~np.isin(df, (16, 17, 18, 20, 21)) & ~misfit])


def _short(table: _Table, row, df, remainder, misfit) -> None:
    """DF11 is checked; DF0 and 4 give altitudes; DF5 and the unassigned formats hold nothing
    that is used."""
    reply = (df == 11) & ~misfit
    good = remainder < _INTERROGATORS
    table.crc_ok[row[reply]] = good[reply]
    _bad_crc(table, row[reply & ~good])
    _unused(table, row[~np.isin(df, (0, 4, 11)) & ~misfit])


def _bad_crc(table: _Table, row: np.ndarray) -> None:
    table.drop[row], table.icao[row] = _DROP["bad_crc"], -1


def _unused(table: _Table, row: np.ndarray) -> None:
    """Formats without use here; their address is told only where it is known (DF5)."""
    table.drop[row] = _DROP["df_not_used"]
    table.icao[row[table.df[row] != 5]] = -1


def _squitters(table: _Table, row, frames, remainder) -> None:
    """ADS-B: DF17, and DF18 with an ICAO address (CF 0); other DF18 is relayed or anonymous."""
    good = remainder == 0
    table.crc_ok[row] = good
    _bad_crc(table, row[~good])
    relayed = (frames[:, 0] >> 3 == 18) & (frames[:, 0] & 7 != 0)
    _unused(table, row[good & relayed])
    row, me = row[good & ~relayed], bits.words(frames[good & ~relayed])
    kind = bits.unsigned(me, 1, 5)
    table.typecode[row] = kind
    airborne = (kind >= 9) & (kind <= 22) & (kind != 19)
    place, word = row[airborne], me[airborne]
    table.odd[place] = bits.flag(word, 22)
    table.put(
        place, {"cpr_lat": bits.unsigned(word, 23, 39), "cpr_lon": bits.unsigned(word, 40, 56)}
    )
    baro = airborne & (kind <= 18)  # 20 to 22 give a height above the ellipsoid
    table.float["altitude_ft"][row[baro]] = altitude.from_ac12(bits.unsigned(me[baro], 9, 20))
    moving = kind == 19
    table.put(row[moving], velocity.decode(me[moving]))
    named = (kind >= 1) & (kind <= 4)
    table.calls.append((row[named], me[named]))
    table.drop[row[~(airborne | moving | named)]] = _DROP["typecode_not_used"]


def _comm_b(table: _Table, row, mb, altitude_ft) -> None:
    """Registers: what the bits allow, and the fields of every candidate that is decoded here."""
    found = identify.candidates(mb, altitude_ft)
    table.bds[row] = found
    for register, module in (("40", bds40), ("50", bds50), ("60", bds60)):
        chosen = (found & identify.BIT[register]) != 0
        table.put(row[chosen], module.decode(mb[chosen]))
    named = found == identify.BIT["20"]
    table.calls.append((row[named], mb[named]))
    single = (found & (found - np.uint16(1))) == 0
    reason = np.full(len(row), _KEPT, np.uint8)
    reason[~single] = _DROP["bds_ambiguous"]
    reason[(found & identify.DECODED) == 0] = _DROP["bds_other"]
    reason[found == 0] = _DROP["bds_none"]
    reason[mb == 0] = _DROP["bds_empty"]
    table.drop[row] = reason
