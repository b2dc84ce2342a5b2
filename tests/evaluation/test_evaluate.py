"""Evaluation of whole cells: what is written, that it is the forecast of the checkpoint, and
that it never changes."""

import json
import math
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import files
from stages.scores import shell
from stages.winds import breakdown, evaluate, evaluation_data, measure
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.pairs import Pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from evaluated_winds import NEARBY, PREPARED, RUNS

SETTINGS = Settings(leads_min=(2.0, 5.0, 10.0, 12.0, 45.0, 600.0), seed=0, contexts=NEARBY)


def curve(leads_min):
    """SETTINGS with other leads."""
    return replace(SETTINGS, leads_min=leads_min)


@pytest.fixture(scope="module")
def evaluated(airspace):
    final = airspace / "reports/wind_nowcast/mini/evaluated/toy"
    measure.evaluate(shell.trained(airspace / RUNS), airspace / PREPARED, final, SETTINGS)
    return final


@pytest.fixture(scope="module")
def written(evaluated):
    return files.read_json(evaluated / "metrics.json")


def table(evaluated, cell):
    return pl.read_parquet(evaluated / f"predictions-{cell}.parquet")


def test_every_cell_is_there(evaluated, written):
    cells = {
        "day_average",
        "hour_average",
        "kernel",
        "knn",
        "gka-swept-none-s0",
        "kriging",
        "msa-gaussian-5k-s0",
        "msa-shared-5k-s0",
        "msa-shared-5k-s1",
    }
    assert set(written["cells"]) == cells
    fields = {f"field-{cell}.parquet" for cell in cells - {"day_average", "hour_average"}}
    assert {p.name for p in evaluated.iterdir()} == {
        "metrics.json",
        "slices.parquet",
        *(f"predictions-{cell}.parquet" for cell in cells),
        *fields,
    }


def test_a_field_is_the_nowcast_of_a_level_from_the_fullest_context(airspace, evaluated):
    """Kernel averaging has a closed form: the field must be it, from the winds of the minute
    with most of them."""
    pairs = Pairs.open(airspace / PREPARED)
    field = pl.read_parquet(evaluated / "field-kernel.parquet")
    counts = {
        j: len(pairs.pair(j, "slice", pairs.meta["lead_s"]).context_rows)
        for j in pairs.targets("test")
    }
    chosen = field["slice"].unique().to_list()
    assert chosen == [min(j for j in counts if counts[j] == max(counts.values()))]
    assert field["alt_ft"].n_unique() == 1 and field["alt_ft"][0] % 1000 == 0
    assert (
        field["u_scale_m_s"].null_count() == len(field)
        and pl.read_parquet(evaluated / "field-msa-gaussian-5k-s0.parquet")["u_scale_m_s"].min() > 0
    )
    pair, scaler = pairs.pair(chosen[0], "slice", pairs.meta["lead_s"]), pairs.meta["scaler"]
    x = (field.select("lat_deg", "lon_deg", "alt_ft").to_numpy() - scaler["x_mean"]) / scaler[
        "x_std"
    ]
    model = measure.load(airspace / RUNS / "kernel")
    across, up = (float(value.exp()) for value in model.state_dict()["log_scale"])
    square = (x[:, None] - pair.context_x) ** 2
    weight = np.exp(-(across * square[..., :2].sum(-1) + up * square[..., 2]))
    wanted = (weight @ pair.context_y) / weight.sum(1, keepdims=True) * scaler["y_std"] + scaler[
        "y_mean"
    ]
    assert np.allclose(field.select("u_m_s", "v_m_s").to_numpy(), wanted, atol=1e-3)


