"""Laws every field model obeys, over all files of stages/fields/models and the arms of
params.yaml."""

from pathlib import Path

import pytest
import torch

from stages import arithmetic, params, seeds
from stages.batches import Batch, collate, single
from stages.fields.models import axes, build, model_class, names
from stages.training import store

ROOT = Path(__file__).parents[2]
MODELS = params.load(ROOT / "params.yaml").models
CASES = [
    (name, arm, next(iter(model.sizes), "none"))
    for name, model in MODELS.items()
    if name in names()
    for arm in model.arms
]
laws = pytest.mark.parametrize("case", CASES, ids="-".join)
POINTS = [(0, 1), (1, 1), (3, 0), (2, 5), (17, 4), (40, 33)]


def made(case, seed=0):
    name, arm, size = case
    seeds.everything(seed)
    model = build(name, MODELS[name].arms[arm], MODELS[name].sizes.get(size))
    if name == "knn":
        model.neighbours.fill_(4)
    return model


def some(case, context: int, targets: int, seed: int = 0) -> Batch:
    """One set for the model of `case`; the time of a local context lies before the issue time,
    that of its targets after."""
    generator, wide = seeds.torch_stream(seed, "test", context, targets), axes(case[0])

    def draw(count, width):
        return torch.randn(count, width, generator=generator)

    batch = single(draw(context, wide), draw(context, 2), draw(targets, wide), draw(targets, 2))
    if wide == 4:
        batch.context_x[..., 3], batch.target_x[..., 3] = (
            -batch.context_x[..., 3].abs(),
            batch.target_x[..., 3].abs(),
        )
    return batch


def outputs(prediction):
    return [value for value in (prediction.mean, prediction.scale) if value is not None]


def test_every_model_of_the_table_has_arms_in_params():
    assert set(names()) <= set(MODELS)


@laws
@pytest.mark.parametrize(
    "points",
    [
        POINTS[0],
        *(pytest.param(few, marks=pytest.mark.slow_fault) for few in POINTS[1:-1]),
        POINTS[-1],
    ],
    ids=str,
)
@pytest.mark.fault("F16")
def test_any_numbers_of_points_give_finite_predictions_of_the_right_shape(case, points):
    for value in outputs(made(case)(some(case, *points))):
        assert value.shape == (1, points[1], 2) and torch.isfinite(value).all()


@laws
def test_a_padded_batch_gives_what_each_set_gives_alone(case):
    model, sets = made(case), [some(case, *points, seed) for seed, points in enumerate(POINTS)]
    together = collate(sets)
    # what stands in the padding must not matter
    together = Batch(
        **{
            key: value
            if value.dtype == torch.bool
            else value
            + 50 * ~(together.target_mask if "target" in key else together.context_mask)[..., None]
            for key, value in vars(together).items()
        }
    )
    for row, alone in enumerate(sets):
        for joint, lone in zip(outputs(model(together)), outputs(model(alone)), strict=True):
            assert torch.isfinite(joint).all()
            torch.testing.assert_close(
                joint[row, : alone.target_x.shape[1]], lone[0], atol=1e-5, rtol=1e-5
            )


@laws
def test_the_order_of_the_context_does_not_matter_and_targets_keep_theirs(case):
    model, batch = made(case), some(case, 30, 20)
    # five reports from one place with different winds: a tie that order must not break
    batch.context_x[0, 5:10] = batch.context_x[0, 5]
    batch.target_x[0, 3] = batch.context_x[0, 5]
    context, target = (
        torch.randperm(n, generator=seeds.torch_stream(1, "permutation", n)) for n in (30, 20)
    )
    shuffled = Batch(
        batch.context_x[:, context],
        batch.context_y[:, context],
        batch.context_mask,
        batch.target_x[:, target],
        batch.target_mask,
    )
    for one, other in zip(outputs(model(batch)), outputs(model(shuffled)), strict=True):
        torch.testing.assert_close(one[:, target], other, atol=1e-5, rtol=1e-5)


