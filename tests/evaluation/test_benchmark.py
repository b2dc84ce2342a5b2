"""The frozen benchmark stands alone: same bytes, honest pairs, a scorer that needs nothing of
the project."""

import ast
import csv
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages import files
from stages.errors import DataError, InputError
from stages.winds import metrics
from stages.winds.nowcast import benchmark, benchmark_about, scorer

T0, LEAD, SLICE, MINUTES = 1768456800.0, 600.0, 60.0, 60
SIMULATE = dict(
    seed=5,
    start="2026-01-15T06:00:00Z",
    hours=1.0,
    aircraft=12,
    update_s=4.0,
    south_west=[44.0, 4.0],
    extent_km=[500.0, 600.0],
    altitude_m=[4000.0, 12000.0],
    dropout=0.08,
    bit_error=0.004,
    airspeed_noise_kt=1.0,
    heading_noise_deg=0.3,
)


def prepared(root, truth=True):
    """A prepared, simulated data set of one hour, as the preparation writes it."""
    rng = np.random.default_rng(0)
    n = 1500
    t = np.sort(np.round(T0 + rng.uniform(0, MINUTES * SLICE, n), 3))
    u, v = rng.normal(20, 6, n), rng.normal(-3, 6, n)
    folder = root / "prepared" / "simulated"
    folder.mkdir(parents=True)

    def f32(a):
        return np.asarray(a, np.float32)

    rows = pl.DataFrame(
        {
            "t_s": t,
            "lat_deg": f32(rng.uniform(44, 49, n)),
            "lon_deg": f32(rng.uniform(4, 10, n)),
            "alt_ft": f32(rng.integers(520, 1560, n) * 25),
            "u_m_s": f32(u + rng.normal(0, 1, n)),
            "v_m_s": f32(v + rng.normal(0, 1, n)),
            "u_true_m_s": f32(u),
            "v_true_m_s": f32(v),
            "flight": rng.integers(0, 20, n).astype(np.uint32),
        }
    )
    rows.write_parquet(folder / "rows.parquet")
    slices = {"train": list(range(11, 30)), "val": list(range(41, 45)), "test": list(range(50, 60))}
    scaler = {
        "x_mean": [46.0, 7.0, 3e4],
        "x_std": [1.0, 2.0, 5e3],
        "y_mean": [20.0, -3.0],
        "y_std": [6.0, 6.0],
    }
    files.write_json(
        folder / "prepared.json",
        {
            "t0_s": T0,
            "slice_s": SLICE,
            "lead_s": LEAD,
            "slices": slices,
            "scaler": scaler,
            "kept": n,
            "columns_x": ["lat_deg", "lon_deg", "alt_ft"],
            "truth": truth,
        },
    )
    (root / "raw" / "simulated").mkdir(parents=True)
    empty = pa.schema([("ts_s", pa.float64())]).with_metadata({"simulate": json.dumps(SIMULATE)})
    pq.write_table(empty.empty_table(), root / "raw" / "simulated" / "truth.parquet")
    return root


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    root = prepared(tmp_path_factory.mktemp("data"))
    benchmark.build(root, "simulated", root / "out")
    return root / "out"


@pytest.fixture(scope="module")
def tables(frozen):
    return {name: pl.read_csv(frozen / f"{name}.csv") for name in ("rows", "truth", "pairs")}


def forecast(path, tables, split="test", east=0.0, spread=None, true=False, order=1):
    """A predictions file: the measured or the true wind, off by `east`."""
    pairs = tables["pairs"].filter(pl.col("split") == split).rows(named=True)
    targets = np.concatenate(
        [np.arange(pair["target_first"], pair["target_end"]) for pair in pairs]
    )
    wind = tables["truth" if true else "rows"][targets]
    names = ("u_true_m_s", "v_true_m_s") if true else ("u_m_s", "v_m_s")
    made = pl.DataFrame({"row": targets, "u_m_s": wind[names[0]] + east, "v_m_s": wind[names[1]]})
    if spread:
        made = made.with_columns(u_sd_m_s=pl.lit(spread), v_sd_m_s=pl.lit(spread))
    made[::order].write_csv(path)
    return path, targets


