"""A judgement killed anywhere leaves one entry, and the same bytes in the end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import live_project
import pytest

from stages.winds.retraining import champions, ledger

# --- kills

DRIVER = """
import json, os, shutil, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import live_project
from stages.batches import device
from stages.training import store
from stages.winds.retraining import judge
template, home = map(Path, sys.argv[3:5])
codes = {}

def run(folder, fault=None):  # a fork of a process in which nothing has run yet: no interpreter \
starts for each kill
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        os.environ.update({"FAULT": fault} if fault else {})
        judge.run(live_project.settings())
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

for point in sys.argv[5:]:
    codes[point], n = [], 0
    while not codes[point] or codes[point][-1] == -9:
        n += 1
        folder = home / f"{point}-{n}"
        shutil.copytree(template, folder)
        codes[point].append(run(folder, f"{point}:{n}"))
        shutil.copytree(folder, home / f"{point}-{n}-killed")
        codes[point] += [-1000] * (run(folder) != 0)
print(json.dumps(codes))
"""


def killed(template: Path, home: Path, *points: str) -> dict[str, list[int]]:
    """For each point the exit codes of the runs in `home` that were killed at its 1st, 2nd, ...
    passage until none was."""
    clean = {name: value for name, value in os.environ.items() if name != "FAULT"}
    arguments = [str(live_project.ROOT), str(Path(__file__).parent), str(template), str(home)]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments, *points],
        env=clean,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def state(folder: Path) -> dict:
    """Everything a judgement leaves, without the time; temporary files count."""
    entries = [
        json.loads(line)
        for line in (folder / ledger.LEDGER).read_text(encoding="utf-8").splitlines()
    ]
    told = [
        {key: value for key, value in entry.items() if key not in ("time", "digest")}
        for entry in entries
    ]
    kept = {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for top in ("data/live", "reports", ".work/retraining")
        for p in sorted((folder / top).rglob("*"))
        if p.is_file()
    }
    del kept[ledger.LEDGER.as_posix()]
    verdict = json.loads(kept.pop(".work/retraining/verdict.json"))
    return {"ledger": told, "kept": kept, "verdict": verdict | {"due": None}}


# before_rename and after_rename are passed by the drift report, the champion's reference and
# folder, the ledger, the verdict
@pytest.mark.parametrize(
    ("point", "times"),
    [
        pytest.param("before_rename", 5, marks=pytest.mark.slow_fault),
        pytest.param("after_rename", 5, marks=pytest.mark.slow_fault),
        pytest.param("before_ledger", 1, marks=pytest.mark.slow_fault),
        ("after_ledger", 1),
    ],
)
def test_a_kill_anywhere_leaves_one_entry_and_the_same_bytes_in_the_end(
    template, tmp_path, monkeypatch, point, times
):
    home, codes = tmp_path, killed(template, tmp_path, "undisturbed", point)
    assert codes[point] == [-9] * times + [0]
    expected = state(home / "undisturbed-1")
    assert [entry["kind"] for entry in expected["ledger"]] == ["promoted"]
    for n in range(1, times + 2):
        assert state(home / f"{point}-{n}") == expected
        monkeypatch.chdir(home / f"{point}-{n}-killed")
        entries = ledger.read()
        assert len(entries) <= 1
        if entries:
            champions.verified(
                live_project.settings()
            )  # what the ledger names lies whole in the store already
