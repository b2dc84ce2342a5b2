"""From a simulated system to its table: a small system goes through every stage's work."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import files, seeds
from stages.dynamics import (
    acquire,
    claims,
    evaluate,
    figures,
    free_run,
    measure,
    prepare,
    tables,
    train,
    validate,
)
from stages.dynamics.layout import ABOUT, CURVES, IMAGES, OBSERVED, SERIES, STARTS, STATES
from stages.dynamics.models import build
from stages.dynamics.settings import Dynamics, Simulated
from stages.dynamics.validate import summed
from stages.dynamics.windows import Windows
from stages.errors import DataError, InputError, ParamsError
from stages.params import checked
from stages.scores import shell
from stages.tables.gather import over_seeds
from stages.training import loop, store
from stages.training.checkpoint import Checkpoints

ARGUMENTS = {"width": 48, "output": "change"}
LOCAL = {"delays": 2, "gap": 1, "reach": 2, "rows": 400, "penalty": 1e-6, "noise": 0.0}
RESERVOIR = {"units": 40, "group": 0, "overlap": 0, "radius": 0.2, "reach": 0.1, "shift": 0.5,
             "leak": 1.0, "penalty": 1e-7, "noise": 1e-3, "washout": 10, "thin": 2}  # fmt: skip
SYSTEM = {"seed": 0, "system": "kuramoto", "length": 22.0, "points": 32, "members": 4, "dt": 0.25,
          "every": 2, "keep": 4, "transient": 400, "samples": 240, "spans": 8,
          "turn": 20}  # fmt: skip
TOLD = {
    "datasets": ("ks",),
    "splits": {"ks": {"train": 120, "val": 30, "gap": 5}},
    "forecasts": {"ks": {"starts": 3, "context": 24, "horizon": 30, "threshold": 0.5,
                         "spectrum": 20, "finer": 2,
                         "selection": {"starts": 2, "context": 8, "horizon": 15}}},
    "training": {"ks": {"steps": 40, "validate_every": 20, "patience": 9, "batch": 16,
                        "learning_rate": 0.01, "schedule": "cosine", "window": 8, "warm": 4,
                        "counted": 6, "noise": 0.01, "val_windows": 32}},
    "rivals": {"ks": {"train": 120, "linear": LOCAL, "quadratic": LOCAL, "reservoir": RESERVOIR,
                      "reservoirs": RESERVOIR | {"group": 8, "overlap": 4}}},
}  # fmt: skip


def simulated(**other) -> Simulated:
    return checked(Simulated, SYSTEM | other, "datasets.ks.made")


@pytest.fixture(scope="module")
def told() -> Dynamics:
    return checked(Dynamics, TOLD, "families.dynamics")


@pytest.fixture(scope="module")
def place(told, tmp_path_factory) -> Path:
    """raw/ks and prepared/ks."""
    folder = tmp_path_factory.mktemp("dynamics")
    for name in ("raw/ks", "prepared/ks"):
        (folder / name).mkdir(parents=True)
    acquire.make(simulated(), folder / "raw/ks")
    starts = prepare.starting(simulated(), told.splits["ks"], told.forecasts["ks"], "here")
    raw, made = folder / "raw/ks", folder / "prepared/ks"
    prepare.write(raw, made, simulated(), told.splits["ks"], starts)
    return folder


@pytest.fixture(scope="module")
def prepared(place) -> Path:
    return place / "prepared/ks"


def settings_of(budget, steps=None) -> loop.Settings:
    return loop.Settings(steps or budget.steps, budget.validate_every, budget.patience,
                         budget.learning_rate, 4.0, 0, slices=budget.batch)  # fmt: skip


def trained(prepared: Path, told: Dynamics, kept: Path, steps=None):
    """A network after its steps, with checkpoints in `kept`, and its history."""
    data = Windows.open(prepared, told.training["ks"], 0)
    seeds.everything(0)
    model = build("gru", ARGUMENTS, 32, float(data.about["change"]))
    budget = told.training["ks"]
    return model, loop.train(model, data, settings_of(budget, steps), Checkpoints(kept))


# --- data


def test_a_system_is_the_same_bits_when_it_is_made_again(place, tmp_path):
    acquire.make(simulated(), tmp_path)
    for file in tmp_path.iterdir():
        assert file.read_bytes() == (place / "raw/ks" / file.name).read_bytes(), file.name


def test_what_is_prepared_is_standardised_by_what_trains_and_starts_where_states_are(
    place, prepared
):
    series, about = np.load(prepared / SERIES), files.read_json(prepared / ABOUT)
    assert series[:, :120].mean() == pytest.approx(0, abs=1e-12)
    assert series[:, :120].std() == pytest.approx(1)
    raw = np.load(place / "raw/ks" / OBSERVED)
    np.testing.assert_allclose(series * about["sd"] + about["mean"], raw, atol=1e-12)
    starts, states = np.load(prepared / STARTS), np.load(prepared / STATES)
    for (member, time), state in zip(starts, states, strict=True):
        np.testing.assert_array_equal(state, raw[member, time])
    (first, end), horizon = about["parts"]["test"], TOLD["forecasts"]["ks"]["horizon"]
    assert starts[:, 1].min() - 23 >= first and starts[:, 1].max() + horizon < end


def test_no_window_reaches_from_one_split_into_another(prepared, told):
    data = Windows.open(prepared, told.training["ks"], 0)
    for split in ("train", "val"):
        first, end = data.about["parts"][split]
        begin = np.array(data.slices(split)) % data.series.shape[1]
        assert begin.min() >= first and begin.max() + data.length < end
        assert begin.max() + data.length == end - 1 or split == "val"


def test_a_windows_targets_are_what_comes_next(prepared, told):
    data = Windows.open(prepared, told.training["ks"], 0)
    number = data.slices("train")[7]
    batch, time = data.batch([number], None), number % data.series.shape[1]
    torch.testing.assert_close(batch.inputs[0], data.series[0, time : time + 12])
    torch.testing.assert_close(batch.targets[0], data.series[0, time + 7 : time + 13])
    noisy = [data.batch([number], step).inputs for step in (3, 3, 4)]
    assert torch.equal(noisy[0], noisy[1]) and not torch.equal(noisy[0], noisy[2])


def test_forecasts_that_do_not_fit_into_the_test_part_are_refused(told):
    short = told.forecasts["ks"].model_copy(update={"horizon": 80})
    with pytest.raises(InputError, match="the test part does not hold the forecasts"):
        prepare.starting(simulated(), told.splits["ks"], short, "families.dynamics.forecasts.ks")


def test_a_damaged_raw_array_is_refused_by_name(place, told, tmp_path):
    for file in (place / "raw/ks").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    seen = np.load(tmp_path / OBSERVED)
    seen[1, 5, 3] = np.nan
    np.save(tmp_path / OBSERVED, seen)
    with pytest.raises(DataError, match=r"not finite[\s\S]*nan at \(1, 5, 3\)"):
        prepare.write(tmp_path, tmp_path, simulated(), told.splits["ks"], np.array([170]))


def test_a_solver_with_too_long_a_step_is_told(tmp_path):
    blown = {"system": "lorenz96", "forcing": 10.0, "dt": 0.2, "length": None, "points": None}
    with (
        np.errstate(all="ignore"),
        pytest.raises(DataError, match="the solver left the finite numbers"),
    ):
        acquire.make(simulated(**blown), tmp_path)


def test_the_gate_sees_splits_and_balance(place, prepared):
    raw = place / "raw/ks"
    files.write_json(raw / "manifest.json", {"files": {}})
    found = summed(raw, prepared, {}, simulated())
    (raw / "manifest.json").unlink()
    (level,) = found["levels"].rows
    assert level["balance_off"] < 0.1 and level["exponent_low"] > -0.1
    assert {row["part"]: row["times"] for row in found["parts"].rows} == {
        "train": 120, "val": 30, "test": 80}  # fmt: skip


def test_a_profile_that_leaves_a_set_without_a_budget_is_told_all_at_once():
    with pytest.raises(ParamsError, match=r"splits: ks is missing; .*rivals: ks is missing"):
        checked(Dynamics, {"datasets": ("ks",)}, "families.dynamics")


# --- training


def test_a_network_learns_to_forecast_a_step_better_than_persistence(prepared, told, tmp_path):
    _, history = trained(prepared, told, tmp_path / "kept", 240)
    assert history["status"] == "completed"
    assert history["best_loss"] < 0.9, "persistence has 1: units of a step's change"


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(prepared, told, tmp_path):
    whole, _ = trained(prepared, told, tmp_path / "whole")
    trained(prepared, told, tmp_path / "pieces", 20)
    resumed, history = trained(prepared, told, tmp_path / "pieces")
    assert history["steps"] == 40
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


# --- evaluation, tables, claims


@pytest.fixture(scope="module")
def evaluated(prepared, told, tmp_path_factory) -> Path:
    """An evaluated folder of one trained cell and all rivals."""
    home = tmp_path_factory.mktemp("evaluated")
    run = home / "runs/ks/gru-base-none-s0"
    run.mkdir(parents=True)
    model, history = trained(prepared, told, home / "kept")
    metadata = {"model": "gru", "arm": "base", "size": "none", "seed": 0, "observed": 32,
                "arguments": ARGUMENTS, "scale": model.scale, "length": 12}  # fmt: skip
    (run / shell.WEIGHTS).write_bytes(store.dump(model, metadata))
    files.write_json(run / "history.json", history)
    data = measure.Data.open(prepared, told, 0)
    found = measure.companions(data)
    found |= {run.name: measure.network(run, data, 1, "cpu")}
    measure.write(found, data, home / "evaluated/ks")
    return home / "evaluated/ks"


def test_networks_are_driven_by_what_a_window_has_and_rivals_by_all(prepared, told, evaluated):
    """Of 24 observations before a start a network is given the last 12: 4 that warm up, and 8."""
    run = evaluated.parents[1] / "runs/ks/gru-base-none-s0"
    data = measure.Data.open(prepared, told, 0)
    assert data.context.shape[1] == 24
    model, length = free_run.loaded(run / shell.WEIGHTS, "cpu")
    assert length == Windows.open(prepared, told.training["ks"], 0).length == 12
    again = free_run.forecast(model, data.context[:, -12:], 30, 24)
    images = np.load(evaluated / IMAGES)
    place = files.read_json(evaluated / CURVES)["order"].index(run.name)
    np.testing.assert_array_equal(images[1 + place], again[0].astype(np.float32))


def test_weights_that_do_not_say_on_how_much_they_were_trained_are_refused(evaluated, tmp_path):
    run = evaluated.parents[1] / "runs/ks/gru-base-none-s0"
    model, kept = store.load(str(run / shell.WEIGHTS))
    (tmp_path / "old").write_bytes(store.dump(model, {k: kept[k] for k in kept if k != "length"}))
    with pytest.raises(DataError, match=r"how many observations[\s\S]*dvc repro"):
        free_run.loaded(tmp_path / "old", "cpu")


def content_of(evaluated: Path) -> dict:
    told = files.read_json(evaluated / "metrics.json")
    cells = {f"ks/{name}": cell for name, cell in told["cells"].items()}
    return {"cells": cells, "arms": over_seeds(cells), "about": {"ks": told["about"]}}


def test_every_cell_and_rival_is_measured_from_the_same_starts(evaluated):
    told = files.read_json(evaluated / "metrics.json")["cells"]
    rivals = {"persistence", "mean", "linear", "quadratic", "reservoir", "reservoirs", "solver"}
    assert {*told} == {"gru-base-none-s0", *rivals}
    assert {cell["metrics"]["vpt"]["n"] for cell in told.values()} == {12}
    order = files.read_json(evaluated / CURVES)["order"]
    assert np.load(evaluated / IMAGES).shape == (1 + len(order), 30, 32)


def test_the_solver_stands_above_all_and_persistence_forecasts_a_step(evaluated):
    told = files.read_json(evaluated / "metrics.json")["cells"]
    valid = {name: cell["metrics"]["vpt"]["value"] for name, cell in told.items()}
    assert valid["solver"] == max(valid.values())
    assert told["solver"]["metrics"]["nrmse_1"]["value"] < 1e-3
    assert 0 < valid["persistence"] < valid["solver"]


def test_the_table_has_a_row_for_each_and_no_number_that_is_none(evaluated):
    content = content_of(evaluated)
    table = tables.results(content, "ks", {})
    assert len(table.rows) == 8 and len({len(row) for row in table.rows}) == 1
    assert table.rows[-1][0].startswith("the solver")
    assert "nan" not in " ".join(map(" ".join, table.rows)).lower()
    assert "L = 22, 32 points: 12 starts from 4 runs" in tables.sentence(content["about"]["ks"])


def test_figures_are_drawn_of_a_field(evaluated, tmp_path):
    figures.draw(evaluated, tmp_path, content_of(evaluated), "ks")
    assert {file.name for file in tmp_path.iterdir()} == {"ks-curves.png", "ks-forecasts.png"}


def claimed(tmp_path: Path, cells: dict, times: dict) -> dict[str, list[dict]]:
    """The claims of cells, by name."""
    home = tmp_path / "reports/chaos/mini"
    (home / "evaluated/l96_f10").mkdir(parents=True)
    text = json.dumps({"cells": cells})
    (home / "evaluated/l96_f10/metrics.json").write_text(text)
    (home / "benchmarks.json").write_text(json.dumps(times))
    found: dict[str, list[dict]] = {}
    for entry in claims.check(home):
        found.setdefault(entry["id"], []).append(entry)
    return found


def cell(vpt: float, psd: float = 0.2, output: str = "next") -> dict:
    def one(value, unit, half):
        return {"value": value, "unit": unit, "n": 112, "low": value - half, "high": value + half}

    return {"output": output,
            "metrics": {"vpt": one(vpt, "Lyapunov times", 0.05),
                        "vpt_val": one(vpt, "Lyapunov times", 0.05),
                        "psd_db": {"value": psd, "unit": "dB", "n": 112}}}  # fmt: skip


def seeded(name: str, vpt: float, **more) -> dict:
    return {f"{name}-w48-s{seed}": cell(vpt + 0.01 * seed, **more) for seed in (0, 1, 2)}


def test_claims_are_decided_from_seeds_and_only_by_what_has_learned(tmp_path):
    cells = {"linear": cell(0.7), "persistence": cell(0.2)}
    levels = {"gru-base": 1.2, "gru-attention": 2.0, "transformer-pre": 2.4,
              "recurrent_transformer-pre": 1.3, "lstm-base": 0.3, "lstm-attention": 0.2,
              "rhn-base": 2.0, "rhn-attention": 1.0}  # fmt: skip
    for name, vpt in levels.items():
        cells |= seeded(name, vpt)
    for name in ("gru-additive", "gru-rate", "rhn-additive", "rhn-rate"):
        cells |= seeded(name, 0.0)
    for name in ("lstm-additive", "lstm-rate"):
        cells |= seeded(name, 1.0)
    times = {"ratios": {"transformer / rhn": {"value": 0.4, "low": 0.38, "high": 0.42}}}
    found = claimed(tmp_path, cells, times)
    assert {*found} == {f"D-{number}" for number in range(1, 10)}
    verdicts = {name: entries[0]["verdict"] for name, entries in found.items()}
    assert verdicts["D-4"] == verdicts["D-5"] == verdicts["D-7"] == "holds"
    assert verdicts["D-2"] == "undecided", "R's is the best of several kinds of attention"
    assert "attention to the input" in found["D-2"][0]["why"]
    assert verdicts["D-1"] == "undecided", "modifications that were not trained may be better"
    assert "not trained here: attention_dependent, dependent" in found["D-1"][0]["why"]
    assert "untrained: lstm" in found["D-2"][0]["why"]
    assert {verdicts[name] for name in ("D-3", "D-6", "D-9")} == {"undecided"}


@pytest.mark.parametrize(
    ("gru", "lstm", "verdict"),
    [(0.0, 1.0, "holds"), (0.05, 1.0, "holds"), (0.25, 1.0, "undecided"), (1.0, 1.0, "fails"),
     (0.05, 0.25, "undecided"), (0.05, 0.05, "fails")],
)  # fmt: skip
def test_a_gate_diverges_where_persistence_is_surely_valid_for_longer(gru, lstm, verdict, tmp_path):
    """No forecast is lost at once here: none of the networks has a valid time of 0 at any start."""
    cells = {"linear": cell(0.7), "persistence": cell(0.2)}
    for name in ("gru-additive", "gru-rate", "rhn-additive", "rhn-rate"):
        cells |= seeded(name, gru)
    for name in ("lstm-additive", "lstm-rate"):
        cells |= seeded(name, lstm)
    (found,) = claimed(tmp_path, cells, {})["D-5"]
    assert found["verdict"] == verdict, found["why"]


def test_a_network_that_says_the_change_decides_nothing_about_those_that_diverge(tmp_path):
    """Of a change it is right at first, however little it has learned: R's say the next state."""
    cells = {"linear": cell(0.7), "persistence": cell(0.2)}
    for name in ("gru-additive", "gru-rate", "rhn-additive", "rhn-rate"):
        cells |= seeded(name, 1.0, output="change")
    for name in ("lstm-additive", "lstm-rate"):
        cells |= seeded(name, 1.0)
    (found,) = claimed(tmp_path, cells, {})["D-5"]
    assert found["verdict"] == "undecided"
    assert found["why"].count("it says the change") == 4, "of the LSTM both say the next state"


