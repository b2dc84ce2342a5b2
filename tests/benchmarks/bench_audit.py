"""At which depth each attack on this repository's own results falls, and how long the audit takes.

`python -m tests.benchmarks.bench_audit` (make bench-audit) forges a copy of HEAD and of its mini
results for each attack of tests/audit/attacks.py, audits it depth by depth until it falls, and
writes reports/attacks.json, which the report shows: a row each time, in the place of an earlier
one. Seconds are of the processor, this process' and its children's, so that other work beside it
counts little. Ends with 1 where one falls elsewhere than its table says. `--only WORD` runs those
whose name holds it, `--new` those that have no row.
"""

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stages import arithmetic, files
from stages.audit import DEPTHS, audit
from stages.audit.everything import everything

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
    told = files.read_json(OUT)["rows"] if OUT.exists() else []
    rows = {one["attack"]: one for one in told} | {row["attack"]: row}
    kept = [rows[name] for name in names if name in rows]
    files.write_json(OUT, {"processor": arithmetic.processor()["model"], "rows": kept})


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_audit")
    parser.add_argument("--only", default="", metavar="WORD", help="attacks whose name holds it")
    parser.add_argument("--new", action="store_true", help="attacks that have no row yet")
    asked = parser.parse_args(argv)
    sys.path.insert(0, str(HOME / "tests/audit"))
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
