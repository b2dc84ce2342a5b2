"""The loss, what training reaches, when it stops, and what it does when numbers stop being
finite."""

import math

import numpy as np
import pytest
import torch
import toy_sky

from stages import seeds
from stages.batches import Prediction, collate, device, single
from stages.errors import DataError, DivergedError, InputError
from stages.fields.models import build
from stages.files import read_json
from stages.layers.heads import Gaussian
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Settings, order
from stages.winds import batches
from stages.winds.batches import Data
from stages.winds.fitting import fit

CPU = torch.device("cpu")
TINY = {"width": 8, "heads": 2, "layers": 1}


def settings(**changes):
    return Settings(
        **(
            {
                "steps": 40,
                "validate_every": 10,
                "patience": 100,
                "learning_rate": 3e-3,
                "clip": 4.0,
                "seed": 0,
            }
            | changes
        )
    )


def fitted(tmp_path, name, arm=None, size=None, pairs=None, **changes):
    seeds.everything(changes.get("seed", 0))
    model = build(name, arm, size)
    changes = {"learning_rate": model.learning_rate or 3e-3} | changes
    history = fit(
        model,
        toy_sky.contexts(pairs or toy_sky.sky()),
        settings(**changes),
        Checkpoints(tmp_path / "work"),
        CPU,
    )
    return model, history


def test_the_loss_is_the_rmse_in_knots_over_points_and_components():
    pairs = toy_sky.sky()
    data = toy_sky.data(pairs)
    batch = collate(
        [
            data.batch(6),
            single(torch.zeros(1, 3), torch.zeros(1, 2), torch.zeros(30, 3), torch.zeros(30, 2)),
        ]
    )
    batch.target_mask[1] = False  # only the first set is real
    guess = torch.randn(batch.target_y.shape, generator=seeds.torch_stream(0, "guess"))
    std = np.array(pairs.meta["scaler"]["y_std"])
    pair = pairs.pair(6)
    error_kn = (guess[0, : len(pair.target_y)].numpy() - pair.target_y) * std * 3600 / 1852
    assert float(batches.loss_of(Prediction(guess), batch, data.unit_kn())) == pytest.approx(
        math.sqrt((error_kn**2).mean()), rel=1e-5
    )
    scale = guess.abs() + 0.1
    expected = (
        -torch.distributions.Normal(guess, scale)
        .log_prob(batch.target_y)[0, : len(pair.target_y)]
        .mean()
    )
    assert float(batches.loss_of(Gaussian(guess, scale), batch, data.unit_kn())) == pytest.approx(
        float(expected), rel=1e-5
    )


def test_a_perfect_prediction_has_a_finite_gradient():
    batch = toy_sky.data(toy_sky.sky()).batch(6)
    mean = batch.target_y.clone().requires_grad_()
    batches.loss_of(Prediction(mean), batch, torch.ones(2)).backward()
    assert torch.isfinite(mean.grad).all()


def test_validation_tells_the_mean_of_slices_from_the_whole():
    pairs = toy_sky.sky()
    data = toy_sky.data(pairs)
    model = build("knn")
    found = batches.validate(model, data, data.unit_kn())
    squares = []
    for j in pairs.targets("val"):
        pair = pairs.pair(j)
        nearest = ((pair.target_x[:, None] - pair.context_x) ** 2).sum(-1).argmin(1)
        squares.append(
            (
                (
                    (pair.context_y[nearest] - pair.target_y)
                    * pairs.meta["scaler"]["y_std"]
                    * 3600
                    / 1852
                )
                ** 2
            ).mean()
        )
    counts = [len(pairs.pair(j).target_y) for j in pairs.targets("val")]
    assert found["rmse_batch_mean_kn"] == pytest.approx(np.sqrt(squares).mean(), rel=1e-5)
    assert found["loss"] == pytest.approx(found["rmse_batch_mean_kn"], rel=1e-6)
    assert found["rmse_component_kn"] == pytest.approx(
        math.sqrt(np.average(squares, weights=counts)), rel=1e-5
    )


