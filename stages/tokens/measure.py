"""A data set's cells and companions, measured on the rows that test.

Of labels the accuracy; of shapes the mean squared error, the pseudo-attention (thesis B.2.4), how
much an answer inside a shape moves with the inputs inside its partner, as a share of those in all
other shapes (`partner`; 1/3 by chance), and how alike its map is to attention's (likeness.py); of
pictures the share of statements that drawn ones meet, and that those drawn for other statements
meet, drawn for statements that do not train where there are enough. Intervals are over rows, or
over groups of them, from the same draws for all.
Written: metrics.json, maps.npy (cells, N, N) of the first sequence (first.npy), drawn.npy
(cells, S, N). Shapes: S rows, N tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import files, seeds
from stages.scores import groups, shell
from stages.tokens import costs, parting
from stages.tokens.contract import Batch, TokenModel
from stages.tokens.layout import DRAWN, FIRST, GROUPS, KINDS, MAPS
from stages.tokens.likeness import likeness, references
from stages.tokens.parts.frame import KERNEL, Labels
from stages.tokens.sets import ROWS, Sets
from stages.tokens.settings import FAMILY, Made, Tokens
from stages.tokens.tasks import pictures
from stages.training import store

Array = np.ndarray
LEAST = 1e-12
REACH = 4 * (KERNEL // 2)  # of a net's four convolutions: what lies further apart, mixing joins
SHOWN = 12  # drawn pictures that are kept


@dataclass(frozen=True)
class Data:
    """A prepared set, how it was made, and what is asked of it."""

    sets: Sets
    kinds: Array
    groups: Array  # of all rows (S,)
    made: Made | None  # None of pinned tables
    told: Tokens
    seed: int
    device: str = "cpu"

    @classmethod
    def open(
        cls, prepared: Path, made: Made | None, told: Tokens, seed: int, device: str
    ) -> "Data":
        """That of a prepared folder."""
        sets, path = Sets.open(prepared, device), prepared / KINDS
        kinds = np.load(path, allow_pickle=False) if path.exists() else np.empty(0)
        path = prepared / GROUPS
        rows = np.load(path, allow_pickle=False) if path.exists() else np.arange(len(sets.split))
        return cls(sets, kinds, rows, made, told, seed, device)

    @property
    def task(self) -> str:
        """label, value or next."""
        return str(self.sets.about["task"])

    @property
    def tests(self) -> list[int]:
        """The rows that test."""
        return self.sets.slices("test")

    @property
    def form(self) -> pictures.Form:
        """The form of pictures."""
        assert self.made is not None
        return self.made.form()

    def mean(self, values: Array, unit: str, group: Array | None = None) -> dict[Any, Any]:
        """A mean over rows (S,) with its 90 % interval, over their groups where told."""
        rng = seeds.stream(self.seed, FAMILY, "resamples")
        group = np.arange(len(values)) if group is None else group
        return groups.mean_of(values, group, unit, self.told.resamples, rng)

    def tested(self, values: Array, unit: str) -> dict[Any, Any]:
        """The mean over all rows that test."""
        return self.mean(values, unit, self.groups[self.tests])

    def asked(self) -> tuple[Array, int]:
        """The rows whose pictures are drawn, and of how many the statements train."""
        said, inputs = self.sets.about["said"], self.sets.inputs.cpu().numpy()
        return parting.asked(inputs, self.sets.split, said, self.told.drawn)

    def said(self) -> Array:
        """The sequences (S, N) whose pictures are drawn."""
        return self.sets.inputs[self.asked()[0]].cpu().numpy()


@dataclass(frozen=True)
class CellResult:
    """A cell's entry, and what is shown of it: a map (N, N), or sequences (S, N); none of it may
    be."""

    entry: dict[str, Any]
    shown: Array | None = None


def network(run: Path, data: Data, threads: int) -> CellResult:
    """A trained cell, measured."""
    model = loaded(run, data, threads)
    if data.task == "value":
        found = values(model, data, [loaded(one, data, threads) for one in references(run)])
    else:
        found = {"label": labels, "next": drawings}[data.task](model, data)
    weights = sum(one.numel() for one in model.parameters())
    entry = {**found.entry, "weights": weights, "history": shell.validation_losses(run)}
    return CellResult(entry, found.shown)


def loaded(run: Path, data: Data, threads: int) -> TokenModel:
    """A trained cell's network."""
    torch.set_num_threads(threads)
    model, _ = store.load(str(run / shell.WEIGHTS))
    model.to(data.device)
    assert isinstance(model, TokenModel)
    return model