@laws
def test_the_gradient_reaches_every_parameter(case):
    model, batch = made(case), some(case, 30, 20)
    parameters = dict(model.named_parameters())
    if not parameters:
        assert model.learns != "gradient"
        return
    loss = (
        model.loss(batch)
        if model.own_loss
        else sum((value - 0.3).square().sum() for value in outputs(model(batch)))
    )
    loss.backward()
    unreached = [
        name
        for name, value in parameters.items()
        if value.grad is None or not value.grad.abs().max() > 0
    ]
    if case[:2] == (
        "gen",
        "lattice_1",
    ):  # one node has no neighbour to tell anything and no other node to be weighed against
        unreached = [name for name in unreached if name != "strength" and ".message" not in name]
    # of a batch without a grid no target has as many cells near it as there are slots; with one
    # tests/grids/test_symmetry.py asks them
    assert not [name for name in unreached if not idle(case, name)]


def idle(case, name: str) -> bool:
    """Whether a parameter serves only where a grid is given (slots), or never: a cell that holds
    its own value alone leaves no query anything to weigh (tests/grids/test_symmetry.py)."""
    cells = case[1].startswith("mhca_on") and name in ("query", "gather.query.weight")
    return case[0] == "grid_tnp" and (cells or name.endswith(".reading.slots"))


@laws
def test_saved_and_loaded_it_predicts_the_same_and_its_bytes_repeat(case, tmp_path):
    model, batch = made(case, seed=3), some(case, 30, 20)
    name, arm, size = case
    metadata = {
        "model": name,
        "arm": arm,
        "size": size,
        "seed": 3,
        "x_dim": axes(name),
        "i_dim": 2,
        "o_dim": 2,
        "arguments": {**MODELS[name].arms[arm], **MODELS[name].sizes.get(size, {})},
    }
    (tmp_path / "weights.safetensors").write_bytes(store.dump(model, metadata))
    loaded, told = store.load(str(tmp_path / "weights.safetensors"))
    assert (told["model"], told["arm"], told["size"], told["seed"]) == (
        name,
        arm,
        size,
        3,
    ) and not loaded.training
    # torch's own kernels round by where in memory the weights lie
    close = 0.0 if arithmetic.name() == arithmetic.COMMON else 1e-5
    for one, other in zip(outputs(model(batch)), outputs(loaded(batch)), strict=True):
        torch.testing.assert_close(one, other, rtol=close, atol=close)
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[key])
    assert store.dump(loaded, told) == store.dump(made(case, seed=3), metadata)


@laws
def test_one_seed_one_model(case):
    one, same, other = (made(case, seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(one[name], same[name]) for name in one)
    if model_class(case[0]).learns == "gradient" and case[0] not in (
        "kernel",
        "gka_tnn",
        "kriging",
        "linear_interpolation",
    ):  # these start at given scales
        assert any(not torch.equal(one[name], other[name]) for name in one)


@laws
@pytest.mark.fault("F16")
def test_far_targets_equal_points_and_fully_masked_sets_stay_finite(case):
    model = made(case)
    batch = some(case, 12, 6)
    batch.context_x[:] = batch.context_x[:, :1]
    batch.target_x[0, 0] = 1e4
    assert all(torch.isfinite(value).all() for value in outputs(model(batch)))
    masked = Batch(
        batch.context_x,
        batch.context_y,
        torch.zeros_like(batch.context_mask),
        batch.target_x,
        torch.zeros_like(batch.target_mask),
        batch.target_y,
    )
    values = outputs(model(masked))
    assert all(torch.isfinite(value).all() for value in values)
    if any(parameter.requires_grad for parameter in model.parameters()):
        sum(value.sum() for value in values).backward()
        assert all(
            torch.isfinite(parameter.grad).all()
            for name, parameter in model.named_parameters()
            if not idle(case, name)
        )


@laws
def test_the_model_says_what_it_reads_and_how_it_is_fitted(case):
    model = model_class(case[0])
    assert model.context in ("slice", "hour", "day", "neighbours", "recent") and model.learns in (
        "nothing",
        "neighbours",
        "gradient",
    )


@pytest.mark.parametrize(
    "name", ["day_average", "hour_average", "persistence", "knn", "trend", "kernel"]
)
def test_without_context_averages_predict_the_prior_mean(name):
    assert torch.equal(build(name)(some((name,), 0, 3)).mean, torch.zeros(1, 3, 2))