def test_every_epoch_sees_every_slice_once_in_an_order_of_its_own():
    slices = list(range(5, 40))
    orders = [order(slices, seed, epoch).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(o) == slices for o in orders) and len({tuple(o) for o in orders}) == 4
    assert order(slices, 0, 1).tolist() == orders[1]


@pytest.fixture(scope="module")
def hour(tmp_path_factory):
    """RMSE of the hour average on the still field: what a model that learns nothing of place
    gets."""
    pairs = toy_sky.sky(60, 60)
    return pairs, fitted(tmp_path_factory.mktemp("hour"), "hour_average", pairs=pairs)[1]["val"][0][
        "rmse_component_kn"
    ]


def test_the_kernel_learns_how_far_wind_carries(hour, tmp_path):
    pairs, average = hour
    data = toy_sky.data(pairs)
    untrained = batches.validate(build("kernel"), data, data.unit_kn())["loss"]
    model, history = fitted(tmp_path, "kernel", pairs=pairs, steps=150, validate_every=50)
    assert (
        history["val"][-1]["rmse_component_kn"] < 0.45 * average
        and history["best_loss"] < 0.65 * untrained
    )
    across, height = model.log_scale.tolist()
    assert across > 1 > height  # this wind turns within a degree and changes slowly with height


def test_k_is_chosen_on_the_validation_slices(hour, tmp_path):
    pairs, average = hour
    model, history = fitted(tmp_path, "knn", {"neighbours": (1, 2, 4, 8, 32)}, pairs=pairs)
    losses = {entry["neighbours"]: entry["loss"] for entry in history["val"]}
    assert (
        int(model.neighbours) == history["neighbours"] == min(losses, key=losses.get)
        and 1 < history["neighbours"] < 32
    )
    assert history["best_loss"] < 0.6 * average


def test_msa_learns_the_field(hour, tmp_path):
    pairs, average = hour
    _, history = fitted(
        tmp_path,
        "msa",
        {"encoder": "shared"},
        TINY,
        pairs=pairs,
        steps=300,
        validate_every=100,
        learning_rate=1e-2,
    )
    assert history["val"][-1]["rmse_component_kn"] < 0.6 * average
    assert [entry["step"] for entry in history["train"]] == [100, 200, 300] and history[
        "status"
    ] == "completed"


def test_a_gaussian_head_learns_its_own_error(hour, tmp_path):
    pairs, _ = hour
    model, history = fitted(
        tmp_path,
        "msa",
        {"head": "gaussian"},
        TINY,
        pairs=pairs,
        steps=200,
        validate_every=50,
        learning_rate=1e-2,
    )
    data = toy_sky.data(pairs)
    z = torch.cat(
        [
            ((b.target_y - model(b).mean) / model(b).scale).flatten()
            for b in map(data.batch, pairs.targets("val"))
        ]
    ).detach()
    assert history["best_loss"] < 0.5 * (
        1 + math.log(2 * math.pi)
    )  # better than the prior's N(0, 1)
    assert 0.8 < float(z.std()) < 1.25


def test_the_best_weights_are_kept_and_patience_ends_the_run(tmp_path):
    model, history = fitted(
        tmp_path, "msa", None, TINY, steps=4000, validate_every=5, patience=3, learning_rate=0.5
    )
    values = [entry["loss"] for entry in history["val"]]
    assert (
        history["status"] == "stopped early"
        and history["steps"] == history["best_step"] + 15 < 4000
    )
    assert history["best_loss"] == min(values) == values[-4]
    data = toy_sky.data(toy_sky.sky())
    assert batches.validate(model, data, data.unit_kn())["loss"] == history["best_loss"]


def test_validations_stand_at_steps_evenly_spaced_in_logarithms_beside_the_others():
    assert settings(steps=100, validate_every=40).validated() == {40, 80, 100}
    assert settings(steps=100, validate_every=40, per_doubling=1).validated() == {
        *(1, 2, 4, 8, 16, 32, 64),
        *(40, 80, 100),
    }
    assert settings(steps=12, validate_every=50, per_doubling=2).validated() == {
        *(1, 2, 3, 4, 6, 8, 11, 12)
    }  # 1, 1.41, 2, 2.83, 4, 5.66, 8, 11.3, and the last


