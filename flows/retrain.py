"""`python -m flows.retrain`: look into the drop folder once, and when the raw captures are new,
retrain and judge.

Taken in -> `dvc add` -> the live profile's DAG as far as its experiments' tables -> challenger
against champion -> ledger, page -> commit. DVC and the stages do the work; this file says in which
order, and what is owed after a kill: every step may be repeated, so a run that was killed is
finished by the next one, with one ledger entry for one state of the raw data and one commit. While
nothing is new no DVC command is run. A state that failed is not tried again before the data, the
parameters or the commit change (`--again`).
Exit code: 0 done or nothing new, 1 failed, 2 the user's mistake, 75 another flow is running.
`flows.retrain.retrain` is the Prefect flow.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows import profiles, repro
from flows.asked import within
from flows.git import Repository
from flows.process import WORK, FlowError, die_with, ended_by, environment, leashed
from flows.profiles import switched, write
from flows.server import hidden, reachable
from flows.settings import LEDGER, Settings, settings
from flows.shown import show_entry

PLACE = WORK / "retraining"
INTAKE = PLACE / "intake.json"
OWED = PLACE / "owed.json"  # the state that is being judged; gone when its commit is made
FAILED = PLACE / "failed.json"  # the attempt that need not be repeated
RUNNER = "TRADEWIND_RUNNER"  # the process id of the schedule that starts runs
SHORT = "drop more captures"  # what `prepare` says of too little data
Step = Callable[[str, Callable[..., Any]], Callable[..., Any]]
Say = Callable[[str], None]


class StageError(FlowError):
    """What a stage itself said: on the same data it would say it again."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `kind` is one of completed, failed, cancelled."""

    kind: str
    message: str
    exit_code: int = 0
    entry: dict[str, Any] | None = None  # of the ledger, where something was judged


