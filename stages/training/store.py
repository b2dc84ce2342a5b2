"""A trained model as one safetensors file: tensors and one metadata entry, strict JSON, that says
how to build it again.

Nothing here can execute what it reads: safetensors holds numbers only, and there is no other loader
to fall back to. A file names the module of its model, which is one of a family's models or refused
(`MODULE`); the family's package builds it (`rebuilt`). Equal models give equal bytes (one metadata
entry, because the library does not keep several in order).
"""

import importlib
import json
import re
from collections.abc import Callable
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from stages.errors import DataError, InputError

ENTRY = "tradewind"
KEYS = ("module", "model", "arm", "size", "seed", "arguments")
MODULE = re.compile(r"(stages\.[a-z_]+\.models)\.([a-z0-9_]+)", re.ASCII)


def dump(model: nn.Module, metadata: dict[str, Any]) -> bytes:
    """The file's bytes. `metadata` holds at least KEYS, of which the module is the model's own;
    "arguments" = the arm's and the size's, merged."""
    told = {**metadata, "module": type(model).__module__}
    text = json.dumps(told, sort_keys=True, allow_nan=False)
    return save(
        {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()},
        {ENTRY: text},
    )


def load(path: str) -> tuple[nn.Module, dict[str, Any]]:
    """The model in evaluation mode on the CPU, and its metadata. DataError for anything that
    `dump` did not write."""

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
            text = (file.metadata() or {}).get(ENTRY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        raise refuse(f"{type(error).__name__}: {error}") from None
    try:
        metadata = json.loads(text or "null")
        missing = [key for key in KEYS if key not in metadata]
        if missing:
            raise refuse(f"no {', '.join(missing)} in the metadata")
        rebuilt = _package(metadata).rebuilt
        with torch.device("meta"):  # shapes only, until the file's tensors are known to fit
            model = rebuilt(metadata)
    except (TypeError, ValueError, AttributeError, KeyError, InputError) as error:
        raise refuse(f"unusable metadata ({error})") from None
    _fit(model, tensors, refuse)
    model.load_state_dict(tensors, assign=True)
    if any(table.is_meta for table in model.buffers()):  # tables that are computed, not stored
        model = rebuilt(metadata)
        model.load_state_dict(tensors)
    return model.eval(), metadata


def _package(metadata: dict[str, Any]) -> Any:
    """The package that builds a file's model. ValueError for a name that is none of a family's
    models, so that no file chooses what is imported."""
    found = MODULE.fullmatch(metadata["module"])
    if found is None or found[2] != metadata["model"]:
        raise ValueError(f"module {metadata['module']!r} of the model {metadata['model']!r}")
    try:
        return importlib.import_module(found[1])
    except ModuleNotFoundError:
        raise ValueError(f"no such module: {metadata['module']!r}") from None


def _fit(
    model: nn.Module, tensors: dict[str, torch.Tensor], refuse: Callable[[str], DataError]
) -> None:
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
