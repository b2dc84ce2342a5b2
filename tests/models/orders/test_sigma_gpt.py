"""sigma-GPT: a plain GPT written here at the identity order, the reference's parameter counts,
and what each step may see."""

import hashlib
import math

import pytest
import torch
from torch.nn import functional

from stages import seeds
from stages.errors import InputError
from stages.sequences import permutations
from stages.sequences.models import build

SIZES = {
    "17k": ({"width": 32, "keys": 32, "hidden": 32, "heads": 2, "blocks": 2}, 2, 16_898),
    "4m": ({"width": 256, "keys": 32, "hidden": 1024, "heads": 4, "blocks": 6}, 2, 4_340_226),
}
SMALL = {"width": 16, "keys": 8, "hidden": 24, "heads": 2, "blocks": 2}
ARMS = {
    "plain": {"dropout": 0.0},
    "text": {"style": "text", "positions": "learned", "dropout": 0.0},
    "mixed": {"positions": "learned", "dropout": 0.0},
    "grid": {"positions": "grid", "axes": [3, 3], "dropout": 0.0},
}
arms = pytest.mark.parametrize("arm", ARMS)
# The weights of seed 7, and the sum of squared logits, as they were before the backbone was shared.
BEFORE = {
    "plain": ("95987399312af3cf", 62.66172409057617),
    "grid": ("9f4fb8511cd0090f", 100.90474700927734),
    "text": ("1ad769ba7fc5f797", 2.3792672157287598),
}


def made(arm="plain", vocabulary=5, length=9, size=None):
    seeds.everything(0)
    model = build("sigma_gpt", ARMS[arm], size or SMALL, vocabulary, length).eval()
    with torch.no_grad():
        for (
            parameter
        ) in model.parameters():  # away from 0 and 1, or norms and biases would prove nothing
            parameter.add_(0.2 * torch.randn(parameter.shape))
    return model


@pytest.mark.parametrize("arm", BEFORE)
def test_the_shared_backbone_draws_and_computes_what_the_model_of_its_own_did(arm):
    seeds.everything(7)
    model = build("sigma_gpt", ARMS[arm], SMALL, 5, 9)
    bits = b"".join(k.encode() + v.numpy().tobytes() for k, v in model.state_dict().items())
    assert hashlib.sha256(bits).hexdigest()[:16] == BEFORE[arm][0]
    with torch.no_grad():
        squares = float(model(*some()).square().sum())
    assert squares == pytest.approx(BEFORE[arm][1], rel=1e-5)


def some(batch=4, length=9, vocabulary=5):
    generator = seeds.torch_stream(0, "sigma")
    return torch.randint(0, vocabulary, (batch, length), generator=generator), permutations.random(
        batch, length, generator
    )


@pytest.mark.parametrize("size", SIZES)
def test_sizes_count_the_parameters_of_the_public_code(size):
    arguments, vocabulary, count = SIZES[size]
    assert (
        sum(
            parameter.numel()
            for parameter in build("sigma_gpt", {}, arguments, vocabulary, 100).parameters()
        )
        == count
    )


def test_a_text_model_of_gpt_2_s_size_has_its_weights_and_no_more():
    with torch.device("meta"):
        model = build(
            "sigma_gpt",
            {"style": "text", "positions": "learned"},
            {"width": 768, "keys": 64, "hidden": 3072, "heads": 12, "blocks": 12},
            50304,
            1024,
        )
    names = dict(model.named_parameters())
    assert not [name for name in names if name.endswith("bias")]
    assert (
        sum(value.numel() for value in names.values())
        == 50304 * 768 + 1025 * 384 + 12 * (12 * 768**2 + 2 * 768) + 768
    )


def positions_read(model, weights, width, length):
    """What stands for the places -1, 0, ..., length - 1, by hand."""
    if model.positions.__class__.__name__ == "Grid":
        # 3 x 3: row 0 stands before, once an axis; 1 to 3 are of lines, 4 to 6 of columns
        rows = weights["positions.table.weight"]
        return torch.stack(
            [
                2 * rows[0],
                *(rows[1 + line] + rows[4 + column] for line in range(3) for column in range(3)),
            ]
        )
    if "positions.table.weight" in weights:
        return weights["positions.table.weight"]
    columns = width // 4
    return torch.tensor(
        [
            [
                f(place * 10_000 ** (-j / (columns - 1)))
                for f in (math.sin, math.cos)
                for j in range(columns)
            ]
            for place in range(-1, length)
        ],
        dtype=torch.float64,
    )


