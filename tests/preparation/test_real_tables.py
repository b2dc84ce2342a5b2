"""Tables of states and winds as people have them: rows that cannot be, one file an aircraft."""

import numpy as np
import polars as pl
import pytest
from decoded_here import transformed

from stages.errors import DataError
from stages.winds.decoding.declination import declination_deg

START = 1_767_000_000
WIND = "ts,icao,lat,lon,alt,vwx,vwy\n"
STATE = "ts,icao,lat,lon,alt,gs_adsb,trk_adsb,hdg,ias,mach,trk,gs,tas\n"


def state(ts: int, lat: object, lon: object = 7.0, alt: object = 30000, icao="4B1801") -> str:
    return f"{ts},{icao},{lat},{lon},{alt},420,90,88,280,0.75,90,420,430\n"


def wind(ts: int, lat: object, lon: object = 7.0, alt: object = 30000, icao="4B1801") -> str:
    return f"{ts},{icao},{lat},{lon},{alt},10,5\n"


def raw(folder, **contents):
    (folder / "raw").mkdir()
    for name, content in contents.items():
        (folder / "raw" / f"{name}.csv").write_text(content)
    return folder / "raw"


@pytest.mark.parametrize(
    ("entry", "head", "row"), [("states", STATE, state), ("winds", WIND, wind)]
)
def test_rows_beyond_any_aircraft_are_dropped_where_they_enter(tmp_path, entry, head, row):
    bad = [
        row(START + 1, 91.5),
        row(START + 2, 5234.9),
        row(START + 3, -91.5),
        row(START + 4, 47, 181),
        row(START + 5, 47, alt=9e9),
        row(-5, 47),
    ]
    content = head + row(START, 46) + "".join(bad) + row(START + 9, -90)
    counts = transformed(raw(tmp_path, a=content), tmp_path / "out", entry)
    assert counts["dropped"] == {"outside_range": 6} and counts["kept"] == 2
    assert pl.read_parquet(tmp_path / "out/winds.parquet")["lat_deg"].to_list() == [46, -90]


def test_the_magnetic_model_has_no_latitude_beyond_the_poles():
    for lat in (91.5, -91.5, 5234.9):
        with pytest.raises(DataError, match="beyond the poles"):
            declination_deg([START], [lat], [7.0])


@pytest.mark.parametrize(
    ("entry", "head", "row"), [("states", STATE, state), ("winds", WIND, wind)]
)
def test_one_file_an_aircraft_gives_what_one_file_gives(tmp_path, entry, head, row):
    """Three aircraft at once, and one that flies later; the parts are read back in time order."""
    flights = {
        f"4B180{k}": [row(START + 10 * i + k, 46 + k / 10, icao=f"4B180{k}") for i in range(20)]
        for k in range(3)
    }
    flights["4B1900"] = [row(START + 1000 + i, 47, icao="4B1900") for i in range(5)]
    (tmp_path / "one").mkdir()
    lines = sorted(line for rows in flights.values() for line in rows)
    whole = transformed(
        raw(tmp_path / "one", all=head + "".join(lines)), tmp_path / "one/out", entry
    )
    # names that do not sort as the times do
    apart = {f"z{9 - k}": head + "".join(rows) for k, rows in enumerate(flights.values())}
    counts = transformed(raw(tmp_path, **apart), tmp_path / "out", entry)
    assert counts["levels"] == whole["levels"]
    one, many = (
        pl.read_parquet(folder / "winds.parquet").drop("file", "record")
        for folder in (tmp_path / "one/out", tmp_path / "out")
    )
    assert many.equals(one) and np.all(np.diff(many["ts_s"]) >= 0)
