"""Preparation: drops by reason, provenance, flights, splits without leakage, a scaler that knows
only training rows."""

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from prepared_sky import SETTINGS, START_S, WIND_MAX_M_S, prepared, tidy, winds

from stages import files, params
from stages.errors import DataError, GateError, IntegrityError, ParamsError
from stages.runner import Asked
from stages.runner import run as run_stage
from stages.splits import SPLITS
from stages.winds import prepare
from stages.winds import rows as preparing
from stages.winds.pairs import Pairs
from stages.winds.rows import X, Y
from tests.benchmarks import bench_prepare

MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data"))
HOUR = MIRROR / "mode-s/meteo-particle-model/wind.csv"


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sky")
    return winds(), prepared(winds(), folder), folder


def roles(folder: Path) -> dict[str, np.ndarray]:
    """Row numbers that each split uses, as target or as context, read through the pairs that
    models get."""
    pairs = Pairs.open(folder)
    return {
        name: np.unique(
            np.concatenate(
                [
                    rows
                    for j in pairs.targets(name)
                    for pair in [pairs.pair(j)]
                    for rows in (pair.target_rows, pair.context_rows)
                ]
            )
        )
        for name in SPLITS
    }


def test_no_row_and_no_flight_within_the_gap_is_on_both_sides(sky):
    _, _, folder = sky
    rows, used = pl.read_parquet(folder / "rows.parquet"), roles(folder)
    assert all(len(found) > 100 for found in used.values())
    together = 0
    for left, right in itertools.combinations(used.values(), 2):
        assert not set(left.tolist()) & set(right.tolist())
        a, b = rows[left], rows[right]
        distance = np.abs(a["t_s"].to_numpy()[:, None] - b["t_s"].to_numpy()[None, :])
        assert distance.min() >= SETTINGS.embargo_s
        same_flight = a["flight"].to_numpy()[:, None] == b["flight"].to_numpy()[None, :]
        together += same_flight.sum()
        assert distance[same_flight].min(initial=math.inf) >= SETTINGS.embargo_s
    assert together > 0  # flights do last from split to split: the gap is what keeps them apart


def test_split_column_is_the_role_as_target(sky):
    _, meta, folder = sky
    rows = pl.read_parquet(folder / "rows.parquet")
    for code, name in enumerate(SPLITS):
        assert sorted(rows.filter(split=code)["slice"].unique()) == meta["slices"][name]
        assert rows.filter(split=code).height == meta["rows"][name]
    assert set(rows["split"].unique()) == {-1, 0, 1, 2}


def test_target_without_context_is_not_used(tmp_path):
    table = winds()
    t0 = 60 * math.ceil(table["ts_s"].min() / 60)
    hole = (t0 + 20 * 60 - 600 - 60, t0 + 20 * 60 - 600)  # the context of target slice 20, by hand
    whole = prepared(table, tmp_path / "a")
    holed = prepared(table.filter(~pl.col("ts_s").is_between(*hole, closed="left")), tmp_path / "b")
    assert 20 in whole["slices"]["train"]
    assert sorted(set(whole["slices"]["train"]) - set(holed["slices"]["train"])) == [20]
    rows = pl.read_parquet(tmp_path / "b/rows.parquet")
    assert set(rows.filter(slice=20)["split"]) == {-1}


def test_scaler_is_that_of_the_training_rows_each_once(sky):
    _, meta, folder = sky
    rows = pl.read_parquet(folder / "rows.parquet")[roles(folder)["train"]]
    for axis, names in (("x", X), ("y", Y)):
        values = rows.select(names).to_numpy().astype(np.float64)
        np.testing.assert_allclose(meta["scaler"][f"{axis}_mean"], values.mean(0), rtol=1e-8)
        np.testing.assert_allclose(meta["scaler"][f"{axis}_std"], values.std(0), rtol=1e-8)


@pytest.mark.parametrize(("split", "moves"), [("val", False), ("test", False), ("train", True)])
def test_scaler_does_not_see_other_splits(sky, tmp_path, split, moves):
    table, meta, folder = sky
    source = pl.read_parquet(folder / "rows.parquet")[roles(folder)[split]].select("record")
    there = pl.col("record").is_in(source["record"].implode())
    changed = table.with_columns(
        pl.when(there).then(pl.col(name) + 3).otherwise(pl.col(name)).alias(name)
        for name in ("lat_deg", "u_m_s")
    )
    again = prepared(changed, tmp_path)
    assert (again["scaler"] != meta["scaler"]) == moves
    assert (again["area"] != meta["area"]) == moves


def test_every_kept_row_is_its_source_row(sky):
    table, meta, folder = sky
    rows = pl.read_parquet(folder / "rows.parquet").with_columns(
        file=pl.col("file")
        .cast(pl.Int64)
        .replace_strict(dict(enumerate(meta["files"])), return_dtype=pl.String)
    )
    joined = rows.join(table, on=["file", "record"], how="inner", suffix="_source")
    assert meta["files"] == ["a.csv", "b.csv"]
    assert joined.height == rows.height == table.height == meta["kept"]
    assert (joined["t_s"] == joined["ts_s"]).all()
    for name in (*X, *Y):
        assert (joined[name] == joined[f"{name}_source"].cast(pl.Float32)).all()
    assert rows["t_s"].is_sorted()


