"""The command: what it writes and records, alone, by several workers and joined through
PostgreSQL; mistakes end with 2; no password is told."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import postgres
import pytest

from stages import arithmetic, files, params
from stages.sweeps.ledger import Ledger
from stages.winds import sweep as command

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
import small_project
import toy_sky

ROOT = Path(__file__).parents[2]
NAMES = ("wind_baselines", "mini", "simulated", "knn_tnn")
FOLDER = Path("reports/wind_baselines/mini/sweeps/simulated/knn_tnn")
RECORD = Path("reports/wind_baselines/mini/records/simulated.knn_tnn.sweep.json")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project folder with a toy set and a sweep of five random draws."""
    root = tmp_path_factory.mktemp("project")
    small_project.code(root)
    (root / "reports/wind_baselines").mkdir(parents=True)
    (root / "reports/wind_baselines/dvc.yaml").symlink_to(ROOT / "reports/wind_baselines/dvc.yaml")
    shutil.copy(ROOT / "params.yaml", root / "params.yaml")
    sweeps = root / "stages/params/sweeps.yaml"
    few, count = re.subn(
        r"(?m)^(  knn_tnn:\n)    trials: 40\n    val_every: 4\n",
        r"\1    trials: 5\n    val_every: 2\n    sampler: random\n",
        sweeps.read_text(encoding="utf-8"),
    )
    assert count == 1
    sweeps.write_text(few, encoding="utf-8")
    prepared = root / "data/mini/prepared/simulated"
    prepared.mkdir(parents=True)
    table = toy_sky.columns(14, 10)
    files.write_json(
        prepared / "prepared.json", toy_sky.meta(table, 14) | {"area": {"lat_deg": [44, 49]}}
    )
    pl.DataFrame(table).write_parquet(prepared / "rows.parquet")
    return root


