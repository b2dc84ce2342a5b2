"""The gradient loop: the thesis' protocol. One pair of slices a step (or the mean over several),
Adam, gradient norm clipped at 4.

What a step sees and minimises is the affair of a family's data (`Data`); a model may bring its own
loss, which it learns by and is not selected by, and learn parts of itself at another rate. Every
`validate_every` steps all validation slices or sets are predicted, and at `per_doubling` steps
between any step and its double, so that what is learned at once is seen, too: the mean of the
losses selects the weights, as in the documents, unless the last ones are asked for (`select`); the
error over all points stands beside it. A checkpoint follows each validation; between two of them
nothing else is needed, because order and arithmetic repeat exactly. Several processes (group.py)
share a step's slices and the validation's; the first of them saves.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from stages import seeds
from stages.contracts import Model
from stages.errors import DataError, DivergedError
from stages.files import fault
from stages.training.adam import STATE, Adam
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group, refuse_unshared

Batch = Any  # a family's own, of which the loop knows nothing


class Data(Protocol):
    """The data of one run, as its family gives them. Slices, sets and sequences have numbers."""

    word: str  # what a number counts: "slice", "set"

    @property
    def device(self) -> torch.device:
        """Where batches lie."""

    def slices(self, split: str) -> list[int]:
        """The numbers of a split: "train", "val"."""

    def parts(self, numbers: list[int], step: int) -> list[Callable[[], Batch]]:
        """The batches of one step, each made when it is called; the step's loss is their mean."""

    def loss(self, prediction: Any, batch: Batch) -> Tensor:
        """What is minimised, of what a model predicts for a batch."""

    def validate(self, model: Any, group: Group = ALONE) -> dict[str, float]:
        """Errors of a model of the family over the validation split; `loss` selects the weights."""


def order(slices: list[int], seed: int, epoch: int) -> np.ndarray:
    """The slices in the order of one epoch. It depends on nothing but its arguments: a resumed
    run needs no sampler state."""
    return seeds.stream(seed, "training", "order", epoch).permutation(
        np.asarray(slices, dtype=np.int64)
    )


@dataclass(frozen=True)
class Settings:
    """The budget and the protocol of one run."""

    steps: int
    validate_every: int
    patience: int  # validations without improvement before the run stops
    learning_rate: float
    clip: float
    seed: int
    precision: str = "float32"  # "bfloat16" is used on CUDA only
    slices: int = 1  # of a step; or sets
    schedule: str = "constant"  # or "cosine": from the learning rate to 0 over `steps`
    select: str = "best"  # weights of the least validation loss; or "last"
    per_doubling: int = 0  # further validations from each step to its double, evenly in logarithms

    def validated(self) -> frozenset[int]:
        """The steps after which a run is validated."""
        found = {*range(self.validate_every, self.steps + 1, self.validate_every), self.steps}
        if self.per_doubling:
            most = math.floor(self.per_doubling * math.log2(self.steps))
            found |= {round(2 ** (k / self.per_doubling)) for k in range(most + 1)}
        return frozenset(found)


@dataclass
class Progress:
    """Where a run stands; all of it is saved with a checkpoint."""

    step: int = 0
    best: float | None = None  # least validation loss so far
    best_step: int = 0
    train: list[dict[str, float]] = field(default_factory=list)
    val: list[dict[str, float]] = field(default_factory=list)

    def stale(self) -> int:
        """Validations since the best one."""
        return sum(entry["step"] > self.best_step for entry in self.val)


def rated(model: Model, learning_rate: float) -> list[dict[str, Any]]:
    """The optimizer's groups: what the model learns at the common rate, then each of its
    `rates`, in the order of its parameters."""
    rates = model.rates
    groups: dict[str, dict[str, Any]] = {"": {"params": [], "lr": learning_rate}}
    for name, parameter in model.named_parameters():
        prefix = next((prefix for prefix in rates if name.startswith(prefix)), "")
        groups.setdefault(prefix, {"params": [], "lr": rates.get(prefix, learning_rate)})[
            "params"
        ].append(parameter)
    return [group for group in groups.values() if group["params"]]


