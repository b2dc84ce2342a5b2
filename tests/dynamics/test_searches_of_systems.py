"""Searches of networks by their valid times: what is drawn, how trials end, what is left; and the
spaces of the document's tables 8 to 13, drawn and built point by point."""

import math
from pathlib import Path

import numpy as np
import optuna
import polars as pl
import pytest
import torch

from stages import files, params, seeds
from stages.audit import derivable
from stages.dynamics import figures, searched, selection, sweep, trials
from stages.dynamics.layout import ABOUT, SERIES
from stages.dynamics.models import build, model_class, names
from stages.dynamics.series.settings import series_of
from stages.dynamics.settings import Budget, Search, Selection, dynamics_of, parted
from stages.errors import InputError
from stages.params import checked, load, read_yaml
from stages.sweeps import space
from stages.sweeps.ledger import Plan
from stages.sweeps.store import Store

ROOT = Path(__file__).parents[2]
BUDGET = Budget(steps=20, validate_every=10, patience=9, batch=16, learning_rate=0.01,
                schedule="cosine", window=8, warm=4, counted=6, noise=0.01,
                val_windows=32)  # fmt: skip
SEARCH = {
    "trials": 3, "sampler": "random", "pruner": "none", "steps": 20, "validate_every": 10,
    "space": {"width": {"of": (16, 32)}, "span": {"of": (4, 8)}, "counted": {"of": (2, 8)},
              "learning_rate": {"low": 0.003, "high": 0.01, "log": True}},
}  # fmt: skip
ASKED = Selection(starts=2, context=8, horizon=15)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """Four runs of three waves, as a prepared set of a system."""
    folder = tmp_path_factory.mktemp("waves")
    phase = seeds.stream(0, "waves").uniform(0, 6, (4, 1, 3))
    series = np.sin(0.2 * np.arange(240)[None, :, None] * np.array([1.0, 1.3, 1.7]) + phase)
    np.save(folder / SERIES, series * np.sqrt(2))
    parts = {"train": [0, 120], "val": [125, 155], "test": [160, 240]}
    change = float(np.diff(series * np.sqrt(2), axis=1).std())
    told = {"parts": parts, "change": change, "step": 0.5, "printed_exponent": 0.1}
    files.write_json(folder / ABOUT, told)
    return folder


def score(prepared: Path, kept: Path) -> sweep.Score:
    protocol = params.Training(seed=0, learning_rate=0.001, clip=4.0, threads=1)
    kept.mkdir(exist_ok=True)
    return sweep.Score("gru", {"output": "change"}, prepared, BUDGET, ASKED, 0.5, protocol, kept)


def test_what_is_drawn_goes_to_the_model_and_to_its_training():
    drawn = {"width": 16, "span": 4, "counted": 8, "learning_rate": 0.004}
    model, budget = parted(drawn, BUDGET)
    assert model == {"width": 16, "span": 4}
    assert (budget.window, budget.counted, budget.learning_rate) == (4, 4, 0.004), "S' is at most S"
    assert budget.steps == BUDGET.steps


def test_runs_stay_within_their_part_and_are_valid_as_long_as_they_are():
    series = np.arange(4 * 200 * 2.0).reshape(4, 200, 2)
    about = {"parts": {"val": [50, 90]}, "step": 0.5, "printed_exponent": 2.0}
    runs = selection.runs(series, about, "val", ASKED, 0.5)
    assert runs.context.shape == (8, 8, 2) and runs.ahead.shape == (8, 15, 2)
    assert runs.context.min() >= series[0, 50].min() and runs.ahead[:2].max() < series[0, 90].max()
    forecast = runs.ahead.copy()
    forecast[:, 7:] += 1.0
    np.testing.assert_array_equal(runs.times(forecast), 7 * 0.5 * 2.0)
    with pytest.raises(InputError, match="the part that selects does not hold the free runs"):
        selection.runs(series, about | {"parts": {"val": [50, 60]}}, "val", ASKED, 0.5)


