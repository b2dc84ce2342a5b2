"""The model of a trained cell of sequences, read from its file."""

import json
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from stages.errors import DataError, InputError
from stages.sequences.models import build
from stages.training import store

KEYS = (
    "model",
    "arm",
    "size",
    "seed",
    "arguments",
    "order",
    "vocabulary",
    "length",
)  # of a checkpoint's metadata


def load(run: Path) -> tuple[nn.Module, dict]:
    """A cell's model in evaluation mode on the CPU, and its metadata. DataError for anything
    that training did not write."""
    path = run / "weights.safetensors"

    def refuse(found: str) -> DataError:
        return DataError(
            "not a model that we wrote",
            where=str(path),
            expected="safetensors with our metadata",
            found=found,
            remedy="train it again: `dvc repro`; never load a checkpoint from elsewhere",
        )

    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            meta = json.loads((file.metadata() or {}).get(store.ENTRY) or "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        missing = [key for key in KEYS if key not in meta]
        if missing:
            raise refuse(f"no {', '.join(missing)} in the metadata")
        made = partial(
            build, meta["model"], meta["arguments"], None, meta["vocabulary"], meta["length"]
        )
        # only shapes: nothing is allocated before the file's tensors are known to fit
        with torch.device("meta"):
            expected = {
                name: (value.shape, value.dtype) for name, value in made().state_dict().items()
            }
        if expected != {name: (value.shape, value.dtype) for name, value in tensors.items()}:
            raise refuse("other tensors than the model's")
        if not all(torch.isfinite(value).all() for value in tensors.values()):
            raise refuse("numbers that are not finite")
        model = made()  # for good: tables of positions are computed, not stored
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError, InputError) as error:
        raise refuse(f"{type(error).__name__}: {error}") from None
    model.load_state_dict(tensors)
    return model.eval(), meta
