"""The drawn wind: its covariance is the law's, its noise is the noise, its truth reaches the
prepared rows, its bytes stay the same.

The oracle writes the law out once more, in plain NumPy on kilometres and minutes, and shares no
line with the draw.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pydantic
import pytest
from scipy.linalg import solve_triangular

from stages import params
from stages.acquisition import acquire
from stages.errors import InputError
from stages.validation import gate
from stages.winds import acquire as acquiring
from stages.winds import decode, rows, validate
from stages.winds.decoding import readers, winds
from stages.winds.sky import gaussian_wind

ROOT = Path(__file__).parents[2]
# a mean of n normal numbers may miss its expectation by this many of its standard deviations
SIGMAS = 5.0
LAW = dict(sd_m_s=10.0, horizontal_km=150.0, vertical_km=2.0, time_min=90.0, noise_m_s=1.0)
BASE = dict(
    seed=3,
    start="2026-01-15T06:00:00Z",
    hours=4,
    aircraft=5,
    update_s=60.0,
    south_west=(44.0, 4.0),
    extent_km=(300.0, 200.0),
    altitude_m=(8000.0, 12000.0),
    mean_m_s=(20.0, 5.0),
    **LAW,
)
SPLIT = params.Prepare(
    slice_s=60.0,
    lead_s=900.0,
    embargo_s=120.0,
    split={"train": ((960.0, 6840.0),), "val": ((7920.0, 9120.0),), "test": ((10200.0, 14400.0),)},
)
START_S = 1768456800.0


def config(**changes) -> params.Gaussian:
    return params.Gaussian(**BASE | changes)


def law(x, sd_m_s, horizontal_km, vertical_km, time_min, noise_m_s=0.0):
    """The oracle's covariance of measurements at points x: columns east, north, up in km, time
    in min."""
    east, north, up, t = (column[:, None] - column[None] for column in x.T)
    horizontal, vertical = np.hypot(east, north) / horizontal_km, up / vertical_km
    smooth = sd_m_s**2 * np.exp(-(horizontal**2 + vertical**2) / 2)
    return smooth * np.exp(-np.abs(t) / time_min) + noise_m_s**2 * np.eye(len(x))


def kilometres(lat, lon, alt_ft, t_s):
    """Points of the oracle from a table's columns: the plane about the middle of where the rows
    are."""
    middle = (lat.min() + lat.max()) / 2
    return np.stack(
        [
            111.19508 * np.cos(np.radians(middle)) * lon,
            111.19508 * lat,
            alt_ft * 0.0003048,
            (t_s - START_S) / 60,
        ],
        1,
    )


@pytest.fixture(scope="module")
def own():
    """The project's own set."""
    return params.load(ROOT / "params.yaml").datasets["gp_wind"]


