"""Evaluate the trained cells of one problem on sets (thesis 3.4, 3.5): test, validation and some
training sets, trivial companions, probes.

A model is asked as many targets at a time as when it was trained (its checkpoint's `targets`):
where targets see each other, an answer depends on what else is asked. Beside the cells stand
`mean`, which always answers the training targets' mean, and `nearest`, which answers with the
nearest context point's value where context and targets are one quantity. predictions.safetensors
holds a few test sets and what every cell says of them, in the problem's units. Shapes: S sets, C
context points, T targets, O components.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor, nn
from tqdm import tqdm

from stages import files, seeds
from stages.errors import DataError, DivergedError, InputError
from stages.fields import failures, probes
from stages.fields import scores as set_scores
from stages.fields.sets import PreparedSets
from stages.params import Params
from stages.training import store
from stages.winds import evaluate as winds

CODE = (
    *winds.CODE,
    *(f"stages/evaluation/{name}.py" for name in ("failures", "probes", "set_scores", "sets")),
)
SHOWN = 4  # test sets in predictions.safetensors
MEAN, NEAREST = "mean", "nearest"  # companions
TABLES = {"context_x": "x", "context_y": "i", "target_x": "x", "target_y": "o"}


@dataclass(frozen=True)
class Settings:
    """Sets in a batch of training, bootstrap resamples and their seed, torch threads, device,
    whether cells are probed, and for how many updates at most."""

    batch: int
    resamples: int
    seed: int
    threads: int = 1
    device: str = "cpu"
    probed: bool = False
    most: int = failures.MOST

    @classmethod
    def of(
        cls, parameters: Params, experiment: str, profile: str, dataset: str, device: str
    ) -> "Settings":
        """As params.yaml has them."""
        plan, training = parameters.profiles[profile], parameters.training
        return cls(
            plan.learning[dataset].batch,
            plan.evaluation.bootstrap,
            training.seed,
            training.threads,
            device,
            experiment == "failure_modes",
        )


@dataclass(frozen=True)
class Held:
    """What all cells of a data set share."""

    sets: PreparedSets
    settings: Settings

    @classmethod
    def open(cls, prepared: Path, settings: Settings) -> "Held":
        """Read the prepared sets."""
        torch.set_num_threads(settings.threads)
        return cls(PreparedSets.open(prepared, settings.device), settings)

    @property
    def one_unit(self) -> bool:
        """Whether all components of a target are in one unit; else errors are of standardised
        values."""
        return len(set(self.sets.meta["units"]["o"])) == 1

    @property
    def unit(self) -> str:
        """The unit of errors."""
        return self.sets.meta["units"]["o"][0] if self.one_unit else "1"

    @property
    def scale(self) -> Tensor:
        """Of `unit` for a standardised one, (O,)."""
        return self.sets.unit if self.one_unit else torch.ones_like(self.sets.unit)

    @property
    def shared(self) -> list[int] | None:
        """Which context values are the targets' components; None where they are other
        quantities."""
        names, units = self.sets.meta["names"], self.sets.meta["units"]
        told = list(zip(names["i"], units["i"], strict=True))
        asked = list(zip(names["o"], units["o"], strict=True))
        return [told.index(one) for one in asked] if set(asked) <= set(told) else None

    def known(self, numbers: Tensor) -> np.ndarray:
        """The context values (S, C, O) of the targets' quantities, in the problem's units."""
        return self.real("i", self.sets.context_y[numbers])[..., self.shared]

    def numbers(self, split: str) -> Tensor:
        """The numbers of a split's sets; of the training sets as many as there are test sets at
        most, evenly spread."""
        mine = self.sets.split(split)
        return failures.spread(mine, len(self.sets.split("test"))) if split == "train" else mine

    def real(self, key: str, values: Tensor) -> np.ndarray:
        """Standardised x, i or o values in the problem's units, float64."""
        mean, std = (
            np.asarray(self.sets.meta["scaler"][f"{key}_{part}"], np.float64)
            for part in ("mean", "std")
        )
        return values.double().cpu().numpy() * std + mean

    def answers(
        self, numbers: Tensor, predicted: Tensor, permuted: Tensor | None = None
    ) -> set_scores.Answers:
        """Standardised predictions (S, T, O) beside what was measured, in `unit`."""
        scale = self.scale.double()
        turned = lambda values: None if values is None else (values.double() * scale).cpu().numpy()  # noqa: E731
        return set_scores.Answers(
            turned(predicted),
            turned(self.sets.target_y[numbers]),
            self.sets.group[numbers].cpu().numpy(),
            turned(permuted),
        )


