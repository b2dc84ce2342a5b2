"""The ledger of a sweep: every draw 0 ... n-1 is finished exactly once, whoever works on it and
whoever is killed.

A trial of the study carries its draw from the moment that it exists (a waiting trial is made with
it, in one transaction). Of the trials of one draw that have not failed, the one with the least
number counts; a worker that holds another one fails it. A finished or failed trial never changes.
So two who make the same waiting trial, or hold a living worker for dead, cost time and no
exactness. A draw is owed when it has no trial but failed ones: whoever looks for work makes the
least owed draw anew, which after a kill is the one that was lost.
"""

import contextlib
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from stages import params
from stages.files import fault
from stages.sweeps.space import Arguments, Proposals
from stages.sweeps.store import Store

POLL_S = 0.2
DONE = (TrialState.COMPLETE, TrialState.PRUNED)
Report = Callable[[int, float], None]
Objective = Callable[
    [Arguments, Report | None], float
]  # told its arguments and, where trials are pruned, whom to report to


class Superfluous(Exception):
    """A trial that is nobody's draw, another one's already, or was taken for dead: it is failed,
    and that is all."""


@dataclass(frozen=True)
class Draw:
    """One finished draw. `value` is None where it was pruned or is no finite number."""

    draw: int
    arguments: Arguments
    value: float | None
    state: str  # "finished", "pruned" or "not finite"


@dataclass(frozen=True)
class Plan:
    """What is searched: all that decides the draws."""

    wanted: params.Sweep
    seed: int
    model: str

    def study(self, store: Store, begin: bool = True) -> optuna.Study:
        """The plan's study in a store."""
        pruner = (
            optuna.pruners.MedianPruner(n_startup_trials=5)
            if self.wanted.pruner == "median"
            else optuna.pruners.NopPruner()
        )
        return store.study(Proposals(self.wanted, self.seed, self.model), pruner, begin)