def test_a_ratio_of_times_outside_the_printed_range_fails(tmp_path):
    times = {"ratios": {"transformer / rhn": {"value": 1.2, "low": 1.1, "high": 1.3}}}
    found = claimed(tmp_path, {"linear": cell(0.7)}, times)
    assert found["D-7"][0]["verdict"] == "fails"


def test_rivals_that_would_learn_from_what_tests_are_refused(told):
    more = told.rivals["ks"].model_copy(update={"train": 121})
    peeking = told.model_copy(update={"rivals": {"ks": more}})
    evaluate.refuse_peeking(told, "ks", "families.dynamics")
    with pytest.raises(InputError, match=r"rivals.ks.train[\s\S]*at most 120"):
        evaluate.refuse_peeking(peeking, "ks", "families.dynamics")


# --- the command line


@pytest.mark.parametrize(
    ("main", "names", "told"),
    [
        (acquire.main, ["mini", "simulated"], "unknown simulated system|unknown data set"),
        (prepare.main, ["mini", "ks_l2"], "did you mean 'ks_l22'"),
        (validate.main, ["mini", "poisson"], "unknown simulated system"),
        (train.main, ["chaos", "mini", "l96_f10", "gruu"], "did you mean 'gru'"),
        (train.main, ["chaos", "mini", "l96_f10", "gru", "--arm", "bas"], "did you mean 'base'"),
        (evaluate.main, ["chaos", "mini", "l96"], "unknown simulated system"),
    ],
)
def test_a_name_that_is_none_is_told_before_any_work(main, names, told, monkeypatch, capsys):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main(names) == 2
    assert re.search(told, capsys.readouterr().err)