def shuffled(sets: PreparedSets, numbers: Tensor, seed: int) -> Tensor:
    """Context values (S, C, I) dealt anew among each set's own points, by a stream of each set."""
    count = sets.context_y.shape[1]
    order = np.stack(
        [seeds.stream(seed, "permute", number).permutation(count) for number in numbers.tolist()]
    )
    return torch.take_along_dim(
        sets.context_y[numbers], torch.as_tensor(order, device=numbers.device)[..., None], 1
    )


def finite(values: Tensor, where: str) -> Tensor:
    """The values; DivergedError when one of them is not a number."""
    if not torch.isfinite(values).all():
        raise DivergedError(
            "a prediction is not a finite number",
            where=where,
            found=f"{int((~torch.isfinite(values)).sum())} values",
        )
    return values


def scored(held: Held, predicted: dict[str, Tensor], permuted: Tensor | None = None) -> dict:
    """Metrics of standardised predictions (S, T, O) by split: of the test sets (and their
    permuted contexts) by plain names, of others with `_split`."""
    sets, settings, found, test = (
        held.sets,
        held.settings,
        {"metrics": {}, "undefined": {}},
        predicted["test"],
    )
    for split, values in predicted.items():
        suffix = "" if split == "test" else f"_{split}"
        told = held.answers(held.numbers(split), values, None if suffix else permuted)
        rng = seeds.stream(settings.seed, "bootstrap")
        for key, part in zip(
            found,
            set_scores.summarise(told, settings.batch, held.unit, settings.resamples, rng, suffix),
            strict=True,
        ):
            found[key] |= part
    if held.shared is not None and test.shape[2] <= 2:
        numbers = sets.split("test")
        group, known = sets.group[numbers].cpu().numpy(), held.known(numbers)
        for name, values in (("hull_share", test), ("hull_share_measured", sets.target_y[numbers])):
            out = probes.outside(known, held.real("o", values))
            found["metrics"][name] = set_scores.mean_of(
                out.sum(1),
                group,
                "1",
                settings.resamples,
                seeds.stream(settings.seed, "bootstrap"),
                np.full(len(out), out.shape[1]),
            )
    return found


def measure(model: nn.Module, meta: dict, held: Held, where: str) -> tuple[dict, np.ndarray]:
    """A cell's entry of metrics.json, without its history, and its predictions (n, T, O) of the
    shown sets, in the problem's units."""
    sets, settings = held.sets, held.settings
    for key, width in sets.dimensions.items():
        if meta[key] != width:
            raise DataError(
                "a cell was trained on other sets",
                where=where,
                expected=f"{key} {width}",
                found=str(meta[key]),
                remedy="run `dvc repro`, which trains it again",
            )
    model = model.to(settings.device).eval()
    asked = min(meta.get("targets") or sets.target_y.shape[1], sets.target_y.shape[1])
    numbers = sets.split("test")
    predicted = {
        split: finite(sets.predict(model, held.numbers(split), asked), f"{where}, {split} sets")
        for split in ("test", "val", "train")
    }
    permuted = finite(
        sets.predict(model, numbers, asked, shuffled(sets, numbers, settings.seed)),
        f"{where}, permuted contexts",
    )
    entry = scored(held, predicted, permuted) | {
        "parameters": sum(value.numel() for value in model.parameters())
    }
    if settings.probed:
        entry["probes"] = failures.probe(
            failures.Probed(
                model,
                meta["model"],
                sets,
                numbers,
                asked,
                held.unit,
                held.scale,
                settings.resamples,
                settings.seed,
                settings.most,
            )
        )
    places = torch.searchsorted(numbers, failures.spread(numbers, SHOWN))
    return entry, held.real("o", predicted["test"][places]).astype(np.float32)


def companions(held: Held) -> Iterator[tuple[str, dict, np.ndarray]]:
    """Name, entry and shown predictions of what needs no training."""
    sets = held.sets
    mean = sets.target_y[sets.split("train")].double().mean((0, 1))
    found = {
        MEAN: [
            mean.float().expand_as(sets.target_y[sets.split(split)]) for split in ("test", "val")
        ]
    }
    if held.shared is not None:
        found[NEAREST] = [nearest(held, sets.split(split)) for split in ("test", "val")]
    numbers = sets.split("test")
    places = torch.searchsorted(numbers, failures.spread(numbers, SHOWN))
    for name, (test, val) in found.items():
        entry = scored(held, {"test": test, "val": val}) | {"parameters": 0, "history": {"val": []}}
        yield name, entry, held.real("o", test[places]).astype(np.float32)