def run(frozen, *words):
    """The scorer as another user has it: isolated from this project."""
    return subprocess.run(
        [sys.executable, "-I", str(frozen / "score.py"), *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
    )


def test_same_bytes_and_sums(frozen, tmp_path):
    benchmark.build(frozen.parent, "simulated", tmp_path / "again")
    names = sorted(p.name for p in frozen.iterdir())
    assert names == sorted(
        [
            "rows.csv",
            "truth.csv",
            "pairs.csv",
            "score.py",
            "croissant.json",
            "README.md",
            "SHA256SUMS",
        ]
    )
    for name in names:
        assert (frozen / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    sums = dict(
        reversed(line.split("  ")) for line in (frozen / "SHA256SUMS").read_text().splitlines()
    )
    assert sums == {name: files.sha256(frozen / name) for name in names if name != "SHA256SUMS"}


def test_tables_hold_what_was_prepared(frozen, tables):
    source = pl.read_parquet(frozen.parent / "prepared" / "simulated" / "rows.parquet")
    for name, (columns, _) in benchmark_about.TABLES.items():
        with (frozen / name).open() as stream:
            assert next(csv.reader(stream)) == list(columns)
    assert tables["rows"]["row"].to_list() == list(range(source.height))
    for name, tolerance in (
        ("t_s", 1e-9),
        ("lat_deg", 1e-6),
        ("alt_ft", 0),
        ("u_m_s", 5.1e-5),
        ("flight", 0),
    ):
        assert (
            np.abs(tables["rows"][name].to_numpy() - source[name].to_numpy().astype(float)).max()
            <= tolerance
        )
    assert (
        np.abs(tables["truth"]["v_true_m_s"].to_numpy() - source["v_true_m_s"].to_numpy()).max()
        <= 5.1e-5
    )


def test_contexts_are_the_minute_a_lead_before_their_targets(tables):
    t = tables["rows"]["t_s"].to_numpy() - T0
    pairs = tables["pairs"]
    assert dict(pairs.group_by("split").len().rows()) == {"train": 19, "val": 4, "test": 10}
    for pair in pairs.rows(named=True):
        start = pair["slice"] * SLICE

        def inside(low, high):
            return np.flatnonzero((t >= low) & (t < high))

        assert np.array_equal(
            np.arange(pair["target_first"], pair["target_end"]), inside(start, start + SLICE)
        )
        assert np.array_equal(
            np.arange(pair["context_first"], pair["context_end"]),
            inside(start - LEAD - SLICE, start - LEAD),
        )


def test_scorer_imports_nothing_but_the_standard_library_and_numpy(frozen):
    assert (frozen / "score.py").read_bytes() == Path(scorer.__file__).read_bytes()
    tree = ast.parse((frozen / "score.py").read_text())
    modules = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in modules} <= {"numpy"} | set(sys.stdlib_module_names)


def test_scores_agree_with_the_projects_own(frozen, tables, tmp_path):
    path, targets = forecast(
        tmp_path / "p.csv", tables, east=2.0, spread=1.5, true=True, order=-1
    )  # lines in any order
    done = run(frozen, path)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)

    def take(table, names):
        return np.stack([tables[table][name].to_numpy()[targets] for name in names], 1)

    truth, seen = take("truth", ("u_true_m_s", "v_true_m_s")), take("rows", ("u_m_s", "v_m_s"))
    number = ((tables["rows"]["t_s"].to_numpy()[targets] - T0) // SLICE).astype(int)
    points = metrics.Points(number, truth + [2.0, 0.0], seen, np.full(truth.shape, 1.5), truth)
    own, _ = metrics.summarise(*metrics.by_slice(metrics.columns(points), number))
    assert got["points"] == len(targets) and got["slices"] == 10
    for name in (
        "rmse_component_m_s",
        "rmse_component_kn",
        "rmse_vector_m_s",
        "norm_mae_m_s",
        "angle_mae_deg",
        "coverage_90",
        "log_likelihood_m_s",
    ):
        assert got["measured"][name]["value"] == pytest.approx(own[name]["value"], rel=1e-9), name
    assert "low" not in got["measured"]["rmse_component_m_s"]  # ten minutes are too short for one
    assert got["noise_floor_component_m_s"]["value"] == pytest.approx(
        own["noise_floor_component_m_s"]["value"]
    )
    # against the truth the forecast is off by 2 m/s east, everywhere
    assert got["true"]["rmse_component_m_s"] == pytest.approx({"value": math.sqrt(2)})
    assert got["true"]["bias_east_m_s"]["value"] == pytest.approx(2.0)
    assert got["true"]["bias_north_m_s"]["value"] == pytest.approx(0, abs=1e-12)
    assert sum(band["points"] for band in got["by_altitude_ft"].values()) == len(targets)


def test_intervals_are_those_of_the_projects_runs_of_minutes():
    """359 minutes whose error drifts: the scorer's interval is the project's, far wider than
    that of minutes drawn one by one."""
    rng, each, minutes = np.random.default_rng(0), 5, 359
    square = np.repeat(20 + 5 * np.sin(np.arange(minutes) / 40) + rng.normal(0, 1, minutes), each)
    slices = np.repeat(np.arange(minutes), each)
    got = scorer.summary(
        {
            "square": square,
            **dict.fromkeys(("norm", "angle", "east", "north"), np.zeros(len(square))),
        },
        slices,
    )
    sums = {"se_east": square, "se_north": square, "n": np.ones(len(square))}
    own, _ = metrics.summarise(*metrics.by_slice(sums, slices), ("rmse_component_m_s",))

    def width(found):
        return found["rmse_component_m_s"]["high"] - found["rmse_component_m_s"]["low"]

    assert width(got) == pytest.approx(width(own), rel=1e-9)
    alone = np.sqrt(square[::each][rng.integers(minutes, size=(1000, minutes))].mean(1))
    assert width(got) > 2 * np.diff(np.quantile(alone, [0.05, 0.95]))[0]


def test_a_perfect_forecast_errs_by_the_noise(frozen, tables, tmp_path):
    got = json.loads(
        run(
            frozen,
            forecast(tmp_path / "p.csv", tables, "val", true=True)[0],
            "--split",
            "val",
            "--data",
            frozen,
        ).stdout
    )
    assert got["true"]["rmse_vector_m_s"]["value"] == 0
    assert got["measured"]["rmse_component_m_s"] == got["noise_floor_component_m_s"]
    assert got["noise_floor_component_m_s"]["value"] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    "spoil, says",
    [
        (lambda rows: rows[:-1], "1 target rows without a forecast"),
        (lambda rows: [*rows, rows[-1]], "forecast twice"),
        (lambda rows: [*rows, "0,1.0,2.0"], "1 rows that are no targets: row 0"),
        (lambda rows: [rows[0], "x" + rows[1], *rows[2:]], "line 2"),
        (lambda rows: [rows[0], rows[1].split(",")[0] + ",nan,1", *rows[2:]], "line 2"),
        (lambda rows: ["row,u,v", *rows[1:]], "no column u_m_s, v_m_s"),
        (lambda rows: [], "no column row"),
    ],
)
def test_what_cannot_be_scored_is_refused(frozen, tables, tmp_path, spoil, says):
    path, _ = forecast(tmp_path / "p.csv", tables)
    path.write_text("\n".join(spoil(path.read_text().splitlines())) + "\n")
    done = run(frozen, path)
    assert done.returncode == 2 and says in done.stderr and not done.stdout


