"""`python -m flows.bench` (`make bench-dag`): what DVC and Prefect cost on top of the work, against
the goals; seconds.

Measured on this project's own DAG in a temporary copy whose commands only write their outputs
(nothing here is touched, and it does not matter whether this copy is up to date; when it is, its
own no-op is measured too), and on stub stages. Two things that are compared run one after the other
in the same call. `--real TARGET` runs a target's true stages, serially and in parallel, each in a
copy of its own from nothing: hours for all of mini, minutes for one experiment. `--locks N` counts
lock errors in N parallel runs.
"""

import argparse
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from flows.asked import within
from flows.dag import parse, schedule
from flows.process import DVC, FlowError, environment, leashed
from flows.repro import CODE

ROOT = Path(__file__).parents[1]
STUB = """import pathlib, sys
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    if not path.suffix:
        path.mkdir(parents=True, exist_ok=True)
        path /= "a.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)
"""
CELL = """stages:
  cell:
    matrix: {number: [%s]}
    cmd: %s && echo ${item.number} > ${item.number}
    params: [../params.yaml: [seed]]
    outs: ["${item.number}"]
"""
REAL = "reports/wind_nowcast/dvc.yaml:tabulate@mini"
Row = tuple[str, str, str, str]  # what, measured, goal, verdict


def say(text: str) -> None:
    """What is being measured, on standard error."""
    print(text, file=sys.stderr, flush=True)


def call(*command: str, cwd: Path) -> str:
    """A command's standard output. FlowError with the end of what it said when it fails."""
    done = subprocess.run(
        leashed(list(command)),
        cwd=cwd,
        env=environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FlowError(
            f"`{shlex.join(command)}` in {cwd} ended with {done.returncode}:\n"
            f"{(done.stdout + done.stderr)[-3000:]}"
        )
    return done.stdout


def timed(work: Callable[[], Any], times: int = 1) -> float:
    """The median of the seconds that the work takes."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return statistics.median(found)


def row(what: str, measured: float, goal: float, unit: str = "s", most: bool = True) -> Row:
    """A line of the table: the goal is the most (or the least) that the measured may be."""
    met = measured <= goal if most else measured >= goal
    found = (
        what,
        f"{measured:.2f} {unit}",
        f"{'at most' if most else 'at least'} {goal:g} {unit}",
        "met" if met else "MISSED",
    )
    say(f"  {', '.join(found)}")
    return found


def copy(to: Path) -> None:
    """The project's files (those that git knows or would add), as a repository of their own."""
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    repository(to)


def repository(folder: Path) -> None:
    """Make the folder a git and DVC repository with an empty cache."""
    shutil.rmtree(folder / ".dvc", ignore_errors=True)
    call("git", "init", "-q", ".", cwd=folder)
    call(*DVC, "init", "-q", cwd=folder)


def outs(stage: dict[str, Any]) -> list[str]:
    """The declared outputs, metrics and plots among them."""
    return [
        out if isinstance(out, str) else next(iter(out))
        for kind in ("outs", "metrics", "plots")
        for out in stage.get(kind, [])
    ]


def stub(folder: Path) -> None:
    """Give every stage of the copy a command that only writes its outputs; but the lists of
    code, of which stages read single files, are made."""
    (folder / "stub.py").write_text(STUB, encoding="utf-8")
    for file in folder.rglob("dvc.yaml"):
        data = YAML(typ="safe").load(file)
        for name, stage in data["stages"].items():
            stage = stage.get("do", stage)
            if name == CODE:
                continue
            stage["cmd"] = f"exec python stub.py {' '.join(outs(stage))}"
        with file.open("w", encoding="utf-8") as stream:
            YAML(typ="safe").dump(data, stream)
        file.with_name("dvc.lock").unlink(missing_ok=True)


def own(folder: Path) -> list[Row]:
    """This project's DAG with stub commands: the first repro, then the no-ops."""
    copy(folder)
    stub(folder)
    stages = len(parse(call(*DVC, "dag", "--dot", cwd=folder)))
    say(f"this project's {stages} stages with stub commands: the first serial repro ...")
    first = timed(lambda: call(*DVC, "repro", "-q", cwd=folder))
    say(f"  {first:.0f} s, {first / stages:.2f} s a stage; the no-ops ...")
    return [
        row(
            f"no-op `dvc repro`, {stages} stages",
            timed(lambda: call(*DVC, "repro", cwd=folder), 3),
            5,
        ),
        row(
            f"no-op `python -m flows.repro`, {stages} stages",
            timed(lambda: call(sys.executable, "-m", "flows.repro", cwd=folder), 3),
            8,
        ),
    ]


def here() -> list[Row]:
    """The no-ops of this very copy, when it is up to date."""
    say("is this copy up to date? ...")
    if stale := json.loads(call(*DVC, "status", "--json", cwd=ROOT) or "{}"):
        say(f"  no: {len(stale)} stages are stale, so its own no-op is not measured")
        return []
    return [
        row("no-op `dvc repro`, here", timed(lambda: call(*DVC, "repro", cwd=ROOT), 3), 5),
        row(
            "no-op `python -m flows.repro`, here",
            timed(lambda: call(sys.executable, "-m", "flows.repro", cwd=ROOT), 3),
            8,
        ),
    ]


def cells(folder: Path, files: int, each: int, seconds: float = 0.0) -> None:
    """Stub cells in several dvc.yaml, and a top one that gathers them."""
    names = [[f"x{file}-{cell}" for cell in range(each)] for file in range(files)]
    folder.mkdir(parents=True)
    (folder / "params.yaml").write_text(
        "profiles:\n  mini: &mini {profile: mini}\nrun: *mini\nseed: 0\n", encoding="utf-8"
    )
    for file, own_names in enumerate(names):
        (folder / f"c{file}").mkdir()
        (folder / f"c{file}/dvc.yaml").write_text(
            CELL % (", ".join(own_names), f"sleep {seconds:g}"), encoding="utf-8"
        )
    every = ", ".join(
        f"c{file}/{name}" for file, own_names in enumerate(names) for name in own_names
    )
    (folder / "dvc.yaml").write_text(
        f"stages:\n  end: {{cmd: echo > end, deps: [{every}], outs: [end]}}\n", encoding="utf-8"
    )
    repository(folder)


def overhead(folder: Path) -> list[Row]:
    """DVC's own seconds for each of 150 stub cells in three dvc.yaml, serially."""
    cells(folder, 3, 50)
    say("150 stub cells in three dvc.yaml, serially ...")
    return [
        row(
            "DVC's own time a stage, 150 cells",
            timed(lambda: call(*DVC, "repro", "-q", cwd=folder)) / 151,
            0.3,
        )
    ]


def parallel(folder: Path, each: int = 7, seconds: float = 10.0) -> list[Row]:
    """The flow with two jobs against the serial repro, on stages that wait. Prefect's start is
    counted, the making of its home is not."""
    for name, command in {
        "serial": [*DVC, "repro"],
        "flow": [sys.executable, "-m", "flows.repro", "--target"],
    }.items():
        cells(folder / name, 3, each, seconds)
        call(*command, "c0/dvc.yaml:cell@x0-0", cwd=folder / name)
    count = 3 * each - 1
    say(f"{count} stages of {seconds:g} s: serially ...")
    serial = timed(lambda: call(*DVC, "repro", "-q", cwd=folder / "serial"))
    say(f"  {serial:.0f} s; two at a time under Prefect ...")
    flow = timed(
        lambda: call(sys.executable, "-m", "flows.repro", "--jobs", "2", cwd=folder / "flow")
    )
    say(f"  {flow:.0f} s")
    return [
        row(
            f"flow with 2 jobs against serial, {count} stages of {seconds:g} s",
            serial / flow,
            1.6,
            "x",
            most=False,
        )
    ]


def start(times: int = 7) -> list[Row]:
    """The start of a stage that needs no torch."""
    say("the start of a stage without torch ...")
    code = "import sys, stages.winds.acquire; assert 'torch' not in sys.modules"

    def begin():
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)

    return [row("start of a stage without torch", timed(begin, times), 0.4)]