@dataclass(frozen=True)
class Ledger:
    """A study, read and worked on as one of `plan`."""

    plan: Plan
    study: optuna.Study

    def valid(self) -> dict[int, FrozenTrial]:
        """Draw -> the trial that counts."""
        found: dict[int, FrozenTrial] = {}
        for trial in self.study.get_trials(deepcopy=False):  # in the order of their numbers
            if trial.state != TrialState.FAIL and "draw" in trial.user_attrs:
                found.setdefault(trial.user_attrs["draw"], trial)
        return found

    def finished(self) -> list[Draw]:
        """The draws that are done, in order."""
        return [
            draw_of_trial(draw, trial)
            for draw, trial in sorted(self.valid().items())
            if trial.state in DONE
        ]

    def joined(self) -> int:
        """How many of them were made by workers of other commands."""
        return sum(
            trial.state in DONE and trial.user_attrs.get("joined", False)
            for trial in self.valid().values()
        )

    def offer(self) -> bool:
        """See that a trial waits, of the least draw owed; False when no draw is left to take."""
        held = self.valid()
        if any(trial.state == TrialState.WAITING for trial in held.values()):
            return True
        owed = next((draw for draw in range(self.plan.wanted.draws) if draw not in held), None)
        if owed is None:
            return False
        self.study.add_trial(
            optuna.trial.create_trial(state=TrialState.WAITING, user_attrs={"draw": owed})
        )
        fault("offered")
        return True

    def running(self) -> list[FrozenTrial]:
        """Trials at work, or whose worker died."""
        return self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def bury(self, seen: set[int]) -> None:
        """Fail the trials whose worker has not signed for the grace period. `seen`: the caller's
        memory of those it has looked at.

        A worker killed before its first signature would never be missed, so whoever sees a running
        trial first signs for it once.
        KeyError when the study is gone: its outputs stand.
        """
        _ = (
            self.study.user_attrs
        )  # read from the store; lists of trials may come from Optuna's memory
        for trial in self.running():
            if trial.number not in seen:
                seen.add(trial.number)
                # a storage of ours has heartbeats
                self.study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            optuna.storages.fail_stale_trials(self.study)

    def settle(self, local: bool) -> None:
        """Before a sweep goes on: end what was running when its last worker died, so that its draw
        comes first again.

        In a local store nobody else is at work; in a shared one whoever lives finishes, and the
        dead are known by their silence.
        """
        left = {trial.number for trial in self.running()}
        seen: set[int] = set()
        while left & {trial.number for trial in self.running()}:
            if local:
                for number in left:
                    self.study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
            else:
                self.bury(seen)
                time.sleep(POLL_S)

    def work(
        self,
        objective: Objective,
        progress: Callable[[int], None] | None = None,
        joined: bool = False,
    ) -> None:
        """Make draws until all are finished, by whomever; errors of the objective are raised.
        `progress` is told how many are finished."""
        seen: set[int] = set()
        while (done := len(self.finished())) < self.plan.wanted.draws:
            if progress:
                progress(done)
            if self.offer():
                self.attempt(objective, joined)
            else:
                self.bury(seen)
                time.sleep(POLL_S)
        if progress:
            progress(done)

    def attempt(self, objective: Objective, joined: bool = False) -> None:
        """Take one waiting trial and finish it."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # Optuna's own loop signs; here `beating` does
            trial = self.study.ask()
        fault("asked")
        with beating(self.study, trial):
            try:
                value = self.tried(trial, objective, joined)
            except optuna.TrialPruned:
                outcome: dict[str, Any] = {"state": TrialState.PRUNED}
            except (Superfluous, optuna.exceptions.UpdateFinishedTrialError):
                outcome = {"state": TrialState.FAIL}
            except BaseException:
                self.finish(trial, state=TrialState.FAIL)
                raise
            else:
                outcome = {"values": value}
        fault("scored")
        self.finish(trial, **outcome)
        fault("told")

    def finish(self, trial: optuna.Trial, **outcome: Any) -> None:
        """Tell the study, unless others have taken the trial for dead."""
        with contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError):
            self.study.tell(trial, skip_if_finished=True, **outcome)

    def tried(self, trial: optuna.Trial, objective: Objective, joined: bool) -> float:
        """The value of a trial's draw; infinite where it is no finite number."""
        mine = self.valid().get(trial.user_attrs.get("draw"))
        if mine is None or mine.number != trial.number:
            raise Superfluous
        arguments = {
            name: suggested(trial, name, axis) for name, axis in self.plan.wanted.space.items()
        }
        if joined:
            trial.set_user_attr("joined", True)
        fault("trial")

        def report(step: int, value: float) -> None:
            if not math.isfinite(value):  # nor will the whole be, and that has a name of its own
                return
            trial.report(value, step)
            fault("reported")
            if trial.should_prune():
                raise optuna.TrialPruned

        value = float(objective(arguments, report if self.plan.wanted.pruner != "none" else None))
        return value if math.isfinite(value) else math.inf


def suggested(trial: optuna.Trial, name: str, axis: params.Range) -> int | float | str:
    """A trial's value on one axis, entered in the study."""
    if axis.of:
        return trial.suggest_categorical(name, axis.of)
    if axis.whole:
        return trial.suggest_int(name, int(axis.low), int(axis.high), log=axis.log)
    return trial.suggest_float(name, axis.low, axis.high, log=axis.log)


def draw_of_trial(draw: int, trial: FrozenTrial) -> Draw:
    """A finished trial as the sweep's outputs tell it."""
    if trial.state == TrialState.PRUNED:
        return Draw(draw, trial.params, None, "pruned")
    return (
        Draw(draw, trial.params, trial.value, "finished")
        if math.isfinite(trial.value)
        else Draw(draw, trial.params, None, "not finite")
    )


@contextlib.contextmanager
def beating(study: optuna.Study, trial: optuna.Trial) -> Iterator[None]:
    """Sign for a trial as long as the block lasts, from a thread of its own."""
    storage: Any
    storage, ended = study._storage, threading.Event()

    def beat() -> None:
        while True:
            with contextlib.suppress(
                optuna.exceptions.StorageInternalError
            ):  # a signature missed is no harm: see the grace period
                storage.record_heartbeat(trial._trial_id)
            if ended.wait(storage.get_heartbeat_interval()):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