def test_rows_without_context_are_counted(airspace, written):
    rows = pl.read_parquet(airspace / PREPARED / "rows.parquet")
    meta = files.read_json(airspace / PREPARED / "prepared.json")
    inside = rows.filter(
        (pl.col("t_s") >= meta["t0_s"] + 3660) & (pl.col("t_s") < meta["t0_s"] + 4500)
    )
    counted = written["rows"]
    assert counted["test"] == len(inside) == counted["predicted"] + sum(counted["dropped"].values())
    assert sum(counted["dropped"].values()) > 0 and counted["predicted"] == meta["rows"]["test"]


def test_predictions_point_to_their_rows(airspace, evaluated):
    rows = pl.read_parquet(airspace / PREPARED / "rows.parquet")
    got = table(evaluated, "msa-shared-5k-s0")
    shared = [
        "slice",
        "file",
        "record",
        "flight",
        "t_s",
        "lat_deg",
        "lon_deg",
        "alt_ft",
        "u_m_s",
        "v_m_s",
        "u_true_m_s",
        "v_true_m_s",
    ]
    assert (
        got.select(shared).equals(rows[got["row"].to_numpy()].select(shared))
        and got["row"].is_sorted()
        and got["row"].is_unique().all()
    )


def test_hour_average_from_the_rows(airspace, evaluated, written):
    """The mean of all measurements of the hour that ended ten minutes before each minute, with
    polars alone."""
    rows = pl.read_parquet(airspace / PREPARED / "rows.parquet").with_columns(
        pl.col("u_m_s", "v_m_s").cast(pl.Float64)
    )
    t0 = files.read_json(airspace / PREPARED / "prepared.json")["t0_s"]
    squares = []
    for (j,), here in table(evaluated, "hour_average").group_by("slice"):
        end = t0 + 60 * j - 600
        mean = (
            rows.filter((pl.col("t_s") >= end - 3600) & (pl.col("t_s") < end))
            .select("u_m_s", "v_m_s")
            .mean()
            .row(0)
        )
        for name, expected in zip(("u_pred_m_s", "v_pred_m_s"), mean, strict=True):
            assert here[name].to_numpy() == pytest.approx(expected, abs=1e-4)
        squares += list((here["u_m_s"] - mean[0]) ** 2) + list((here["v_m_s"] - mean[1]) ** 2)
    value = written["cells"]["hour_average"]["metrics"]["rmse_component_m_s"]["value"]
    assert value == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-5)


def test_the_table_follows_from_the_predictions(evaluated, written):
    for cell, entry in written["cells"].items():
        got = table(evaluated, cell)
        error = got.select(
            pl.col("u_pred_m_s") - pl.col("u_m_s"), pl.col("v_pred_m_s") - pl.col("v_m_s")
        ).to_numpy()
        metric = entry["metrics"]["rmse_vector_m_s"]
        assert metric["value"] == pytest.approx(
            math.sqrt((error**2).sum(1).mean()), rel=1e-5
        ) and metric["n"] == len(got)
        assert entry["slices"] == got["slice"].n_unique()
        assert "low" not in metric and "too short" in entry["undefined"]["intervals"]
        off_truth = got.select(
            pl.col("u_m_s") - pl.col("u_true_m_s"), pl.col("v_m_s") - pl.col("v_true_m_s")
        ).to_numpy()
        assert entry["metrics"]["noise_floor_component_m_s"]["value"] == pytest.approx(
            math.sqrt((off_truth**2).mean()), rel=1e-5
        )
        assert entry["metrics"]["noise_floor_component_m_s"]["value"] == pytest.approx(
            1.5, rel=0.05
        )  # what the fixture adds


def test_only_a_gaussian_answer_has_a_spread(evaluated, written):
    assert table(evaluated, "knn")["u_scale_m_s"].null_count() == len(table(evaluated, "knn"))
    assert (table(evaluated, "msa-gaussian-5k-s0")["v_scale_m_s"] > 0).all()
    assert {cell for cell, entry in written["cells"].items() if "crps_kn" in entry["metrics"]} == {
        "msa-gaussian-5k-s0",
        "kriging",
    }