def plain_gpt(model, tokens):
    """A left-to-right GPT over (B, T) in float64, from the model's weights: explicit scores, a
    mask, an exponential, no shared code."""
    weights = {name: value.double() for name, value in model.state_dict().items()}
    batch, length = tokens.shape
    width, keys = model.embedding.embedding_dim, model.blocks[0].keys
    read = torch.cat((torch.zeros(batch, 1, dtype=torch.int64), tokens[:, :-1]), 1)
    table = positions_read(model, weights, width, length)
    x = weights["embedding.weight"][read] + torch.cat((table[:-1], table[1:]), 1)

    def norm(x, name):
        return functional.layer_norm(
            x, (width,), weights[f"{name}.weight"], weights.get(f"{name}.bias")
        )

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0.0)

    for index, block in enumerate(model.blocks):
        heads, value_width = block.heads, width // block.heads
        projected = linear(norm(x, f"blocks.{index}.attention_norm"), f"blocks.{index}.inward")
        mixed = []
        for head in range(heads):
            query = projected[..., head * keys : (head + 1) * keys]
            key = projected[..., (heads + head) * keys : (heads + head + 1) * keys]
            value = projected[..., 2 * heads * keys + head * value_width :][..., :value_width]
            score = (query @ key.transpose(1, 2) / math.sqrt(keys)).exp() * torch.ones(
                length, length, dtype=torch.float64
            ).tril()
            mixed.append(score / score.sum(2, keepdim=True) @ value)
        x = x + linear(torch.cat(mixed, 2), f"blocks.{index}.outward")
        hidden = linear(norm(x, f"blocks.{index}.feed_norm"), f"blocks.{index}.widen")
        hidden = (
            hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
            if model.text
            else hidden.clamp(min=0)
        )
        x = x + linear(hidden, f"blocks.{index}.narrow")
    return norm(x, "norm") @ weights["embedding.weight"].T if model.text else linear(x, "readout")


@arms
@pytest.mark.parametrize("keys", [8, 4, 20])
def test_with_the_identity_order_it_is_a_plain_gpt(arm, keys):
    model, (tokens, _) = made(arm, size={**SMALL, "keys": keys}), some()
    torch.testing.assert_close(
        model(tokens, permutations.left_to_right(4, 9)).double(),
        plain_gpt(model, tokens),
        atol=1e-4,
        rtol=1e-4,
    )


@arms
def test_no_step_sees_a_token_or_a_position_that_it_must_not(arm):
    """By gradients at what each step reads: tokens before it, positions up to the one asked for,
    and all of these."""
    model, (tokens, order) = made(arm), some(1)
    model = model.double()
    embedded, placed = [], []
    model.embedding.register_forward_hook(lambda _module, _read, out: embedded.append(out))
    model.positions.register_forward_hook(
        lambda _module, _read, out: placed.append(out.requires_grad_())
    )
    logits = model(tokens, order)
    own, target = placed
    for step in range(9):
        token_sees, own_sees, target_sees = (
            gradient[0].abs().sum(1) > 0
            for gradient in torch.autograd.grad(
                logits[0, step].square().sum(), (embedded[0], own, target), retain_graph=True
            )
        )
        until = torch.arange(9) <= step
        # entry i carries the token and the place of step i-1 and the place asked at step i: all up
        # to i, nothing after
        assert (
            torch.equal(token_sees, until)
            and torch.equal(own_sees, until)
            and torch.equal(target_sees, until)
        )


@arms
def test_a_token_changes_only_what_is_made_after_it(arm):
    model, (tokens, order) = made(arm), some()
    before = model(tokens, order)
    for step in range(9):
        other = tokens.scatter(1, order[:, [step]], (tokens.gather(1, order[:, [step]]) + 1) % 5)
        changed = (model(other, order) - before).abs().amax((0, 2)) > 1e-6
        assert torch.equal(changed, torch.arange(9) > step)


