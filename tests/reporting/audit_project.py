"""A whole project in a folder, as small as can be: real git, real DVC, stages that write a few
bytes and real records.

Built once (`build`) and copied for every test. Stage modules have the real project's names and
command lines, so dvc.lock, cache and records have its form, and its places: the raw data's stage
stands in a dvc.yaml under data/, the experiments' under reports/. What they compute is arithmetic
on a few numbers. Two experiments rest on the same data.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import made_once
import pytest
from audit_texts import EXPERIMENTS, PARAMS, RAW_LOCK, project_files
from cached import shelved
from ruamel.yaml import YAML

from stages import records
from stages.audit import hashes
from stages.code import Project

HOME = Path(__file__).parents[2]
NUMBER = "wind_nowcast/mini/simulated/msa-shared-5k-s0/rmse_component_kn"
DATA, REPORTS = "data/mini", "reports/wind_nowcast/mini"
TABLE, EVALUATED = f"{REPORTS}/metrics.json", f"{REPORTS}/evaluated/simulated/metrics.json"
RUN = f"{REPORTS}/runs/simulated/msa-shared-5k-s0"
# What the small project has of the real one: these modules, with all that they import.
GROUND = ("stages.records", "stages.seeds", "stages.params", "stages.code.__main__")
GROUND = (*GROUND, "stages.tables.gather", "stages.arithmetic.kernels")


def build(root: Path, without: tuple[str, ...] = ()) -> Path:
    """Write (but for the files in `without`), run, `dvc commit` and git-commit the project."""
    for name in sorted(Project(HOME).reached(GROUND)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / name, root / name)
    (root / "params.yaml").write_text(PARAMS)
    (root / "constraints.txt").write_text("numpy==2.4.6\n")
    for name, text in project_files().items():
        if name in without:
            continue
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    calls = ["acquire()", "decode()", "validate()", "prepare()"]
    for experiment, cells in EXPERIMENTS.items():
        for cell in cells:
            model, *rest = cell.split("-")
            given = ["--arm", rest[0], "--size", rest[1], "--seed", rest[2][1:]] if rest else []
            calls.append(f"train(*{[experiment, 'mini', 'simulated', model, *given]!r})")
        calls += [f"evaluate({experiment!r})", f"tabulate({experiment!r})"]
    run(root, sys.executable, "-m", "stages.code")
    calls.append("report()")
    run(root, sys.executable, "-c", "from stages.fake import *; " + "; ".join(calls))
    run(root, "git", "init", "-q")
    run(root, sys.executable, "-m", "dvc", "commit", "-q", "-f")
    commit(root)
    return root


def run(root: Path, *command: str) -> None:
    """A command in the project; its output is shown when it fails."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "DVC_NO_ANALYTICS": "1",
        "PYTHONPATH": str(root),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def commit(root: Path) -> None:
    """Commit everything to git; nothing of a run that is nobody's to commit
    (foreign_project.py)."""
    if (root / ".git/uncommitted").exists():
        return
    run(root, "git", "add", "-A")
    run(
        root,
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "-m",
        "all",
    )


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The project, built once."""
    return made_once.shared(tmp_path_factory.getbasetemp(), "audit-project", build)


@pytest.fixture
def project(template, tmp_path):
    """A copy of the project for one test."""
    return Path(shutil.copytree(template, tmp_path / "project", symlinks=True))


@pytest.fixture
def evaluation():
    """What evaluations made again say: `value` in place of a number, `by` added to it, `noise`
    for each thread."""
    file = Path(os.environ["TOY"])

    def says(**toy: float) -> None:
        file.write_text(json.dumps(toy))

    yield says
    file.unlink(missing_ok=True)


def edit(file: Path, old: str, new: str) -> None:
    """Replace text that must be there."""
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def flip(file: Path, at: int = -3) -> None:
    """One bit of one byte, in place, the time stamp as it was."""
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[at] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    file.chmod(stat.st_mode)


def about(found, path: str) -> str:
    """All that a finding says of a file."""
    return " | ".join(problem.text for problem in found.problems if problem.path == path)


def number_of(project: Path, name: str = "rmse_component_kn") -> float:
    """The published value of NUMBER's cell."""
    return json.loads((project / TABLE).read_text())["cells"]["simulated/msa-shared-5k-s0"][
        "metrics"
    ][name]["value"]


def forge(project: Path) -> None:
    """What a careful forger does: make every record, lock, cache object and commit agree with
    the files as they now are."""
    for pattern in ("data/*/records/*.json", "reports/*/*/records/*.json"):
        for file in project.glob(pattern):
            record = json.loads(file.read_text())
            for side in ("inputs", "outputs"):
                record[side] = {path: records.describe(project / path) for path in record[side]}
            file.write_text(json.dumps(record))
    run(project, sys.executable, "-m", "dvc", "commit", "-q", "-f")
    commit(project)


def agree(project: Path) -> None:
    """As `forge`, without DVC and its seconds: records, the locks' MD5s, cache objects and the
    commit are those of the files as they are.

    What the lock says of parameters stays.
    """
    for pattern in ("data/*/records/*.json", "reports/*/*/records/*.json"):
        for file in project.glob(pattern):
            record = json.loads(file.read_text())
            for side in ("inputs", "outputs"):
                record[side] = {path: records.describe(project / path) for path in record[side]}
            file.write_text(json.dumps(record))
    relock(project)


def relock(project: Path) -> None:
    """The locks' MD5s, cache objects and the commit made to agree with the files as they are;
    records stay."""
    contents, yaml = hashes.Bytes(project), YAML(typ="safe")
    for lock in (project / "dvc.lock", project / RAW_LOCK, *project.glob("reports/*/dvc.lock")):
        content = yaml.load(lock.read_text())
        for stage in content["stages"].values():
            for item in (*stage.get("deps", ()), *stage.get("outs", ())):
                item["md5"] = shelved(project, contents, item["path"])
        with lock.open("w") as stream:
            yaml.dump(content, stream)
    commit(project)
