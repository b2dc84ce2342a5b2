"""Hand-made results of two data sets, one with truth and one without: what tabulate, the figures,
the page and the lineage read.

The numbers are chosen so that means, spreads and intervals can be reckoned by hand. `stages` is a
link to the real code, which the record of tabulate hashes.
"""

from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from stages import files, records

ROOT = Path(__file__).parents[2]
EXPERIMENT, PROFILE = "wind_nowcast", "mini"
HOME = Path("reports") / EXPERIMENT / PROFILE
DAY = 1_768_435_200.0
POINTS = 3_210  # held-out points; fewer of them have a known track
FLOOR = {"simulated": 2.5}  # kn; the other set has no truth
# cell: (RMSE per component [kn], low, high)
CELLS = {
    "simulated": {
        "day_average": (24.0, 22.0, 26.0),
        "hour_average": (20.0, 18.0, 22.0),
        "knn": (10.0, 9.0, 11.0),
        "kernel": (9.0, 8.5, 9.5),
        "msa-gaussian-20k-s0": (7.25, 6.75, 8.0),
        "msa-shared-20k-s0": (7.0, 6.0, 8.0),
        "msa-shared-20k-s1": (7.5, 6.6, 8.4),
        "msa-shared-20k-s2": (8.3, 7.5, 9.1),
    },
    "hour_winds": {
        "hour_average": (12.0, 11.0, 13.0),
        "knn": (13.5, 12.5, 14.5),
        "msa-shared-20k-s0": (9.0, 8.0, 10.0),
    },
}
# By hand: the mean is that of 7.0, 7.5 and 8.3, the deviation is of 0.6, 0.1 and 0.7 with two
# degrees of freedom, low is the mean of 6.0, 6.6 and 7.5, high that of 8.0, 8.4 and 9.1.
SHARED = {"mean": 7.6, "std": 0.655743852430200, "low": 6.7, "high": 8.5}
LEADS, BANDS, DAYS = ("005", "030", "120"), ("FL200-250", "FL300-350"), ("2026-01-15", "2026-01-16")


def number(
    value: float,
    low: float | None = None,
    high: float | None = None,
    unit: str = "kn",
    n: int = POINTS,
) -> dict:
    """One metric as evaluation writes it."""
    return {"value": value, "unit": unit, "n": n} | (
        {} if low is None else {"low": low, "high": high}
    )


def cell(
    value: float, low: float, high: float, gaussian: bool = False, floor: float | None = None
) -> dict:
    """A cell's entry of evaluated/D/metrics.json. Alphabetically first is a metric that knows
    fewer points than there are."""
    metrics = {
        "rmse_component_kn": number(value, low, high),
        "rmse_component_m_s": number(value * 0.514, unit="m/s"),
        "nse": number(0.875, unit="1"),
        "rmse_vector_kn": number(value * 1.414),
        "along_track_s_per_100nm": number(11.0, unit="s", n=777),
        "hull_share": number(0.25, 0.2, 0.3, unit="1"),
    }
    if gaussian:
        metrics |= {"crps_kn": number(4.125), "coverage_90": number(0.9062, unit="1")}
    if floor:
        metrics |= {
            "noise_floor_component_kn": number(floor),
            "rmse_truth_component_kn": number(value - 1),
        }

    def shift(by):
        return {"rmse_component_kn": number(value + by, low + by, high + by)}

    return {
        "metrics": metrics,
        "undefined": {},
        "slices": 6,
        "by_lead": {lead: shift(i) for i, lead in enumerate(LEADS)},
        "by_altitude": {band: shift(-i) for i, band in enumerate(BANDS)},
        "by_distance": {"000-005 km": shift(0)},
        "by_day": {day: shift(2 * i) for i, day in enumerate(DAYS)},
    }


