"""CNP against equations 3.14-3.16 written out, and what one vector can and cannot tell of a
context."""

import pytest
import torch
from torch import nn

from stages import seeds
from stages.batches import single
from stages.fields.models import build


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeds.torch_stream(seed, "cnp", *shape))


def cnp(encoder="shared", conditioning="distance"):
    seeds.everything(0)
    return build("cnp", {"encoder": encoder, "conditioning": conditioning}, {"width": 32})


def encodings(model, x, y, t):
    encoder = model.encoder
    if hasattr(encoder, "position"):
        return encoder.position(x) + encoder.value(y), encoder.position(t)
    return encoder.context(torch.cat((x, y), 1)), encoder.target(t)


@pytest.mark.parametrize("encoder", ["shared", "traditional"])
def test_the_answer_is_an_mlp_of_the_mean_encoding_and_the_targets(encoder):
    model, x, y, t = cnp(encoder), draw(19, 3), draw(19, 2), draw(11, 3)
    context, target = encodings(model, x, y, t)
    latent = torch.stack([context[:, unit].sum() / 19 for unit in range(32)])
    expected = torch.stack([model.readout(torch.cat((latent, one))) for one in target])
    torch.testing.assert_close(model(single(x, y, t)).mean[0], expected, atol=1e-5, rtol=1e-5)


def test_conditioning_by_attention_is_torchs_attention_to_one_token():
    model, x, y, t = cnp("traditional", "attention"), draw(19, 3), draw(19, 2), draw(11, 3)
    theirs = nn.MultiheadAttention(32, 2, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": model.cross.inward.weight,
            "in_proj_bias": model.cross.inward.bias,
            "out_proj.weight": model.cross.outward.weight,
            "out_proj.bias": model.cross.outward.bias,
        }
    )
    context, target = encodings(model, x, y, t)
    latent = context.mean(0, keepdim=True)
    expected = model.readout(target + theirs(target[None], latent[None], latent[None])[0][0])
    torch.testing.assert_close(model(single(x, y, t)).mean[0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("conditioning", ["distance", "attention"])
def test_a_context_given_twice_says_what_it_said_once_and_a_target_sees_no_other(conditioning):
    model, x, y, t = cnp("shared", conditioning), draw(7, 3), draw(7, 2), draw(5, 3)
    once = model(single(x, y, t)).mean
    torch.testing.assert_close(
        model(single(x.repeat(2, 1), y.repeat(2, 1), t)).mean, once, atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(model(single(x, y, t[:2])).mean, once[:, :2], atol=1e-6, rtol=1e-6)


def test_an_empty_context_answers_from_the_latent_zero():
    model, t = cnp(), draw(4, 3)
    expected = model.readout(torch.cat((torch.zeros(4, 32), model.encoder.position(t)), 1))
    torch.testing.assert_close(model(single(draw(0, 3), draw(0, 2), t)).mean[0], expected)
