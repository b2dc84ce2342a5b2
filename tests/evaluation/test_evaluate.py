"""Evaluation of whole cells: what is written, that it is the forecast of the checkpoint, and
that it never changes."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from stages import files
from stages.batches import Prediction
from stages.errors import DivergedError, InputError
from stages.layers.heads import Gaussian
from stages.params import Contexts as ContextSettings
from stages.scores import shell
from stages.training import store
from stages.winds import breakdown, evaluate, evaluation_data, measure
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.evaluation_data import EvaluationData, Settings
from stages.winds.pairs import Pairs

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import small_project

NEARBY = ContextSettings(
    method="linear", places=8, horizontal_km=100.0, vertical_km=2.0, time_min=60.0
)
SETTINGS = Settings(
    leads_min=(2.0, 5.0, 10.0, 12.0, 45.0, 600.0), resamples=100, seed=0, contexts=NEARBY
)
PREPARED, RUNS = "data/mini/prepared/toy", "reports/wind_nowcast/mini/runs/toy"


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
        assert (
            metric["low"] < metric["value"] < metric["high"]
            and entry["slices"] == got["slice"].n_unique()
        )
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


@pytest.mark.parametrize(
    ("train", "val", "test", "expected"),
    [
        ([1, 2], [10, 11], [20, 21], 8 * 60),
        ([1, 2, 90], [10], [20, 95], 4 * 60),  # what was fitted after a target is not newer than it
        ([30], [40], [20, 21], math.inf),
        ([10, 11], [1], [20], 8 * 60),
    ],
)
def test_causal_lead(train, val, test, expected):
    assert (
        evaluation_data.causal_lead_s(
            {"slices": {"train": train, "val": val, "test": test}, "slice_s": 60.0}
        )
        == expected
    )


def test_permuted_values_cost_a_model_what_it_knows_of_places(airspace, written):
    """The nearest wind of shuffled ones is any of them: its expected square is the mean over the
    whole context."""
    found = {cell: entry["metrics"] for cell, entry in written["cells"].items()}
    for cell, metrics in found.items():
        plain, permuted = metrics["rmse_component_kn"], metrics["rmse_permuted_component_kn"]
        assert (
            permuted["n"] == plain["n"] and permuted["low"] < permuted["value"] < permuted["high"]
        )
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


def test_lead_names_sort_as_numbers():
    leads = [7.5, 5, 30, 120, 60]
    assert [
        float(name) for name in sorted(evaluation_data.lead_name(60 * lead) for lead in leads)
    ] == sorted(leads)


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


def test_no_cells_is_a_plain_error(project, tmp_path, capsys):
    with pytest.raises(InputError, match="no trained cell"):
        shell.trained(tmp_path)
    (project / RUNS).unlink()
    assert evaluate.main(["wind_nowcast", "mini", "toy"]) == 2
    assert "no trained cell" in capsys.readouterr().err
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()


def test_what_a_killed_training_left_is_no_cell(airspace, evaluated, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(airspace / RUNS / "knn", runs / "knn")
    shutil.copytree(airspace / RUNS / "knn", runs / ".kernel.x1.tmp")
    measure.evaluate(shell.trained(runs), airspace / PREPARED, tmp_path / "out", SETTINGS)
    assert set(files.read_json(tmp_path / "out/metrics.json")["cells"]) == {"knn"}


@pytest.mark.fault("F18")
def test_a_forecast_that_is_not_finite_stops_with_its_place(airspace):
    class Broken(torch.nn.Module):
        context = "slice"

        def forward(self, batch):
            return Prediction(torch.full_like(batch.target_x[:, :, :2], torch.nan))

    pairs = Pairs.open(airspace / PREPARED)
    first = pairs.targets("test")[0]
    with pytest.raises(DivergedError, match=f"slice {first}, lead 600 s"):
        field.forecasts(Broken(), Contexts(pairs, NEARBY), {600.0: [first]})


def test_scale_and_units_of_a_known_model(airspace):
    """A model that answers 1 and spread 2 in standardised units answers mean + std and 2 std in
    m/s."""

    class Known(torch.nn.Module):
        context = "slice"

        def forward(self, batch):
            one = torch.ones_like(batch.target_x[:, :, :2])
            return Gaussian(one, 2 * one)

    pairs = Pairs.open(airspace / PREPARED)
    mean, std = (np.array(pairs.meta["scaler"][name]) for name in ("y_mean", "y_std"))
    given = field.forecasts(Known(), Contexts(pairs, NEARBY), {600.0: pairs.targets("test")[:2]})[
        600.0
    ]
    assert given.mean == pytest.approx(np.tile(mean + std, (len(given.row), 1)))
    assert given.scale == pytest.approx(np.tile(2 * std, (len(given.row), 1)))


@pytest.fixture
def project(airspace, tmp_path, monkeypatch):
    """A project's root whose mini profile has the toy data set, with links to the prepared data
    and the cells."""
    home = Path.cwd()
    small_project.code(tmp_path)
    for name in (
        "params.yaml",
        "stages/params/budgets/mini/winds.yaml",
        "stages/params/datasets/winds.yaml",
    ):
        text = (
            (home / name)
            .read_text(encoding="utf-8")
            .replace("simulated", "toy")
            .replace("bootstrap: 1000", "bootstrap: 100")
        )
        (tmp_path / name).write_text(text.replace("sizes: [20k]", "sizes: [5k]"), encoding="utf-8")
    for name in (PREPARED, RUNS):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).symlink_to(airspace / name)
    (tmp_path / "reports/wind_nowcast/dvc.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRADEWIND_DEVICE", raising=False)
    return tmp_path


def test_the_stage_writes_its_outputs_and_a_record_of_them(project):
    """In a process of its own, where code that it does not declare is an error."""
    run = subprocess.run(
        [sys.executable, "-m", "stages.winds.evaluate", "wind_nowcast", "mini", "toy"],
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    final = project / "reports/wind_nowcast/mini/evaluated/toy"
    record = files.read_json(project / "reports/wind_nowcast/mini/records/toy.evaluate.json")
    assert record["outputs"] == {
        p.relative_to(project).as_posix(): {"sha256": files.sha256(p), "bytes": p.stat().st_size}
        for p in final.iterdir()
    }
    assert (
        f"{RUNS}/knn/weights.safetensors" in record["inputs"]
        and f"{PREPARED}/rows.parquet" in record["inputs"]
    )
    assert (
        "stages/winds/metrics.py" in record["code"]["files"]
        and "stages/winds/claims.py" not in record["code"]["files"]
    )
    assert not list(final.parent.glob(".*")) and record["environment"]["threads"] == 1
    models = {"gka", "knn", "kernel", "kriging", "msa", "day_average", "hour_average"}
    expected = {"stages.winds.evaluate", *(f"stages.fields.models.{model}" for model in models)}
    assert set(record["code"]["modules"]) == expected


def test_one_cell_is_measured_anew_and_nothing_else_is_touched(project, capsys):
    words, out = ["wind_nowcast", "mini", "toy"], project / "out/knn.json"
    assert evaluate.main([*words, "--cell", "knn", "--out", str(out)]) == 0
    assert evaluate.main([*words, "--cell", "knn"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()
    assert not (project / "reports/wind_nowcast/mini/records").exists()
    assert evaluate.main([*words, "--cell", "knm"]) == 2
    assert "did you mean 'knn'" in capsys.readouterr().err
    assert evaluate.main([*words, "--out", str(out)]) == 2
    assert "--out is of --cell only" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meta", "says"),
    [
        ("gone-shared-5k-s0", {}, "the model gone is not in params.yaml"),
        ("kernel", {}, "model knn is not of kernel"),
        ("knn-wide-none-s0", {"arm": "wide"}, "arm wide is not of plain"),
        ("knn-plain-5k-s0", {"size": "5k"}, "size 5k is not of none"),
        (
            "msa-shared-20k-s0",
            {"model": "msa", "arm": "shared", "size": "20k"},
            "size 20k is not of 5k",
        ),
        (
            "msa-shared-5k-s7",
            {"model": "msa", "arm": "shared", "size": "5k", "seed": 7},
            "seed 7 is not of 0, 1, 2",
        ),
        ("msa-shared-5k-s2", {"model": "msa"}, "its checkpoint is that of msa-shared-5k-s0"),
    ],
)
def test_a_cell_of_other_settings_is_refused_by_name(project, airspace, capsys, name, meta, says):
    (project / RUNS).unlink()
    shutil.copytree(airspace / RUNS, project / RUNS, dirs_exist_ok=True)
    shutil.rmtree(project / RUNS / name, ignore_errors=True)
    (project / RUNS / name).mkdir()
    source = "msa-shared-5k-s0" if meta.get("model") == "msa" else "knn"
    model, told = store.load(str(airspace / RUNS / source / "weights.safetensors"))
    (project / RUNS / name / "weights.safetensors").write_bytes(store.dump(model, told | meta))
    assert evaluate.main(["wind_nowcast", "mini", "toy"]) == 1
    printed = capsys.readouterr().err
    assert (
        f"{RUNS}/{name}: {says}" in printed and "delete" in printed and printed.count(RUNS) == 2
    )  # the folder of runs, and this cell
    assert not (project / "reports/wind_nowcast/mini/evaluated").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("wind_nowcats", "mini", "toy"), "wind_nowcast"),
        (("wind_nowcast", "mnii", "toy"), "mini"),
        (("wind_nowcast", "mini", "toys"), "toy"),
    ],
)
def test_a_wrong_name_ends_with_2_before_any_work(project, capsys, words, says):
    assert evaluate.main(list(words)) == 2
    assert (
        says in capsys.readouterr().err
        and not (project / "reports/wind_nowcast/mini/evaluated").exists()
    )


@pytest.mark.parametrize(("point", "left"), [("before_rename:2", "old"), ("after_rename:2", "new")])
@pytest.mark.fault("F1", "F5")
def test_a_kill_leaves_the_old_evaluation_or_the_new(project, point, left):
    final = project / "reports/wind_nowcast/mini/evaluated/toy"
    final.mkdir(parents=True)
    (final / "old").write_text("old")
    run = subprocess.run(
        [sys.executable, "-m", "stages.winds.evaluate", "wind_nowcast", "mini", "toy"],
        capture_output=True,
        check=False,
        env={**os.environ, "FAULT": point},
    )  # the first passage is that of metrics.json
    assert run.returncode == -9, run.stderr.decode()
    names = {p.name for p in final.iterdir()}
    assert (
        names == {"old"}
        if left == "old"
        else {"metrics.json", "slices.parquet", "predictions-knn.parquet"} < names
    )
