"""Prepared sequences of small laws, and cells on them."""

from pathlib import Path

import numpy as np

from stages.params.orders import OrderEvaluation
from stages.sequences import tokens as sequences
from stages.sequences.evaluation.data import EvaluationData, Settings
from stages.sequences.tokens import Sequences

SIZE = {"width": 16, "keys": 8, "hidden": 16, "heads": 2, "blocks": 1}
PLAN = OrderEvaluation(
    samples=40, batch=16, orders=(1, 5), diffusion=(1, 3), posteriors=10, bootstrap=200
)
SETTINGS = Settings(PLAN, seed=0)
COUNTS = (30, 12, 60)  # train, val, test
LENGTH = 6


def drawn_by(kind: str, count: int) -> np.ndarray:
    """Sequences of the laws of these tests."""
    rng = np.random.default_rng(7)
    if kind == "product":
        return (rng.random((count, LENGTH)) < 0.3).astype(int)
    if kind == "permutation":
        return np.stack([rng.permutation(LENGTH) for _ in range(count)])
    if kind == "step":
        begin = rng.integers(5, size=(count, 1))
        return ((np.arange(LENGTH) >= begin) & (np.arange(LENGTH) < begin + 2)).astype(int)
    return rng.integers(3, size=(count, LENGTH))  # text, and a grammar of any letters


LAWS = {
    "product": {"length": LENGTH, "share": 0.3},
    "permutation": {"length": LENGTH},
    "step": {"length": LENGTH, "width": 2, "places": 5},
    "text": {},
    "grammar": {},
}
VOCABULARY = {"product": 2, "permutation": LENGTH, "step": 2, "text": 3, "grammar": 3}


def prepared(folder: Path, kind: str, prompt: int = 0) -> Path:
    """Prepared sequences of a kind."""
    count = sum(COUNTS)
    folder.mkdir(parents=True)
    split = np.repeat([0, 1, 2], COUNTS)
    sequences.write(
        Sequences(
            kind,
            drawn_by(kind, count),
            split,
            split,
            np.arange(count),
            ("a", "b", "c"),
            VOCABULARY[kind],
            prompt,
            LAWS[kind],
        ),
        folder,
        {},
    )
    return folder


def held(tmp_path, kind, prompt=0, settings=SETTINGS) -> EvaluationData:
    return EvaluationData.open(prepared(tmp_path / kind, kind, prompt), settings)