def test_a_search_leaves_a_row_a_trial_and_the_best_by_its_valid_time(
    prepared, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    wanted = checked(Search, SEARCH, "search")
    plan, outputs = Plan(wanted.sweep(), 0, "gru"), []
    for number in range(2):
        objective = score(prepared, tmp_path / f"kept{number}")
        folder = tmp_path / f"sweeps{number}"
        sweep.swept(plan, Store(f"key{number}"), objective, folder, 1)
        outputs.append(folder)
    for name in ("best.yaml", "trials.csv", "importance.csv"):
        assert (outputs[0] / name).read_bytes() == (outputs[1] / name).read_bytes(), name
    rows, best = pl.read_csv(outputs[0] / "trials.csv"), read_yaml(outputs[0] / "best.yaml")
    assert rows["state"].to_list() == ["finished"] * 3 and rows["steps"].to_list() == [20] * 3
    assert best["minus_vpt_val"] == -rows["vpt_val"].max() == rows["minus_vpt_val"].min()
    assert not [*derivable.unlike(best, outputs[0] / "trials.csv")], "the audit derives the winner"
    assert set(best["training"]) == {"counted", "learning_rate"}
    build("gru", {"output": "change", **best["arguments"]}, 3, 0.1)
    assert rows.select(pl.col(trials.TOLD)).null_count().row(0) == (0,) * len(trials.TOLD)


def test_a_trial_that_lags_is_ended_and_tells_how_far_it_came(prepared, tmp_path):
    objective, reports = score(prepared, tmp_path / "kept"), []

    def prune(step: int, value: float) -> None:
        reports.append((step, value))
        raise optuna.TrialPruned

    arguments = {"width": 16, "span": 4, "counted": 4, "learning_rate": 0.005}
    with pytest.raises(optuna.TrialPruned):
        objective(arguments, prune)
    row = params.read_yaml(trials.place(objective.kept, arguments))
    assert row["steps"] == 10 and row["vpt_test"] is None
    assert reports == [(1, -row["vpt_val"])]
    assert [file.suffix for file in objective.kept.iterdir()] == [".json"], "no checkpoint is left"


def test_training_that_diverges_has_no_finite_value(prepared, tmp_path, monkeypatch):
    objective = score(prepared, tmp_path / "kept")
    monkeypatch.setattr(
        sweep.Windows, "loss", lambda *_: torch.tensor(math.nan, requires_grad=True)
    )
    arguments = {"width": 16, "span": 4, "counted": 4, "learning_rate": 0.005}
    assert objective(arguments) == math.inf


def test_spread_of_orders_and_the_figure_of_trials(tmp_path):
    rows = [
        {"draw": k, "order": ("pre", "post")[k % 2], "vpt_test": 2.0 + (k % 2) * 0.3 * (k - 6),
         "vpt_train": 3.0, "state": "finished" if k < 11 else "pruned"}
        for k in range(12)
    ]  # fmt: skip
    table = pl.DataFrame(rows)
    rng = np.random.default_rng(0)
    pre, post = (searched.spread(table, order, 200, rng) for order in searched.ORDERS)
    assert pre.value == 0 and post.value > 0.5 and (pre.trials, post.trials) == (6, 5)
    assert searched.spread(table.head(4), "pre", 200, rng) is None
    figures.save(figures.trials({"transformer": table}), tmp_path / "t.png")
    assert (tmp_path / "t.png").stat().st_size > 1000


# --- tables 8 to 13


def searches() -> dict[tuple[str, str], Search]:
    """The full profile's, by set and model."""
    parameters = load(ROOT / "params.yaml")
    found = dynamics_of(parameters, "full").searches | series_of(parameters, "full").searches
    return {(name, model): one for name, models in found.items() for model, one in models.items()}


SEARCHES = searches()
SAME = {("l96_f20", model) for model in names()}  # as at F = 10, see below
TRIED = sorted(set(SEARCHES) - SAME)


@pytest.mark.parametrize(("dataset", "model"), TRIED)
def test_every_point_of_a_tables_space_is_drawn_and_can_be_built(dataset, model):
    """Arguments are checked at every point; networks are made at every one that differs by more
    than how often a layer or a transition stands there."""
    wanted, cls = SEARCHES[dataset, model].sweep(), model_class(model)
    points = space.grid(wanted)
    assert len(points) == math.prod(len(axis.of) for axis in wanted.space.values())
    assert points[0] == space.proposed(wanted, 0, model, 0)
    fixed, made = load(ROOT / "params.yaml").models[model].sizes["swept"], {}
    data = {"observed": 8, "scale": 0.1}
    for point in points:
        chosen, budget = parted(point, BUDGET)
        assert budget.counted <= budget.window == point["span"]
        whole = {**fixed, **chosen, **data}
        assert cls.problems(whole) == [] == cls.misfits(whole)
        assert all(1 <= whole[key] <= cls.limits[key] for key in whole if key in cls.limits)
        assert all(whole[key] in cls.words[key] for key in whole if key in cls.words)
        if chosen.get("attention") == "none":
            chosen |= {"heads": 1, "bias": "none"}
        short = {**chosen, "layers": 1, **({"depth": 1} if "depth" in chosen else {})}
        made.setdefault(tuple(sorted(short.items())), short)
    most = {key: max(axis.of) for key, axis in wanted.space.items() if key in ("layers", "depth")}
    with torch.device("meta"):
        for one in made.values():
            build(model, {**fixed, **one}, 8, 0.1)
        build(model, {**fixed, **chosen, **most}, 8, 0.1)


def test_the_tables_spaces_are_whole():
    """Counts of points, as document R's tables 8 to 13 print their axes."""
    counts = {one: len(space.grid(wanted.sweep())) for one, wanted in SEARCHES.items()}
    assert counts["l96_f10", "lstm"] == 3 * 3 * 2 * 2 * 4 * 2 * 3 * 4
    assert counts["l96_f10", "rhn"] == 3 * counts["l96_f10", "gru"] == 3 * counts["l96_f10", "lstm"]
    assert counts["l96_f10", "transformer"] == 3 * 3 * 2 * 2 * 2 * 2 * 4 * 2
    assert counts["l96_f10", "recurrent_transformer"] == 2 * counts["l96_f10", "transformer"]
    assert counts["ks_l60", "transformer"] == 2 * 3 * 2 * 2
    assert counts["ks_l60", "rhn"] == 3 * 3 * 3 * 2 * 2 * 3
    assert counts["etth1", "transformer"] == counts["jena", "transformer"] == 3 * 2 * 5 * 4
    assert counts["etth1", "rhn"] == 3 * 3 * 5 * 2 * 3
    assert len(counts) == 5 + 5 + 4 + 4 + 4
    for model in names():
        assert SEARCHES["l96_f20", model] == SEARCHES["l96_f10", model]
