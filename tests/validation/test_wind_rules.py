"""Every rule on winds and states: a good table passes all, a table spoiled in one way fails
exactly the rules that speak of it."""

import os
from pathlib import Path

import polars as pl
import pytest
from sky_tables import set_rows, states, winds

from stages.validation import gate
from stages.winds.validation import states as state_rules
from stages.winds.validation import winds as wind_rules

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data")) / "mode-s"


def judged(table: pl.DataFrame, folder: Path, part=wind_rules) -> list[dict]:
    table.write_parquet(folder / "table.parquet")
    results, internal = gate.judge(part.tables(folder / "table.parquet"), part.RULES)
    assert internal == []
    return results


def failures(results: list[dict]) -> dict[str, str]:
    """Failed rules with their gravest severity."""
    return {
        r["name"]: r["severity"]
        for r in sorted(results, key=lambda r: r["severity"], reverse=True)
        if not r["success"]
    }


def row(results: list[dict], name: str, severity: str) -> dict:
    return next(r for r in results if r["name"] == name and r["severity"] == severity)


def test_good_winds_pass_every_rule(tmp_path):
    results = judged(winds(), tmp_path)
    assert failures(results) == {}
    assert len(results) == len(wind_rules.RULES) > 30


EVERY = list(range(480))
SPOILED = {  # name: (change, what must fail and how badly)
    "a fast row": (lambda t: set_rows(t, [7], u_m_s=250.01, v_m_s=0.0), {"winds.speed": "warning"}),
    "just below the limit": (lambda t: set_rows(t, [7], u_m_s=250.0, v_m_s=0.0), {}),
    "many fast rows": (
        lambda t: set_rows(t, EVERY[:10], u_m_s=251.0, v_m_s=0.0),
        {"winds.speed": "critical", "winds.scatter": None},
    ),
    "a null wind": (lambda t: set_rows(t, [7], v_m_s=None), {"winds.absent": "warning"}),
    "a wind that is no number": (
        lambda t: set_rows(t, [7], u_m_s=float("nan")),
        {"winds.absent": "warning"},
    ),
    "many null winds": (
        lambda t: set_rows(t, EVERY[:30], u_m_s=None, v_m_s=None),
        {"winds.absent": "critical"},
    ),
    "a row without time": (lambda t: set_rows(t, [0], ts_s=None), {"winds.identity": "critical"}),
    "a row without aircraft": (
        lambda t: set_rows(t, [7], icao=None),
        {"winds.identity": "critical"},
    ),
    "beyond the pole": (lambda t: set_rows(t, [7], lat_deg=90.1), {"winds.lat_deg": "critical"}),
    "in orbit": (lambda t: set_rows(t, [7], alt_ft=60001.0), {"winds.alt_ft": "critical"}),
    "a constant wind": (
        lambda t: set_rows(t, EVERY, u_m_s=3.0),
        {"winds.constant": "critical", "winds.spread": "critical"},
    ),
    "a constant altitude": (
        lambda t: set_rows(t, EVERY, alt_ft=30000.0),
        {"winds.constant": "critical"},
    ),
    "zero winds": (
        lambda t: set_rows(t, EVERY[:48], u_m_s=0.0, v_m_s=0.0),
        {"winds.still": "critical"},
    ),
    "one stuck sensor": (
        lambda t: set_rows(t, EVERY[::8], u_m_s=20.0, v_m_s=-5.0),
        {"winds.stuck": "warning"},
    ),
    "three stuck sensors": (
        lambda t: set_rows(
            t, sorted(EVERY[::8] + EVERY[1::8] + EVERY[2::8]), u_m_s=20.0, v_m_s=-5.0
        ),
        {"winds.stuck": "critical"},
    ),
    "a copy": (lambda t: pl.concat([t, t[7]]).sort("ts_s"), {"winds.duplicates": "warning"}),
    "every row twice": (lambda t: pl.concat([t, t]).sort("ts_s"), {"winds.duplicates": "critical"}),
    "two winds at once": (
        lambda t: pl.concat([t, *[t[i].with_columns(u_m_s=pl.lit(21.0)) for i in range(9)]]).sort(
            "ts_s"
        ),
        {"winds.conflicts": "warning"},
    ),
    "out of order": (lambda t: pl.concat([t[1:2], t[:1], t[2:]]), {"winds.time_order": "critical"}),
    "milliseconds": (
        lambda t: t.with_columns(pl.col("ts_s") * 1000),
        {"winds.time_range": "critical", "winds.rows_per_aircraft": None, "winds.scatter": None},
    ),
    "lower case": (lambda t: set_rows(t, [7], icao="40ab01"), {"winds.icao": "warning"}),
    "few aircraft": (lambda t: t.filter(pl.col("icao") <= "400003"), {"winds.aircraft": "warning"}),
    "few rows": (lambda t: t[:99], {"winds.rows": "critical"}),
    "one aircraft dominates": (
        lambda t: set_rows(t, EVERY[96:], icao="400000"),
        {"winds.largest_aircraft": "warning", "winds.rows_per_aircraft": None},
    ),
    "too fast a radar": (
        lambda t: t.with_columns(ts_s=1.6e9 + pl.int_range(pl.len()) * 0.01),
        {"winds.rate": "warning"},
    ),
    "jumping winds": (
        lambda t: t.with_columns(u_m_s=pl.col("u_m_s") + 40 * (pl.int_range(pl.len()) // 8 % 2)),
        {"winds.scatter": "warning"},
    ),
    "another unit": (
        lambda t: t.with_columns(pl.col("u_m_s", "v_m_s") * 80),
        {"winds.speed": "critical", "winds.spread": None, "winds.scatter": None},
    ),
    "another type": (
        lambda t: t.with_columns(pl.col("alt_ft").cast(pl.Float32)),
        {"winds.schema": "critical"},
    ),
    "a missing column": (lambda t: t.drop("record"), {"winds.schema": "critical"}),
    "a column too many": (lambda t: t.with_columns(temp_k=250.0), {"winds.schema": "critical"}),
    "no rows": (
        lambda t: t.clear(),
        {
            "winds.rows": "critical",
            "winds.constant": None,
            "winds.spread": None,
            "winds.aircraft": None,
            "winds.rows_per_aircraft": None,
        },
    ),
}


@pytest.mark.parametrize("case", SPOILED)
def test_spoiled_winds_fail_their_rule(case, tmp_path):
    change, expected = SPOILED[case]
    found = failures(judged(change(winds()), tmp_path))
    named = {name: severity for name, severity in expected.items() if severity}
    assert named.items() <= found.items()
    assert found.keys() <= expected.keys()  # None: may fail as well


def test_rows_behind_a_failure_are_named(tmp_path):
    results = judged(set_rows(winds(), [7, 300], u_m_s=300.0), tmp_path)
    speed = row(results, "winds.speed", "warning")
    assert speed["rows"] == 2
    assert speed["examples"] == [{"file": "a.csv", "record": 7}, {"file": "a.csv", "record": 300}]
    assert speed["observed"] == pytest.approx(2 / 480)


def test_at_most_ten_examples(tmp_path):
    speed = row(
        judged(set_rows(winds(), EVERY[100:125], u_m_s=300.0), tmp_path), "winds.speed", "critical"
    )
    assert speed["rows"] == 25
    assert [e["record"] for e in speed["examples"]] == list(range(100, 110))


def test_scatter_is_the_vectors_standard_deviation(tmp_path):
    table = winds()
    by_hand = [
        float(
            (
                (part["u_m_s"].to_numpy().std(ddof=1)) ** 2
                + (part["v_m_s"].to_numpy().std(ddof=1)) ** 2
            )
            ** 0.5
        )
        for part in table.with_columns(cell=pl.col("ts_s") // 600).partition_by("icao", "cell")
        if len(part) >= 5
    ]
    table.write_parquet(tmp_path / "t.parquet")
    assert wind_rules.scatter(
        pl.scan_parquet(tmp_path / "t.parquet"), table.height
    ) == pytest.approx(pl.Series(by_hand).median())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t, {}),
        (lambda t: set_rows(t, [3], mach=1.2), {"states.mach": "warning"}),
        (lambda t: set_rows(t, [3, 4, 5], gs_kt=900.0), {"states.gs_kt": "critical"}),
        (lambda t: t.reverse(), {"states.time_order": "critical"}),
        (lambda t: t.drop("mach"), {"states.schema": "critical"}),
    ],
)
def test_states(change, expected, tmp_path):
    assert failures(judged(change(states()), tmp_path, state_rules)) == expected