def evaluated(dataset: str, cells: dict[str, tuple], seed: int = 0, project: Path = HOME) -> None:
    """metrics.json, slices.parquet, predictions and a field of every cell."""
    home, rng = project / "evaluated" / dataset, np.random.default_rng(seed)
    entries = {
        name: cell(*value, "gaussian" in name, FLOOR.get(dataset)) for name, value in cells.items()
    }
    files.write_json(home / "metrics.json", {"cells": entries})
    errors = [
        (name, by, label, s, 40, 80 * (value[0] * 0.5144) ** 2 * (1 + 0.1 * (s - 100)))
        for name, value in cells.items()
        for by, labels in (("all", ("all",)), ("lead", LEADS))
        for label in labels
        for s in range(100, 106)
    ]
    pl.DataFrame(
        errors,
        orient="row",
        schema={
            "cell": pl.String,
            "by": pl.String,
            "bin": pl.String,
            "slice": pl.Int32,
            "n": pl.Int32,
            "squared_error_m2_s2": pl.Float64,
        },
    ).write_parquet(home / "slices.parquet")
    lat, lon = (
        axis.ravel()
        for axis in np.meshgrid(np.linspace(45.5, 47.5, 6), np.linspace(6.0, 9.0, 7), indexing="ij")
    )
    for name, value in cells.items():
        rows = sky(240, seed).with_columns(
            slice=pl.Series(np.repeat(np.arange(100, 106), 40), dtype=pl.Int32)
        )
        off = rng.normal(0, value[0] * 0.5, (2, len(rows)))
        rows = rows.with_columns(
            u_pred_m_s=rows["u_m_s"] + off[0],
            v_pred_m_s=rows["v_m_s"] + off[1],
            u_scale_m_s=pl.lit(2.0 if "gaussian" in name else None, pl.Float32),
            v_scale_m_s=pl.lit(None, pl.Float32),
        )
        rows.write_parquet(home / f"predictions-{name}.parquet")
        if "average" not in name:
            pl.DataFrame(
                {
                    "lat_deg": lat,
                    "lon_deg": lon,
                    "alt_ft": 34_000.0,
                    "u_m_s": 10 + lat - 45,
                    "v_m_s": lon,
                    "u_scale_m_s": 1.0,
                    "v_scale_m_s": 1.0,
                }
            ).with_columns(slice=pl.lit(100, pl.Int32)).write_parquet(
                home / f"field-{name}.parquet"
            )


def sky(count: int, seed: int) -> pl.DataFrame:
    """Rows of a prepared table: places and winds over the Alps, from the context of slice 100 to
    the end of slice 105."""
    rng = np.random.default_rng(seed)
    t = DAY + np.linspace(60 * 100 - 1800 - 60, 60 * 106 - 1, count)
    lat, lon = rng.uniform(45.5, 47.5, count), rng.uniform(6.0, 9.0, count)
    return pl.DataFrame(
        {
            "t_s": t,
            "lat_deg": lat,
            "lon_deg": lon,
            "alt_ft": rng.uniform(2e4, 3.9e4, count),
            "u_m_s": 10 + lat - 45,
            "v_m_s": lon,
            "u_true_m_s": 10 + lat - 45,
            "v_true_m_s": lon,
            "row": np.arange(count),
            "record": np.arange(count),
            "flight": np.arange(count) // 10,
            "file": np.zeros(count, int),
        }
    )


