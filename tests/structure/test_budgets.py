"""What a family's stages cost in the last run of mini, by the run's own durations, is in keeping
with the budgets that CONTRIBUTING.md tells.

Sweeps do not count: what they found stands in git, so that a cold run repeats none. Budgets are of
one machine; another is slower or busy, and faster at one family than at another, so that a
family's share of the run is judged by its share of the budgets, and only three times that fails.
"""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DURATIONS = ROOT / ".work/durations.jsonl"
WORK = ("train", "evaluate")
MOST = 3  # shares of the budgets
ROW = re.compile(r"(?m)^\| work of ([a-z, ]+?) \| ([\d.]+) \|$")
GOAL = re.compile(r"(?m)^\| (.*?`.+) \| ([\d.]+) \|$")  # of a whole command, which people time
BUDGETS = {
    family: row
    for row in ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for family in row[0].split(", ")
}


def family_of(experiment: str) -> str:
    """Whose evaluation an experiment declares: the last of fields.processes that has a budget."""
    text = (ROOT / "reports" / experiment / "dvc.yaml").read_text(encoding="utf-8")
    found = re.search(r"stages\.([\w.]+)\.evaluate", text)
    assert found, f"reports/{experiment}/dvc.yaml evaluates nothing"
    return next(name for name in reversed(found[1].split(".")) if name in BUDGETS)


def ran() -> dict[tuple[str, str], tuple[str, int]]:
    """(stage, cell) of mini's records -> the row of their budget, and how many records tell it."""
    found: dict[tuple[str, str], str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for file in sorted(ROOT.glob("reports/*/mini/records/*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["stage"] in WORK:
            row = BUDGETS[family_of(file.parts[-4])][0]
            key = record["stage"], record["cell"]
            assert found.setdefault(key, row) == row, f"two budgets pay for {key}"
            counts[key] += 1
    return {key: (row, counts[key]) for key, row in found.items()}


def spent(lines: list[str], wanted: dict[tuple[str, str], tuple[str, int]]) -> dict[str, float]:
    """Row of a budget -> core-minutes of the last run of each of its stages; of the rows all of
    whose stages ran here. Each stage computes on one core."""
    seconds = defaultdict(list)
    for line in lines:
        told = json.loads(line)
        seconds[told["stage"], told["cell"]].append(told["seconds"])
    lacking = {row for key, (row, count) in wanted.items() if len(seconds[key]) < count}
    sums: Counter[str] = Counter()
    for key, (row, count) in wanted.items():
        if row not in lacking:
            sums[row] += sum(seconds[key][-count:]) / 60
    return sums


def test_of_many_runs_the_last_counts_and_a_stage_that_did_not_run_is_told():
    lines = [
        json.dumps({"stage": "train", "cell": cell, "seconds": seconds})
        for cell, seconds in (("a", 600), ("a", 60), ("b", 30), ("b", 30))
    ]
    wanted = {("train", "a"): ("one", 1), ("train", "b"): ("one", 2), ("train", "c"): ("two", 1)}
    assert spent(lines, wanted) == {"one": 2.0}


@pytest.mark.parametrize("row", sorted({row for row, _ in BUDGETS.values()}))
def test_the_last_run_of_mini_is_in_keeping_with_the_budget(row):
    lines = DURATIONS.read_text(encoding="utf-8").splitlines() if DURATIONS.exists() else []
    told, budgets = spent(lines, ran()), {name: float(most) for name, most in BUDGETS.values()}
    if told.keys() != budgets.keys():
        pytest.skip("not all stages of mini ran here (.work/durations.jsonl)")
    share, allowed = (one[row] / sum(one.values()) for one in (told, budgets))
    assert share <= MOST * allowed, f"{row}: {told[row]:.1f} core-minutes, {share:.0%} of the run"


def test_whole_commands_have_goals():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {name: float(most) for name, most in GOAL.findall(text)} == {
        "`make repro`, mini, nothing cached, set-up included": 20,
        "`make setup` and `make repro` in a fresh clone with a shared cache": 4,
        "`.ci/run`": 40,
        "`make test`": 14,
        "`make check`": 1.5,
        "`tradewind verify --all` on mini": 0.5,
    }


def test_every_experiment_has_a_budget():
    assert {row for row, _ in ran().values()} == {row for row, _ in BUDGETS.values()}
