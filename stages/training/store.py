"""A trained model as one safetensors file: tensors and one metadata entry, strict JSON, that says
how to build it again.

Nothing here can execute what it reads: safetensors holds numbers only, and there is no other loader
to fall back to. Equal models give equal bytes (one metadata entry, because the library does not
keep several in order).
"""

import json
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from stages.errors import DataError, InputError
from stages.fields.models import build

ENTRY = "tradewind"
KEYS = ("model", "arm", "size", "seed", "arguments", "x_dim", "i_dim", "o_dim")


def dump(model: nn.Module, metadata: dict[str, Any]) -> bytes:
    """The file's bytes. `metadata` holds at least KEYS; "arguments" = the arm's and the size's,
    merged."""
    text = json.dumps(metadata, sort_keys=True, allow_nan=False)
    return save(
        {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()},
        {ENTRY: text},
    )


def load(path: str) -> tuple[nn.Module, dict[str, Any]]:
    """The model in evaluation mode on the CPU, and its metadata. DataError for anything that
    `dump` did not write."""
    refuse = lambda found: DataError(
        "not a model that we wrote",
        where=str(path),
        expected="safetensors with our metadata",  # noqa: E731
        found=found,
        remedy="train it again: `dvc repro`; never load a checkpoint from elsewhere",
    )
    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            text = (file.metadata() or {}).get(ENTRY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise refuse(f"{type(error).__name__}: {error}") from None
    try:
        metadata = json.loads(text or "null")
        missing = [key for key in KEYS if key not in metadata]
        if missing:
            raise refuse(f"no {', '.join(missing)} in the metadata")
        with torch.device(
            "meta"
        ):  # only shapes: nothing is allocated before the file's tensors are known to fit
            model = build(
                metadata["model"],
                metadata["arguments"],
                None,
                *(metadata[key] for key in KEYS[-3:]),
            )
    except (TypeError, ValueError, AttributeError, InputError) as error:
        raise refuse(f"unusable metadata ({error})") from None
    _fit(model, tensors, refuse)
    model.load_state_dict(tensors, assign=True)
    return model.eval(), metadata


def _fit(model: nn.Module, tensors: dict[str, torch.Tensor], refuse) -> None:
    """Names, shapes and types as the model has them, every number finite."""
    expected = model.state_dict()
    if set(expected) != set(tensors):
        raise refuse(
            f"other tensors than the model's: {', '.join(sorted(set(expected) ^ set(tensors))[:5])}"
        )
    for name, value in tensors.items():
        if value.shape != expected[name].shape or value.dtype != expected[name].dtype:
            raise refuse(
                f"{name} is {tuple(value.shape)} {value.dtype}, the model's is "
                f"{tuple(expected[name].shape)} {expected[name].dtype}"
            )
        if not torch.isfinite(value).all():
            raise refuse(f"{name} holds numbers that are not finite")