def printed(folder: str = "data/published") -> None:
    """Two printed tables and the companions of an experiment: one number, three days, none, and
    a misprint with its note."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "a.csv").write_text(
        "table,experiment,dataset,model,variant,size,split,metric,unit,direction,mean,std,n_runs,"
        "note\n"
        'thesis 3.2,x,wind,msa,shared,20k,val,rmse,kn,min,7.98,0.03,3,"printed 7:98, a misprint of '
        '7.98"\n'
        "thesis 3.2,x,wind,msa,shared,5k,val,rmse,kn,min,8.07,0.11,3,\n"
        "thesis 3.2,x,poisson,msa,shared,20k,val,rmse,none,min,0.08,0.003,3,\n"
        "thesis 3.2,x,wind,msa,shared,20k,val,mse,kn,min,63.7,,3,\n"
        "thesis 3.2,x,wind,msa,shared,20k,val,rmse,m/s,min,4.11,,3,\n"
    )
    Path(folder, "b.csv").write_text(
        (
            "table,experiment,dataset,model,variant,size,split,metric,unit,direction,mean,std,"
            "n_runs,note\n"
        )
        + "".join(
            f"thesis 1.2,x,wind_day{day},gka_tnn,,,test,rmse,kn,min,{value},,,day {day}\n"
            for day, value in ((1, 8.71), (2, 9.19), (3, 7.55))
        )
        + (
            "thesis 1.2,x,wind_1day,gka_tnn,,,none,epoch_duration,s,min,253,,,\n"
            "thesis 1.2,x,wind_day4,gka_tnn,,,test,rmse,kn,min,,,,not reported\n"
        )
    )
    Path("reports", EXPERIMENT).mkdir(parents=True, exist_ok=True)
    Path("reports", EXPERIMENT, "companions.csv").write_text(
        "arm,table,model,variant,size\nkernel,thesis 1.2,gka_tnn,,\n"
        "msa-shared-20k,thesis 3.2,msa,shared,20k\n"
    )


def gate(dataset: str, profile: str = PROFILE) -> None:
    """A validation result: one expectation met, one warning."""
    rule = {
        "name": "levels_in_range",
        "table": "winds",
        "severity": "critical",
        "success": True,
        "observed": 41_000,
        "limit": "at most 60000",
        "rows": 0,
    }
    files.write_json(
        Path("data") / profile / "validated" / f"{dataset}.json",
        {
            "dataset": dataset,
            "success": True,
            "warnings": ["few_nulls"],
            "expectations": [
                rule,
                {**rule, "name": "few_nulls", "severity": "warning", "success": False, "rows": 12},
            ],
        },
    )


def digest(*words: str) -> str:
    """64 hex digits that tell what they stand for."""
    return "".join(f"{sum(map(ord, word)):04x}" for word in words).ljust(64, "5")


def record(
    stage: str,
    dataset: str | None = None,
    cell: str | None = None,
    experiment: str | None = None,
    profile: str = PROFILE,
    first: str = "rows.parquet",
) -> None:
    """A record with two outputs, of 1.5 and 2.0 MB."""
    home = f"data/{profile}/{stage}"
    outputs = {
        f"{home}/{first}": {"sha256": digest(stage, dataset or "", "out"), "bytes": 1_500_000},
        f"{home}/zz.json": {"sha256": digest(stage, "zz"), "bytes": 2_000_000},
    }
    files.write_json(
        records.location(stage, profile, dataset, experiment=experiment, cell=cell),
        {
            "stage": stage,
            "outputs": outputs,
            "code": {"digest": digest(stage, "code"), "files": {}},
        },
    )


def all_records(dataset: str, cells, experiment: str = EXPERIMENT) -> None:
    """A record of every stage from acquire to tabulate."""
    for stage in ("acquire", "decode", "validate", "prepare"):
        record(stage, dataset)
    for name in cells:
        record("train", dataset, name, experiment)
    record("evaluate", dataset, experiment=experiment)
    record("tabulate", experiment=experiment)


def build(root: Path, cells: dict[str, dict] = CELLS, experiment: str = EXPERIMENT) -> None:
    """One experiment's project into `root`, which must be the working folder."""
    if not (root / "stages").exists():
        (root / "stages").symlink_to(ROOT / "stages")
    printed()
    for seed, (dataset, values) in enumerate(cells.items()):
        evaluated(dataset, values, seed, Path("reports") / experiment / PROFILE)
        prepared = Path("data") / PROFILE / "prepared" / dataset
        prepared.mkdir(parents=True, exist_ok=True)
        sky(400, seed).write_parquet(prepared / "rows.parquet")
        files.write_json(
            prepared / "prepared.json",
            {"t0_s": DAY, "slice_s": 60, "lead_s": 1800, "dataset": dataset},
        )
        gate(dataset)
        all_records(dataset, values, experiment)


def plain_figures(home: Path, prepared: Path, arms: dict, cells: dict) -> None:
    """In place of figures.draw where a test is not about figures: all five files of every data
    set, each with bytes of its own."""
    with files.atomic_folder(home / "figures") as folder:
        for dataset in {name.split("/")[0] for name in arms}:
            for name in ("nowcast", "errors", "by_lead", "by_altitude", "by_distance"):
                Image.frombytes("RGB", (8, 4), f"{dataset} {name}".encode().ljust(96)[:96]).save(
                    folder / f"{dataset}-{name}.png"
                )
