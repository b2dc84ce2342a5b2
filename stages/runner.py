"""One runner for every stage: names -> plan -> guard -> work -> record.

A stage's module says which names it is asked with and plans its work: what it reads and writes,
what its record tells, and what is done. All that stages share stands here: the command line,
unknown names, the lock, durations, the record, exit codes. Mistakes of the user's are told
before any work, so a plan imports what is heavy (torch, Great Expectations) only when it works.
"""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages import code, files, params, records
from stages.errors import InputError, TradewindError, reported

NAMES = {
    "experiment": "a folder of reports/",
    "profile": "a profile of params.yaml",
    "dataset": "a data set of the profile",
    "model": "a model of params.yaml",
    "cell": "a cell of the experiment (reports/EXPERIMENT/cells.yaml)",
}


@dataclass(frozen=True)
class Asked:
    """The names that a stage was called with, checked, and the parameters."""

    names: Mapping[str, Any]  # text, or what an option of the stage's own makes of it
    parameters: params.Params

    def __getitem__(self, name: str) -> str:
        return str(self.names[name])

    @property
    def profile(self) -> params.Profile:
        """The profile of that name."""
        return self.parameters.profiles[self.names["profile"]]

    @property
    def trained(self) -> params.Cells:
        """What the experiment of that name trains under the profile."""
        return self.parameters.trained(self.names["experiment"], self.names["profile"])

    @property
    def home(self) -> Path:
        """The folder of the experiment's results: reports/EXPERIMENT/PROFILE."""
        return Path("reports", self.names["experiment"], self.names["profile"])

    def data(self, layer: str) -> Path:
        """data/PROFILE/LAYER/DATASET: a layer (raw, decoded, prepared) of the data set."""
        return Path("data", self.names["profile"], layer, self.names["dataset"])


@dataclass(frozen=True)
class Work:
    """What a stage is about to do.

    stage: its word in the record; cell: PROFILE/DATASET[/CELL]; record: the record's file, None for
    work that is no stage's own and leaves no trace; inputs: files and folders that it reads; code:
    modules on whose closures it rests; params: what the record tells of parameters; do: does it and
    returns the outputs, final path -> file that holds its bytes; environment: what the record tells
    beside the machine's own; clear: removes, once the record stands, what a killed run would have
    gone on from.
    """

    stage: str
    cell: str
    record: Path | None
    do: Callable[[], Mapping[str, Path]]
    inputs: Sequence[Path]
    code: Sequence[str]
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    device: str = "cpu"
    threads: int | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    clear: Callable[[], object] | None = None


def known(what: str, name: str, names: Collection[str], where: str = "") -> str:
    """The name, where it is one of `names`; else an InputError that gives the nearest."""
    if name not in names:
        nearest = params.nearest(name, names).lstrip("; ")
        raise InputError(f"unknown {what}", where=where, found=repr(name), expected=nearest)
    return name


def _alone() -> bool:
    """Whether this process is a stage's own (`python -m stages...`), so that all it loaded is."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.partition(".")[0] == __name__.partition(".")[0]


def run(work: Work) -> None:
    """Do the work under its lock and write its record. TradewindError, OSError as they come.

    The lock is the record's: two experiments may evaluate one data set at once.
    """
    if work.record is None:
        files.die_with(os.getppid())
        work.do()
        return
    with files.guard(work.record.with_suffix("").as_posix()), records.timed(work.stage, work.cell):
        outputs = work.do()
        declared(work)
        record = records.make(
            work.stage,
            work.cell,
            inputs=work.inputs,
            outputs=dict(outputs),
            params=dict(work.params),
            code=code.recorded(work.code),
            seed=work.seed,
            device=work.device,
            threads=work.threads,
        )
        record["environment"] |= work.environment
        files.fault("before_record")
        files.write_json(work.record, record)
        if work.clear:
            files.fault("before_clear")
            work.clear()


def declared(work: Work) -> None:
    """TradewindError where a stage's process has loaded code that the work does not rest on."""
    if _alone() and (strays := code.outside(work.code)):
        raise TradewindError(
            "the stage loaded code that it does not declare",
            where=work.cell,
            found=", ".join(strays),
            remedy="name these modules in the stage's Work.code and its deps in dvc.yaml",
        )


def command(
    module: str,
    about: str,
    names: Sequence[str],
    plan: Callable[[Asked], Work],
    argv: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    run: Callable[[Work], None] = run,
) -> int:
    """The command line of a stage: `python -m MODULE NAMES...`; its exit code.

    module: dotted name of the stage's module; about: one sentence for --help; names: of NAMES;
    options: of the stage's own, flag -> what argparse is told of it; they stand among Asked.names;
    run: what does the planned work.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    for name in names:
        parser.add_argument(name, help=NAMES[name])
    for flag, told in (options or {}).items():
        parser.add_argument(flag, **told)
    given = vars(parser.parse_args(argv))

    def work() -> None:
        parameters = params.load()
        if "experiment" in given:
            known("experiment", given["experiment"], params.experiments())
        known("profile", given["profile"], parameters.profiles)
        run(plan(Asked(given, parameters)))

    return reported(work)
