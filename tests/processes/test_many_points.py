"""A million context points: what is linear in them answers, and holds a few numbers a point;
TETNP, whose time is quadratic, holds no more a point where there are many, and is not asked so
many."""

import pytest
import torch

from stages import seeds
from stages.batches import Batch, single
from stages.errors import InputError
from stages.fields.models import build
from stages.fields.processes import evaluate
from stages.fields.processes.laws import Peak
from stages.fields.processes.limits import PAIRED, refuse_many
from stages.fields.processes.settings import processes_of
from stages.params import load

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


@pytest.mark.parametrize(("model", "arm"), [("tetnp", "post"), ("tnp", "attention")])
def test_what_pairs_all_points_refuses_a_million_and_says_who_answers(model, arm):
    refuse_many(model, arm, PAIRED, "here")
    with pytest.raises(InputError, match=r"20,000[\s\S]*1,000,000[\s\S]*pseudo_tnp"):
        refuse_many(model, arm, MILLION, "here")


def test_what_is_linear_is_asked_a_million():
    refused = []
    for model, arguments in LINEAR:
        try:
            refuse_many(model, arguments.get("mixing", "plain"), MILLION, "here")
        except InputError:
            refused.append((model, arguments))
    assert LINEAR and refused == []


def test_an_evaluation_that_asks_a_million_ends_before_any_work(monkeypatch, capsys):
    told = processes_of(load(), "mini")
    many = told.model_copy(
        update={"asked": told.asked.model_copy(update={"contexts": (10, MILLION)})}
    )
    monkeypatch.setattr(evaluate, "processes_of", lambda *_: many)
    assert evaluate.main(["processes", "mini", "eq_1d"]) == 2
    said = capsys.readouterr().err
    assert "pairs all context points" in said and "asked.contexts" in said and "1,000,000" in said