def test_drops_are_counted_by_the_first_reason(tmp_path):
    table = winds()
    bad = [
        {"u_m_s": None},
        {"v_m_s": math.nan},
        {"lat_deg": None, "u_m_s": 400.0},
        {"alt_ft": 99000.0},
        {"lat_deg": 91.0, "v_m_s": 300.0},
        {"u_m_s": 128.62, "v_m_s": 0.0},
    ]
    planted = pl.concat(
        [
            table[i].with_columns(
                **{k: pl.lit(v, pl.Float64) for k, v in change.items()},
                record=pl.lit(10**6 + i, pl.UInt32),
            )
            for i, change in enumerate(bad, start=50)
        ]
    )
    copies = table[500:503].with_columns(record=pl.col("record") + 2 * 10**6)
    rival = table[600].with_columns(
        u_m_s=pl.lit(1.0), record=pl.lit(3 * 10**6, pl.UInt32)
    )  # same moment, another wind: kept
    edge = table[700].with_columns(
        u_m_s=pl.lit(WIND_MAX_M_S),
        v_m_s=pl.lit(0.0),
        ts_s=pl.col("ts_s") + 0.05,
        record=pl.lit(4 * 10**6, pl.UInt32),
    )
    meta = prepared(tidy(pl.concat([table, planted, copies, rival, edge])), tmp_path)
    assert meta["dropped"] == {"null": 3, "outside_range": 2, "over_wind_max": 1, "duplicate": 3}
    assert meta["read"] == table.height + 11
    assert meta["kept"] == table.height + 2 == meta["read"] - sum(meta["dropped"].values())
    kept = set(pl.read_parquet(tmp_path / "rows.parquet")["record"].to_list())
    assert kept == set(table["record"].to_list()) | {3 * 10**6, 4 * 10**6}


def flights_by_hand(table: pl.DataFrame) -> list[int]:
    """Flight numbers row after row, with a dictionary."""
    last, numbers = {}, []
    for t, icao in table.select("ts_s", "icao").iter_rows():
        seen, number = last.get(icao, (-math.inf, -1))
        if t - seen > 900:
            number = 1 + max((n for _, n in last.values()), default=-1)
        last[icao] = t, number
        numbers.append(number)
    return numbers


@pytest.mark.parametrize("chunk", [7, 97, 10**6])
def test_flights_and_rows_do_not_depend_on_the_chunks(sky, tmp_path, monkeypatch, chunk):
    table, _, folder = sky
    copies = table[40:60].with_columns(
        record=pl.col("record") + 10**6
    )  # copies beside their originals, across seams
    monkeypatch.setattr(preparing, "CHUNK", chunk)
    meta = prepared(tidy(pl.concat([table[:1500], copies, table[1500:]])), tmp_path)
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert meta["dropped"]["duplicate"] == 20
    assert rows.equals(pl.read_parquet(folder / "rows.parquet"))
    numbers = flights_by_hand(table)
    assert max(numbers) > 20
    assert rows["flight"].to_list() == numbers


def test_slice_numbers(sky):
    table, meta, folder = sky
    rows = pl.read_parquet(folder / "rows.parquet")
    assert meta["t0_s"] == 60 * math.ceil(table["ts_s"].min() / 60) > START_S
    expected = [math.floor((t - meta["t0_s"]) / 60) for t in table["ts_s"]]
    assert rows["slice"].to_list() == expected
    assert min(expected) == -1