@torch.no_grad()
def said_of(model: TokenModel, data: Data) -> tuple[Array, Array]:
    """What a model says of every test row, and each row's loss."""
    said, lost = [], []
    for first in range(0, len(data.tests), ROWS):
        batch = data.sets.batch(data.tests[first : first + ROWS])
        one = model(batch)
        lost.append(data.sets.each(one, batch).double().cpu().numpy())
        said.append(one.values.double().cpu().numpy() if data.task != "next" else np.empty(0))
    return np.concatenate(said), np.concatenate(lost)


def labels(model: TokenModel, data: Data) -> CellResult:
    """Accuracy and cross-entropy; the FLOPs of the longest row."""
    said, lost = said_of(model, data)
    right = said.argmax(1) == data.sets.targets[data.tests].cpu().numpy()
    assert isinstance(model.network, Labels)
    return CellResult(
        {"metrics": {"accuracy": data.tested(right.astype(float), "1"),
                     "cross_entropy": data.tested(lost, "nats")},
         "flops": costs.example(model.network, data.sets.about["longest"])}
    )  # fmt: skip


def values(model: TokenModel, data: Data, attention: Sequence[TokenModel]) -> CellResult:
    """The mean squared error, in the answers' units, and the pseudo-attention: its own, and how
    alike it is to that of nets of attention."""
    lost = said_of(model, data)[1] * data.sets.about["answer_sd"] ** 2
    maps = pseudo_attention(model, data)
    partner = partners(maps, data.kinds[data.tests[: data.told.maps]])
    metrics = {"mse": data.mean(lost, "height squared")}
    if len(partner):
        metrics["partner"] = data.mean(partner, "1")
    if attention:
        others = [pseudo_attention(one, data) for one in attention]
        metrics["likeness"] = data.mean(likeness(maps, others, REACH), "1")
    return CellResult({"metrics": metrics}, maps[0].astype(np.float32))


def pseudo_attention(model: TokenModel, data: Data) -> Array:
    """|d answer at t / d input at s| of the first test rows (S, N, N): [.., t, s]."""
    batch = data.sets.batch(data.tests[: data.told.maps])
    inputs = batch.inputs.clone().requires_grad_()
    said = model(Batch(inputs, batch.real, batch.targets, batch.counted)).values
    slopes = [
        torch.autograd.grad(said[:, place].sum(), inputs, retain_graph=True)[0]
        for place in range(said.shape[1])
    ]
    return torch.stack(slopes, 1).abs().double().cpu().numpy()


def partners(maps: Array, kinds: Array) -> Array:
    """Per row (S,): of what answers inside shapes owe to other shapes' places, the partner's share;
    per place, so that a wide shape counts as a narrow one. Rows without any are left out."""
    found = []
    for one, kind in zip(maps, kinds, strict=True):
        inside = [kind == shape for shape in range(1, 5)]
        if not all(mask.any() for mask in inside):
            continue
        owed = np.array([[one[mine][:, theirs].mean() for theirs in inside] for mine in inside])
        partner = np.array([owed[shape, shape ^ 1] for shape in range(4)]).sum()
        total = owed.sum() - np.trace(owed)
        if total > LEAST:
            found.append(partner / total)
    return np.array(found)