def load(path: Path) -> dict[str, Any]:
    """A JSON object of the work folder, {} where there is none. FlowError 2 for a damaged one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise FlowError(f"{path} is damaged: {error}\n  remedy: remove it, run again", 2) from None
    return found if isinstance(found, dict) else {}


def stage_error(text: str) -> str:
    """The error that a stage told (from its line `error: ...` on), out of a log; "" where it
    told none."""
    found = re.search(r"(?ms)^error: (.*?)(?=^ERROR: |\Z)", text)
    return found[1].strip() if found else ""


def stage(step: str, *arguments: str) -> None:
    """`python -m stages.winds.retraining STEP`. FlowError with what it told and its exit code (1
    for codes of other meaning)."""
    done = subprocess.run(
        leashed([sys.executable, "-m", "stages.winds.retraining", step, *arguments]),
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        message = (
            stage_error(done.stderr)
            or f"it ended with {done.returncode}\n{done.stderr.strip()[-4000:]}"
        )
        kind = StageError if stage_error(done.stderr) else FlowError
        raise kind(f"{step}: {message}", done.returncode if done.returncode in (2, 75) else 1)


def intake(drop: str | None) -> dict[str, Any]:
    """Take captures in; what became of them."""
    INTAKE.unlink(missing_ok=True)
    stage("intake", *(["--drop", drop] if drop else []))
    return load(INTAKE)


def summary(taken: dict[str, Any]) -> str:
    """What was taken in, for a person."""
    parts = [
        (
            f"took in {len(taken['accepted'])} captures, {taken['captures']} in all "
            f"({taken['span_s'] / 3600:.1f} h)"
        )
    ]
    parts += [f"{len(taken['seen'])} were known"] if taken["seen"] else []
    parts += [
        f"{item['name']} is in quarantine: {'; '.join(map(str, item['reasons']))}"
        for item in taken["quarantined"]
    ]
    parts += [f"{item['name']} is left: {item['reason']}" for item in taken["left"]]
    return "; ".join(parts)


def judged(raw: str) -> dict[str, Any] | None:
    """The ledger's last entry on this state of the raw data."""
    if not raw or not LEDGER.exists():
        return None
    try:
        entries = [
            json.loads(line)
            for line in LEDGER.read_text(encoding="utf-8").splitlines()
            if line.strip()
        ]
        return next(
            (
                entry
                for entry in reversed(entries)
                if entry["raw"] == raw and entry["kind"] != "rollback"
            ),
            None,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise FlowError(
            f"{LEDGER} cannot be read: {error}\n"
            "  remedy: `tradewind ledger --verify` names the line; git holds the file as it was"
        ) from None


def attempt(raw: str, repository: Repository) -> dict[str, str]:
    """What an attempt rests on: while this is the same, a failure would be the same."""
    return {"raw": raw, "head": repository.head(), "params": settings_now()}


def settings_now() -> str:
    """A digest of every file of parameters and of cells, as they are."""
    found = hashlib.sha256()
    for path in [*profiles.files(), *sorted(Path("stages/params").rglob("*.yaml"))]:
        found.update(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return found.hexdigest()


def reproduce(asked: Settings, jobs: int) -> str:
    """The DAG of the profile as far as the tables of the experiments that compete. FlowError with
    what the failed stages told."""
    try:
        return repro.everything_up_to_date(jobs, 0, {}, asked.targets)
    except FlowError as error:
        names = str(error).partition("stages failed: ")[2].split(", ")
        logs = {name: repro.log_of(name) for name in names if name and repro.log_of(name).exists()}
        messages = {
            name: stage_error(log.read_text(encoding="utf-8", errors="replace"))
            for name, log in logs.items()
        }
        if not messages:
            raise
        kind = StageError if all(messages.values()) else FlowError
        raise kind(
            "\n".join(f"{name}: {text or f'see {logs[name]}'}" for name, text in messages.items()),
            error.exit_code,
        ) from None


def finish(asked: Settings, repository: Repository, raw: str, say: Say) -> dict[str, Any]:
    """After the judgement: the store of champions in DVC, the page, the commit; the ledger's
    entry."""
    entry = judged(raw)
    if entry is None:
        raise FlowError(
            "the judgement ended without an entry in the ledger for the captures as they are"
        )
    store = Path("data", asked.profile, "champions")
    if store.is_dir():
        repro.dvc("add", str(store))
        push(say, f"{store}.dvc")
    repro.reproduce("-s", "report", log=repro.log_of("report"))
    if asked.commit:
        taken = load(INTAKE)
        on = f"on {taken['captures']} captures" if taken.get("raw") == raw else "on new captures"
        repository.commit(
            asked.kept, f"Retrain {on}: {entry['kind']} (ledger entry {entry['number']})"
        )
    OWED.unlink(missing_ok=True)
    return entry


def push(say: Say, *targets: str) -> None:
    """`dvc push` to the default remote, where there is one; its failure is told and does no
    harm."""
    if not re.search(r"(?m)^\s*core\.remote=", repro.dvc("config", "--list")):
        return
    try:
        repro.dvc("push", *targets)
    except FlowError as error:
        say(f"warning: {hidden(str(error))}")


def once(
    step: Step, say: Say, *, drop: str | None = None, again: bool = False, jobs: int = 1
) -> Outcome:
    """One run; `step(name, function)` wraps each part (a Prefect task, or nothing at all).
    FlowError when a part fails."""
    repository = Repository()
    ended = ""
    with switched():
        asked = settings()
        if asked.commit:
            repository.check()
        if (owed := load(OWED)) and judged(owed["raw"]):
            entry = step("finish", finish)(asked, repository, owed["raw"], say)
            ended = f"finished an earlier run: {entry['kind']}, ledger entry {entry['number']}"
            say(ended)
        taken = step("intake", intake)(drop)
        say(summary(taken))
        if not taken["captures"] or judged(taken["raw"]):
            return Outcome("completed", ended or "nothing new")
        key = attempt(taken["raw"], repository)
        before = load(FAILED)
        if before.get("key") == key and not again:
            say(before["message"])
            return Outcome("completed", f"nothing new; {before['word']} (--again tries anyway)")
    try:
        with switched(asked.profile):
            step("dvc add", repro.dvc)("add", str(asked.raw))
            say(step("reproduce", reproduce)(asked, jobs))
            step("push", push)(say, "--with-deps", *asked.targets)
        with switched():
            write(OWED, json.dumps({"raw": taken["raw"]}))
            step("judge", stage)("judge")
            entry = step("finish", finish)(asked, repository, taken["raw"], say)
    except FlowError as error:
        return unfinished(error, key)
    FAILED.unlink(missing_ok=True)
    return Outcome("completed", f"{entry['kind']}, ledger entry {entry['number']}", entry=entry)


def unfinished(error: FlowError, key: dict[str, str]) -> Outcome:
    """How a run ends whose part failed: too little data is no failure. What a stage told is
    remembered; a crash is tried again."""
    if error.exit_code == 75:
        raise error
    short = SHORT in str(error)
    word = "waiting for more captures" if short else "the last attempt on these captures failed"
    if isinstance(error, StageError):
        write(FAILED, json.dumps({"key": key, "word": word, "message": str(error)}, indent=1))
    return (
        Outcome("completed", f"{word}: {error}")
        if short
        else Outcome("failed", str(error), error.exit_code)
    )


def flow_of(ends: list[Outcome]) -> Any:
    """The Prefect flow; how a run ended is also appended to `ends`."""
    os.environ.update(environment())  # Prefect reads it when it is imported
    from prefect import flow, get_run_logger, task
    from prefect.cache_policies import NO_CACHE
    from prefect.states import Cancelled, Completed, Failed

    def step(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            kept: list[Any] = []

            def part() -> Any:
                try:
                    kept.append(work(*arguments))
                except FlowError as error:  # a state without a traceback
                    kept.append(error)
                    return Failed(message=str(error))

            state = task(part, name=name, cache_policy=NO_CACHE, persist_result=False)(
                return_state=True
            )
            if not kept:
                state.result()  # raises what was not foreseen
            if isinstance(kept[0], FlowError):
                raise kept[0]
            return kept[0]

        return run

    @flow(name="retrain", persist_result=False)
    def retrain(drop: str | None = None, again: bool = False, jobs: int | None = None) -> Any:
        """Look into the drop folder once; retrain and judge when the raw captures are new."""
        if os.environ.get(RUNNER):
            die_with(int(os.environ[RUNNER]))
        log = get_run_logger()
        say = log.info if log.isEnabledFor(20) else lambda text: print(text, flush=True)
        try:
            end = once(step, say, drop=drop, again=again, jobs=jobs or os.cpu_count() or 1)
        except FlowError as error:
            end = Outcome(
                "cancelled" if error.exit_code == 75 else "failed", str(error), error.exit_code
            )
        except BaseException:  # a signal
            repro.end_children()
            raise
        ends.append(end)
        if end.entry:
            with switched():
                show_entry(end.entry, Path("data", settings().profile, "drift.json"))
        if end.kind == "completed":
            say(end.message)
        return {"completed": Completed, "failed": Failed, "cancelled": Cancelled}[end.kind](
            message=end.message
        )

    return retrain


def __getattr__(name: str) -> Any:
    """The flow under its name, `flows.retrain.retrain`: Prefect is imported when it is asked
    for, not with this file."""
    if name == "retrain":
        return flow_of([])
    raise AttributeError(name)


def main(arguments: list[str] | None = None) -> int:
    """Parse, run once; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.retrain", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--drop", help="the folder to look into, instead of params.yaml's retraining.drop"
    )
    parser.add_argument(
        "--again", action="store_true", help="try a state of the captures that failed before"
    )
    parser.add_argument(
        "--jobs", type=within(1, 256), default=os.cpu_count(), metavar="N", help="stages at once"
    )
    asked = parser.parse_args(arguments)
    ended_by(repro.stop)
    ends: list[Outcome] = []
    try:
        with switched():
            # the user's mistakes, and whether another flow runs, before Prefect is even started
            settings()
        with reachable():
            state = flow_of(ends)(
                drop=asked.drop, again=asked.again, jobs=asked.jobs, return_state=True
            )
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    if not ends or ends[0].exit_code:
        print(f"error: {ends[0].message if ends else state.message}", file=sys.stderr)
    return ends[0].exit_code if ends else 1


if __name__ == "__main__":
    sys.exit(main())
