"""Multilayer perceptron: linear maps with ReLU between them, none after the last (thesis section
3.3.2)."""

import itertools

from torch import nn


def mlp(*sizes: int) -> nn.Sequential:
    """mlp(3, 8, 8, 2) maps 3 features to 2 through two hidden layers of 8."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