def test_averages_stay_in_the_hull(written):
    share = {
        cell: entry["metrics"]["hull_share"]["value"] for cell, entry in written["cells"].items()
    }
    assert (
        share["gka-swept-none-s0"]
        == share["knn"]
        == share["kernel"]
        == share["hour_average"]
        == share["day_average"]
        == 0
    )
    assert written["cells"]["knn"]["metrics"]["hull_share_measured"]["value"] > 0


@pytest.mark.parametrize("group", ["by_altitude", "by_day", "by_distance"])
def test_groups_share_out_all_points(evaluated, written, group):
    for entry in written["cells"].values():
        parts = [bin_["rmse_component_m_s"] for bin_ in entry[group].values()]
        whole = entry["metrics"]["rmse_component_m_s"]
        assert sum(part["n"] for part in parts) == whole["n"] and len(parts) > (
            group != "by_day"
        )  # the toy set is one morning
        assert sum(part["n"] * part["value"] ** 2 for part in parts) == pytest.approx(
            whole["n"] * whole["value"] ** 2
        )


def test_distances_are_to_the_slice_context(airspace, evaluated, written):
    pairs = Pairs.open(airspace / PREPARED)
    rows = (
        pl.read_parquet(airspace / PREPARED / "rows.parquet")
        .select("lat_deg", "lon_deg", "alt_ft")
        .to_numpy()
        .astype(float)
    )
    km = []
    for j in pairs.targets("test"):
        pair = pairs.pair(j)
        for t in rows[pair.target_rows]:
            km.append(
                min(
                    math.hypot(breakdown.great_circle_km(*t[:2], *c[:2]), (t[2] - c[2]) * 0.0003048)
                    for c in rows[pair.context_rows]
                )
            )
    names, counts = np.unique(breakdown.distance_bins(np.array(km)), return_counts=True)
    got = {
        name: bin_["rmse_vector_kn"]["n"]
        for name, bin_ in written["cells"]["day_average"]["by_distance"].items()
    }
    assert got == dict(zip(names.tolist(), counts.tolist(), strict=True))


def test_leads(written):
    for entry in written["cells"].values():
        assert list(entry["by_lead"]) == ["002", "005", "010", "012"]
        assert entry["by_lead"]["010"]["rmse_vector_kn"] == entry["metrics"]["rmse_vector_kn"]
    reached = written["slices_reached_by_lead"]
    curve = {
        cell: {
            lead: bin_["rmse_component_kn"]["value"]
            for lead, bin_ in written["cells"][cell]["by_lead"].items()
        }
        for cell in ("day_average", "knn")
    }
    same = [lead for lead in curve["knn"] if reached[lead] == reached["010"]]
    assert (
        len(same) > 1 and len({curve["day_average"][lead] for lead in same}) == 1
    )  # a day knows no lead
    assert len(set(curve["knn"].values())) == 4


def test_a_lead_whose_context_is_older_than_the_weights_is_left_out_and_named(
    airspace, evaluated, written, monkeypatch
):
    """Validation ends 50 minutes in; the first minute that is tested begins so much later, and
    no context may be older."""
    first = table(evaluated, "knn")["slice"].min()
    least = first - 50
    assert 12 < least < 45 and set(written["leads_not_causal"]) == {"045", "600"}
    assert all(
        f"up to {least} min before a test target" in why
        for why in written["leads_not_causal"].values()
    )
    leads = (float(least), least + 1.0)
    assert [60.0 * least] == list(
        set(EvaluationData.open(airspace / PREPARED, curve(leads)).reached) - {600.0}
    )
    monkeypatch.setattr(evaluation_data, "causal_lead_s", lambda meta: math.inf)
    assert (
        EvaluationData.open(airspace / PREPARED, curve((600.0,))).reached[36000.0] == []
    )  # before the data


