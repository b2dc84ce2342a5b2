"""Our encoder layer against torch's nn.TransformerEncoderLayer holding the same weights: an
oracle for values and gradients."""

import pytest
import torch
from torch import nn

from stages.layers.attention import EncoderLayer, usable
from stages.layers.kernels import attention as fused

WIDTHS = [
    (12, 2),
    (24, 2),
    (32, 8),
    (16, 1),
    (40, 2),
]  # heads of 6, 12, 4, 16 (no padding) and 20 (two registers)
PAIRS = {
    "inward.weight": "in_proj_weight",
    "inward.bias": "in_proj_bias",
    "outward.weight": "out_proj.weight",
    "outward.bias": "out_proj.bias",
}
NAMES = {f"attention.{ours}": f"self_attn.{theirs}" for ours, theirs in PAIRS.items()} | {
    f"{ours}.{kind}": f"{theirs}.{kind}"
    for kind in ("weight", "bias")
    for ours, theirs in (
        ("attention_norm", "norm1"),
        ("feed_norm", "norm2"),
        ("widen", "linear1"),
        ("narrow", "linear2"),
    )
}


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def kernel(request, monkeypatch):
    """Each test with the compiled kernel and, as on another device, with torch's."""
    if request.param == "torch":
        monkeypatch.setattr(fused, "takes", lambda tokens, width: False)
    return request.param


def twins(width, heads):
    torch.manual_seed(width)
    theirs = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True)
    with torch.no_grad():
        for (
            parameter
        ) in theirs.parameters():  # norms and biases away from 1 and 0, or they would prove nothing
            parameter.add_(0.1 * torch.randn_like(parameter))
    ours = EncoderLayer(width, heads)
    ours.load_state_dict(
        {name: theirs.state_dict()[other].clone() for name, other in NAMES.items()}
    )
    return ours, theirs


def padding():
    mask = torch.ones(3, 21, dtype=torch.bool)
    mask[1, :6] = False
    mask[2, 3:17] = False
    return mask


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("width,heads", WIDTHS)
def test_values_and_gradients_equal_torch(width, heads, masked):
    ours, theirs = twins(width, heads)
    tokens = torch.randn(3, 21, width)
    mask = padding() if masked else torch.ones(3, 21, dtype=torch.bool)
    one = ours(tokens, usable(mask))
    other = theirs(tokens, src_key_padding_mask=~mask if masked else None)
    torch.testing.assert_close(one[mask], other[mask], atol=1e-5, rtol=1e-5)
    weight = torch.randn(3, 21, width)
    for value in (one, other):
        (value * weight)[mask].sum().backward()
    grads = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, grads[NAMES[name]].grad, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("count", [6, 12, 16, 32])
@pytest.mark.parametrize("width,heads", [(12, 2), (24, 2), (40, 2)])
def test_a_mask_as_wide_as_a_head_is_not_taken_for_one(width, heads, count):
    """A padded batch of exactly as many tokens as a head is wide, filled up or not: the saved
    mask has a head's shape."""
    ours, theirs = twins(width, heads)
    tokens, mask = torch.randn(3, count, width), torch.ones(3, count, dtype=torch.bool)
    mask[1, 1:] = False
    mask[2, count // 2 :] = False
    one, other = ours(tokens, usable(mask)), theirs(tokens, src_key_padding_mask=~mask)
    weight = torch.randn(3, count, width)
    for value in (one, other):
        (value * weight)[mask].sum().backward()
    grads = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, grads[NAMES[name]].grad, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("last", [0, 1, 8, 20])
def test_the_last_tokens_alone_are_the_end_of_all(last):
    ours, _ = twins(12, 2)
    tokens, mask = torch.randn(3, 21, 12), usable(padding())
    torch.testing.assert_close(
        ours(tokens, mask, last=last), ours(tokens, mask)[:, 21 - last :], atol=1e-6, rtol=1e-6
    )


def test_backward_keeps_heads_without_their_padding(kernel):
    if kernel == "compiled":
        pytest.skip("the compiled kernel has no padding")
    layer, kept = twins(32, 8)[0].attention, []
    pack = layer._pack
    layer._pack = lambda saved, masked: kept.append(pack(saved, masked)) or kept[-1]
    layer(torch.randn(1, 50, 32), None, 50)
    assert sorted(tensor.shape[-1] for tensor, _ in kept if tensor.dim() == 4) == [
        4,
        4,
        4,
        4,
    ]  # query, key, value, output


def test_a_mask_without_gaps_is_dropped_and_an_empty_set_sees_its_padding():
    assert usable(torch.ones(2, 3, dtype=torch.bool)) is None
    mask = torch.tensor([[True, False], [False, False]])
    assert usable(mask)[:, 0, 0].tolist() == [[True, False], [True, True]]