class Objective(nn.Module):
    """The loss as a module, which is what DDP wraps."""

    def __init__(self, model: Model, data: Data, precision: AbstractContextManager[Any]):
        super().__init__()
        self.model, self.data, self.precision = model, data, precision

    def forward(self, batch: Batch) -> Tensor:
        """The loss of one slice, or of one batch of sets."""
        if self.model.own_loss:
            return self.model.loss(batch)
        with self.precision:
            prediction = self.model(batch)
        return self.data.loss(prediction, batch)


class Loop:
    """One run: a model, its optimizer, and where it stands."""

    def __init__(
        self,
        model: Model,
        data: Data,
        settings: Settings,
        checkpoints: Checkpoints,
        group: Group = ALONE,
    ):
        refuse_unshared(settings.slices, group.world)
        self.model, self.data, self.settings, self.checkpoints, self.group = (
            model,
            data,
            settings,
            checkpoints,
            group,
        )
        groups = rated(model, settings.learning_rate)
        self.optimizer = Adam(groups)
        self.parameters = self.optimizer.parameters
        self.rates = [group["lr"] for group in groups]
        self.progress = Progress()
        self.best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self.slices = data.slices("train")
        if not self.slices or not data.slices("val"):
            raise DataError(
                "nothing to train or to validate on",
                found=f"{len(self.slices)} training slices or sets, "
                f"{len(data.slices('val'))} for validation",
                remedy="widen the split's intervals in params.yaml",
            )
        bfloat16 = settings.precision == "bfloat16" and data.device.type == "cuda"
        self.precision = torch.autocast("cuda", torch.bfloat16) if bfloat16 else nullcontext()
        self.objective: nn.Module = Objective(model, data, self.precision)
        if group.world > 1:
            self.objective = DistributedDataParallel(self.objective, broadcast_buffers=False)

    def run(self) -> dict[str, Any]:
        """Train to the end of the budget or of patience; the model then holds the best weights,
        or the last ones where these are asked for.
        Returns the history."""
        self._resume()
        settings, progress, recent = self.settings, self.progress, []
        due = settings.validated()
        self.model.train()
        bar = tqdm(
            self._steps(),
            total=settings.steps,
            initial=progress.step,
            disable=None if not self.group.rank else True,
            unit="step",
        )
        for slices in bar:
            recent.append(self._step(slices))
            progress.step += 1
            fault("step")
            if progress.step in due:
                self._validate(sum(recent) / len(recent))
                bar.set_postfix(best=f"{progress.best:.4g}", at=progress.best_step)
                recent = []
        if settings.select == "best":
            self.model.load_state_dict(self.best)
        self.model.eval()
        return self._history("stopped early" if progress.step < settings.steps else "completed")

    def _steps(self) -> Iterator[list[int]]:
        """The slices of every step that is left, until patience ends; the epochs' orders run on
        through the steps."""
        epoch, slices = -1, np.empty(0, np.int64)
        while (
            self.progress.step < self.settings.steps
            and self.progress.stale() < self.settings.patience
        ):
            chosen = []
            for index in range(
                self.progress.step * self.settings.slices,
                (self.progress.step + 1) * self.settings.slices,
            ):
                now, position = divmod(index, len(self.slices))
                if now != epoch:
                    epoch, slices = now, order(self.slices, self.settings.seed, now)
                chosen.append(int(slices[position]))
            yield chosen

    def _step(self, slices: list[int]) -> float:
        """One step on the mean loss of the slices, which it returns."""
        self.optimizer.zero_grad()
        if self.settings.schedule == "cosine":
            left = 0.5 + 0.5 * math.cos(math.pi * self.progress.step / self.settings.steps)
            for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = rate * left
        parts = self.data.parts(self.group.share(slices), self.progress.step)
        total: Any = 0.0
        for number, batch in enumerate(parts, 1):
            with self._alone(number == len(parts)):
                loss = self.objective(batch()) / len(parts)
                loss.backward()
            total = total + loss.detach()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.settings.clip)
        value = float(self.group.mean(total))
        if not math.isfinite(value) or not torch.isfinite(
            norm
        ):  # stop before the weights are touched
            told = ", ".join(map(str, slices))
            self._diverged(
                f"loss {value:.6g}, gradient norm {float(norm):.6g}",
                f"step {self.progress.step + 1}, {self.data.word} {told}",
            )
        self.optimizer.step()
        return value

    def _alone(self, last: bool) -> AbstractContextManager[Any]:
        """Where gradients are not exchanged: processes do so once a step, with the last part."""
        if isinstance(self.objective, DistributedDataParallel) and not last:
            return self.objective.no_sync()
        return nullcontext()

    def _validate(self, train_loss: float) -> None:
        progress = self.progress
        with self.precision:
            found = self.data.validate(self.model, self.group)
        if not all(map(math.isfinite, found.values())):
            self._diverged(f"validation {found}", f"step {progress.step}")
        progress.train.append({"step": progress.step, "loss": train_loss})
        progress.val.append({"step": progress.step, **found})
        if progress.best is None or found["loss"] < progress.best:
            progress.best, progress.best_step = found["loss"], progress.step
            self.best = {
                name: value.detach().clone() for name, value in self.model.state_dict().items()
            }
        if not self.group.rank:
            self.checkpoints.save(progress.step, self._state(), asdict(progress))

    def _diverged(self, found: str, where: str) -> None:
        if not self.group.rank:
            self.checkpoints.tell(self._history("diverged") | {"found": found, "where": where})
        step = self.progress.val[-1]["step"] if self.progress.val else 0
        kept = (
            f"the last good checkpoint (step {step}) is kept in {self.checkpoints.folder}"
            if step
            else "there was no checkpoint yet"
        )
        raise DivergedError(
            "training diverged",
            where=where,
            expected="finite numbers",
            found=found,
            remedy=f"look at that slice, or lower training.learning_rate; {kept}",
        )

    def _history(self, status: str) -> dict[str, Any]:
        progress = self.progress
        return {
            "status": status,
            "steps": progress.step,
            "best_step": progress.best_step,
            "best_loss": progress.best,
            "train": progress.train,
            "val": progress.val,
            **({"select": self.settings.select} if self.settings.select != "best" else {}),
        }

    def _state(self) -> dict[str, Tensor]:
        """Every tensor that the next step depends on; Adam's moments are zero before a
        parameter's first step."""
        state = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        state |= {f"best.{name}": value for name, value in self.best.items()}
        for index, parameter in enumerate(self.parameters):
            known = self.optimizer.state(parameter)
            state |= {f"adam.{index}.{name}": known[name] for name in STATE}
        state["random.cpu"] = torch.get_rng_state()
        if self.data.device.type == "cuda":
            state["random.cuda"] = torch.cuda.get_rng_state(self.data.device)
        return state

    def _resume(self) -> None:
        found = self.checkpoints.latest(self._state())
        if found is None:
            return
        tensors, facts = found

        def part(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

        self.model.load_state_dict(part("model."))
        self.best = {name: value.to(self.data.device) for name, value in part("best.").items()}
        for index, parameter in enumerate(self.parameters):
            self.optimizer.set_state(parameter, part(f"adam.{index}."))
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.data.device)
        self.progress = Progress(**facts)


def train(
    model: Model, data: Data, settings: Settings, checkpoints: Checkpoints, group: Group = ALONE
) -> dict[str, Any]:
    """Train a model in place by gradient; validate once what learns nothing. Returns its history
    (strict JSON). DivergedError, DataError."""
    if model.learns == "gradient":
        return Loop(model, data, settings, checkpoints, group).run()
    return validated([{"step": 0, **data.validate(model)}])


def validated(entries: list[dict[str, Any]], **found: Any) -> dict[str, Any]:
    """The history of what took no step: its validations, and what was found on them."""
    return {"status": "completed", "steps": 0, "best_step": 0, **found, "train": [], "val": entries}