def test_permuted_values_cost_a_model_what_it_knows_of_places(airspace, written):
    """The nearest wind of shuffled ones is any of them: its expected square is the mean over the
    whole context."""
    found = {cell: entry["metrics"] for cell, entry in written["cells"].items()}
    for cell, metrics in found.items():
        plain, permuted = metrics["rmse_component_kn"], metrics["rmse_permuted_component_kn"]
        assert permuted["n"] == plain["n"]
        assert permuted["value"] * 1852 / 3600 == pytest.approx(
            metrics["rmse_permuted_component_m_s"]["value"]
        )
        if cell in ("day_average", "hour_average"):
            assert permuted["value"] == pytest.approx(plain["value"], rel=1e-5)
    assert (
        found["knn"]["rmse_permuted_component_m_s"]["value"]
        > 1.2 * found["knn"]["rmse_component_m_s"]["value"]
    )
    pairs, squares = Pairs.open(airspace / PREPARED), []
    model = measure.load(airspace / RUNS / "knn")
    model.neighbours.fill_(1)
    slices, std = pairs.targets("test"), np.array(pairs.meta["scaler"]["y_std"])
    for j in slices:
        pair = pairs.pair(j)
        squares.append(((pair.context_y[None] - pair.target_y[:, None]) * std) ** 2)
    expected = np.concatenate([square.mean(1) for square in squares]).mean()
    rows = pl.read_parquet(airspace / PREPARED / "rows.parquet")
    got = []
    for seed in range(30):
        given = field.forecasts(
            model, Contexts(pairs, NEARBY), {600.0: slices}, main=600.0, permute=seed
        )[600.0]
        got.append(
            ((given.permuted - rows[given.row].select("u_m_s", "v_m_s").to_numpy()) ** 2).mean()
        )
    assert np.mean(got) == pytest.approx(expected, rel=0.05) and np.std(got) > 0
    # a slice's stream does not know the others
    again = field.forecasts(
        model, Contexts(pairs, NEARBY), {600.0: slices[1:]}, main=600.0, permute=29
    )[600.0]
    assert np.array_equal(again.permuted, given.permuted[-len(again.permuted) :])


def test_squared_errors_of_slices_add_up(evaluated, written):
    got = pl.read_parquet(evaluated / "slices.parquet")
    for cell, entry in written["cells"].items():
        whole = entry["metrics"]["rmse_component_m_s"]
        for by in ("all", "altitude", "distance"):
            here = got.filter((pl.col("cell") == cell) & (pl.col("by") == by))
            assert here["n"].sum() == whole["n"]
            assert math.sqrt(here["squared_error_m2_s2"].sum() / (2 * whole["n"])) == pytest.approx(
                whole["value"]
            )


def test_one_cell_alone_gives_the_same_numbers(airspace, written):
    """What `audit --verify eval` relies on."""
    for cell in ("msa-gaussian-5k-s0", "hour_average"):
        alone = evaluate.cell(airspace / RUNS / cell, airspace / PREPARED, SETTINGS)
        assert json.loads(json.dumps(alone)) == written["cells"][cell]


def test_again_gives_the_same_bytes(airspace, evaluated, tmp_path):
    again = tmp_path / "again"
    measure.evaluate(shell.trained(airspace / RUNS), airspace / PREPARED, again, SETTINGS)
    for file in evaluated.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes(), file.name


def test_metrics_are_strict_json(evaluated):
    assert not re.search(r"NaN|Infinity", (evaluated / "metrics.json").read_text())


def test_what_a_killed_training_left_is_no_cell(airspace, evaluated, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(airspace / RUNS / "knn", runs / "knn")
    shutil.copytree(airspace / RUNS / "knn", runs / ".kernel.x1.tmp")
    measure.evaluate(shell.trained(runs), airspace / PREPARED, tmp_path / "out", SETTINGS)
    assert set(files.read_json(tmp_path / "out/metrics.json")["cells"]) == {"knn"}