def real(folder: Path, target: str) -> list[Row]:
    """A target's true stages from nothing, serially and with two jobs, each in a copy of its
    own."""
    took = {}
    for name, command in {
        "serial": [*DVC, "repro", "-q", target],
        "flow": [sys.executable, "-m", "flows.repro", "--jobs", "2", "--target", target],
    }.items():
        copy(folder / name)
        for lock in (folder / name).rglob("dvc.lock"):
            lock.unlink()
        say(f"{target}, {name} ...")
        took[name] = timed(lambda name=name, command=command: call(*command, cwd=folder / name))
        say(f"  {took[name]:.0f} s")
    return [
        row(
            f"flow with 2 jobs against serial, {target}",
            took["serial"] / took["flow"],
            1.6,
            "x",
            most=False,
        )
    ]


def locks(folder: Path, runs: int) -> list[Row]:
    """Parallel runs of eight stub cells, four at a time; how many lock errors they knew."""
    cells(folder, 2, 4)
    graph = parse(call(*DVC, "dag", "--dot", cwd=folder))
    errors = 0
    for number in range(runs):
        text = (folder / "params.yaml").read_text(encoding="utf-8").rpartition("seed:")[0]
        (folder / "params.yaml").write_text(f"{text}seed: {number + 1}\n", encoding="utf-8")
        said: list[str] = []

        def begin(stage: str, done: Callable[[bool], None], said: list[str] = said) -> None:
            def work() -> None:
                try:
                    call(*DVC, "--wait-for-lock", "repro", "-s", stage, cwd=folder)
                except FlowError as error:
                    said.append(str(error))
                done(True)

            threading.Thread(target=work).start()

        schedule(graph, begin, jobs=4)
        errors += len(said)
        say(f"  run {number + 1} of {runs}: {errors} errors so far")
    return [row(f"errors in {runs} parallel runs of {len(graph)} stages", errors, 0, "")]


def table(rows: list[Row]) -> str:
    """The rows in columns."""
    widths = [max(len(line[column]) for line in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in rows
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 0 also when a goal is missed, for times depend on what else the machine
    does."""
    parser = argparse.ArgumentParser(
        prog="python -m flows.bench", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--real",
        nargs="?",
        const=REAL,
        metavar="TARGET",
        help=f"only: a target's true stages, serial and parallel ({REAL})",
    )
    parser.add_argument(
        "--locks",
        type=within(1, 10_000),
        metavar="N",
        help="only: count lock errors in N parallel runs",
    )
    asked = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="tradewind-bench-") as name:
            folder = Path(name)
            if asked.real or asked.locks:
                rows = (real(folder / "real", asked.real) if asked.real else []) + (
                    locks(folder / "locks", asked.locks) if asked.locks else []
                )
            else:
                rows = [
                    *start(),
                    *own(folder / "own"),
                    *here(),
                    *overhead(folder / "cells"),
                    *parallel(folder / "parallel"),
                ]
    except FlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(table([("what", "measured", "goal", ""), *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
