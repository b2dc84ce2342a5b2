"""PER against its passes written out with einsum; what a bottleneck of P latents does and does
not carry."""

import pytest
import torch

from stages import seeds
from stages.batches import collate, single
from stages.fields.models import build
from stages.layers.tied import TiedBlock
from stages.training import store


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=seeds.torch_stream(seed, "perceiver", *shape))


def perceiver(encoder="traditional", latents=5, layers=4, dimensions=(2, 1, 1)):
    seeds.everything(0)
    model = build(
        "perceiver",
        {"encoder": encoder, "latents": latents},
        {"width": 32, "heads": 2, "layers": layers},
        *dimensions,
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("ward.bias"):
                parameter.add_(0.1 * draw(*parameter.shape))
    return model


def attention(layer, queries, memory):
    """softmax(Q K^T / sqrt(head)) V by einsum; queries (Q, K), memory (N, K)."""
    weight = layer.inward.weight.unflatten(0, (3, layer.heads, -1))
    bias = layer.inward.bias.unflatten(0, (3, layer.heads, -1))
    query = torch.einsum("qk,hdk->hqd", queries, weight[0]) + bias[0][:, None]
    key, value = (
        torch.einsum("nk,hdk->hnd", memory, weight[part]) + bias[part][:, None] for part in (1, 2)
    )
    share = (torch.einsum("hqd,hnd->hqn", query, key) / weight.shape[2] ** 0.5).softmax(2)
    return layer.outward(torch.einsum("hqn,hnd->qhd", share, value).flatten(1))


def passed(block, queries, memory):
    return block.feed_norm(
        block.narrow(block.attention_norm(queries + attention(block.attention, queries, memory)))
    )


@pytest.mark.parametrize("encoder", ["shared", "traditional"])
@pytest.mark.parametrize(
    "dimensions,filled", [((2, 1, 1), 0), ((3, 2, 2), 1)], ids=["even", "filled up"]
)
def test_the_model_is_its_passes_written_out(encoder, dimensions, filled):
    x_dim, i_dim, _ = dimensions
    model = perceiver(encoder, dimensions=dimensions)
    x, y, t = draw(19, x_dim), draw(19, i_dim), draw(11, x_dim)
    features, asked = model.value(torch.cat((x, y), 1) if encoder == "traditional" else y), t
    if encoder == "shared":
        features, asked = features + model.position(x), model.position(t)
    place = model.latents[:, 32 : 32 + x_dim]

    def zeros(count):
        return torch.zeros(count, filled)

    values = passed(model.block, model.latents, torch.cat((features, x, zeros(19)), 1))
    for _ in range(3):
        tokens = torch.cat((values, place, zeros(5)), 1)
        values = passed(model.block, tokens, tokens)
    share = (-torch.cdist(t, place).square()).softmax(1)
    expected = model.readout(torch.cat((torch.einsum("tp,ph->th", share, values), asked), 1))
    torch.testing.assert_close(model(single(x, y, t)).mean[0], expected, atol=1e-5, rtol=1e-5)


def test_the_context_passes_through_p_latents_alone():
    """The Jacobian of 12 answers by 12 context values has rank P x width at most; with one
    latent of width 4 that is 4."""
    seeds.everything(0)
    model = build(
        "perceiver", {"latents": 1}, {"width": 4, "heads": 2, "layers": 2}, 2, 1, 1
    ).double()
    x, y, t = draw(12, 2).double(), draw(12, 1).double(), draw(12, 2).double()
    jacobian = torch.autograd.functional.jacobian(
        lambda values: model(single(x, values, t)).mean[0, :, 0], y
    )[:, :, 0]
    assert 1 <= torch.linalg.matrix_rank(jacobian, rtol=1e-10) <= 4
    wide = build("msa", {}, {"width": 4, "heads": 2, "layers": 2}, 2, 1, 1).double()
    jacobian = torch.autograd.functional.jacobian(
        lambda values: wide(single(x, values, t)).mean[0, :, 0], y
    )[:, :, 0]
    assert torch.linalg.matrix_rank(jacobian, rtol=1e-10) > 4


def test_a_tied_block_has_no_residual_around_its_linear_map():
    block, tokens = TiedBlock(6, 4, 2), draw(1, 5, 6)
    torch.testing.assert_close(
        block(tokens)[0], passed(block, tokens[0], tokens[0]), atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(block(tokens, last=2), block(tokens)[:, 3:], atol=1e-6, rtol=1e-6)
    with torch.no_grad():
        block.narrow.weight.zero_()
        block.narrow.bias.zero_()
    assert torch.equal(block(tokens), block.feed_norm.bias.expand(1, 5, 4))


def test_msa_with_a_tied_block_passes_it_again_and_again():
    seeds.everything(0)
    model = build(
        "msa",
        {"encoder": "traditional", "block": "tied"},
        {"width": 32, "heads": 2, "layers": 4},
        2,
        1,
        1,
    )
    x, y, t = draw(9, 2), draw(9, 1), draw(6, 2)
    tokens = model.encoder(x[None], y[None], t[None])[0]
    for _ in range(4):
        tokens = passed(model.layers[0], tokens, tokens)
    assert len(model.layers) == 1
    torch.testing.assert_close(
        model(single(x, y, t)).mean[0], model.readout(tokens[9:]), atol=1e-5, rtol=1e-5
    )


def test_msa_with_a_tied_block_is_saved_once_and_safe_from_padding(tmp_path):
    arguments = {"encoder": "traditional", "block": "tied", "width": 32, "heads": 2, "layers": 4}
    model = build("msa", arguments, {}, 2, 1, 1)
    metadata = {
        "model": "msa",
        "arm": "tied",
        "size": "5k",
        "seed": 0,
        "arguments": arguments,
        "x_dim": 2,
        "i_dim": 1,
        "o_dim": 1,
    }
    (tmp_path / "weights.safetensors").write_bytes(store.dump(model, metadata))
    loaded, _ = store.load(str(tmp_path / "weights.safetensors"))
    sets = [single(draw(c, 2), draw(c, 1), draw(t, 2)) for c, t in ((0, 1), (3, 5), (20, 9))]
    together = loaded(collate(sets)).mean
    for row, alone in enumerate(sets):
        torch.testing.assert_close(
            together[row, : alone.target_x.shape[1]], model(alone).mean[0], atol=1e-5, rtol=1e-5
        )
