"""What the families' judges share, what Python loads, champions, what is taken on trust."""

import hashlib
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import real
from planted import spy
from ruamel.yaml import YAML

from stages.audit import agreeing, derivable, hashes, loading, trusted


def test_a_resolution_is_a_step_of_the_decimals_that_are_written():
    rng = np.random.default_rng(0)
    wide = rng.normal(0, 1000, 5000)
    assert agreeing.resolution(wide.round(2)) == pytest.approx(0.01)
    assert agreeing.resolution(wide.astype(np.float32)) <= 1e-3
    assert agreeing.resolution(rng.integers(0, 2, 100).astype(float)) == 0  # of two values: nothing
    coarse = rng.integers(0, 10, 5000).astype(float)
    assert agreeing.resolution(coarse) == pytest.approx(agreeing.SHARE * coarse.std(), rel=0.1)


@pytest.mark.parametrize("noise, count", [(0.0, 7), (5e-4, 7), (5e-1, 0)])
def test_examples_of_one_value_but_for_rounding_are_found_and_no_others(noise, count):
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 10, (2000, 12)).round(3)
    train = np.arange(2000) < 1500
    rows[1600:1607] = rows[100:107] + rng.uniform(-noise, noise, (7, 12))
    pairs = agreeing.alike(rows, train, ~train)
    assert pairs == [(1600 + n, 100 + n) for n in range(count)]


def test_files_that_python_loads_in_place_of_others_are_named():
    fine = ["stages/a.py", "stages/b/__init__.py", "stages/b/c.py", "tests/conftest.py", "x.yaml"]
    assert list(loading.shadows(fine)) == []
    for path in (
        "numpy.py",
        "stages/a.so",
        "stages/a.pyc",
        "stages/a/__init__.py",
        "sitecustomize.py",
        "stages/A.py",
    ):
        told = [f"{found} {why}" for found, why in loading.shadows([*fine, path])]
        assert any(path in text for text in told), path


def test_a_process_runs_no_site_module_and_sees_no_variable_that_leads_elsewhere(monkeypatch):
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR", "LD_PRELOAD", "FAULT"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    environment = loading.environment()
    assert environment["NUMBA_NUM_THREADS"] == "1"
    assert "elsewhere" not in environment.values()
    command = loading.process(Path(), "stages.cli")
    assert {"-I", "-S"} <= {*command}


def test_what_stands_among_the_libraries_to_be_run_at_the_start_is_not_run(tmp_path, monkeypatch):
    library, mark = tmp_path / "lib/site-packages", tmp_path / "spied"
    for name in ("sitecustomize.py", "usercustomize.py"):
        real.write(library, name, spy(tmp_path))
    real.write(library, "evil.pth", f"import sys; {spy(tmp_path)}")
    real.write(library, "fine.py", "NUMBER = 3\n")
    real.write(tmp_path, "asks.py", "import fine, sys\nsys.exit(fine.NUMBER)\n")
    monkeypatch.syspath_prepend(str(library))
    command = loading.process(tmp_path, "asks")
    assert subprocess.run(command, env=loading.environment(), check=False).returncode == 3
    assert not mark.exists()
    plain = [word for word in command if word not in ("-I", "-S")]
    led = {**loading.environment(), "PYTHONPATH": str(library)}
    assert subprocess.run(plain, env=led, check=False).returncode == 3
    assert mark.exists()  # so it would be otherwise


def test_a_champion_that_was_never_promoted_and_one_that_is_not_kept_are_told(tmp_path):
    one, other = (hashlib.sha256(text).hexdigest() for text in (b"one", b"other"))
    for name, content in ((one, b"one"), (other, b"other")):
        place = tmp_path / "data/live/champions" / name[:12] / "weights.safetensors"
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
    case = SimpleNamespace(root=tmp_path, bytes=hashes.Bytes(tmp_path))
    assert list(derivable.champions(case, [one, other])) == []
    assert "never promoted" in next(derivable.champions(case, [one])).text
    assert "is not among them" in list(derivable.champions(case, [one, other, "f" * 64]))[0].text


def test_each_stage_that_prepares_or_evaluates_names_the_module_that_judges_it():
    yaml = YAML(typ="safe")
    patterns = ("dvc.yaml", "data/*/dvc.yaml", "reports/*/dvc.yaml")
    checked = 0
    for file in (file for pattern in patterns for file in sorted(real.HOME.glob(pattern))):
        for name, stage in yaml.load(file.read_text())["stages"].items():
            words = str(stage.get("cmd", "")).split()
            if len(words) > 3 and words[3].endswith((".prepare", ".evaluate")):
                module = (stage.get("meta") or {}).get("agree", "")
                assert (real.HOME / f"{module.replace('.', '/')}.py").is_file(), (str(file), name)
                checked += 1
    assert checked > 10


def test_what_is_taken_on_trust_is_told_with_its_last_commit():
    told = trusted.lines(real.HOME)
    assert any(line.startswith("thresholds of claims: changed by ") for line in told)