@arms
def test_the_order_of_the_rest_does_not_change_a_step_and_a_prefix_gives_the_same(arm):
    model, (tokens, order) = made(arm), some()
    swapped = torch.cat((order[:, :5], order[:, 5:].flip(1)), 1)
    torch.testing.assert_close(model(tokens, swapped)[:, :5], model(tokens, order)[:, :5])
    torch.testing.assert_close(model(tokens, order[:, :5]), model(tokens, order)[:, :5])


@arms
def test_a_batch_gives_what_each_row_gives_alone(arm):
    model, (tokens, order) = made(arm), some()
    together = model(tokens, order)
    for row in range(4):
        torch.testing.assert_close(
            model(tokens[[row]], order[[row]])[0], together[row], atol=1e-5, rtol=1e-5
        )


@arms
def test_gradient_reaches_every_parameter(arm):
    model, (tokens, order) = made(arm), some()
    functional.cross_entropy(
        model(tokens, order).flatten(0, 1), tokens.gather(1, order).flatten()
    ).backward()
    assert [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ] == []


def test_sinusoids_of_both_positions_have_all_frequencies():
    table = made(length=500).positions.table.double()
    assert table.shape == (501, 8)
    angle = torch.atan2(table[:, :4], table[:, 4:]).diff(dim=0).remainder(2 * math.pi).mean(0)
    torch.testing.assert_close(
        angle,
        10_000.0 ** -torch.tensor([0, 1 / 3, 2 / 3, 1], dtype=torch.float64),
        atol=1e-6,
        rtol=1e-4,
    )


@pytest.mark.parametrize(
    ("axes", "rows"), [(None, 1 + 24), ([24], 1 + 24), ([2, 3, 4], 1 + 9), ([24, 1], 1 + 25)]
)
def test_a_grid_has_a_row_for_each_coordinate_and_one_before_the_first(axes, rows):
    def count(arm):
        return sum(value.numel() for value in build("sigma_gpt", arm, SMALL, 5, 24).parameters())

    assert count({"positions": "grid", "axes": axes}) == count({}) + 8 * rows


def test_a_cell_and_its_copy_lie_apart_by_the_planes_alone_and_no_two_positions_agree():
    seeds.everything(0)
    code = build("sigma_gpt", {"positions": "grid", "axes": [2, 3, 4]}, SMALL, 5, 24).positions(
        torch.arange(-1, 24)
    )
    planes = code[1:].view(2, 12, 8)
    torch.testing.assert_close(
        planes[1] - planes[0], (planes[1] - planes[0])[:1].expand(12, 8), atol=1e-6, rtol=0
    )
    cells = planes.view(2, 3, 4, 8)
    torch.testing.assert_close(
        cells[0, 1, 3] - cells[0, 1, 2], cells[1, 2, 3] - cells[1, 2, 2], atol=1e-6, rtol=0
    )
    assert torch.pdist(code).min() > 0.01


@pytest.mark.parametrize("axes", [[2, 5], [9, 1.0], [-3, -3], [], 9, "9", [True, 9]])
def test_axes_that_do_not_hold_the_sequence_are_refused(axes):
    with pytest.raises(InputError, match="grid does not hold"):
        build("sigma_gpt", {"positions": "grid", "axes": axes}, SMALL, 5, 9)
    with pytest.raises(InputError, match="axes are of positions on a grid"):
        build("sigma_gpt", {"positions": "learned", "axes": [3, 3]}, SMALL, 5, 9)


def test_dropout_is_at_work_in_training_only():
    model = build("sigma_gpt", {"dropout": 0.5}, SMALL, 5, 9)
    tokens, order = some()
    assert not torch.equal(model(tokens, order), model(tokens, order))
    model.eval()
    assert torch.equal(model(tokens, order), model(tokens, order))


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 18},
        {"heads": 3},
        {"style": "prose"},
        {"positions": "none"},
        {"dropout": 1.0},
        {"layers": 2},
        {"blocks": 0},
    ],
)
def test_arguments_that_do_not_fit_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        build("sigma_gpt", {}, {**SMALL, **wrong}, 5, 9)
    with pytest.raises(InputError, match="vocabulary"):
        build("sigma_gpt", {}, SMALL, 0, 9)
    with pytest.raises(InputError, match="no such model"):
        build("gpt", {}, SMALL, 5, 9)
