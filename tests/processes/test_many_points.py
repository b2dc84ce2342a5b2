"""A million context points: what is linear in them answers, and holds a few numbers a point;
TETNP, whose time is quadratic, holds no more a point where there are many."""

import pytest
import torch

from stages import seeds
from stages.batches import Batch, single
from stages.fields.models import build
from stages.fields.processes.laws import Peak

MILLION = 10**6
LINEAR = [
    ("neural_process", {"width": 8, "layers": 1}),
    ("tnp", {"mixing": "linear", "width": 8, "heads": 2, "layers": 1}),
    ("tnp", {"mixing": "hyper", "width": 8, "heads": 2, "layers": 1}),
    ("pseudo_tnp", {"scheme": "perceiver", "latents": 4, "width": 8, "heads": 2, "layers": 1}),
    ("convcnp", {"density": 8, "kernel": 5, "width": 8, "layers": 2}),
]


def asked(contexts: int) -> Batch:
    """One task in one dimension."""
    generator = seeds.torch_stream(0, "many", contexts)
    x, y, t = (torch.rand(n, 1, generator=generator) * 4 - 2 for n in (contexts, contexts, 5))
    return single(x, y, t)


def answer(name: str, arguments: dict, contexts: int):
    """The law, and the bytes that it took."""
    seeds.everything(0)
    model = build(name, arguments, None, 1, 1, 1)
    with torch.no_grad(), Peak() as peak:
        law = model(asked(contexts))
    return law, peak.most


@pytest.mark.parametrize(("name", "arguments"), LINEAR)
def test_a_million_context_points_are_answered_where_cost_is_linear(name, arguments):
    law, held = answer(name, arguments, MILLION)
    assert torch.isfinite(law.mean).all() and (law.scale > 0).all()
    assert held < 500 * MILLION, "bytes a point"


def test_tetnp_holds_no_more_a_point_where_there_are_more():
    size = {"width": 8, "heads": 2, "hidden": 4, "layers": 1}
    few, many = (answer("tetnp", size, count)[1] / count for count in (1000, 3000))
    assert many < 1.1 * few
