"""At which depth each attack on this repository's own results falls, and how long the audit takes.

`python -m tests.benchmarks.bench_audit` (make bench-audit) forges a copy of HEAD and of its mini
results for each attack of tests/audit/attacks.py, audits it depth by depth until it falls, and
writes reports/attacks.json, which the report shows: a row each time, in the place of an earlier
one. Seconds are of the processor, this process' and its children's, so that other work beside it
counts little. Ends with 1 where one falls elsewhere than its table says. `--only WORD` runs those
whose name holds it, `--new` those that have no row. `--raw` times `audit --verify raw` of the
numbers of .ci/run instead, beside the stages of each run alone, one process each.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stages import arithmetic, files
from stages.audit import commands, remade, rerun, verify
from stages.audit.chain import Metric
from stages.audit.everything import everything
from stages.audit.laid import Laid
from stages.audit.verify import DEPTHS, audit

HOME = Path(__file__).parents[2]
OUT = HOME / "reports/attacks.json"
LED = ("PYTHONPATH", "PYTHONSTARTUP", "NUMBA_CACHE_DIR")  # what an attack may set


def spent() -> float:
    """Seconds of the processor that this process and its ended children took."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))


def tried(case: Any, project: Path) -> dict[str, Any]:
    """A row of the table: where an attack on a copy falls."""
    case.forge(project)
    ends = {"nowhere": "eval", "all": "record"}.get(case.depth, "raw")
    depths = (*DEPTHS[: DEPTHS.index(ends) + 1], *(["all"] if case.depth == "all" else []))
    row = {"attack": case.name, "number": case.number, "depth": "missed", "file": "", "seconds": 0}
    for depth in depths:
        before = spent()
        found = everything(project) if depth == "all" else audit(case.number, depth, project)
        row["seconds"] = round(spent() - before, 1)
        named = [one for one in found.problems if one.path.startswith(case.path)]
        if found.verdict == "FAIL" and case.path and any(case.word in one.text for one in named):
            return row | {"depth": depth, "file": named[0].path}
    if case.depth == "nowhere" and found.verdict == "PASS" and not (project / "spied").exists():
        row["depth"] = "nowhere"
    return row


def keep(row: dict[str, Any], names: list[str]) -> None:
    """Put a row into the table, in the order of the attacks; rows of attacks that are gone go."""
    told = files.read_json(OUT) if OUT.exists() else {}
    rows = {one["attack"]: one for one in told.get("rows", ())} | {row["attack"]: row}
    kept = [rows[name] for name in names if name in rows]
    processor = arithmetic.processor()["model"]
    files.write_json(OUT, told | {"processor": processor, "rows": kept})


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """(seconds of the processor, seconds of the clock) of some work."""
    before, start = spent(), time.monotonic()
    work()
    return spent() - before, time.monotonic() - start


def stages_of(number: str) -> tuple[float, float]:
    """What a number's own stages take, each as a process of its own: from the raw files to the
    evaluation of its cells."""
    case = verify.open_case(HOME, Metric.parse(number))
    folder, dataset = case.metric.folder, case.metric.dataset
    homes = [node.homes[0] for node in remade.order(case)]
    if not rerun.untrained(case):
        homes += [f"{folder}/runs/{dataset}/{cell}" for cell in case.chain.cells]
    calls = [(commands.command(case.locks, home), ()) for home in homes]
    evaluate = commands.command(case.locks, f"{folder}/evaluated/{dataset}")
    calls += [(evaluate, ("--cell", cell, "--out", ".cell.json")) for cell in case.chain.cells]
    with tempfile.TemporaryDirectory() as place:
        laid = Laid(HOME, Path(place))
        for home in (*homes, f"{folder}/evaluated/{dataset}"):
            made = case.locks.producer(home)
            laid.link_all(dep for dep in made.deps if not dep.startswith(tuple(homes)))

        def run() -> None:
            for command, more in calls:
                words = [sys.executable, "-m", command.module, *command.words, *more]
                subprocess.run(words, cwd=place, check=True, capture_output=True)

        return timed(run)


def raw() -> int:
    """The audit of each number of .ci/run from its raw files on, beside its own stages; kept with
    the attacks. 1 where one does not pass."""
    text = (HOME / ".ci/run").read_text(encoding="utf-8")
    numbers = re.findall(r'(?m)^  "train (\S+)"$', text)
    rows = []
    for number in numbers:
        stages, clock = stages_of(number)
        words = [sys.executable, "-m", "stages.cli", "audit", number, "--verify", "raw"]
        found: list[int] = []
        ours, ours_clock = timed(
            lambda words=words, found=found: found.append(
                subprocess.run(words, cwd=HOME, check=False, capture_output=True).returncode
            )
        )
        row = {"number": number, "passes": found == [0], "seconds": round(ours, 1)}
        rows.append(row | {"stages": round(stages, 1), "ratio": round(ours / stages, 2)})
        print(
            f"{ours:6.1f} s of {stages:5.1f} s: {ours / stages:.2f} x (clock "
            f"{ours_clock / clock:.2f} x)  {'' if row['passes'] else 'NO PASS  '}{number}",
            flush=True,
        )
    files.write_json(OUT, files.read_json(OUT) | {"raw": rows})
    return int(not all(row["passes"] for row in rows))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_audit")
    parser.add_argument("--only", default="", metavar="WORD", help="attacks whose name holds it")
    parser.add_argument("--new", action="store_true", help="attacks that have no row yet")
    parser.add_argument("--raw", action="store_true", help="time --verify raw beside the stages")
    asked = parser.parse_args(argv)
    if asked.raw:
        return raw()
    sys.path.insert(0, str(HOME / "tests/audit"))
    sys.path.append(str(HOME / "tests"))  # of what they share with others
    import attacks
    import real

    wrong, kept = 0, {name: os.environ.get(name) for name in LED}
    with tempfile.TemporaryDirectory() as folder:
        honest = real.clone(Path(folder, "honest"))
        told = {one["attack"] for one in files.read_json(OUT)["rows"]} if asked.new else set()
        chosen = [one for one in attacks.ATTACKS if asked.only in one.name and one.name not in told]
        for case in tqdm(chosen, disable=None):
            with tempfile.TemporaryDirectory() as place:
                row = tried(case, real.copy(honest, Path(place, "project")))
            for name, value in kept.items():
                os.environ.pop(name, None)
                os.environ |= {name: value} if value is not None else {}
            keep(row, [one.name for one in attacks.ATTACKS])
            wrong += row["depth"] != case.depth
            print(f"{row['depth']:8} {row['seconds']:6.1f} s  {case.name}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
