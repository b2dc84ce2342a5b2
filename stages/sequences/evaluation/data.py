"""What the evaluation of one data set of sequences reads: the prepared sequences, their prompts,
and the streams of all draws.

Shapes: N sequences, T tokens.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stages import files, seeds
from stages.errors import DataError
from stages.params.orders import OrderEvaluation
from stages.sequences.evaluation import generations, spread, vertical
from stages.splits import SPLITS


@dataclass(frozen=True)
class Settings:
    """What is sampled and how much, the seed of all draws, torch threads and device."""

    plan: OrderEvaluation
    seed: int
    threads: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class EvaluationData:
    """What all cells of a data set share."""

    tokens: np.ndarray  # N T, int64
    placed: np.ndarray  # N, index into SPLITS
    group: np.ndarray  # N, sequences with the same number are not independent
    meta: dict[str, Any]
    settings: Settings

    @classmethod
    def open(cls, prepared: Path, settings: Settings) -> "EvaluationData":
        """Read the prepared sequences. DataError when they are missing or not what preparation
        writes."""
        torch.set_num_threads(settings.threads)
        file = prepared / "sequences.safetensors"
        if not file.is_file():
            raise DataError(
                "the prepared sequences are missing", where=str(prepared), remedy="run `dvc repro`"
            )
        try:
            found = load_file(file)
            tokens, placed, group = found["tokens"].astype(np.int64), found["split"], found["group"]
        except (SafetensorError, KeyError) as error:
            raise DataError(
                "not prepared sequences",
                where=str(file),
                found=f"{type(error).__name__}: {error}",
                remedy="run `dvc repro`",
            ) from None
        meta = files.read_json(prepared / "sequences.json")
        if (
            meta["kind"] != "climb" and meta["kind"] != "text"
        ):  # drawn one by one by a simulator: independent, whatever file they lie in
            group = np.arange(len(tokens))
        return cls(tokens, placed, group, meta, settings)

    def split(self, name: str) -> np.ndarray:
        """The numbers of a split's sequences."""
        return np.flatnonzero(self.placed == SPLITS.index(name))

    def sampled(self) -> np.ndarray:
        """The test sequences whose prompts are continued: evenly spread."""
        return spread(self.split("test"), self.settings.plan.samples)

    def prompts(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """How many tokens (N,) of each sequence are given, by the prompt's name: of climbs those
        of vertical.py, else the data set's."""
        if self.meta["kind"] == "climb":
            return {
                name: vertical.given(self.tokens[numbers], self.meta["law"], name)
                for name in vertical.PROMPTS
            }
        return {"prompt": np.full(len(numbers), self.meta["prompt"])}

    @cached_property
    def reader(self) -> generations.Reader:
        """What samples of texts and grammars are compared with; learned once a process."""
        splits = {name: self.tokens[self.split(name)] for name in SPLITS}
        return generations.Reader.of(
            splits, self.meta["vocabulary"], self.meta["prompt"], self.settings.plan.samples
        )

    def stream(self, *names: str) -> torch.Generator:
        """A torch stream of these names on the device: the same for all cells."""
        return seeds.torch_stream(
            self.settings.seed, "evaluation", *names, device=self.settings.device
        )

    def rng(self, *names: str) -> np.random.Generator:
        """A NumPy stream of these names."""
        return seeds.stream(self.settings.seed, "evaluation", *names)