def real(path: Path, **names) -> pl.DataFrame:
    """A published table as a winds table; record = data row from 0."""
    if not path.exists():
        pytest.skip(f"{path} is not there")
    numbers = {new: pl.col(old).cast(pl.Float64) for new, old in names.items()}
    return (
        pl.read_csv(path, schema_overrides={"icao": pl.String})
        .with_row_index("record")
        .select(
            icao=pl.col("icao").str.to_uppercase(),
            **numbers,
            u_true_m_s=pl.lit(None, pl.Float64),
            v_true_m_s=pl.lit(None, pl.Float64),
            file=pl.lit(path.name),
            record="record",
        )
        .select(*wind_rules.SCHEMA)
        .sort("ts_s", "icao", "file", "record")
    )


def test_real_hour_has_exactly_eight_fast_rows_and_three_copies(tmp_path):
    """Rows counted by hand in the file: vw > 250 m/s; the later of two equal rows."""
    table = real(
        MIRROR / "meteo-particle-model/wind.csv",
        ts_s="ts",
        lat_deg="lat",
        lon_deg="lon",
        alt_ft="alt",
        u_m_s="vwx",
        v_m_s="vwy",
    )
    results = judged(table, tmp_path)
    fast = row(results, "winds.speed", "warning")
    copies = row(results, "winds.duplicates", "warning")
    assert fast["rows"] == 8
    assert [e["record"] for e in fast["examples"]] == [
        1504,
        6671,
        7597,
        9986,
        23932,
        24659,
        25272,
        31909,
    ]
    assert copies["rows"] == 3
    assert [e["record"] for e in copies["examples"]] == [1561, 4333, 20750]
    assert failures(results) == {"winds.speed": "warning", "winds.duplicates": "warning"}


def test_real_flights_without_measured_wind_are_rejected(tmp_path):
    table = real(
        MIRROR / "acsmc/a320_406471.csv",
        ts_s="t",
        lat_deg="lat",
        lon_deg="lon",
        alt_ft="alt",
        u_m_s="vwx",
        v_m_s="vwy",
    )
    results = judged(table, tmp_path)
    constant = row(results, "winds.constant", "critical")
    assert not constant["success"]
    assert constant["where"] == ["u_m_s", "v_m_s"]
    assert row(results, "winds.still", "critical")["rows"] == table.height == 36947
