"""Sweeps: what was drawn is what is scored, written and trained; the best is the best on the
thinned validation slices."""

import csv
import sys
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch
import toy_sweep

from stages import params
from stages.errors import DataError, InputError
from stages.fields.models import build
from stages.sweeps import outputs, search
from stages.sweeps.ledger import Draw, Plan
from stages.sweeps.store import Store
from stages.training import cells
from stages.winds import sweep

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import toy_sky

SPACE = {
    "places": {"low": 1.0, "high": 30.0, "log": True, "whole": True},
    "horizontal_km": {"low": 10.0, "high": 1000.0, "log": True},
}
WANTED = params.Sweep(trials=8, val_every=2, space=SPACE)


def table(file: Path) -> list[dict[str, str]]:
    with file.open() as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def contexts():
    return toy_sky.contexts(toy_sky.sky(36, 20))


@pytest.fixture(scope="module")
def scored(contexts):
    """The objective of k nearest neighbours on the toy sky."""
    return lambda arguments, report=None: sweep.score(
        build("knn_tnn", {"vertical_km": 5.0, **arguments}), contexts, 2, report
    )


def swept(scored, seed: int, key: str) -> list[Draw]:
    return search.sweep(Plan(WANTED, seed, "knn_tnn"), Store(key), scored)[0]


@pytest.fixture(scope="module")
def draws(scored, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("sweep"))
        yield swept(scored, 0, "a")