def drawings(model: TokenModel, data: Data) -> CellResult:
    """Surprise of true pictures, and the statements that drawn ones meet."""
    _, lost = said_of(model, data)
    given, form = data.said(), data.form
    made = draw(model, given[:, : form.said], form, data)
    entry = {"metrics": {"nats": data.mean(lost, "nats/token"), **satisfied(made, given, data)}}
    return CellResult(entry, made[:SHOWN])


@torch.no_grad()
def draw(model: TokenModel, given: Array, form: pictures.Form, data: Data) -> Array:
    """Sequences (S, N): statements as given (S, L), pictures drawn token by token."""
    rng = seeds.stream(data.seed, FAMILY, "drawn")
    found = given
    colours = np.array([pictures.NUMBER[word] for word in (pictures.GROUND, *pictures.COLOURS)])
    while found.shape[1] < form.length:
        inputs = torch.from_numpy(found.astype(np.int64)).to(data.device)
        real = torch.ones_like(inputs, dtype=torch.bool)
        logits = model(Batch(inputs, real, inputs, real)).values[:, -1]
        chance = logits[:, torch.from_numpy(colours)].double().softmax(1).cumsum(1).cpu().numpy()
        place = (rng.random((len(found), 1)) > chance[:, :-1]).sum(1)
        found = np.concatenate((found, colours[place][:, None]), 1)
    return found


def satisfied(made: Array, given: Array, data: Data) -> dict[str, Any]:
    """The share of statements that pictures (S, N) meet, of their own and of the next row's."""
    form = data.form
    shares = {
        "satisfied": [pictures.share(said, one[form.said :], form)
                      for said, one in zip(given, made, strict=True)],
        "satisfied_other": [pictures.share(said, one[form.said :], form)
                            for said, one in zip(np.roll(given, 1, 0), made, strict=True)],
    }  # fmt: skip
    return {name: data.mean(np.array(one), "1") for name, one in shares.items()}


def companions(data: Data) -> dict[str, CellResult]:
    """What no training is needed for: the most frequent class; the mean answer (the noise of the
    answers stands in about.json); true pictures."""
    sets, train = data.sets, data.sets.slices("train")
    targets = sets.targets.cpu().numpy()
    if data.task == "label":
        most = np.bincount(targets[train]).argmax()
        right = data.tested((targets[data.tests] == most).astype(float), "1")
        return {"majority": CellResult({"metrics": {"accuracy": right}})}
    if data.task == "value":
        error = (targets[data.tests] - targets[train].astype(np.float64).mean(0)) ** 2
        return {
            "mean": CellResult({"metrics": {"mse": data.mean(error.mean(1), "height squared")}})
        }
    given = data.said()
    entry = {"metrics": satisfied(given, given, data)}
    return {"true": CellResult(entry, given[:SHOWN])}


def write(found: Mapping[str, CellResult], data: Data, final: Path) -> None:
    """Write an evaluated folder, whole."""
    with files.atomic_folder(final) as folder:
        cells = {name: one.entry for name, one in found.items()}
        about = {key: one for key, one in data.sets.about.items() if key != "words"}
        shown = {name: one.shown for name, one in found.items() if one.shown is not None}
        about["shown"] = list(shown)
        if data.task == "label":
            about["costs"], about["crossings"] = costs.curves(), costs.crossings()
        if data.task == "next":
            rows, known = data.asked()
            about["drawn"] = {"rows": len(rows), "prompts_that_train": known}
        files.write_json(folder / "metrics.json", {"cells": cells, "about": about})
        if shown:
            with files.atomic_file(folder / (MAPS if data.task == "value" else DRAWN)) as stream:
                np.save(stream, np.stack(list(shown.values())))
        if data.task == "value":
            first = data.tests[0]
            one = np.stack((data.sets.inputs[first].cpu().numpy(), data.kinds[first]))
            with files.atomic_file(folder / FIRST) as stream:
                np.save(stream, one)
