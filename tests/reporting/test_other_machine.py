"""A run of mini on another machine, by `tradewind compare`: reproduced, but for what is planted."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from stages import files, spreads
from stages.audit import comparison, comparison_text

ROOT = Path(__file__).parents[2]
COMMIT = "5079662"
RESULTS = ROOT.parent / f"shared/other-machine/mini-{COMMIT}.tar.xz"
# where the spreads of that commit's budgets stand: mini has trained for fewer steps since, and
# fewer steps spread less
MEASURED = "953b005b"


def cloned(commit: str) -> bool:
    """Whether this clone has the commit."""
    command = ["git", "-C", str(ROOT), "cat-file", "-e", commit + "^{commit}"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def judged(folder: Path) -> comparison.Comparison:
    """The other machine's numbers by the commit's, by the spreads that its budgets had."""
    kept = folder.parent / "kept"
    for path in comparison.Side(ROOT, MEASURED).named("data/spreads/mini/*.json"):
        content = comparison.Side(ROOT, MEASURED).read(path)
        (kept / path).parent.mkdir(parents=True, exist_ok=True)
        (kept / path).write_bytes(content)
    there, here = comparison.Side(ROOT, COMMIT), comparison.Side(folder, whole=False)
    return comparison.compare(there, here, (COMMIT, "elsewhere"), kept)


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    """What mini of a commit gave on another machine; skips without it or what it is judged by."""
    needed = {
        f"results of another machine, {RESULTS}": RESULTS.is_file(),
        f"commit {COMMIT}": cloned(COMMIT),
        f"the spread of training, commit {MEASURED}": cloned(MEASURED),
    }
    absent = [name for name, here in needed.items() if not here]
    if absent:
        pytest.skip(f"not here: {'; '.join(absent)}")
    with tarfile.open(RESULTS) as archive:
        archive.extractall(tmp_path / "elsewhere", filter="data")
    return tmp_path / "elsewhere"


def test_a_run_on_another_machine_is_reproduced_and_a_wrong_number_in_it_is_named(elsewhere):
    whole = judged(elsewhere)
    tables = {table.experiment: table for table in whole.tables if table.count}
    present = sorted(elsewhere.glob("reports/*/mini/metrics.json"))
    assert sorted(tables) == [file.parts[-3] for file in present] and len(present) > 1
    assert [failure for table in whole.tables for failure in table.failures] == []
    for file in present:
        count = sum(1 for _ in spreads.numbers(json.loads(file.read_text())))
        assert tables[file.parts[-3]].count == count
    assert whole.share <= comparison.RATE and whole.exit_code == 0
    path, address = planted(elsewhere)
    again = judged(elsewhere)
    table = next(table for table in again.tables if table.experiment == path.parts[-3])
    assert address in {one.address for one in table.moved}
    assert address in comparison_text.render(again, every=True)
    assert again.moved == whole.moved + 1


def planted(folder: Path) -> tuple[Path, str]:
    """Make a published RMSE half as large again; its file and address."""
    path = folder / "reports/sparse_fields/mini/metrics.json"
    content = json.loads(path.read_text())
    name = next(name for name in content["cells"] if name.startswith("poisson/msa-"))
    content["cells"][name]["metrics"]["rmse"]["value"] *= 1.5
    files.write_json(path, content)
    return path, f"cells/{name}/metrics/rmse/value"
