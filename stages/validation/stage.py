"""The validation of one data set as a stage: what was acquired and what was made of it in,
data/P/validated/D.json out.

A family says what to sum up and by which rules (`gather`); here the files are hashed, the rules
judged and the gate opened or shut. Great Expectations takes seconds to import, so it is imported
when there is something to judge.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stages import files, records, runner
from stages.validation.rules import Rule, Table

Gather = Callable[[Path, Path, dict[str, str]], tuple[dict[str, Table], list[Rule]]]


def work(
    asked: runner.Asked, module: str, layer: str, gather: Gather, params: Mapping[str, Any]
) -> runner.Work:
    """The stage of family module `module`, which judges the raw folder and that of `layer`.

    gather(raw, made, judged) -> tables and rules; `judged` is the SHA-256 of each file by path.
    The work raises GateError on a critical failure, JudgeError if GX fails, DataError for missing
    or unreadable files.
    """
    raw, made = asked.data("raw"), asked.data(layer)
    gate = Path("data", asked["profile"], "validated", f"{asked['dataset']}.json")

    def do() -> dict[str, Path]:
        judge(asked["profile"], asked["dataset"], raw, made, gate, gather)
        return {gate.as_posix(): gate}

    return runner.Work(
        stage="validate",
        cell=f"{asked['profile']}/{asked['dataset']}",
        record=records.location("validate", asked["profile"], asked["dataset"]),
        do=do,
        inputs=[raw, made],
        code=[module],
        params=params,
    )


def judge(profile: str, dataset: str, raw: Path, made: Path, out: Path, gather: Gather) -> None:
    """Sum up, judge, and open or shut the gate `out`. Raises as `work` says."""
    from stages.validation import gate

    judged = {path.as_posix(): files.sha256(path) for path in records.files_in([raw, made])}
    results, internal = gate.judge(*gather(raw, made, judged))
    gate.decide(gate.verdict_of(profile, dataset, results, internal, judged), out)