@pytest.mark.parametrize("slice_s", [60, 90, 300])
def test_slices_begin_at_multiples_of_their_length_since_1970(tmp_path, slice_s):
    """Whoever counts slices from 1970 (a nowcast) cuts at the same moments."""
    settings = SETTINGS.model_copy(update={"slice_s": slice_s, "embargo_s": 60, "lead_s": 600})
    table = winds()
    meta = prepared(table, tmp_path, settings)
    assert meta["t0_s"] % slice_s == 0 and 0 <= meta["t0_s"] - table["ts_s"].min() < slice_s
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    since_1970 = [int(t // slice_s) for t in rows["t_s"]]
    assert {a - b for a, b in zip(since_1970, rows["slice"].to_list(), strict=True)} == {
        int(meta["t0_s"] // slice_s)
    }


def test_same_bytes_again_with_another_number_of_threads(sky):
    _, _, folder = sky
    script = (
        "import sys; from pathlib import Path; from prepared_sky import *; "
        "rows.prepare(Path(sys.argv[1]) / 'winds.parquet', Path(sys.argv[2]), SETTINGS, "
        "WIND_MAX_M_S, 'toy', 'sky')"
    )
    again = folder / "again"
    again.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path.cwd()), str(Path(__file__).parent)])
    subprocess.run(
        [sys.executable, "-c", script, folder, again],
        check=True,
        env={**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": path},
    )
    for name in ("rows.parquet", "prepared.json"):
        assert files.sha256(folder / name) == files.sha256(again / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.reverse(), "not in order of time"),
        (lambda t: t.clear(), "no row has a time"),
        (lambda t: t.filter(pl.col("ts_s") < START_S + 5000), "a split has no pair"),
        (lambda t: t.with_columns(u_m_s=pl.lit(999.0)), "a split has no pair"),
        (lambda t: t.with_columns(u_m_s=pl.lit(0.0)), "constant over the training rows"),
    ],
)
def test_unusable_data_is_told(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        prepared(change(winds()), tmp_path)


def project(
    folder: Path, monkeypatch, table: pl.DataFrame, success: bool = True, split: dict | None = None
) -> params.Profile:
    """A project folder with decoded winds and a gate, and the profile that prepares them."""
    (folder / "stages").symlink_to(Path("stages").resolve())  # the record hashes the code
    monkeypatch.chdir(folder)
    path = Path("data/toy/decoded/sky/winds.parquet")
    path.parent.mkdir(parents=True)
    table.write_parquet(path)
    files.write_json(
        "data/toy/validated/sky.json",
        {"success": success, "judged": {path.as_posix(): files.sha256(path)}},
    )
    settings = SETTINGS.model_copy(update={"split": params.Split(**split)}) if split else SETTINGS
    return params.Profile(
        profile="toy",
        datasets=("sky",),
        acquired=("sky",),
        wind=("sky",),
        prepare={"sky": settings},
        training={"steps": 1, "validate_every": 1, "patience": 1},
        evaluation={"leads_min": (5,), "bootstrap": 100},
    )


@pytest.fixture
def decode():
    return params.load().decode


def run(profile: params.Profile, dataset: str, decode: params.Decode) -> None:
    """The stage, with this profile in the place of those of params.yaml."""
    parameters = SimpleNamespace(profiles={profile.profile: profile}, decode=decode)
    run_stage(prepare.plan(Asked({"profile": profile.profile, "dataset": dataset}, parameters)))


def test_stage_writes_a_record_of_what_it_read(decode, tmp_path, monkeypatch):
    run(project(tmp_path, monkeypatch, winds()), "sky", decode)
    out = Path("data/toy/prepared/sky")
    record = files.read_json("data/toy/records/sky.prepare.json")
    assert sorted(p.name for p in out.iterdir()) == ["prepared.json", "rows.parquet"]
    assert record["inputs"].keys() == {
        "data/toy/decoded/sky/winds.parquet",
        "data/toy/validated/sky.json",
    }
    assert record["outputs"]["data/toy/prepared/sky/rows.parquet"]["sha256"] == files.sha256(
        out / "rows.parquet"
    )
    assert len(Pairs.open(out).targets("train")) > 10


def test_gate_is_asked(decode, tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, winds(), success=False)
    with pytest.raises(GateError):
        run(profile, "sky", decode)
    Path("data/toy/validated/sky.json").unlink()
    with pytest.raises(DataError, match="a file is missing"):
        run(profile, "sky", decode)
    assert not Path("data/toy/prepared/sky").exists()


def test_gate_of_other_bytes_is_refused(decode, tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, winds())
    winds(seed=1).write_parquet("data/toy/decoded/sky/winds.parquet")
    with pytest.raises(IntegrityError, match="other bytes"):
        run(profile, "sky", decode)


def test_leaking_splits_are_refused_before_any_work(decode, tmp_path, monkeypatch):
    profile = project(
        tmp_path,
        monkeypatch,
        winds(),
        split={"train": ((660, 3600),), "val": ((3660, 5700),), "test": ((6660, 9000),)},
    )
    Path("data/toy/validated/sky.json").unlink()  # would be the first thing that work stumbles over
    with pytest.raises(ParamsError, match="splits would share rows") as caught:
        run(profile, "sky", decode)
    assert caught.value.exit_code == 2


def test_benchmark_runs_and_holds_its_limits(capfd):
    assert bench_prepare.main(["--rows", "60000"]) == 0
    assert "rows 60,000 (kept 59,9" in capfd.readouterr().out


def test_real_hour(tmp_path):
    if not HOUR.exists():
        pytest.skip(f"{HOUR} is not there")
    table = (
        pl.read_csv(HOUR, schema_overrides={"icao": pl.String, "alt": pl.Float64})
        .with_row_index("record")
        .select(
            ts_s="ts",
            icao="icao",
            lat_deg="lat",
            lon_deg="lon",
            alt_ft="alt",
            u_m_s="vwx",
            v_m_s="vwy",
            u_true_m_s=pl.lit(None, pl.Float64),
            v_true_m_s=pl.lit(None, pl.Float64),
            file=pl.lit("wind.csv"),
            record="record",
        )
    )
    settings = params.load()
    meta = prepared(tidy(table), tmp_path, settings.profiles["sample"].prepare["hour_winds"])
    assert meta["dropped"] == {
        "null": 0,
        "outside_range": 0,
        "over_wind_max": 12,
        "duplicate": 3,
    }  # counted in the file by hand
    assert meta["t0_s"] == 1484136000.0  # 2017-01-11 12:00:00 UTC
    assert min(len(meta["slices"][name]) for name in SPLITS) >= 3