def begin(root: Path, *words: str, **environment: str) -> subprocess.Popen:
    """The command, begun in a process of its own."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("TRADEWIND_SWEEP") and key != "FAULT"
    }
    return subprocess.Popen(
        [sys.executable, "-m", "stages.winds.sweep", *(words or NAMES)],
        cwd=root,
        env={**clean, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ended(process: subprocess.Popen) -> tuple[int, str]:
    """Exit code and all that was said."""
    said = process.communicate(timeout=240)[0]
    return process.returncode, said


def results(root: Path) -> dict[str, Any]:
    """The bytes of the outputs, and the record without its digest of code and without numba's part
    of the arithmetic: a process that finds all draws made loads no numba."""
    record = files.read_json(root / RECORD)
    line, _, numba = record["environment"]["arithmetic"].partition(" numba:")
    assert numba in ("", "haswell") or arithmetic.name() == arithmetic.NATIVE
    record["environment"]["arithmetic"] = line
    found = {file.name: file.read_bytes() for file in (root / FOLDER).iterdir()}
    return found | {"record": {**record, "code": None}}


@pytest.fixture(scope="module")
def alone(project):
    """What the undisturbed command leaves."""
    code, said = ended(begin(project))
    assert (code, said) == (0, "")
    return results(project)


def test_it_writes_three_files_and_a_record_of_them_and_keeps_no_study(project, alone):
    assert sorted(alone) == ["best.yaml", "importance.csv", "record", "trials.csv"]
    record = files.read_json(project / RECORD)
    assert set(record["outputs"]) == {
        f"{FOLDER}/{name}" for name in ("best.yaml", "importance.csv", "trials.csv")
    }
    assert record["outputs"][f"{FOLDER}/trials.csv"]["sha256"] == files.sha256(
        project / FOLDER / "trials.csv"
    )
    assert {"data/mini/prepared/simulated/rows.parquet"} < set(
        record["inputs"]
    ) and "stages/sweeps/ledger.py" in record["code"]["files"]
    assert (
        record["params"]["workers"] == 1
        and record["params"]["joined_draws"] == 0
        and record["params"]["sweep"]["sampler"] == "random"
    )
    assert params.read_yaml(project / FOLDER / "best.yaml")["trials"] == 5
    assert not list((project / ".work/sweeps").iterdir())


@pytest.mark.parametrize(
    "point",
    [
        "trial:3",
        *(
            pytest.param(point, marks=pytest.mark.slow_fault)
            for point in ("before_record:1", "before_clear:1")
        ),
    ],
)
def test_killed_and_run_again_it_leaves_the_same_bytes(project, alone, point):
    code, _ = ended(begin(project, FAULT=point))
    assert code == -signal.SIGKILL and list((project / ".work/sweeps").iterdir())
    assert ended(begin(project)) == (0, "")
    assert results(project) == alone and not list((project / ".work/sweeps").iterdir())


def test_two_workers_make_the_same_files_and_the_record_counts_them(project, alone):
    assert ended(begin(project, TRADEWIND_SWEEP_WORKERS="2")) == (0, "")
    assert results(project) == alone | {
        "record": {**alone["record"], "params": {**alone["record"]["params"], "workers": 2}}
    }


@pytest.mark.parametrize(
    ("words", "environment", "says"),
    [
        (
            ("wind_baselines", "mini", "simulated", "gkaa"),
            {},
            r"unknown sweep[\s\S]*did you mean 'gka'",
        ),
        (
            ("wind_baselines", "mini", "sim", "gka"),
            {},
            r"unknown data set of winds[\s\S]*known: gp_wind, simulated",
        ),
        (NAMES, {"TRADEWIND_SWEEP_WORKERS": "none"}, "not a number of workers"),
        ((*NAMES, "--join"), {}, "workers join a sweep through a database"),
        (NAMES, {"TRADEWIND_SWEEPS_URL": "sqlite:///x.db"}, "by PostgreSQL only"),
        (
            NAMES,
            {"TRADEWIND_SWEEPS_URL": "postgresql://me:opensesame@127.0.0.1:1/d"},
            "database cannot be used",
        ),
    ],
)
def test_a_mistake_ends_with_2_before_any_work(
    project, monkeypatch, capfd, words, environment, says
):
    monkeypatch.chdir(project)
    monkeypatch.setattr(
        files, "guard", lambda name: contextlib.nullcontext()
    )  # this process is not to die with its parent
    monkeypatch.setattr(Ledger, "work", lambda *_, **__: pytest.fail("work was begun"))
    for name in ("TRADEWIND_SWEEPS_URL", "TRADEWIND_SWEEP_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert command.main(list(words)) == 2
    said = capfd.readouterr().err
    assert re.search(says, said) and "opensesame" not in said and not (project / "x.db").exists()


@pytest.mark.slow_fault  # test_postgres.py joins workers without the command
@pytest.mark.skipif(postgres.programs() is None, reason=postgres.ABSENT)
def test_a_helper_joins_through_postgresql_and_the_password_is_nowhere(project, alone):
    with postgres.server() as url:
        shared = {"TRADEWIND_SWEEPS_URL": url}
        code, said = ended(begin(project, *NAMES, "--join", **shared))
        assert (code, "no such sweep to join" in said) == (2, True), said  # nobody has started it
        first = ended(begin(project, FAULT="trial:2", **shared))
        assert first[0] == -signal.SIGKILL
        both = [
            ended(one)
            for one in (begin(project, **shared), begin(project, *NAMES, "--join", **shared))
        ]
        password = re.search(r":([0-9a-f]{32})@", url)[1]
    assert both[0] == (0, "") and both[1][0] in (
        0,
        2,
    )  # the helper may come when all is done: then there is nothing to join
    found = results(project)
    joined = found["record"]["params"]["joined_draws"]
    assert (
        found
        == alone
        | {
            "record": {
                **alone["record"],
                "params": {**alone["record"]["params"], "joined_draws": joined},
            }
        }
        and 0 <= joined <= 4
    )
    texts = [
        said,
        first[1],
        both[1][1],
        *(
            file.read_bytes().decode(errors="replace")
            for file in project.rglob("*")
            if file.is_file() and "stages" not in file.relative_to(project).parts
        ),
    ]
    assert not any(password in text for text in texts)
