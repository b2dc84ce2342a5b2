"""The one training shell: names -> cell -> device, threads, group -> a family's Task -> checkpoints
-> weights.safetensors, history.json, code.json and the record.

A family's train.py says what a cell of it is (`Task`): what it reads, with which parameters, and
how its data are opened. All else is the same for every family. TRADEWIND_PROCESSES=W has W
processes train a cell together; the first holds the lock and writes. The folder of a cell is
reports/EXPERIMENT/PROFILE/runs/DATASET/CELL; code.json says what the code of its model means, so
that an edit of one model is an edit of what rests on its cells, even where weights stay the same.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from pydantic import BaseModel

from stages import code, files, params, records, runner, seeds
from stages.batches import device
from stages.contracts import Model
from stages.errors import InputError
from stages.runner import Asked, Work
from stages.training import cells, group, store
from stages.training.checkpoint import Checkpoints
from stages.training.group import Group
from stages.training.loop import Settings

NAMES = ("experiment", "profile", "dataset", "model")
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--arm": {"default": cells.PLAIN, "help": "a variant of the model"},
    "--size": {"default": cells.NONE, "help": "a size of the model"},
    "--seed": {"type": int, "default": 0, "help": "of weights and of the order of the data"},
}


@dataclass(frozen=True)
class Opened:
    """A cell whose data are open. build: makes the model, drawing weights from torch's global
    generator; train: trains it in place and returns its history; metadata: what the weights file
    tells beside the cell, enough for the family's package of models to build it again."""

    build: Callable[[], Model]
    train: Callable[[Any, Checkpoints, Group], dict[str, Any]]  # the model that it made
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A cell as its family plans it, before any work.

    module: of its model, stages.FAMILY.models.NAME; used: the parameters, as the record tells
    them; sources: files and folders that it reads; shared: how many slices or sets a step takes,
    and the parameter that says so, None where one process must do; open: reads the data, on a
    device, for this process of a group.
    """

    module: str
    used: Mapping[str, Any]
    sources: Sequence[Path]
    shared: tuple[int, str] | None
    open: Callable[[torch.device, Group], Opened]


Plan = Callable[[Asked, cells.Cell], Task]


def command(module: str, about: str, plan: Plan, argv: Sequence[str] | None = None) -> int:
    """The command line of a family's training: its exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    planned = partial(planned_work, module, plan, given)
    return runner.command(module, about, NAMES, planned, argv, OPTIONS, run)


def planned_work(module: str, plan: Plan, argv: Sequence[str], asked: Asked) -> Work:
    """The work of one cell. Every mistake of the user's is told here; where several processes are
    to train it and this is none of them, it becomes the one that starts them."""
    names = asked.names
    cell = declared(asked, cells.Cell(names["model"], names["arm"], names["size"], names["seed"]))
    task = plan(asked, cell)
    if not 0 <= cell.seed < 2**31:
        raise InputError(
            "the seed is out of range", found=str(cell.seed), expected="0 to 2147483647"
        )
    where, world, threads = device(), group.wanted(), asked.parameters.training.threads
    torch.set_num_threads(threads)
    if world > 1 and not group.inside() and task.shared:
        group.refuse_unshared(task.shared[0], world, task.shared[1])
        files.die_with(os.getppid())
        group.start(world, module, list(argv))
    return work_of(asked, cell, task, (module, task.module), where)


def declared(asked: Asked, cell: cells.Cell) -> cells.Cell:
    """The cell with the training settings that its experiment's cells.yaml varies."""
    found = asked.trained.of(asked["dataset"]).get(cell.name)
    return replace(cell, training=found.training) if found and found.training else cell


def work_of(
    asked: Asked, cell: cells.Cell, task: Task, modules: Sequence[str], where: torch.device
) -> Work:
    """The work as the runner does it."""
    profile, dataset = asked["profile"], asked["dataset"]
    training = Training(cell, task, asked, modules, where)
    return Work(
        stage="train",
        cell=f"{profile}/{dataset}/{cell.name}",
        record=records.location(
            "train", profile, dataset, experiment=asked["experiment"], cell=cell.name
        ),
        do=training.do,
        inputs=task.sources,
        code=modules,
        params=task.used,
        seed=cell.seed,
        device=str(where),
        threads=asked.parameters.training.threads,
        environment=training.environment,
        clear=training.clear,
    )


