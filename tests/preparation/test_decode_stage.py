"""The stage that decodes: its outputs and record, a kill, mistakes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from decoded_here import csv
from flown import START_S, lines

from stages import files, records
from stages.errors import DataError
from stages.winds.decoding import transform as decode
from stages.winds.decoding import winds


def run(folder: Path, stage: str, *arguments: str, **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", f"stages.winds.{stage}", *arguments],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())} | environment,
    )


@pytest.fixture
def project(tmp_path):
    """A project folder with a raw data set of its own."""
    (tmp_path / "params.yaml").write_text(Path("params.yaml").read_text())
    (tmp_path / "stages").symlink_to(Path("stages").resolve())
    raw = tmp_path / "data/mini/raw/simulated"
    csv(raw / "frames_00.csv", lines(20))
    files.write_json(
        raw / "manifest.json",
        {
            "dataset": "simulated",
            "entry": "frames",
            "kind": "simulate",
            "files": {"frames_00.csv": {}},
        },
    )
    return tmp_path


def test_the_command_writes_winds_counts_and_record(project):
    done = run(project, "decode", "mini", "simulated")
    assert done.returncode == 0, done.stderr
    out = project / "data/mini/decoded/simulated"
    assert sorted(p.name for p in out.iterdir()) == [
        "counts.json",
        "states.parquet",
        "winds.parquet",
    ]
    record = json.loads((project / records.location("decode", "mini", "simulated")).read_text())
    assert record["outputs"]["data/mini/decoded/simulated/winds.parquet"]["sha256"] == files.sha256(
        out / "winds.parquet"
    )
    assert (
        "data/mini/raw/simulated/frames_00.csv" in record["inputs"]
        and "stages/winds/decoding/states.py" in record["code"]["files"]
    )
    before = {p.name: files.sha256(p) for p in out.iterdir()}
    assert run(project, "decode", "mini", "simulated").returncode == 0
    assert before == {p.name: files.sha256(p) for p in out.iterdir()}


@pytest.mark.fault("F1")
def test_a_kill_leaves_the_old_state(project):
    assert run(project, "decode", "mini", "simulated", FAULT="before_rename:2").returncode == -9
    assert not (project / "data/mini/decoded/simulated").exists()
    assert run(project, "decode", "mini", "simulated").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "mimi", "simulated"),
        ("decode", "mini", "simulatd"),
        ("prepare", "mini", "commb"),
        ("decode", "mini", "poisson"),
    ],
)
def test_mistakes_end_with_2_before_any_work(project, arguments):
    done = run(project, *arguments)
    assert done.returncode == 2 and not (project / "data/mini/decoded").exists()


def test_another_level_than_the_manifest_says(project):
    manifest = project / "data/mini/raw/simulated/manifest.json"
    manifest.write_text(manifest.read_text().replace('"frames"', '"winds"'))
    done = run(project, "decode", "mini", "simulated")
    assert done.returncode == 1 and "another level" in done.stderr


def test_parts_out_of_order_are_refused(tmp_path):
    (tmp_path / "out").mkdir()
    part = winds.conform(pl.DataFrame({"ts_s": [START_S]}))
    with decode.Table(tmp_path / "out/winds.parquet", winds.COLUMNS) as table:
        table.write(part)
        with pytest.raises(DataError, match="overlap in time"):
            table.write(part.with_columns(ts_s=pl.col("ts_s") - 1))
