"""A cut DAG run again on another arithmetic: numbers come out reproduced, nothing is called broken,
decided claims stay.

The copy keeps one experiment on one data set with two trained cells. It is run in the common
arithmetic and committed, then run whole once more with torch's and numba's own kernels, as another
processor would have them.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recipe
from ruamel.yaml import YAML

from stages import arithmetic

CELL = "sparse_fields/mini/darcy/cnp-shared-20k-s0"

pytestmark = [
    pytest.mark.slow_fault,  # in `make test` the audit's small project is run so (test_foreign_run)
    pytest.mark.skipif(
        not arithmetic.able(),
        reason="this processor has no AVX2: there is one arithmetic here, its own",
    ),
]


def cut(folder: Path) -> None:
    """Leave sparse_fields on Darcy's media, trained for a few steps, and nothing that was
    computed before."""
    cells = folder / "reports/sparse_fields/cells.yaml"
    mini, rest = re.split(r"(?m)(?=^sample: &)", cells.read_text(encoding="utf-8"), maxsplit=1)
    mini, count = re.subn(r"(?m)^  evaluated: .*", "  evaluated: [darcy]", mini)
    assert count == 1
    mini = re.sub(r"(?m)^    mini-(?!darcy-).*\n", "", mini)
    cells.write_text(mini + rest, encoding="utf-8")
    # of the prepared data sets the table then waits for the one that is left
    declared = folder / "reports/sparse_fields/dvc.yaml"
    text, whole = declared.read_text(), '"data/${item.profile}/prepared", "${here}/companions.csv"'
    assert text.count(whole) == 1
    declared.write_text(text.replace(whole, whole.replace("prepared", "prepared/darcy")))
    media = folder / "stages/params/datasets/sets.yaml"
    text, count = re.subn("train: 1600, test: 200", "train: 200, test: 40", media.read_text())
    assert count == 1
    media.write_text(text)
    budget = folder / "stages/params/budgets/mini/sets.yaml"
    text, count = re.subn(
        r"darcy: \{steps: 200, validate_every: 100",
        "darcy: {steps: 60, validate_every: 20",
        budget.read_text(),
    )
    assert count == 1
    budget.write_text(text)
    for place in (
        *folder.glob("**/dvc.lock"),
        *folder.glob("reports/*/*/records"),
        *folder.glob("data/*/records"),
    ):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    for table in folder.glob("reports/*/*/metrics.json"):
        shutil.rmtree(table.parent)
    (folder / "reports/sparse_fields/mini").mkdir()
    shutil.copy(
        recipe.ROOT / "reports/sparse_fields/mini/benchmarks.json",
        folder / "reports/sparse_fields/mini",
    )
    (folder / "reports/ledger.jsonl").write_text("")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """The copy: its commit holds the common arithmetic's results, its files those of native
    kernels."""
    folder = recipe.copy(tmp_path_factory.mktemp("foreign"))
    cut(folder)
    for name in (arithmetic.COMMON, arithmetic.NATIVE):
        target = "reports/sparse_fields/dvc.yaml:tabulate@mini"
        recipe.run(folder, "dvc", "repro", "--force", target, TRADEWIND_ARITHMETIC=name)
        if name == arithmetic.COMMON:
            recipe.commit(folder)
    return folder


def asked(folder: Path, *words: str, exit_code: int = 0) -> str:
    """What a verb prints in the copy."""
    command = [sys.executable, "-m", "stages.cli", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == exit_code, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_numbers_are_reproduced_and_what_made_them_stands_in_their_records(foreign):
    path = (
        f"reports/sparse_fields/mini/records/{CELL.split('/')[2]}.{CELL.split('/')[3]}.train.json"
    )
    lines = [
        json.loads(text)["environment"]["arithmetic"].split()[0]
        for text in (recipe.git(foreign, "show", f"HEAD:{path}"), (foreign / path).read_text())
    ]
    assert lines == [arithmetic.COMMON, arithmetic.NATIVE]
    text = asked(foreign, "compare")
    assert "REPRODUCED" in text and "FAIL" not in text and " claim " not in text


def outputs(text: str) -> dict[str, str]:
    """Path -> MD5 of what the stages of a lock made, but for their records."""
    stages = YAML(typ="safe", pure=True).load(text)["stages"].values()
    return {
        out["path"]: out["md5"]
        for stage in stages
        for out in stage["outs"]
        if "/records/" not in out["path"]
    }


def test_data_are_the_same_bytes_in_either_arithmetic_and_weights_are_not(foreign):
    def both(lock: str) -> tuple[dict[str, str], dict[str, str]]:
        return outputs(recipe.git(foreign, "show", f"HEAD:{lock}")), outputs(
            (foreign / lock).read_text()
        )

    before, after = both("data/sets/dvc.lock")
    assert before == after and any("/prepared/" in path for path in before)
    before, after = both("reports/sparse_fields/dvc.lock")
    assert before.keys() == after.keys() and all(
        before[path] != after[path] for path in before if "/runs/" in path
    )


@pytest.mark.parametrize("depth", ["record", "hash", "eval"])
def test_the_audit_judges_what_stands_here_as_it_stands(foreign, depth):
    assert "PASS" in asked(foreign, "audit", f"{CELL}/mse", "--verify", depth)


def test_everything_verifies(foreign):
    assert asked(foreign, "verify", "--all").rstrip().endswith("PASS")


def test_a_wrong_number_is_found_under_the_foreign_arithmetic(foreign):
    table = foreign / "reports/sparse_fields/mini/metrics.json"
    before, content = table.read_text(), json.loads(table.read_text())
    content["cells"]["darcy/cnp-shared-20k-s0"]["metrics"]["mse"]["value"] *= 1.5
    try:
        table.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        said = asked(foreign, "compare", "--every", exit_code=1)
        assert "moved sparse_fields/mini/cells/darcy/cnp-shared-20k-s0/metrics/mse/value" in said
        assert asked(foreign, "audit", f"{CELL}/mse", exit_code=1)
    finally:
        table.write_text(before)
