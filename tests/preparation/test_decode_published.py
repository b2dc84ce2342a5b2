"""Published tables and real replies decoded: counts, refusals, and the winds that the thesis
prints."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from decoded_here import transformed

from stages.errors import DataError

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s"
KNOT_M_S = 1852 / 3600


def needed(path: str) -> Path:
    if not (MIRROR / path).exists():
        pytest.skip(f"shared/data/mode-s/{path} is not here")
    return MIRROR / path


def linked(source: Path, folder: Path) -> Path:
    folder.mkdir()
    (folder / source.name).symlink_to(source.resolve())
    return folder


def test_real_replies(tmp_path):
    """The pyModeS sample: two Comm-B files of one capture, an ADS-B file of another year. No
    positions, so no winds."""
    (tmp_path / "raw").mkdir()
    for name in ("df20", "df21"):
        path = needed(f"pyModeS/sample_data_commb_{name}.csv").resolve()
        (tmp_path / "raw" / path.name).symlink_to(path)
    (tmp_path / "raw/sample_data_adsb.csv").symlink_to(
        needed("pyModeS/sample_data_adsb.csv").resolve()
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["read"] == 12_000 and counts["dropped"]["address_unconfirmed"] < 40
    registers = counts["metrics"]["registers"]
    assert registers["accepted_60"] > 3000 and registers["accepted_50"] > 2000
    assert (
        registers["checked_60"] > 2000
        and registers["contradicted_60"] <= 0.01 * registers["checked_60"]
    )
    assert counts["levels"]["winds"]["read"] == 0
    assert counts["metrics"]["false_acceptance"]["random_payload"]["share_60"] < 1e-3
    assert (
        counts["metrics"]["false_acceptance"]["state"]["contradicted_share_50"] is None
    )  # nothing to hold them against


def test_real_hour_of_winds_and_of_states(tmp_path):
    raw = linked(needed("meteo-particle-model/wind.csv"), tmp_path / "winds")
    counts = transformed(raw, tmp_path / "out", "winds")
    table = pl.read_parquet(tmp_path / "out/winds.parquet")
    assert counts["read"] == counts["kept"] == len(table) == 39_845
    assert (np.hypot(table["u_m_s"], table["v_m_s"]) > 250).sum() == 8 and table.drop(
        "record"
    ).is_duplicated().sum() == 6
    assert table["icao"].str.contains("^[0-9A-F]{6}$").all()
    published = pl.read_csv(raw / "wind.csv", schema_overrides={"icao": pl.String})
    assert published["vwx"].gather(table["record"]).equals(table["u_m_s"].rename("vwx"))
    raw = linked(needed("meteo-particle-model/aggregated.csv"), tmp_path / "states")
    counts = transformed(raw, tmp_path / "derived", "states", declination=False)
    assert counts["levels"]["winds"] == {
        "read": 49_513,
        "kept": 39_845,
        "dropped": {"no_velocity": 9668},
    }
    derived = pl.read_parquet(tmp_path / "derived/winds.parquet").sort("record")
    assert (derived["u_m_s"] - published["vwx"]).abs().max() < 0.035
    assert counts["metrics"]["temperature"]["n"] > 27_000


HEADER = "FLIGHT_ID,LAT,LONG,TRACK_ALTITUDE,UNIX_TIME,DAY,WIND_SPEED,WIND_ORIGIN_ANGLE_DEG,TYPE\n"


def test_the_thesis_set(tmp_path):
    """Weekly files: midnight resets mended by DAY, weeks by the order of names, FL to ft, kn to
    m/s, origin to towards."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/week_a.csv").write_text(
        HEADER + "7,46.5,7.5,350,86399.5,0,100,270,A320\n7,46.6,7.6,350.5,0.5,1,50,180,A320\n"
    )
    (tmp_path / "raw/week_b.csv").write_text(
        HEADER
        + (
            "8,46.5,7.5,100,60,6,0,0,B737\n9,46.5,7.5,100,60,0,10,90,B737\n"
            "9,46.5,7.5,100,60,0,10,90,\n9,,7.5,100,60,0,10,90,A320\n9,46.5,x,100,60,0,10,90,A320\n"
            "9,46.5,7.5,100,60,7,10,90,A320\n"
            "9,46.5,7.5,100,86400,0,10,90,A320\n9,46.5,7.5,100,nan,0,10,90,A320\n"
        )
    )
    counts = transformed(tmp_path / "raw", tmp_path / "out", "winds")
    assert counts["dropped"] == {
        "day_outside_week": 1,
        "missing_value": 2,
        "time_outside_day": 1,
        "unreadable": 2,
    }
    table = pl.read_parquet(tmp_path / "out/winds.parquet")
    week = 7 * 86_400
    assert table["ts_s"].to_list() == [86_399.5, 86_400.5, week + 60, week + 6 * 86_400 + 60]
    assert table["alt_ft"].to_list() == [35_000, 35_050, 10_000, 10_000]
    assert table["icao"].to_list() == ["7", "7", "9", "8"] and table["record"].to_list() == [
        0,
        1,
        1,
        0,
    ]
    assert np.allclose(
        table["u_m_s"], np.array([100, 0, -10, 0]) * KNOT_M_S, atol=1e-9
    )  # from the west blows east
    assert np.allclose(table["v_m_s"], np.array([0, 50, 0, 0]) * KNOT_M_S, atol=1e-9)
    assert table["u_true_m_s"].null_count() == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "none of the known formats"),
        ("", "found: nothing"),
        (HEADER + "7,46.5\n1,2,3,4,5,6,7,8,9,10,11\n", "cannot be read"),
    ],
)
def test_tables_that_are_none(tmp_path, content, message):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/week.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        transformed(tmp_path / "raw", tmp_path / "out", "winds")


def test_no_table_and_no_frame(tmp_path):
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError, match="no table"):
        transformed(tmp_path / "raw", tmp_path / "out", "frames")
    (tmp_path / "raw/empty.csv").write_text("")
    counts = transformed(tmp_path / "raw", tmp_path / "out", "frames")
    assert counts["read"] == 0 and pl.read_parquet(tmp_path / "out/winds.parquet").is_empty()
