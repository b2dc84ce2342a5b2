"""MSA: the counts of parameters that are asked of it, and the whole model against one made of
torch's own encoder."""

import pytest
import torch
from torch import nn

from stages.batches import single
from stages.errors import InputError
from stages.fields.models import build
from stages.layers.heads import FLOOR

SIZES = {(12, 2, 3): 4934, (24, 2, 3): 18506, (32, 8, 9): 83618}


def msa(encoder="shared", head="mean", size=(12, 2, 3)):
    torch.manual_seed(0)
    return build(
        "msa",
        {"encoder": encoder, "head": head},
        dict(zip(("width", "heads", "layers"), size, strict=True)),
    )


@pytest.mark.parametrize("encoder", ["shared", "traditional"])
@pytest.mark.parametrize("size,count", SIZES.items(), ids=["5k", "20k", "100k"])
def test_parameters_on_wind(size, count, encoder):
    assert sum(parameter.numel() for parameter in msa(encoder, size=size).parameters()) == count


@pytest.mark.parametrize("size", SIZES, ids=["5k", "20k", "100k"])
def test_the_model_is_equations_3_3_to_3_6_on_torchs_own_encoder(size):
    width, heads, layers = size
    model = msa(size=size)
    layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    for ours, theirs in zip(model.layers, encoder.layers, strict=True):
        theirs.self_attn.load_state_dict(
            {
                "in_proj_weight": ours.attention.inward.weight,
                "in_proj_bias": ours.attention.inward.bias,
                "out_proj.weight": ours.attention.outward.weight,
                "out_proj.bias": ours.attention.outward.bias,
            }
        )
        for mine, yours in (
            (theirs.norm1, ours.attention_norm),
            (theirs.linear1, ours.widen),
            (theirs.linear2, ours.narrow),
            (theirs.norm2, ours.feed_norm),
        ):
            mine.load_state_dict(yours.state_dict())
    x, y, t = torch.randn(19, 3), torch.randn(19, 2), torch.randn(11, 3)
    phi, nu, kind = model.encoder.position, model.encoder.value, model.encoder.kind
    context = phi(x) + nu(y) + kind(torch.tensor([1.0, 0.0]))
    target = phi(t) + kind(torch.tensor([0.0, 1.0]))
    expected = model.readout(encoder(torch.cat((context, target))[None])[0, 19:])
    torch.testing.assert_close(model(single(x, y, t)).mean[0], expected, atol=1e-5, rtol=1e-5)


def test_traditional_encoders_are_equations_3_1_and_3_2():
    model = msa("traditional")
    x, y, t = torch.randn(1, 4, 3), torch.randn(1, 4, 2), torch.randn(1, 3, 3)
    tokens = model.encoder(x, y, t)
    torch.testing.assert_close(tokens[:, :4], model.encoder.context(torch.cat((x, y), -1)))
    torch.testing.assert_close(tokens[:, 4:], model.encoder.target(t))


def test_the_gaussian_head_gives_a_spread_that_cannot_vanish():
    model = msa(head="gaussian")
    with torch.no_grad():
        model.readout[-1].bias[2:] = -1e4
    prediction = model(single(torch.randn(5, 3), torch.randn(5, 2), torch.randn(4, 3)))
    assert prediction.mean.shape == prediction.scale.shape == (1, 4, 2)
    torch.testing.assert_close(prediction.scale, torch.full((1, 4, 2), FLOOR))


@pytest.mark.parametrize(
    "arguments,word",
    [
        ({"encoder": "sharde"}, "encoder"),
        ({"head": "median"}, "head"),
        ({"width": 12, "heads": 5}, "multiple"),
        ({"width": 10**9}, "width"),
        ({"layers": 0}, "layers"),
        ({"layer": 3}, "layer"),
        ({"width": True}, "width"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, word):
    with pytest.raises(InputError, match=word):
        build("msa", arguments)
