"""TFS against torch's own encoder and decoder holding its weights; its distance conditioning
against equation C.4 in float64."""

import numpy as np
import pytest
import torch
from torch import nn

from stages import seeds
from stages.batches import Batch, collate, single
from stages.fields.models import build
from stages.layers.attention import Attention
from stages.layers.cross import Distance

SIZES = [(12, 2, 2, 1), (24, 2, 2, 1), (32, 8, 6, 3)]
KEYS = ("width", "heads", "encoder_layers", "decoder_layers")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeds.torch_stream(seed, "tfs", *shape))


def tfs(size=SIZES[0], encoder="shared", conditioning="attention"):
    seeds.everything(0)
    model = build(
        "tfs",
        {"encoder": encoder, "conditioning": conditioning},
        dict(zip(KEYS, size, strict=True)),
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith(
                "ward.bias"
            ):  # away from 1 and 0, or they would prove nothing
                parameter.add_(0.1 * draw(*parameter.shape))
    return model


def copied(theirs, ours):
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.inward.weight,
            "in_proj_bias": ours.inward.bias,
            "out_proj.weight": ours.outward.weight,
            "out_proj.bias": ours.outward.bias,
        }
    )


def feed(theirs, ours, norms):
    for mine, yours in ((theirs.linear1, ours.widen), (theirs.linear2, ours.narrow), *norms):
        mine.load_state_dict(yours.state_dict())


def framework(model, size):
    """nn.TransformerEncoder and nn.TransformerDecoder with the model's weights."""
    width, heads, deep, shallow = size
    settings = {"dim_feedforward": 2 * width, "dropout": 0.0, "batch_first": True}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(width, heads, **settings), deep, enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, **settings), shallow)
    for theirs, ours in zip(encoder.layers, model.layers, strict=True):
        copied(theirs.self_attn, ours.attention)
        feed(theirs, ours, ((theirs.norm1, ours.attention_norm), (theirs.norm2, ours.feed_norm)))
    for theirs, ours in zip(decoder.layers, model.decoder, strict=True):
        copied(theirs.self_attn, ours.attention)
        copied(theirs.multihead_attn, ours.cross)
        feed(
            theirs,
            ours,
            (
                (theirs.norm1, ours.attention_norm),
                (theirs.norm2, ours.cross_norm),
                (theirs.norm3, ours.feed_norm),
            ),
        )
    return encoder, decoder


@pytest.mark.parametrize("size", SIZES, ids=["5k", "20k", "100k"])
def test_the_model_is_torchs_own_encoder_and_decoder(size):
    model = tfs(size, "traditional")
    encoder, decoder = framework(model, size)
    sets = [single(draw(c, 3), draw(c, 2), draw(t, 3)) for c, t in ((19, 11), (5, 17))]
    batch = collate(sets)
    latents = encoder(
        model.encoder.context(torch.cat((batch.context_x, batch.context_y), 2)),
        src_key_padding_mask=~batch.context_mask,
    )
    read = decoder(
        model.encoder.target(batch.target_x),
        latents,
        tgt_key_padding_mask=~batch.target_mask,
        memory_key_padding_mask=~batch.context_mask,
    )
    expected, got = model.readout(read), model(batch).mean
    torch.testing.assert_close(
        got[batch.target_mask], expected[batch.target_mask], atol=1e-5, rtol=1e-5
    )


def test_gradients_are_those_of_torchs_own_layers():
    model = tfs()
    encoder, decoder = framework(model, SIZES[0])
    batch, weight = single(draw(9, 3), draw(9, 2), draw(6, 3)), draw(6, 2)
    tokens = model.encoder(batch.context_x, batch.context_y, batch.target_x)
    (model.readout(decoder(tokens[:, 9:], encoder(tokens[:, :9])))[0] * weight).sum().backward()
    wanted = decoder.layers[0].multihead_attn.in_proj_weight.grad
    model.zero_grad()
    (model(batch).mean[0] * weight).sum().backward()
    torch.testing.assert_close(
        model.decoder[0].cross.inward.weight.grad, wanted, atol=2e-5, rtol=1e-4
    )


