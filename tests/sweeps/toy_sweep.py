"""Toy sweeps: three axes, a cheap error, and objectives that fail, prune or kill their process;
spawned workers import this file."""

import math
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from optuna.trial import create_trial

from stages import params
from stages.files import atomic_folder
from stages.sweeps import outputs, search, space
from stages.sweeps.ledger import Draw, Plan
from stages.sweeps.store import Store

SPACE = {
    "length_km": {"low": 1.0, "high": 500.0, "log": True},
    "places": {"low": 1.0, "high": 30.0, "whole": True},
    "kind": {"of": ("gaussian", "flat")},
}


def wanted(**changes) -> params.Sweep:
    """A toy's settings; random draws unless told otherwise."""
    return params.Sweep(
        **{"trials": 8, "val_every": 1, "sampler": "random", "space": SPACE, **changes}
    )


def plan(**changes) -> Plan:
    return Plan(wanted(**changes), 0, "toy")


def error(arguments) -> float:
    """The least, 1, at 20 km, 7 places and a gaussian."""
    return (
        1
        + math.log(arguments["length_km"] / 20) ** 2
        + 0.01 * (arguments["places"] - 7) ** 2
        + (arguments["kind"] == "flat")
    )


def plain(arguments, report=None) -> float:
    """The error; told in thirds, each of which is the whole, where draws are pruned."""
    for step in range(3 if report else 0):
        report(step, error(arguments))
    return error(arguments)


def odd(arguments, report=None) -> float:
    """No number for one kind, infinite for many places."""
    if arguments["kind"] == "flat":
        return math.nan
    return math.inf if arguments["places"] > 20 else error(arguments)


def broken(arguments, report=None) -> float:
    """An error of the model."""
    raise ZeroDivisionError("this model cannot be scored")


@dataclass(frozen=True)
class Deadly:
    """The error, but whoever makes the draw after `after` others first is killed in it: once, so
    a file says."""

    folder: Path
    after: int = 2

    def __call__(self, arguments, report=None) -> float:
        with (self.folder / "scored").open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        if (
            len((self.folder / "scored").read_text().splitlines()) > self.after
            and not (self.folder / "killed").exists()
        ):
            (self.folder / "killed").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return error(arguments)


def serial(which: Plan) -> list[Draw]:
    """The sweep by hand: one draw after another, kept in memory."""
    past = []
    for draw in range(which.wanted.draws):
        arguments = space.proposed(which.wanted, which.seed, which.model, draw, past)
        past.append(
            create_trial(
                value=error(arguments),
                params=arguments,
                distributions=space.distributions(which.wanted),
            )
        )
    return [Draw(draw, trial.params, trial.value, "finished") for draw, trial in enumerate(past)]


def swept(which: Plan, store: Store, folder: Path, objective=plain, workers: int = 1) -> list[Draw]:
    """What the stage does: search, write, remove the study."""
    draws, _ = search.sweep(which, store, objective, workers)
    with atomic_folder(folder) as temporary:
        outputs.write(temporary, draws, which.wanted)
    store.clear()
    return draws


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}
