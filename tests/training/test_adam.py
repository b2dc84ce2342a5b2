"""Our Adam is torch's fused one to the bit, goes on from its state, and loads no compiler."""

import subprocess
import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

from stages.training.adam import Adam

RATES = (3e-3, 3e-4)


def networks(count: int) -> list[nn.Sequential]:
    """Equal networks; the last layer's bias has a gradient at every second step only."""
    made = []
    for _ in range(count):
        torch.manual_seed(0)
        made.append(nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 5)))
    return made


def groups(network: nn.Sequential) -> list[dict]:
    return [
        {"params": list(layer.parameters()), "lr": rate}
        for layer, rate in zip((network[0], network[2]), RATES, strict=True)
    ]


def descend(network, optimizer, steps: range) -> None:
    """Some steps, at rates that change."""
    for step in steps:
        for group, rate in zip(optimizer.param_groups, RATES, strict=True):
            group["lr"] = rate / (1 + step)
        optimizer.zero_grad()
        x = torch.randn(16, 7, generator=torch.Generator().manual_seed(step))
        network(x).square().mean().backward()
        if step % 2:
            network[2].bias.grad = None
        optimizer.step()


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))


@pytest.mark.parametrize("steps", [1, 50])
def test_its_steps_are_those_of_torch_to_the_bit(steps):
    ours, theirs = networks(2)
    start = [parameter.clone() for parameter in ours.parameters()]
    mine, reference = Adam(groups(ours)), torch.optim.Adam(groups(theirs), fused=True)
    descend(ours, mine, range(steps))
    descend(theirs, reference, range(steps))
    assert same(ours, theirs)
    assert not all(map(torch.equal, start, ours.parameters()))
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        known = reference.state[other]
        assert all(torch.equal(value, known[name]) for name, value in mine.state(own).items())


def test_it_goes_on_from_its_state_to_the_bit():
    whole, parted = networks(2)
    descend(whole, Adam(groups(whole)), range(12))
    cuts = (0, 5, 12)
    states = [Adam(groups(parted)).state(parameter) for parameter in parted.parameters()]
    for start, end in pairwise(cuts):
        optimizer = Adam(groups(parted))
        for parameter, state in zip(parted.parameters(), states, strict=True):
            optimizer.set_state(parameter, state)
        descend(parted, optimizer, range(start, end))
        states = [optimizer.state(parameter) for parameter in parted.parameters()]
    assert same(whole, parted)


def test_training_loads_no_compiler():
    code = (
        "import sys, torch\n"
        "from stages.training.loop import Adam\n"
        "p = torch.nn.Parameter(torch.ones(3)); a = Adam([{'params': [p], 'lr': 0.1}])\n"
        "p.sum().backward(); a.step()\n"
        "assert p[0] < 1 and 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