@dataclass
class Training:
    """One cell while it is trained; `checkpoints`, and the `environment` that the record tells, are
    known once its data are open: a run that goes on from its last step is to tell the same."""

    cell: cells.Cell
    task: Task
    asked: Asked
    modules: Sequence[str]
    where: torch.device
    checkpoints: Checkpoints | None = None
    environment: dict[str, Any] = field(default_factory=dict)

    def do(self) -> dict[str, Path]:
        """Train, and write the cell's folder, which is returned file by file; the first process
        of a group writes."""
        together = group.current()
        opened = self.task.open(self.where, together)
        seeds.everything(self.cell.seed)
        model = opened.build()
        self.checkpoints = self._checkpoints(together)
        history = opened.train(model, self.checkpoints, together)
        if together.rank:
            return {}
        folder = self.asked.home / "runs" / self.asked["dataset"] / self.cell.name
        model_code = code.recorded([self.task.module])
        with files.atomic_folder(folder) as temporary:
            weights = store.dump(model, {**opened.metadata, **self._named()})
            (temporary / "weights.safetensors").write_bytes(weights)
            files.write_json(temporary / "history.json", history)
            files.write_json(
                temporary / "code.json", {key: model_code[key] for key in ("modules", "digest")}
            )
        return records.outputs_of(folder, folder)

    def clear(self) -> None:
        """The record stands: there is nothing to resume."""
        if self.checkpoints:
            self.checkpoints.clear()

    def _named(self) -> dict[str, Any]:
        return {
            **{name: vars(self.cell)[name] for name in ("model", "arm", "size", "seed")},
            "dataset": self.asked["dataset"],
            "profile": self.asked["profile"],
        }

    def _checkpoints(self, together: Group) -> Checkpoints:
        threads = self.asked.parameters.training.threads
        here = records.environment(str(self.where), threads)
        self.environment |= group.environment(here, together)
        inputs = {
            path.as_posix(): records.describe(path) for path in records.files_in(self.task.sources)
        }
        return Checkpoints.of(
            "training",
            dict(self.task.used),
            self.cell.seed,
            code.recorded(self.modules)["digest"],
            inputs,
            self.environment,
        )


def run(work: Work) -> None:
    """Do a cell's work, alone or as one of a group, of which the first holds the cell's lock and
    writes."""
    with group.joined(torch.device(work.device)) as together:
        if not together.rank:
            runner.run(work)
            return
        files.die_with(os.getppid())
        with records.timed(work.stage, work.cell):
            work.do()
            runner.declared(work)


B = TypeVar("B", bound=BaseModel)
RATE = "learning_rate"


class Budget(Protocol):
    """What all families' budgets hold."""

    @property
    def steps(self) -> int:
        """At most."""

    @property
    def validate_every(self) -> int:
        """Steps."""

    @property
    def patience(self) -> int:
        """Validations without improvement."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """All of it, as a record tells it."""


def varied(cell: cells.Cell, budget: B) -> B:
    """The budget with what the cell's declaration varies of it. ParamsError, with the nearest
    name, for a setting that the family's budgets do not have and for a value out of range."""
    own = dict(cell.training)
    if RATE not in type(budget).model_fields:  # of the protocol: `settings` takes it from the cell
        own.pop(RATE, None)
    where = f"{cell.name}: training, in its experiment's cells.yaml"
    return params.checked(type(budget), dict(budget) | own, where) if own else budget


def settings(
    budget: Budget,
    protocol: params.Training,
    cell: cells.Cell,
    rate: float,
    step: int,
    **others: Any,
) -> Settings:
    """The loop's settings of a cell: the learning rate (its own, where its declaration varies it,
    else `rate`), how many sets or slices a step takes, and what only some families vary
    (`precision`, `schedule`, `select`, `per_doubling`)."""
    return Settings(
        steps=budget.steps,
        validate_every=budget.validate_every,
        patience=budget.patience,
        learning_rate=float(cell.training.get(RATE, rate)),
        clip=protocol.clip,
        seed=cell.seed,
        slices=step,
        **others,
    )


def used_by(
    cell: cells.Cell, arguments: Mapping[str, Any], budget: Budget, protocol: params.Training
) -> dict[str, Any]:
    """What a record tells of a cell's parameters."""
    return {
        **({"training": dict(cell.training)} if cell.training else {}),
        "model": cell.model,
        "arm": cell.arm,
        "size": cell.size,
        "arguments": dict(arguments),
        "budget": budget.model_dump(mode="json"),
        "protocol": protocol.model_dump(mode="json"),
    }