def nearest(held: Held, numbers: Tensor) -> Tensor:
    """The value of each target's nearest context point (S, T, O), standardised as targets are;
    distances in the problem's units of position, of equally near points the first."""
    scaler = held.sets.meta["scaler"]
    scale = torch.tensor(scaler["x_std"], dtype=torch.float32, device=numbers.device)
    o_mean, o_std = (
        torch.tensor(scaler[f"o_{part}"], dtype=torch.float64, device=numbers.device)
        for part in ("mean", "std")
    )
    parts = []
    for some in numbers.split(64):
        context, asked = held.sets.context_x[some] * scale, held.sets.target_x[some] * scale
        distance = torch.cdist(asked, context, compute_mode="donot_use_mm_for_euclid_dist")
        known = torch.from_numpy(held.known(some)).to(numbers.device)
        parts.append(torch.take_along_dim(known, distance.argmin(2)[..., None], 1))
    return ((torch.cat(parts) - o_mean) / o_std).float()


def history(run: Path) -> dict:
    """The validation losses of a cell's training: {"val": [[step, loss], ...]}."""
    told = files.read_json(run / "history.json")
    return {"val": [[entry["step"], entry["loss"]] for entry in told["val"]]}


def cell(run: Path, prepared: Path, settings: Settings) -> dict:
    """One cell's entry of metrics.json, recomputed from its checkpoint (what `audit --verify
    eval` compares)."""
    return _entry(run, Held.open(prepared, settings))[0]


def _entry(run: Path, held: Held) -> tuple[dict, np.ndarray]:
    model, meta = store.load(str(run / "weights.safetensors"))
    entry, shown = measure(model, meta, held, run.name)
    return entry | {"history": history(run)}, shown


_held: Held | None = None  # of a process that evaluates cells


def begin(parent: int, prepared: Path, settings: Settings) -> None:
    """Make this process one that evaluates cells, for as long as its parent lives."""
    global _held
    files.die_with(parent)
    _held = Held.open(prepared, settings)


def _cell_of(run: Path) -> tuple[dict, np.ndarray]:
    return _entry(run, _held)


def measured(
    cells: list[Path], prepared: Path, settings: Settings
) -> Iterator[tuple[dict, np.ndarray]]:
    """Each cell's entry and shown predictions: one process a core, as cells know nothing of each
    other; this one where one is enough."""
    count = min(len(cells), len(os.sched_getaffinity(0))) if settings.device == "cpu" else 1
    if count == 1:
        held = Held.open(prepared, settings)
        yield from (_entry(run, held) for run in cells)
        return
    with ProcessPoolExecutor(
        count, get_context("spawn"), begin, (os.getpid(), prepared, settings)
    ) as pool:
        try:
            yield from tqdm(
                pool.map(_cell_of, cells),
                total=len(cells),
                desc="evaluate",
                unit="cell",
                disable=None,
            )
        except BrokenProcessPool:
            raise DataError(
                "a process that evaluated a cell was killed",
                where=str(cells[0].parent),
                found="likely by want of memory",
                remedy="free memory, or run fewer stages at once (JOBS=1); nothing was written",
            ) from None


def evaluate(runs: Path, prepared: Path, final: Path, settings: Settings) -> None:
    """Evaluate every cell under `runs` and put metrics.json and predictions.safetensors into
    `final`."""
    cells = winds.cells_of(runs)
    if not cells:
        raise InputError(
            "there is no trained cell to evaluate",
            where=str(runs),
            remedy="run `dvc repro`, which trains before it evaluates",
        )
    held = Held.open(prepared, settings)
    numbers = failures.spread(held.sets.split("test"), SHOWN)
    tensors = {
        name: held.real(key, getattr(held.sets, name)[numbers]).astype(np.float32)
        for name, key in TABLES.items()
    }
    entries = {}
    for name, entry, shown in companions(held):
        entries[name], tensors[name] = entry, shown
    with files.atomic_folder(final) as folder:
        for run, (entry, shown) in zip(cells, measured(cells, prepared, settings), strict=True):
            entries[run.name], tensors[run.name] = entry, shown
        (folder / "predictions.safetensors").write_bytes(save(dict(sorted(tensors.items()))))
        counts = {split: len(held.sets.split(split)) for split in ("train", "val", "test")}
        groups = {split: len(held.sets.group[held.sets.split(split)].unique()) for split in counts}
        files.write_json(
            folder / "metrics.json",
            {"cells": entries, "sets": counts, "groups": groups, "shown": numbers.tolist()},
        )
