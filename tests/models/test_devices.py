"""Every model of every family answers, and learns, on a GPU as on the CPU. Skipped by name where
there is none."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
import torch
from test_laws import CASES, MODELS, made, outputs, some
from torch import Tensor

from stages import seeds
from stages.contracts import Model
from stages.dynamics import contract as of_systems
from stages.dynamics.models import build as system_model
from stages.dynamics.models import names as system_models
from stages.sequences.models import build as sequence_model
from stages.tokens import contract as of_tokens
from stages.tokens.models import build as token_model
from stages.tokens.models import names as token_models

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CLOSE = 2e-3  # relative: sums of float32 in another order, through a few layers


def there(batch: Any, device: str) -> Any:
    """A batch with its tensors on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if is_dataclass(batch) and not isinstance(batch, type):
        held = {one.name: getattr(batch, one.name) for one in fields(batch)}
        return replace(batch, **{name: there(one, device) for name, one in held.items()})
    return batch


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Convolutions in float32, not in the 19 bits that CUDA takes of it by itself."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def compare(model: Model, said: Any) -> None:
    """What is said of one batch, and the gradient of every weight, on both devices."""
    found = {}
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad(set_to_none=True)
        values = said(model, device)
        assert all(value.device.type == device for value in values)
        weights = [one for one in model.parameters() if one.requires_grad]
        if weights:
            torch.stack([value.square().mean() for value in values]).sum().backward()
        told = [one.grad for one in weights if one.grad is not None]
        found[device] = [[one.detach().cpu() for one in part] for part in (values, told)]
    for here, gpu in zip(*found.values(), strict=True):
        # a bias that a softmax takes away has no gradient but rounding
        least = 1e-4 * max((float(one.abs().max()) for one in here), default=0.0)
        for one, other in zip(here, gpu, strict=True):
            size = max(float(one.abs().max()), least) or 1.0
            torch.testing.assert_close(other / size, one / size, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_model_of_fields(case):
    batch = some(case, 30, 20)
    compare(made(case), lambda model, device: outputs(model(there(batch, device))))


@pytest.mark.parametrize("name", token_models())
def test_a_token_mixer(name):
    said = {"task": "label", "vocabulary": 17, "outputs": 3, "longest": 13}
    if name == "grid_attention":  # a picture of 4 x 4 behind a statement
        said |= {"task": "next", "outputs": 17, "longest": 28}
    long = said["longest"] - (said["task"] == "next")
    words = torch.randint(0, 17, (4, long), generator=seeds.torch_stream(0, "words"))
    real = torch.ones_like(words, dtype=torch.bool)
    batch = of_tokens.Batch(words, real, torch.zeros(4, dtype=torch.long), real)
    arm, size = next(iter(MODELS[name].arms.values())), next(iter(MODELS[name].sizes.values()))
    seeds.everything(0)
    model = token_model(name, {**arm, **size}, said)
    compare(model, lambda model, device: [model(there(batch, device)).values])


@pytest.mark.parametrize("name", system_models())
def test_a_network_of_systems(name):
    drawn = torch.randn(3, 12, 5, generator=seeds.torch_stream(0, "values"))
    batch = of_systems.Batch(drawn, drawn[:, 6:], 6)
    seeds.everything(0)
    span = 4 if name == "recurrent_transformer" else 6
    model = system_model(name, {"width": 8, "layers": 2, "heads": 2, "span": span}, 5, 0.3)
    compare(model, lambda model, device: [model(there(batch, device)).mean])


@pytest.mark.parametrize("positions", ["sinusoidal", "grid"])
def test_sigma_gpt(positions):
    size = {"width": 32, "keys": 16, "hidden": 64, "heads": 2, "blocks": 2}
    seeds.everything(0)
    arm = {"dropout": 0.0, "positions": positions}
    model = sequence_model("sigma_gpt", arm, size, vocabulary=5, length=12)
    told = torch.randint(0, 5, (4, 12), generator=seeds.torch_stream(0, "tokens"))
    order = torch.stack([torch.randperm(12) for _ in range(4)])
    compare(model, lambda model, device: [model(told.to(device), order.to(device))])
