"""The recipe of a family, followed in a copy of the project: bent coins become a family with an
experiment of its own, and no file of an engine is edited.

CONTRIBUTING.md tells the recipe; `toy_family` beside this file holds the family's files, each at
its place. The copy is run once. What is expected is counted here from the raw tosses, in plain
Python.
"""

import csv
import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from recipe import ROOT, commit, copy, git, recipes, run, touched

from stages import code
from stages.exports import croissant
from stages.exports.tree import of_commit
from stages.files import sha256
from stages.tables import parts

STEPS = recipes((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))["Add a family"]
FILES = Path(__file__).parent / "toy_family"
OWN = (
    "stages/toys/",
    "stages/params/datasets/toys.yaml",
    "stages/params/families/",
    "stages/params/models/",
    "data/toys/",
    "reports/bent_coins/",
)
HOME = "reports/bent_coins/mini"
TRAIN, TEST = 0.6, 0.8  # of a coin's tosses, the first of those that do not train, that test
CLOSE = 1e-3  # nats: what a hundred steps leave of the way to the likeliest chances


@pytest.fixture(scope="module")
def unrun(tmp_path_factory) -> Path:
    """A copy of the project in which the recipe was followed, without other experiments' results
    (they have no part in it, and DVC would read their locks)."""
    folder = copy(tmp_path_factory.mktemp("family") / "project")
    for place in (*folder.glob("**/dvc.lock"), *folder.glob("reports/*/*/page.json")):
        place.unlink()
    for table in folder.glob("reports/*/*/metrics.json"):
        shutil.rmtree(table.parent)
    commit(folder)
    for step in STEPS:
        step.follow(folder)
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def followed(unrun) -> tuple[Path, set[str], set[str]]:
    """The copy, run to the experiment's page and committed; which files the recipe made, and which
    it edited."""
    made = touched(unrun)
    before = {*git(unrun, "ls-files").splitlines()}
    commit(unrun)
    run(unrun, "dvc", "repro", "reports/bent_coins/dvc.yaml:page@mini")
    commit(unrun)
    return unrun, made - before, made & before


def tosses(folder: Path) -> list[list[bool]]:
    """Each coin's tosses in turn, read from the raw file."""
    found: dict[str, list[bool]] = {}
    with (folder / "data/mini/raw/coins/tosses.csv").open() as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["coin"], []).append(row["heads"] == "1")
    return [found[coin] for coin in sorted(found)]


def metrics(folder: Path) -> dict:
    return parts.read(folder / HOME)