@pytest.fixture(scope="module")
def made(own, tmp_path_factory):
    """The project's own set, acquired, decoded and prepared: data/mini of a project folder of
    its own."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("stages", "params.yaml", "constraints.txt"):
        (folder / name).symlink_to(ROOT / name)
    data = folder / "data/mini"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert acquiring.main(["mini", "gp_wind"]) == decode.main(["mini", "gp_wind"]) == 0
        (data / "prepared").mkdir()
        rows.prepare(
            data / "decoded/gp_wind/winds.parquet",
            data / "prepared",
            SPLIT,
            128.61,
            "mini",
            "gp_wind",
        )
    return data


@pytest.fixture(scope="module")
def draws():
    """4,000 draws at nine fixed points: true and measured wind less the mean, (4000, 9, 2), and
    the points."""
    draw = np.random.default_rng(0)
    x = draw.uniform((-150, -150, 8, 0), (150, 150, 12, 240), (9, 4))
    x[1] = x[0] + (3.0, 4.0, 0.1, 1.0)
    x[2], x[3], x[4] = (
        x[0] + (100.0, 0, 0, 0),
        x[0] + (0, 0, 1.5, 0),
        x[0] + (0, 0, 0, 60.0),
    )  # one axis alone
    found = (
        np.array([gaussian_wind.draw(config(seed=seed), x) for seed in range(4000)])
        - BASE["mean_m_s"]
    )
    return x, found[:, 0], found[:, 1]


def test_the_draws_covariance_is_the_laws(draws):
    x, true, measured = draws
    n = 2 * len(true)
    for wind, whole in ((true, law(x, **LAW | {"noise_m_s": 0.0})), (measured, law(x, **LAW))):
        found = np.einsum("sic,sjc->ij", wind, wind) / n
        spread = np.sqrt(
            (whole**2 + np.outer(np.diag(whole), np.diag(whole))) / n
        )  # of an estimate from n normal pairs
        assert (np.abs(found - whole) < SIGMAS * spread).all()
        assert (np.abs(wind.mean(0)) < SIGMAS * np.sqrt(np.diag(whole)[:, None] / len(true))).all()
    assert law(x, **LAW)[0, 2:5] == pytest.approx(
        100 * np.exp([-((100 / 150) ** 2) / 2, -((1.5 / 2) ** 2) / 2, -60 / 90])
    )


def test_east_and_north_and_noise_are_independent(draws):
    _, true, measured = draws
    noise, n = measured - true, len(true)
    assert noise.std() == pytest.approx(1.0, abs=SIGMAS / np.sqrt(2 * noise.size))
    limit = SIGMAS * 10 / np.sqrt(n)
    assert np.abs(np.einsum("si,sj->ij", true[..., 0], true[..., 1]) / n).max() < limit * 10
    assert np.abs(np.einsum("sic,sjd->icjd", true, noise) / n).max() < limit
    alike = np.einsum("sa,sb->ab", *[noise.reshape(n, -1)] * 2) / n
    assert np.abs(alike - np.eye(len(alike))).max() < SIGMAS * np.sqrt(2 / n)


def test_the_correlation_of_two_sets_is_a_block_of_that_of_all(draws):
    x = draws[0]
    assert gaussian_wind.correlation(config(), x[:4], x) == pytest.approx(
        law(x, **LAW | {"noise_m_s": 0.0})[:4] / 100, rel=1e-12
    )


def test_the_plane_measures_kilometres():
    """Against the great circle, through the middle of the area, where the plane touches the
    sphere."""
    area = gaussian_wind.airspace(config())
    lat, lon = area.lat0 + np.array([0, 0, 0.5, -0.5]), area.lon0 + np.array([-1.0, 1.0, 0, 0])
    x = gaussian_wind.points(
        config(), lat, lon, np.array([0, 0, 10_000.0, 20_000.0]), np.arange(4.0)
    )
    a, b = np.radians(lat)[:, None], np.radians(lon)[:, None]
    half = np.sin((a - a.T) / 2) ** 2 + np.cos(a) * np.cos(a.T) * np.sin((b - b.T) / 2) ** 2
    circle = 2 * 6371.0088 * np.arcsin(np.sqrt(half))
    flat = np.hypot(*(x[:, i, None] - x[None, :, i] for i in (0, 1)))
    assert flat[0, 1] == pytest.approx(circle[0, 1], rel=1e-4) and flat[2, 3] == pytest.approx(
        circle[2, 3], rel=1e-9
    )
    assert x[:, 2] == pytest.approx([0, 0, 3.048, 6.096]) and (x[:, 3] == [0, 1, 2, 3]).all()


def test_the_prepared_rows_are_one_draw_of_the_law(made, own):
    """Whitened by the oracle's factor they are independent standard normal numbers; any other
    length, time or spread fits worse."""
    true = own.gaussian.model_dump(include=set(LAW))
    rows = pl.read_parquet(made / "prepared/rows.parquet")
    x = kilometres(
        *(rows[name].to_numpy().astype(float) for name in ("lat_deg", "lon_deg", "alt_ft", "t_s"))
    )
    y = rows.select("u_m_s", "v_m_s").to_numpy().astype(float) - own.gaussian.mean_m_s

    def fit(every=3, **changes):
        factor = np.linalg.cholesky(law(x[::every], **true | changes))
        white = solve_triangular(factor, y[::every], lower=True, check_finite=False)
        return white, -(white**2).sum() / 2 - 2 * np.log(np.diag(factor)).sum()

    white = fit(every=1)[0]
    assert (white**2).mean() == pytest.approx(1.0, abs=SIGMAS * np.sqrt(2 / white.size))
    assert np.abs((white[1:] * white[:-1]).mean(0)).max() < SIGMAS / np.sqrt(len(white))
    likely = fit()[1]
    for name, value in true.items():
        for factor in (0.7, 1.4):
            assert fit(**{name: value * factor})[1] < likely - 3, (name, factor)


def test_nothing_is_dropped_and_the_truth_survives(made, own):
    raw = pl.read_csv(made / "raw/gp_wind/winds.csv", schema_overrides={"icao": pl.String})
    counts, meta = (
        json.loads((made / name).read_text())
        for name in ("decoded/gp_wind/counts.json", "prepared/prepared.json")
    )
    rows = pl.read_parquet(made / "prepared/rows.parquet")
    assert tuple(raw.columns) == gaussian_wind.COLUMNS
    n, each = own.gaussian.reports, own.gaussian.aircraft  # a row of each aircraft a minute
    assert (counts["read"], counts["kept"], counts["dropped"]) == (n, n, {}) and meta[
        "kept"
    ] == len(raw) == len(rows) == n == 1440
    assert (
        meta["truth"]
        and meta["rows"]
        == {"train": 98 * each, "val": 20 * each, "test": 69 * each}
        == meta["context_rows"]
    )
    for name in ("u_true_m_s", "v_true_m_s", "u_m_s", "v_m_s", "lat_deg", "lon_deg", "alt_ft"):
        assert (rows[name] == raw[name].cast(pl.Float32)).all()
    assert (rows["t_s"] == raw["ts_s"]).all() and rows["flight"].n_unique() == raw[
        "icao"
    ].n_unique() > 30
    noise = raw.select(
        pl.col("u_m_s") - pl.col("u_true_m_s"), pl.col("v_m_s") - pl.col("v_true_m_s")
    ).to_numpy()
    assert noise.std() == pytest.approx(1.0, abs=SIGMAS / np.sqrt(2 * noise.size))
    manifest = json.loads((made / "raw/gp_wind/manifest.json").read_text())
    assert (manifest["kind"], manifest["entry"], list(manifest["files"])) == (
        "gaussian",
        "winds",
        ["winds.csv"],
    )
    assert (
        json.loads((made / "records/gp_wind.acquire.json").read_text())["seed"] == own.gaussian.seed
    )


def test_the_gate_finds_nothing_amiss(made):
    judged = {
        path.as_posix(): acquire.entry(path, None, "", "")["sha256"]
        for path in (made / "raw/gp_wind").iterdir()
    }
    results, internal = gate.judge(
        *validate.gather(True, made / "raw/gp_wind", made / "decoded/gp_wind", judged)
    )
    verdict = gate.verdict_of("mini", "gp_wind", results, internal, judged)
    assert verdict["success"] and (
        verdict["critical_failed"],
        verdict["warnings"],
        verdict["internal_errors"],
    ) == ([], [], [])


def test_the_same_bytes_again_with_any_number_of_threads_and_others_for_another_seed(tmp_path):
    bodies = []
    for seed in (3, 3, 4):
        gaussian_wind.make(config(seed=seed), tmp_path)
        bodies.append((tmp_path / "winds.csv").read_bytes())
    assert bodies[0] == bodies[1] != bodies[2]
    code = (
        "import sys; from pathlib import Path; from stages import params; from stages.winds.sky "
        "import gaussian_wind\n"
        "gaussian_wind.make(params.Gaussian.model_validate_json(sys.argv[1]), Path(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, config(seed=3).model_dump_json(), str(tmp_path)],
        check=True,
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert (tmp_path / "winds.csv").read_bytes() == bodies[0]


@pytest.fixture(scope="module")
def flown(own):
    rows = gaussian_wind.reports(own.gaussian)
    x = gaussian_wind.points(
        own.gaussian, rows["lat_deg"], rows["lon_deg"], rows["alt_ft"], rows["t_ms"] / 6e4
    )
    return pl.DataFrame(rows).with_columns(east=x[:, 0], north=x[:, 1], up=x[:, 2])


def test_every_minute_every_aircraft_reports(flown):
    assert flown.group_by(pl.col("t_ms") // 60_000).len().sort("t_ms")["len"].to_list() == [6] * 240
    assert flown.equals(flown.sort("t_ms", "address"))
    assert (
        flown.group_by("address")
        .agg((pl.col("t_ms").diff().drop_nulls() == 60_000).all())["t_ms"]
        .all()
    )


def test_aircraft_fly_straight_through_the_area_and_some_change_level(flown):
    assert flown["east"].abs().max() < 150.1 and flown["north"].abs().max() < 150.1
    assert flown["up"].min() > 7.999 and flown["up"].max() < 12.001
    rate = (pl.col(name).diff().over("address") / 0.06 for name in ("east", "north", "up"))  # m/s
    step = flown.sort("address", "t_ms").select("address", *rate).drop_nulls()
    speed = np.hypot(step["east"], step["north"]).to_numpy()
    assert 189 < speed.min() < 195 and 245 < speed.max() < 251
    spread = step.group_by("address").agg(
        pl.col("east", "north").max() - pl.col("east", "north").min(), pl.col("up").abs().max()
    )
    assert (
        spread["east"].max() < 1 and spread["north"].max() < 1
    )  # straight and steady but for the rounding of positions
    assert spread["up"].max() < 8.01 and 0.3 < (spread["up"] > 1).mean() < 0.7
    length = flown.group_by("address").agg((pl.col("t_ms").max() - pl.col("t_ms").min()) / 6e4)[
        "t_ms"
    ]
    assert length.max() < np.hypot(300, 300) / (190 * 0.06)  # the longest way at the lowest speed


@pytest.mark.parametrize(
    "changes, told",
    [
        (dict(aircraft=18), "4320 reports, not from 1 to 4096"),
        (dict(hours=0.01), "0 reports"),
        (dict(update_s=0.5), "update_s"),
        (dict(sd_m_s=0.0), "sd_m_s"),
        (dict(noise_m_s=-1.0), "noise_m_s"),
        (dict(time_min=float("nan")), "time_min"),
        (dict(mean_m_s=(20.0, 500.0)), "mean_m_s"),
        (dict(start="2026-02-30T06:00:00Z"), "gaussian.start: there is no such moment"),
        (dict(lengthscale=1.0), "lengthscale"),
    ],
)
def test_what_the_schema_refuses(changes, told):
    with pytest.raises(pydantic.ValidationError) as caught:
        params.Dataset.model_validate(
            {"entry": "winds", "kind": "gaussian", "gaussian": BASE | changes}
        )
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "dataset, told",
    [
        ({"entry": "winds", "kind": "gaussian"}, "needs the section `gaussian`"),
        ({"entry": "frames", "kind": "gaussian", "gaussian": BASE}, "cannot enter as frames"),
        ({"entry": "winds", "kind": "files", "gaussian": BASE}, "at least one entry in `files`"),
    ],
)
def test_what_a_data_set_needs(dataset, told):
    with pytest.raises(pydantic.ValidationError, match=told):
        params.Dataset.model_validate(dataset)


@pytest.mark.parametrize(
    "changes, where",
    [
        (dict(altitude_m=(9000.0, 9000.0)), "altitude_m"),
        (dict(altitude_m=(9000.0, 16000.0)), "altitude_m"),
        (dict(extent_km=(19.0, 300.0)), "extent_km"),
        (dict(south_west=(79.0, 4.0), extent_km=(300.0, 700.0)), "extent_km"),
        (dict(south_west=(44.0, 179.0)), "extent_km"),
        (
            dict(hours=0.0003, update_s=1.0, aircraft=1500, horizontal_km=1e9, vertical_km=1e9),
            "gaussian",
        ),  # many at the same millisecond
    ],
)
def test_what_cannot_be_drawn_leaves_no_file(tmp_path, changes, where):
    with pytest.raises(InputError) as caught:
        gaussian_wind.make(config(**changes), tmp_path)
    assert (
        caught.value.where.startswith("gaussian")
        and where in caught.value.where
        and caught.value.found
    )
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_or_missing_truth_is_a_counted_drop(tmp_path):
    good = "1768456806.305,3C0001,45.4478,5.1183,35319,13.973,6.321,13.546,5.215"
    (tmp_path / "winds.csv").write_text(
        "\n".join([",".join(gaussian_wind.COLUMNS), good, good[:-5] + "5.2x5", good[:-5], good])
        + "\n"
    )
    rows = readers.read_winds(tmp_path / "winds.csv", 0).collect()
    assert rows["drop"].to_list() == [None, "unreadable", "missing_value", None]
    assert winds.tally(rows["drop"]) == {"unreadable": 1, "missing_value": 1} and rows[
        "v_true_m_s"
    ].to_list() == [5.215, None, None, 5.215]
    assert rows["icao"].to_list() == ["3C0001"] * 4 and rows["record"].to_list() == [0, 1, 2, 3]
