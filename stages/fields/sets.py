"""Prepared sets of points as batches: what training and evaluation both read of a problem beside
wind (stages/fields/prepare.py writes it).

Where targets see each other (MSA, HyperMixer) an answer depends on what else is asked, so a model
is asked as many targets at a time as when it was trained: `predict` splits a set's targets
accordingly.
Shapes: S sets of the file, B of a batch, C context points, T targets, X positions, I context
values, O target values.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from stages.batches import Batch
from stages.errors import DataError
from stages.files import read_json
from stages.splits import SPLITS

TABLES = ("context_x", "context_y", "target_x", "target_y")
CHUNK = 1 << 20  # tokens of a forward call while predicting


@dataclass(frozen=True)
class PreparedSets:
    """All sets of one data set, standardised, on one device."""

    context_x: Tensor  # S C X
    context_y: Tensor  # S C I
    target_x: Tensor  # S T X
    target_y: Tensor  # S T O
    placed: Tensor  # S, index into SPLITS
    group: Tensor  # S, sets with the same number are not independent
    unit: Tensor  # O, the problem's units for a standardised one
    meta: dict[str, Any]

    @classmethod
    def open(cls, folder: Path, device: str | torch.device = "cpu") -> "PreparedSets":
        """Read a prepared folder. DataError when it is missing or not what preparation writes."""
        if not (folder / "sets.safetensors").is_file():
            raise DataError(
                "the prepared sets are missing", where=str(folder), remedy="run `dvc repro`"
            )
        try:
            tensors = load_file(folder / "sets.safetensors", device=str(device))
            found: Any = {name: tensors[name] for name in (*TABLES, "split", "group")}
        except (SafetensorError, KeyError) as error:
            raise DataError(
                "not prepared sets",
                where=str(folder / "sets.safetensors"),
                found=f"{type(error).__name__}: {error}",
                remedy="run `dvc repro`",
            ) from None
        meta = read_json(folder / "sets.json")
        unit = torch.tensor(meta["scaler"]["o_std"], dtype=torch.float32, device=device)
        return cls(*(found[name] for name in TABLES), found["split"], found["group"], unit, meta)

    @property
    def dimensions(self) -> dict[str, int]:
        """x_dim, i_dim and o_dim, as `build` wants them."""
        return {
            "x_dim": self.context_x.shape[2],
            "i_dim": self.context_y.shape[2],
            "o_dim": self.target_y.shape[2],
        }

    def split(self, name: str) -> Tensor:
        """The numbers of a split's sets, ascending."""
        return torch.nonzero(self.placed == SPLITS.index(name)).flatten()

    def batch(self, numbers: Tensor, targets: Tensor | None = None) -> Batch:
        """Some sets (B,) as a batch; of their targets those of `targets` (an index, the same for
        all sets), all when None."""
        x, y = self.target_x[numbers], self.target_y[numbers]
        if targets is not None:
            x, y = x[:, targets], y[:, targets]
        return whole(self.context_x[numbers], self.context_y[numbers], x, y)

    @torch.no_grad()
    def predict(
        self,
        model: nn.Module,
        numbers: Tensor,
        targets: int | None = None,
        context_y: Tensor | None = None,
    ) -> Tensor:
        """Predicted means (B, T, O) of some sets, asking `targets` of them at a time;
        `context_y` (B, C, I) replaces the sets' own values."""
        count = self.target_x.shape[1]
        asked = min(targets or count, count)
        rows = max(1, CHUNK // (self.context_x.shape[1] + asked))
        found = []
        for part, values in zip(
            numbers.split(rows),
            (context_y if context_y is not None else self.context_y[numbers]).split(rows),
            strict=True,
        ):
            context_x = self.context_x[part]
            pieces = [
                model(whole(context_x, values, x, None)).mean
                for x in self.target_x[part].split(asked, 1)
            ]
            found.append(torch.cat(pieces, 1))
        return torch.cat(found)


def whole(context_x: Tensor, context_y: Tensor, target_x: Tensor, target_y: Tensor | None) -> Batch:
    """A batch in which every point is real."""

    def ones(x):
        return torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)

    return Batch(context_x, context_y, ones(context_x), target_x, ones(target_x), target_y)