def test_the_family_is_its_folder_and_three_files_that_were_there(followed):
    _, made, edited = followed
    assert edited == {"params.yaml", "dvc.yaml", "pyproject.toml"} == {step.path for step in STEPS}
    there = (path for path in FILES.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert made == {path.relative_to(FILES).as_posix() for path in there}
    assert all(path.startswith(OWN) for path in made)
    assert Counter(path.endswith(".py") for path in edited) == {False: 3}, "no engine is edited"


def test_nothing_of_the_project_names_the_family(followed):
    folder = followed[0]
    others = (file for file in (ROOT / "stages").rglob("*.py"))
    assert [str(file) for file in others if re.search(r"\btoys\b", file.read_text())] == []
    assert (folder / "stages/toys/train.py").is_file() and not (ROOT / "stages/toys").exists()


def test_the_numbers_are_those_that_the_tosses_give(followed):
    coins = tosses(followed[0])
    assert [len(coin) for coin in coins] == [400, 400, 400]
    total = surprise = 0.0
    for coin in coins:
        train, test = coin[: int(TRAIN * len(coin))], coin[int(TEST * len(coin)) :]
        chance = sum(train) / len(train)
        surprise -= sum(math.log(chance if heads else 1 - chance) for heads in test)
        total += len(test)
    cells = metrics(followed[0])["cells"]
    bent, fair = (cells[f"coins/{name}"]["metrics"]["surprise"] for name in ("bent", "fair"))
    assert fair["value"] == pytest.approx(math.log(2), abs=1e-6) and fair["n"] == total
    assert bent["value"] == pytest.approx(surprise / total, abs=CLOSE)
    assert bent["low"] < bent["value"] < bent["high"] < fair["value"]
    told = [0.5, 0.7, 0.9]  # as toy_family says that they are bent
    shares = [sum(coin[: int(TRAIN * len(coin))]) / int(TRAIN * len(coin)) for coin in coins]
    gap = sum(abs(share - chance) for share, chance in zip(shares, told, strict=True)) / 3
    assert cells["coins/bent"]["metrics"]["gap"]["value"] == pytest.approx(gap, abs=5e-3)


def test_the_table_the_page_and_the_front_page_show_them(followed):
    folder = followed[0]
    arms = metrics(folder)["arms"]
    table = (folder / HOME / "table.md").read_text()
    page = (folder / HOME / "page.html").read_text()
    for arm in ("bent", "fair"):
        value = f"{arms[f'coins/{arm}']['metrics']['surprise']['mean']:#.3g}"
        assert re.search(rf"(?m)^\| {arm} \| {value} \[", table)
        assert value in page
    assert (folder / HOME / "figures/coins.png").read_bytes()[:4] == b"\x89PNG"
    run(folder, "stages.page.report")
    front = (folder / "reports/index.html").read_text()
    assert "Are the tosses of bent coins less surprising" in front
    assert "bent_coins/mini/page.html" in front and 'value="toys"' in front
    run(folder, "stages.page.summary", "mini")
    summary = json.loads((folder / "reports/summary-mini.json").read_text())
    assert summary == {
        "surprise": {
            "bent_coins": {
                "coins": {
                    arm: arms[f"coins/{arm}"]["metrics"]["surprise"]["mean"]
                    for arm in ("bent", "fair")
                }
            }
        }
    }


def test_the_records_name_the_modules_of_the_family_and_the_bytes_that_lie_there(followed):
    folder = followed[0]
    place = folder / HOME / "records"
    train = json.loads((place / "coins.bent.train.json").read_text())
    assert train["code"]["modules"] == ["stages.toys.models.bent", "stages.toys.train"]
    files = {*train["code"]["files"]}
    assert {"stages/toys/contract.py", "stages/toys/models/bent.py"} <= files
    assert "stages/toys/models/fair.py" not in files, "the other model's cell would become stale"
    assert train["code"] == code.recorded(train["code"]["modules"], folder)
    weights = f"{HOME}/runs/coins/bent/weights.safetensors"
    assert train["outputs"][weights]["sha256"] == sha256(folder / weights)
    evaluated = json.loads((place / "coins.evaluate.json").read_text())
    assert evaluated["inputs"][weights] == train["outputs"][weights]
    gate = json.loads((folder / "data/mini/validated/coins.json").read_text())
    assert gate["success"] and {one["name"] for one in gate["expectations"]} >= {"toys.splits"}


def test_a_number_of_the_family_is_audited_to_its_raw_file_and_made_again(followed):
    folder = followed[0]
    said = run(folder, "stages.cli", "audit", f"{HOME[8:]}/coins/bent/surprise", "--verify", "eval")
    assert "PASS" in said and "FAIL" not in said
    assert "gives the published number to the last bit" in said
    raw = sha256(folder / "data/mini/raw/coins/tosses.csv")
    assert re.search(
        rf"acquire +data/mini/raw/coins .*seed 0\n(.*\n)? *ok +tosses.csv +sha256 {raw}", said
    )


def test_its_data_are_described_by_its_own_table(followed):
    told = dict(croissant.every(of_commit(followed[0])))["mini/coins"]
    assert "Tosses of bent coins, drawn here" in told["description"]
    assert [one["name"] for one in told["distribution"]] == ["manifest.json", "tosses.csv"]
    assert "heads (1) or tails (0)" in told["description"]


def lint(folder: Path) -> subprocess.CompletedProcess:
    code = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports as go; "
    words = [sys.executable, "-c", f"{code}sys.exit(go(no_cache=True))"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_the_import_contracts_hold_with_the_family_and_ask_for_its_line(followed, tmp_path):
    folder = followed[0]
    done = lint(folder)
    assert done.returncode == 0, done.stdout
    for name in ("stages", "flows"):
        (tmp_path / name).symlink_to(folder / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = lint(tmp_path)
    assert done.returncode == 1 and "toys" in done.stdout, done.stdout
