"""Checkpoints to resume from: all that the next step depends on, saved together.

One folder a checkpoint (state.safetensors, state.json), made whole by a rename; the file `latest`
names the valid one and is switched by a rename too. They lie in `.work/training/<key>`, key = hash
of parameters, code and inputs, so that a changed run never finds another's. Nothing is unpickled;
what does not match is refused.
"""

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from stages.errors import IntegrityError
from stages.files import WORK, atomic_file, atomic_folder, fault, read_json, sha256, write_json
from stages.records import key


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run."""

    folder: Path

    @classmethod
    def of(cls, *parts: Any) -> "Checkpoints":
        """The run that these parts decide."""
        return cls(WORK / "training" / key(*parts))

    def save(self, step: int, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Write the state after `step`, make it the latest, remove the one before. A kill leaves
        the old or the new."""
        name = f"step-{step:09d}"
        with atomic_folder(self.folder / name) as temporary:
            save_file(
                {n: t.detach().cpu().contiguous() for n, t in tensors.items()},
                temporary / "state.safetensors",
            )
            write_json(
                temporary / "state.json",
                {"sha256": sha256(temporary / "state.safetensors"), "facts": facts},
            )
        fault("before_latest")
        with atomic_file(self.folder / "latest", "w") as stream:
            stream.write(name)
        fault("after_latest")
        for other in self.folder.iterdir():
            if other.name not in (name, "latest", "status.json"):
                shutil.rmtree(other) if other.is_dir() else other.unlink()

    def latest(
        self, expected: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and facts of the latest checkpoint, None when there is none. IntegrityError when
        it is not what was saved, or does not have the names, shapes and types of `expected`."""
        pointer = self.folder / "latest"
        if not pointer.exists():
            return None
        name = pointer.read_text(encoding="utf-8", errors="replace")
        place = self.folder / Path(name).name

        def refuse(found: str) -> IntegrityError:
            return IntegrityError(
                "a resume checkpoint is not what was saved",
                where=str(place),
                found=found,
                remedy=f"remove {self.folder} and train from the start",
            )

        state = place / "state.safetensors"
        if not state.is_file():
            raise refuse("state.safetensors is missing")
        saved = read_json(place / "state.json")
        data = state.read_bytes()
        if hashlib.sha256(data).hexdigest() != saved["sha256"]:
            raise refuse("another SHA-256 than recorded")
        try:
            tensors = load(data)
        except (SafetensorError, ValueError) as error:
            raise refuse(f"{type(error).__name__}: {error}") from None

        def shape(group: Mapping[str, Any]) -> Any:
            return {n: (tuple(t.shape), t.dtype) for n, t in group.items()}

        if shape(tensors) != shape(expected):
            raise refuse("other names, shapes or types than this run's")
        if not all(torch.isfinite(t).all() for t in tensors.values()):
            raise refuse("numbers that are not finite")
        return tensors, saved["facts"]

    def tell(self, status: dict[str, Any]) -> None:
        """Leave a word beside the checkpoints: how a run ended that wrote no output."""
        write_json(self.folder / "status.json", status)

    def clear(self) -> None:
        """The run is done and its output stands: nothing to resume."""
        shutil.rmtree(self.folder, ignore_errors=True)
