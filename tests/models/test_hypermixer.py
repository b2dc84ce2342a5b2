"""HyperMixing against a naive loop in float64 over tokens, hidden units and features, and its
linear cost."""

import math

import pytest
import torch

from stages import seeds
from stages.batches import single
from stages.fields.models import build
from stages.layers.attention import EncoderLayer
from stages.layers.hypermixing import HyperMixerLayer, HyperMixing


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeds.torch_stream(seed, "hypermixer", *shape))


def gelu(value):
    return 0.5 * value * (1 + math.erf(value / math.sqrt(2)))


def row(network, head, token):
    """One row of a mixing matrix from one token's part (a list)."""
    inward, outward = network.inward[head].tolist(), network.outward[head].tolist()
    hidden = [
        gelu(sum(t * inward[i][j] for i, t in enumerate(token))) for j in range(len(inward[0]))
    ]
    return [sum(h * outward[j][k] for j, h in enumerate(hidden)) for k in range(len(outward[0]))]


def naive(layer, tokens, real, last):
    """What listing 2.1 does, number by number; (last, H) before the norm."""
    parts, width = layer.heads, tokens.shape[1] // layer.heads
    answer = torch.zeros(last, tokens.shape[1])
    for head in range(parts):
        split = tokens[:, head * width : (head + 1) * width].tolist()
        taker = layer.into if layer.out_of is None else layer.out_of
        told = [row(layer.into, head, token) for token in split]
        taken = [row(taker, head, token) for token in split]
        for feature in range(width):
            hidden = [
                gelu(sum(told[j][k] * split[j][feature] for j in range(len(split)) if real[j]))
                for k in range(len(told[0]))
            ]
            for place, token in enumerate(range(len(split) - last, len(split))):
                answer[place, head * width + feature] = sum(
                    taken[token][k] * hidden[k] for k in range(len(hidden))
                )
    return answer


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("heads", [1, 2])
def test_the_layer_is_listing_2_1(tied, heads):
    seeds.everything(3)
    layer = HyperMixing(6, 8, heads, tied)
    with torch.no_grad():
        layer.norm.weight.add_(0.1 * draw(6))
        layer.norm.bias.add_(0.1 * draw(6))
    tokens, real = draw(2, 7, 6), torch.ones(2, 7, dtype=torch.bool)
    real[1, 2:5] = False
    got = layer(tokens, real, 3)
    for one in range(2):
        torch.testing.assert_close(
            got[one],
            layer.norm(naive(layer, tokens[one], real[one].tolist(), 3)),
            atol=1e-5,
            rtol=1e-5,
        )


def test_padding_is_as_if_it_were_not_there():
    layer, tokens = HyperMixerLayer(12, 36), draw(1, 9, 12)
    padded = torch.cat((1e4 * draw(1, 5, 12), tokens), 1)
    real = torch.arange(14)[None] >= 5
    torch.testing.assert_close(
        layer(padded, real, 9), layer(tokens, real[:, 5:]), atol=1e-6, rtol=1e-6
    )


def test_only_the_token_mixing_differs_from_the_encoder_layer():
    ours, theirs = HyperMixerLayer(12, 36), EncoderLayer(12, 2)
    names = {name.replace("mixing", "attention") for name, _ in ours.named_parameters()}
    shared = {name for name, _ in theirs.named_parameters() if not name.startswith("attention.")}
    assert shared <= names
    ours.load_state_dict(
        {
            name.replace("attention_norm", "mixing_norm"): value
            for name, value in theirs.state_dict().items()
            if name in shared
        },
        strict=False,
    )
    with torch.no_grad():  # silent mixers leave the same feed-forward layer
        ours.mixing.norm.weight.zero_()
        theirs.attention.outward.weight.zero_()
    tokens = draw(2, 5, 12)
    torch.testing.assert_close(ours(tokens, torch.ones(2, 5, dtype=torch.bool)), theirs(tokens))


def test_a_target_hears_of_every_context_point_and_of_the_other_targets():
    seeds.everything(0)
    model = build("hypermixer", {}, {"width": 12, "hidden": 36, "layers": 3})
    batch = single(draw(5, 3), draw(5, 2), draw(4, 3))
    batch.context_y.requires_grad_()
    batch.target_x.requires_grad_()
    model(batch).mean[0, 0].sum().backward()
    assert (batch.context_y.grad[0].abs().sum(1) > 0).all() and (
        batch.target_x.grad[0].abs().sum(1) > 0
    ).all()


def test_no_tensor_of_tokens_by_tokens_is_made():
    """2,048 tokens kept for backward weigh exactly twice what 1,024 weigh."""
    layer = HyperMixerLayer(12, 36)

    def kept(count):
        sizes = []
        tokens = draw(1, count, 12).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(
            lambda saved: sizes.append(saved.numel()) or saved, lambda saved: saved
        ):
            layer(tokens, torch.ones(1, count, dtype=torch.bool))
        return sizes

    small, large = kept(1024), kept(2048)
    assert max(large) == 2048 * 36 and sum(large) < 2.001 * sum(small)
