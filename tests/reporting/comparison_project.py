"""A small project of two experiments, committed, and what `tradewind compare` says of it."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import stats

from stages import cli, files, spreads
from stages.audit import comparison

EXPERIMENTS = ("failure_modes", "sparse_fields")
SIZE, FREEDOM = 0.01, 5
SPREAD = {"relative": SIZE, "absolute": SIZE, "scaled": SIZE, "freedom": FREEDOM}
KNOWN = {"rounding": {"msa": {"*": SPREAD}}, "seeds": {}}
TOLERANCE = stats.t.ppf(0.995, 4) * math.sqrt(2) * SIZE  # of a number of size 1
TABLE, CLAIMS, RECORD = (
    f"reports/sparse_fields/mini/{name}"
    for name in ("metrics.json", "claims.json", "records/tabulate.json")
)
CELL = "darcy/msa-shared-5k-s0"
METRICS = ("mse", "r2", "rmse")
HERE = "the working copy"


def git(root: Path, *words: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    command = ["git", "-C", str(root), *author, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def change(root: Path, path: str, edit) -> None:
    """Rewrite a JSON file; `edit` alters what is in it."""
    content = json.loads((root / path).read_text())
    edit(content)
    files.write_json(root / path, content)


def scaled(cell: str = CELL, metric: str = "mse", times: float = 1.0):
    """An edit that multiplies one number of a cell."""

    def edit(content):
        content["cells"][cell]["metrics"][metric]["value"] *= times

    return edit


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A commit of two experiments, each of two trained cells and one that was not: 18 numbers."""
    root = tmp_path / "project"
    for experiment in EXPERIMENTS:
        home = root / "reports" / experiment / "mini"
        sizes = {CELL: 1.0, "darcy/msa-shared-5k-s1": 1.001, "darcy/mean": 4.0}
        cells = {
            cell: {
                "metrics": {
                    name: {"value": size * k, "unit": "1"} for k, name in enumerate(METRICS, 1)
                }
            }
            for cell, size in sizes.items()
        }
        table = {"arms": {}, "cells": cells, "experiment": experiment, "profile": "mini"}
        files.write_json(home / "metrics.json", table)
        claims = [
            {"id": name, "dataset": "darcy", "verdict": verdict}
            for name, verdict in (("I-1", "holds"), ("I-2", "fails"))
        ]
        files.write_json(home / "claims.json", claims)
        record = {
            "environment": {"arithmetic": "one"},
            "code": {"digest": "a" * 64},
            "params": {"steps": 5},
            "seed": 0,
        }
        files.write_json(home / "records/tabulate.json", record)
        files.write_json(root / spreads.place(experiment, "mini"), KNOWN)
    (root / "params.yaml").write_text("run: mini\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all")
    monkeypatch.chdir(root)
    return root


def tradewind(monkeypatch, *arguments: str) -> int:
    """The exit status of `tradewind compare ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["tradewind", "compare", *arguments])
    return cli.main()


def judged(
    root: Path, experiment: str = "sparse_fields", **given
) -> tuple[comparison.Comparison, comparison.Judged]:
    """A comparison with HEAD and its table of one experiment."""
    whole = comparison.of_commit(root, "HEAD", **given)
    return whole, next(table for table in whole.tables if table.experiment == experiment)


def lose(content):
    del content["cells"][CELL]


def rename_unit(content):
    content["cells"][CELL]["metrics"]["mse"]["unit"] = "kn"


def other_code(record):
    record["code"]["digest"] = "b" * 64
