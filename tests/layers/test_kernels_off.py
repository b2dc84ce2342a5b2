"""One switch turns our compiled kernels off: torch's own then answers the same within rounding, and
what is trained with it lies within the spread of seeds."""

import os
import statistics
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional

from stages import arithmetic, batches, seeds
from stages.arithmetic import probe
from stages.fields import models as field_models
from stages.layers.attention import Attention, EncoderLayer
from stages.layers.kernels import attention, strip, tiles
from stages.neighbours.compiled import Compiled
from stages.sequences import models as sequence_models
from stages.sequences import permutations

SEEDS = range(4)
WINDOWS = """
import stages, sys, torch
from stages import seeds
from stages.sequences import permutations
from stages.sequences.models import build
from stages.sequences.sampling.window import windowed
seeds.everything(2)
sizes = {"width": 24, "hidden": 20, "heads": 3, "blocks": 2, "keys": 6}
model, draws = build("sigma_gpt", {"dropout": 0.0}, sizes, 5, 23).eval(), torch.Generator()
order = permutations.random(3, 23, draws.manual_seed(0))
sample = windowed(model, order, torch.zeros_like(order), draws, torch.tensor([0, 4, 22]), 4)
print([part.tolist() for part in (sample.tokens, sample.passes, sample.positions, sample.when)])
"""


@pytest.fixture
def off(monkeypatch):
    """Turns them off from where it is called."""
    return lambda: monkeypatch.setenv(arithmetic.KERNELS, arithmetic.OFF)


def with_gradients(module, *inputs):
    module.zero_grad()
    read = module(*inputs)
    slope = torch.randn(read.shape, generator=torch.Generator().manual_seed(1))
    (read * slope).sum().backward()
    return [read.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(
            one, other, rtol=0, atol=2e-5 * float(other.detach().abs().max()) + 1e-30
        )


@pytest.mark.parametrize("last", [300, 40], ids=["self", "cross"])
@pytest.mark.parametrize(("width", "heads"), [(24, 4), (48, 3), (32, 2)])
def test_attention_and_its_gradients_are_the_same_to_rounding(width, heads, last, off):
    seeds.everything(0)
    layer, tokens = EncoderLayer(width, heads), torch.randn(2, 300, width)
    mask = torch.ones(2, 1, 1, 300, dtype=torch.bool)
    mask[1, ..., 200:] = False
    assert attention.takes(tokens, width // heads)
    expected = with_gradients(layer, tokens, mask, last)
    off()
    assert not attention.takes(tokens, width // heads)
    alike(with_gradients(layer, tokens, mask, last), expected)


def test_a_memory_without_a_real_token_reads_the_same(off):
    seeds.everything(0)
    layer, queries, memory = Attention(12, 3), torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    real = torch.tensor([[True] * 7, [False] * 7])
    expected = layer.read(queries, memory, real)
    off()
    alike([layer.read(queries, memory, real)], [expected])


@pytest.mark.parametrize("causal", [True, False])
def test_tiles_and_their_gradients_are_the_same_to_rounding(causal, off):
    seeds.everything(0)
    packed = torch.randn(3, 90, 4 * (2 * 16 + 32), requires_grad=True)

    def both():
        read = tiles.attend(packed, 4, 16, causal)
        return [read.detach(), *torch.autograd.grad(read.square().sum(), packed)]

    assert tiles.takes(packed, 16, 32)
    expected = both()
    off()
    assert not tiles.takes(packed, 16, 32)
    alike(both(), expected)


def test_the_search_finds_the_same_neighbours(off):
    points = torch.randn(2000, 4, generator=seeds.torch_stream(0, "off"))
    expected = Compiled(points).query(points[:90], 8)
    off()
    found = Compiled(points).query(points[:90], 8)
    assert torch.equal(found.index, expected.index) and torch.equal(found.mask, expected.mask)
    assert torch.equal(found.square_distance, expected.square_distance)


def test_windows_draw_the_very_tokens_in_as_many_passes():
    found = [
        subprocess.run(
            [sys.executable, "-c", WINDOWS],
            env=os.environ | {arithmetic.KERNELS: word},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for word in (arithmetic.ON, arithmetic.OFF)
    ]
    assert found[0] == found[1] and found[0].startswith("[[[")


def trained(model, loss, steps=25):
    """The mean loss of the last ten steps."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    for step in range(steps):
        optimizer.zero_grad()
        losses.append(loss(model, step))
        losses[-1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 4.0)
        optimizer.step()
    return statistics.fmean(float(one.detach()) for one in losses[-10:])


def msa(seed):
    """MSA on sets of a plane wave, short."""
    draws = seeds.torch_stream(seed, "off", "msa")
    seeds.everything(seed)
    model = field_models.build(
        "msa", {"encoder": "traditional"}, {"width": 16, "heads": 4, "layers": 2}, 2, 1, 1
    )

    def loss(model, step):
        x, shift = torch.rand(8, 40, 2, generator=draws), torch.rand(8, 1, 1, generator=draws)
        y = torch.sin(6 * (x.sum(2, keepdim=True) + shift))
        real = torch.ones(8, 24, dtype=torch.bool)
        batch = batches.Batch(x[:, :24], y[:, :24], real, x[:, 24:], real[:, :16], y[:, 24:])
        return (model(batch).mean - batch.target_y).square().mean()

    return trained(model, loss)


def sigma_gpt(seed):
    """Sigma-GPT on a sticky chain of two letters, short."""
    draws = seeds.torch_stream(seed, "off", "sigma")
    seeds.everything(seed)
    sizes = {"width": 32, "hidden": 32, "heads": 2, "blocks": 2, "keys": 16}
    model = sequence_models.build("sigma_gpt", {"dropout": 0.0}, sizes, 2, 20)

    def loss(model, step):
        tokens = (torch.rand(16, 20, generator=draws) < 0.15).long().cumsum(1) % 2
        order = permutations.random(16, 20, draws)
        logits = model(tokens, order)
        return functional.cross_entropy(logits.transpose(1, 2), tokens.gather(1, order))

    return trained(model, loss)


@pytest.mark.parametrize("train", [msa, sigma_gpt], ids=["msa", "sigma_gpt"])
def test_a_short_training_lies_within_the_spread_of_seeds(train, off):
    by_seed = [train(seed) for seed in SEEDS]
    off()
    assert 0 < abs(train(0) - by_seed[0]) < 0.25 * statistics.stdev(by_seed)


@pytest.mark.parametrize("kernel", [attention.takes, strip.takes, tiles.takes])
def test_every_kernel_asks_the_one_place(kernel, monkeypatch):
    tokens, widths = torch.zeros(1, 4, 48), {attention.takes: (16,), tiles.takes: (16, 16)}
    assert kernel(tokens, *widths.get(kernel, ()))
    monkeypatch.setattr(arithmetic, "compiled", lambda: False)
    assert not kernel(tokens, *widths.get(kernel, ()))


def test_records_name_it_only_where_it_is_off(off):
    assert "numba:off" not in probe.line().split()
    off()
    assert "numba:off" in probe.line().split()


@pytest.mark.parametrize("word", ["of", "0", "OFF"])
def test_an_unknown_word_is_told_before_any_work(word):
    with pytest.raises(ValueError, match=f"TRADEWIND_KERNELS='{word}'.*expected 'on' or 'off'"):
        arithmetic.settle({arithmetic.KERNELS: word})