def test_the_same_seed_draws_the_same_and_another_does_not(scored, draws, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert swept(scored, 0, "b") == draws and swept(scored, 1, "c") != draws
    assert [draw.draw for draw in draws] == list(range(8)) and len(
        {str(draw.arguments) for draw in draws}
    ) > 4


def test_every_draw_lies_in_its_range_and_is_what_was_scored(contexts, draws):
    for draw in draws:
        k, length = draw.arguments["places"], draw.arguments["horizontal_km"]
        assert (
            type(k) is int
            and 1 <= k <= 30
            and 10 <= length <= 1000
            and float(f"{length:.3g}") == length
        )
    chosen = search.best(draws)
    model = build("knn_tnn", {"vertical_km": 5.0, **chosen.arguments})
    squares = []
    pairs = contexts.pairs
    for j in pairs.targets("val")[::2]:  # by hand: every second validation slice, all its points
        given = contexts.given(j, model)
        error = (
            (model(given.batch).mean - given.batch.target_y)[:, 0].detach().numpy()
            * pairs.meta["scaler"]["y_std"]
            * 3600
            / 1852
        )
        squares.append(error**2)
    assert chosen.value == pytest.approx(np.sqrt(np.concatenate(squares).mean()), rel=1e-5)
    assert chosen.value == min(draw.value for draw in draws)


def test_what_a_pruner_is_told_is_the_error_over_the_slices_so_far(contexts):
    told = []
    model = build("knn_tnn", {"vertical_km": 5.0, "places": 4, "horizontal_km": 100.0})
    value = sweep.score(model, contexts, 1, lambda part, error: told.append((part, error)))
    assert value == sweep.score(model, contexts, 1) and [part for part, _ in told] == [0, 1, 2]
    chosen = contexts.pairs.targets("val")[:: sweep.PARTS]
    scale = contexts.pairs.meta["scaler"]["y_std"]
    squares = [
        ((model(batch).mean - batch.target_y)[:, 0].detach().numpy() * scale * 3600 / 1852) ** 2
        for batch in (contexts.given(j, model).batch for j in chosen)
    ]
    assert told[0][1] == pytest.approx(np.sqrt(np.concatenate(squares).mean()), rel=1e-5)


def test_the_first_of_equals_wins_and_what_has_no_error_never_does():
    made = [
        Draw(0, {}, None, "not finite"),
        Draw(1, {}, 2.0, "finished"),
        Draw(2, {}, 2.0, "finished"),
        Draw(3, {}, None, "pruned"),
    ]
    assert search.best(made).draw == 1
    with pytest.raises(DataError, match="no draw of the sweep has a finite error"):
        search.best([made[0], made[3]])


@pytest.mark.fault("F18")
def test_an_error_that_is_no_number_is_a_finished_draw_with_a_name_and_an_empty_cell(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    draws = toy_sweep.swept(toy_sweep.plan(trials=12), Store("odd"), Path("out"), toy_sweep.odd)
    rows = table(Path("out/trials.csv"))
    odd = [row for row in rows if row["kind"] == "flat" or int(row["places"]) > 20]
    assert odd and all(
        (row["state"], row["rmse_component_kn"]) == ("not finite", "") for row in odd
    )
    assert all(
        row["state"] == "finished" and float(row["rmse_component_kn"]) > 0
        for row in rows
        if row not in odd
    )
    told = params.read_yaml(Path("out/best.yaml"))
    assert (told["trials"], told["finished"], told["pruned"], told["not_finite"]) == (
        12,
        12 - len(odd),
        0,
        len(odd),
    )
    assert (
        told["rmse_component_kn"] == search.best(draws).value
        and b"inf" not in Path("out/best.yaml").read_bytes() + Path("out/trials.csv").read_bytes()
    )


@pytest.mark.fault("F18")
def test_a_pruned_draw_is_worse_than_the_median_of_those_before_and_is_marked(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    which = toy_sweep.plan(trials=16, pruner="median")
    draws = toy_sweep.swept(which, Store("pruned"), Path("out"))
    full = toy_sweep.serial(which)  # random draws: the same arguments, none pruned
    finished: list[float] = []
    for pruned, whole in zip(draws, full, strict=True):
        worse = len(finished) >= 5 and whole.value > np.median(finished)
        assert pruned.arguments == whole.arguments and pruned.state == (
            "pruned" if worse else "finished"
        )
        finished += [] if worse else [whole.value]
    rows = table(Path("out/trials.csv"))
    assert [row["rmse_component_kn"] == "" for row in rows] == [
        draw.state == "pruned" for draw in draws
    ]
    assert any(draw.state == "pruned" for draw in draws) and params.read_yaml(
        Path("out/best.yaml")
    )["pruned"] == sum(d.state == "pruned" for d in draws)


def test_training_takes_what_was_found(draws, tmp_path):
    outputs.write(tmp_path, draws, WANTED)
    parameters = params.load(Path(__file__).parents[2] / "params.yaml")
    cell = cells.Cell("knn_tnn", "swept")
    assert cells.arguments(cell, parameters, tmp_path / "best.yaml") == search.best(draws).arguments
    assert cells.arguments(cell, parameters) == {}
    with pytest.raises(InputError, match="has not run"):
        cells.arguments(cell, parameters, tmp_path / "nothing.yaml")
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    assert len(lines) == 9 and lines[0] == "draw,places,horizontal_km,rmse_component_kn,state"


def test_the_importance_is_optunas_of_the_draws_with_an_error_and_sums_to_one(tmp_path):
    draws = [
        *toy_sweep.serial(toy_sweep.plan(trials=40)),
        Draw(40, {"length_km": 1.0, "places": 1, "kind": "flat"}, None, "pruned"),
    ]
    outputs.write(tmp_path, draws, toy_sweep.wanted(trials=40))
    rows = {row["argument"]: row for row in table(tmp_path / "importance.csv")}
    assert list(rows) == ["length_km", "places", "kind"] and [
        row["scale"] for row in rows.values()
    ] == ["log", "linear", "words"]
    study = optuna.create_study()
    for draw in draws[:-1]:
        study.enqueue_trial(draw.arguments)
    study.optimize(
        lambda trial: toy_sweep.error(
            {
                "length_km": trial.suggest_float("length_km", 1, 500, log=True),
                "places": trial.suggest_int("places", 1, 30),
                "kind": trial.suggest_categorical("kind", ("gaussian", "flat")),
            }
        ),
        n_trials=40,
    )
    expected = optuna.importance.get_param_importances(study)
    assert {name: float(row["importance"]) for name, row in rows.items()} == pytest.approx(
        expected, rel=1e-4
    )
    assert sum(float(row["importance"]) for row in rows.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, None], [3.0, None]])
def test_an_importance_that_cannot_be_computed_says_why(tmp_path, values):
    arguments = {"length_km": 5.0, "places": 3, "kind": "flat"}
    outputs.write(
        tmp_path,
        [
            Draw(n, arguments, value, "finished" if value else "pruned")
            for n, value in enumerate(values)
        ],
        toy_sweep.wanted(),
    )
    rows = table(tmp_path / "importance.csv")
    assert len(rows) == 3 and all(
        row["importance"] == "" and row["by"].startswith("not computed") for row in rows
    )


def test_the_optimum_knows_the_law_that_gp_wind_was_drawn_from():
    parameters = params.load(Path(__file__).parents[2] / "params.yaml")
    law, told = parameters.datasets["gp_wind"].gaussian, parameters.models["optimum"].arms["plain"]
    east, north = law.mean_m_s
    assert told == {
        "mean_m_s_east": east,
        "mean_m_s_north": north,
        "sd_m_s": law.sd_m_s,
        "noise_m_s": law.noise_m_s,
        "horizontal_km": law.horizontal_km,
        "vertical_km": law.vertical_km,
        "time_min": law.time_min,
    }


def test_a_model_is_told_what_a_standardised_wind_is(contexts):
    model = build("optimum")
    sweep.scale_to(model, contexts)
    scaler = contexts.pairs.meta["scaler"]
    torch.testing.assert_close(model.y_std, torch.tensor(scaler["y_std"], dtype=model.y_std.dtype))
