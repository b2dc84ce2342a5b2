"""The command: what it writes, that it repeats byte for byte, that mistakes end with 2 before
any work, that a kill leaves old or new."""

import contextlib
import os
import signal
import subprocess
import sys

import polars as pl
import pytest
import toy_sky
from small_project import settle

from stages import files
from stages.training import store
from stages.winds import train as command
from stages.winds.pairs import Pairs

CELL = "reports/wind_nowcast/mini/runs/simulated/msa-shared-5k-s1"
RECORD = "reports/wind_nowcast/mini/records/simulated.msa-shared-5k-s1.train.json"
MSA = ["wind_nowcast", "mini", "simulated", "msa", "--arm", "shared", "--size", "5k", "--seed", "1"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project folder with a small budget and a prepared toy set."""
    root = tmp_path_factory.mktemp("project")
    settle(root, "{steps: 6, validate_every: 3, patience: 9}")
    prepared = root / "data/mini/prepared/simulated"
    prepared.mkdir(parents=True)
    table = toy_sky.columns(14, 10)
    files.write_json(
        prepared / "prepared.json", toy_sky.meta(table, 14) | {"area": {"lat_deg": [44, 49]}}
    )
    pl.DataFrame(table).write_parquet(prepared / "rows.parquet")
    return root


@pytest.fixture
def call(project, monkeypatch, capfd):
    """Run one command in the project; its exit code and error text."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("TRADEWIND_DEVICE", "cpu")
    monkeypatch.setattr(
        files, "guard", lambda name: contextlib.nullcontext()
    )  # this process is not to die with its parent

    def run(*arguments):
        code = command.main(list(arguments))
        return code, capfd.readouterr().err

    return run


def killed(fault):
    """Whether a forked child that runs MSA dies by SIGKILL at `fault`. It reads no parquet:
    Polars' threads do not survive a fork."""
    pairs = Pairs.open("data/mini/prepared/simulated")
    pid = os.fork()
    if not pid:
        try:
            os.environ["FAULT"] = fault
            Pairs.open = lambda folder: pairs
            command.main(MSA)
        finally:
            os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def bytes_of(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_cell_is_written_recorded_and_repeats_byte_for_byte(project, call):
    assert call(*MSA)[0] == 0
    folder = project / CELL
    first = bytes_of(folder)
    assert set(first) == {"weights.safetensors", "history.json", "code.json"}
    record, history = files.read_json(project / RECORD), files.read_json(folder / "history.json")
    assert set(record["inputs"]) == {
        f"data/mini/prepared/simulated/{name}" for name in ("prepared.json", "rows.parquet")
    }
    assert record["outputs"][f"{CELL}/weights.safetensors"]["sha256"] == files.sha256(
        folder / "weights.safetensors"
    )
    assert record["seed"] == 1 and record["params"]["arguments"]["encoder"] == "shared"
    assert {"stages/training/loop.py", "stages/fields/models/msa.py"} <= set(
        record["code"]["files"]
    )
    assert history["status"] == "completed" and [entry["step"] for entry in history["val"]] == [
        3,
        6,
    ]
    model, told = store.load(str(folder / "weights.safetensors"))
    assert (
        told["arm"] == "shared"
        and told["prepared"]["lead_s"] == 60 * toy_sky.LEAD
        and told["prepared"]["area"] == {"lat_deg": [44, 49]}
    )
    assert sum(parameter.numel() for parameter in model.parameters()) == 4934
    assert call(*MSA)[0] == 0
    assert bytes_of(folder) == first
    assert not list((project / ".work/training").iterdir())


@pytest.mark.parametrize(
    "name", ["day_average", "hour_average", "persistence", "knn", "trend", "kernel"]
)
def test_every_other_model_has_its_cell(project, call, name):
    code, text = call("wind_nowcast", "mini", "simulated", name)
    assert code == 0, text
    model, told = store.load(
        str(project / f"reports/wind_nowcast/mini/runs/simulated/{name}/weights.safetensors")
    )
    assert told["model"] == name and (
        name != "knn" or int(model.neighbours) in told["arguments"]["neighbours"]
    )


@pytest.mark.parametrize(
    "fault",
    [
        "before_record:1",
        *(
            pytest.param(fault, marks=pytest.mark.slow_fault)
            for fault in (
                "before_clear:1",
                "before_rename:9",
                "before_rename:10",
                "after_rename:10",
                "step:5",
            )
        ),
    ],
)
@pytest.mark.fault("F1")
def test_killed_while_writing_leaves_the_old_or_the_new_and_the_next_run_ends_well(
    project, call, fault
):
    assert call(*MSA)[0] == 0
    good = bytes_of(project / CELL)
    assert killed(fault)
    assert not (project / CELL).exists() or bytes_of(project / CELL) == good
    assert call(*MSA)[0] == 0
    assert bytes_of(project / CELL) == good


@pytest.mark.parametrize(
    "change,words",
    [
        ({0: "wind_nowcsat"}, "did you mean 'wind_nowcast'"),
        ({1: "minni"}, "did you mean 'mini'"),
        ({2: "simulatd"}, "did you mean 'simulated'"),
        ({3: "mas"}, "did you mean 'msa'"),
        ({5: "sharde"}, "did you mean 'shared'"),
        ({7: "5kk"}, "did you mean '5k'"),
        ({9: "-1"}, "seed"),
    ],
)
@pytest.mark.fault("F15")
def test_mistakes_end_with_2_and_a_hint_before_any_work(call, change, words):
    code, text = call(*(change.get(i, word) for i, word in enumerate(MSA)))
    assert code == 2 and text.startswith("error: ") and words in text and "Traceback" not in text


def test_an_unprepared_set_is_a_clear_failure(call):
    code, text = call("wind_nowcast", "sample", "hour_winds", "knn")
    assert code == 1 and "data/sample/prepared/hour_winds" in text and "dvc repro" in text


@pytest.mark.fault("F18")
def test_divergence_ends_with_1_and_leaves_no_output(project, call):
    table = toy_sky.columns(14, 10)
    table["u_m_s"][:] = float("nan")
    prepared = project / "data/mini/prepared/simulated/rows.parquet"
    good = prepared.read_bytes()
    pl.DataFrame(table).write_parquet(prepared)
    try:
        code, text = call(*MSA[:-1], "7")
        assert code == 1 and "training diverged" in text and "step 1" in text
        assert not (project / CELL.replace("s1", "s7")).exists()
    finally:
        prepared.write_bytes(good)


def test_the_command_line_itself(project):
    command_line = [
        sys.executable,
        "-m",
        "stages.winds.train",
        "wind_nowcast",
        "mini",
        "simulated",
        "hour_average",
    ]
    environment = os.environ | {"PYTHONPATH": str(project), "OMP_NUM_THREADS": "1"}
    good = subprocess.run(
        command_line, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert good.returncode == 0, good.stderr
    assert (
        not good.stdout
        and (
            project / "reports/wind_nowcast/mini/records/simulated.hour_average.train.json"
        ).exists()
    )