def test_usage_and_unknown_split(frozen, tables, tmp_path):
    assert run(frozen).returncode == 2
    done = run(frozen, forecast(tmp_path / "p.csv", tables)[0], "--split", "tset")
    assert done.returncode == 2 and "tset" in done.stderr


def test_croissant_describes_every_file_and_column(frozen):
    told = json.loads((frozen / "croissant.json").read_text())
    assert (
        told["conformsTo"] == "http://mlcommons.org/croissant/1.0" and told["@type"] == "sc:Dataset"
    )
    assert {
        "name",
        "description",
        "license",
        "url",
        "creator",
        "datePublished",
        "version",
        "citeAs",
    } <= set(told)
    objects = {o["@id"]: o for o in told["distribution"]}
    assert set(objects) == {"rows.csv", "truth.csv", "pairs.csv", "score.py", "README.md"}
    for name, found in objects.items():
        assert (
            found["sha256"] == files.sha256(frozen / name)
            and found["contentSize"] == f"{(frozen / name).stat().st_size} B"
        )
    fields = {field["@id"] for part in told["recordSet"] for field in part["field"]}
    for part in told["recordSet"]:
        with (frozen / f"{part['name']}.csv").open() as stream:
            assert [field["source"]["extract"]["column"] for field in part["field"]] == next(
                csv.reader(stream)
            )
        assert part["key"]["@id"] in fields
        assert {field["dataType"] for field in part["field"]} <= {
            "sc:Integer",
            "sc:Float",
            "sc:Text",
        }
        assert all(field["source"]["fileObject"]["@id"] in objects for field in part["field"])
        assert {
            field["references"]["field"]["@id"] for field in part["field"] if "references" in field
        } <= fields


def test_readme_states_task_and_sensors(frozen):
    words = (frozen / "README.md").read_text()
    for part in (
        "600 s before",
        "heading 0.3 degrees",
        "airspeed 1 kt",
        "8.0% of the frames",
        "| test | 10 |",
        "500 km east-west",
    ):
        assert part in words


def test_refusals(frozen, tmp_path):
    with pytest.raises(InputError, match="folder of its own"):
        benchmark.build(frozen.parent, "simulated", frozen)
    with pytest.raises(DataError, match="needs the true wind"):
        benchmark.build(prepared(tmp_path / "real", truth=False), "simulated", tmp_path / "out")
    assert not (tmp_path / "out").exists()
