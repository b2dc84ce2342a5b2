"""The model of a trained cell of sequences, read from its file."""

from pathlib import Path
from typing import Any

from stages.contracts import SequenceModel
from stages.errors import DataError
from stages.training import store


def load(run: Path) -> tuple[SequenceModel, dict[str, Any]]:
    """A cell's model in evaluation mode on the CPU, and its metadata. DataError for anything
    that training did not write."""
    path = run / "weights.safetensors"
    model, meta = store.load(str(path))
    if not isinstance(model, SequenceModel) or "order" not in meta:
        raise DataError(
            "not a model of sequences",
            where=str(path),
            found=f"a {type(model).__name__} of the order {meta.get('order')!r}",
            remedy="train it again: `dvc repro`",
        )
    return model, meta