def test_a_run_is_validated_at_those_steps(tmp_path):
    how = {"steps": 12, "validate_every": 5, "per_doubling": 1}
    _, history = fitted(tmp_path, "msa", None, TINY, **how)
    assert [entry["step"] for entry in history["val"]] == [1, 2, 4, 5, 8, 10, 12]
    assert [entry["step"] for entry in history["train"]] == [1, 2, 4, 5, 8, 10, 12]


def test_the_last_weights_are_kept_where_these_are_asked_for(tmp_path):
    how = {"steps": 4000, "validate_every": 5, "patience": 3, "learning_rate": 0.5}
    data, runs = toy_sky.data(toy_sky.sky()), {}
    for select in ("best", "last"):
        model, history = fitted(tmp_path / select, "msa", None, TINY, select=select, **how)
        losses = [entry["loss"] for entry in history["val"]]
        runs[select] = batches.validate(model, data, data.unit_kn())["loss"]
        assert runs[select] == (min(losses) if select == "best" else losses[-1])
        assert history.get("select") == (None if select == "best" else "last")
    assert runs["best"] < runs["last"]


def test_two_runs_of_a_seed_agree_in_every_bit_and_two_seeds_do_not(tmp_path):
    runs = [
        fitted(tmp_path / str(i), "msa", None, TINY, steps=12, seed=seed)[0].state_dict()
        for i, seed in enumerate((1, 1, 2))
    ]
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert any(not torch.equal(runs[0][name], runs[2][name]) for name in runs[0])


@pytest.mark.parametrize("poison", [math.nan, math.inf, 1e30])
@pytest.mark.fault("F18")
def test_training_stops_at_the_step_that_diverges_and_keeps_the_last_good_checkpoint(
    tmp_path, poison, monkeypatch
):
    pairs = toy_sky.sky()
    step, bad = 0, 17
    plain = Data.batch

    def poisoned(self, slice):
        nonlocal step
        batch = plain(self, slice)
        if slice in pairs.targets("train"):
            step += 1
            if step == bad:
                batch.target_y[0, 0, 0] = poison
        return batch

    monkeypatch.setattr(Data, "batch", poisoned)
    with pytest.raises(DivergedError, match=f"step {bad}, slice") as error:
        fitted(tmp_path, "msa", None, TINY, pairs=pairs)
    assert error.value.exit_code == 1 and step == bad
    told = read_json(tmp_path / "work" / "status.json")
    assert told["status"] == "diverged" and told["steps"] == bad - 1
    assert (tmp_path / "work" / "latest").read_text() == "step-000000010"
    monkeypatch.setattr(
        Data, "batch", plain
    )  # the cause is gone: the run goes on from the good checkpoint
    _, history = fitted(tmp_path, "msa", None, TINY, pairs=pairs)
    assert history["status"] == "completed" and history["steps"] == 40


@pytest.mark.fault("F18")
def test_a_validation_that_is_not_finite_is_divergence_too(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "validate", lambda *_: {"loss": math.nan})
    with pytest.raises(DivergedError, match="validation"):
        fitted(tmp_path, "msa", None, TINY)
    assert not (tmp_path / "work" / "latest").exists()


def test_an_empty_split_is_refused_before_the_first_step(tmp_path):
    pairs = toy_sky.sky()
    pairs.meta["slices"]["val"] = []
    for name in ("kernel", "knn", "day_average"):
        with pytest.raises(DataError, match="nothing to"):
            fitted(tmp_path, name, pairs=pairs)


def test_the_device_is_chosen_and_a_wrong_one_named(monkeypatch):
    monkeypatch.setenv("TRADEWIND_DEVICE", "cpu")
    assert device() == CPU
    for wrong in ("abacus", "cuda:99"):
        monkeypatch.setenv("TRADEWIND_DEVICE", wrong)
        with pytest.raises(InputError, match="TRADEWIND_DEVICE"):
            device()