@pytest.mark.parametrize("width,heads", [(12, 2), (32, 8), (16, 1), (40, 2)])
@pytest.mark.parametrize("queries,tokens", [(7, 21), (21, 7), (1, 16), (5, 1)])
def test_reading_a_memory_is_torchs_multihead_attention(width, heads, queries, tokens):
    seeds.everything(1)
    ours, theirs = Attention(width, heads), nn.MultiheadAttention(width, heads, batch_first=True)
    with torch.no_grad():
        ours.inward.bias.copy_(draw(3 * width))
    copied(theirs, ours)
    asked = draw(3, queries, width)
    memory = draw(3, tokens, width)
    real = torch.ones(3, tokens, dtype=torch.bool)
    real[1, 1:] = False
    expected = theirs(asked, memory, memory, key_padding_mask=~real, need_weights=False)[0]
    torch.testing.assert_close(ours.read(asked, memory, real), expected, atol=1e-5, rtol=1e-5)


def test_from_a_memory_without_a_real_token_only_the_bias_comes_and_gradients_stay_finite():
    layer, asked, memory = Attention(12, 2), draw(2, 3, 12), (50 * draw(2, 4, 12)).requires_grad_()
    with torch.no_grad():
        layer.outward.bias.copy_(draw(12))
    real = torch.tensor([[True, True, False, False], [False] * 4])
    read = layer.read(asked, memory, real)
    torch.testing.assert_close(read[1], layer.outward.bias.expand(3, 12))
    torch.testing.assert_close(
        layer.read(asked, memory[:, :0], real[:, :0]), layer.outward.bias.expand(2, 3, 12)
    )
    read.sum().backward()
    assert (
        torch.isfinite(memory.grad).all() and not memory.grad[1].any() and memory.grad[0, :2].any()
    )


def test_conditioning_by_distance_is_equation_c_4():
    layer = Distance()
    with torch.no_grad():
        layer.log_beta.fill_(0.7)
    target = draw(2, 5, 2)
    context = draw(2, 9, 2)
    memory = draw(2, 9, 4)
    real = torch.ones(2, 9, dtype=torch.bool)
    real[1, 4:] = False
    got = layer(target, context, memory, real).detach().numpy()
    for row, count in ((0, 9), (1, 4)):
        for point in range(5):
            square = (
                ((target[row, point].double() - context[row, :count].double()) ** 2).sum(1).numpy()
            )
            weight = np.exp(-np.exp(0.7) * square)
            np.testing.assert_allclose(
                got[row, point],
                weight @ memory[row, :count].double().numpy() / weight.sum(),
                atol=1e-5,
            )


def test_conditioned_by_distance_an_mlp_answers_from_the_mean_latent_and_the_target():
    model = tfs((12, 2, 2, 3), conditioning="distance")
    assert [layer.in_features for layer in model.readout if isinstance(layer, nn.Linear)] == [
        24,
        12,
        12,
        12,
        12,
    ]
    batch = single(draw(9, 3), draw(9, 2), draw(6, 3))
    tokens = model.encoder(batch.context_x, batch.context_y, batch.target_x)
    latents = tokens[:, :9]
    for layer in model.layers:
        latents = layer(latents)
    weight = (-torch.cdist(batch.target_x, batch.context_x).square()).softmax(2)
    expected = model.readout(torch.cat((weight @ latents, tokens[:, 9:]), 2))
    torch.testing.assert_close(model(batch).mean, expected, atol=1e-5, rtol=1e-5)


def test_by_distance_targets_do_not_see_each_other_and_in_the_decoder_they_do():
    batch = single(draw(9, 3), draw(9, 2), draw(6, 3))
    fewer = Batch(
        batch.context_x,
        batch.context_y,
        batch.context_mask,
        batch.target_x[:, :2],
        batch.target_mask[:, :2],
    )
    apart = {
        conditioning: (model(batch).mean[:, :2] - model(fewer).mean).abs().max().item()
        for conditioning in ("attention", "distance")
        for model in [tfs(conditioning=conditioning)]
    }
    assert apart["distance"] < 1e-6 < 1e-4 < apart["attention"]
