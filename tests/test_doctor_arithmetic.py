"""What `tradewind doctor` tells of the arithmetic: one finding, and every operation when asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages import cli, doctor
from stages.arithmetic import CHOSEN, COMMON, NATIVE, VARIABLE, probe
from stages.arithmetic import able as is_able
from stages.doctor import arithmetic, environment
from stages.doctor.finding import OK, WARN, Place

ROOT = Path(__file__).parents[1]
able = pytest.mark.skipif(not is_able(), reason="needs an x86-64 processor with AVX2 and FMA")


def doctored(*words: str, code: int = 0, **more: str) -> str:
    """What `tradewind doctor WORDS` prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "stages.cli", "doctor", *words],
        cwd=ROOT,
        env={**os.environ, VARIABLE: COMMON, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, "")
    return done.stdout


@pytest.fixture
def answers(monkeypatch):
    """Operation -> hash, what the probe shall answer here, in the common arithmetic."""
    for name, value in CHOSEN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(VARIABLE, raising=False)
    known = probe.reference()
    for library in ("numpy", "torch"):
        monkeypatch.setattr(
            probe,
            f"{library}_operations",
            lambda library=library: {
                name: hashed for name, hashed in known.items() if name.startswith(library)
            },
        )
    monkeypatch.setattr(probe, "reference", lambda kept=dict(known): kept)
    return known


PLACE = Place(ROOT, {})  # the check speaks of this process


def test_the_common_arithmetic_as_the_reference_is_well(answers):
    found = arithmetic.arithmetic(PLACE)
    assert found.state == OK and found.found.startswith(COMMON)


def test_an_operation_that_differs_is_named_and_numbers_are_then_judged(answers):
    answers["numpy exp"] = "0" * probe.DIGITS
    found = arithmetic.arithmetic(PLACE)
    assert found.state == WARN and "numpy exp" in found.found and "numpy sin" not in found.found
    assert "tolerance" in found.found and "tradewind compare" in found.found
    lines = arithmetic.render(arithmetic.report()).splitlines()
    assert [line for line in lines[:-1] if "other than" in line] == [
        line for line in lines if line.startswith("numpy exp ")
    ]
    assert "1 other than the reference" in lines[-1] and "tolerance" in lines[-1]


def test_a_new_operation_without_a_reference_is_not_passed_over(answers):
    answers["torch new"] = "12345678"
    rows = {row["operation"]: row["as_reference"] for row in arithmetic.report()["operations"]}
    assert rows.pop("torch new") is False and all(rows.values())


def test_the_native_arithmetic_is_warned_of_by_the_variable_that_asks_for_it(answers, monkeypatch):
    monkeypatch.setenv(VARIABLE, NATIVE)
    monkeypatch.delenv("MKL_CBWR")
    monkeypatch.setattr(arithmetic, "able", lambda: True)
    found = arithmetic.arithmetic(PLACE)
    assert found.state == WARN and VARIABLE in found.found and "tradewind compare" in found.found
    assert found.remedy == f"unset {VARIABLE}"
    text = arithmetic.render(
        arithmetic.report()
        | {"operations": [{"operation": "torch exp", "hash": "0", "as_reference": False}]}
    )
    assert VARIABLE in text and "exp  0\n" in text, "under native another hash is no mark"


def test_a_processor_that_cannot_is_warned_of(answers, monkeypatch):
    monkeypatch.delenv("MKL_CBWR")
    monkeypatch.setattr(arithmetic, "able", lambda: False)
    found = arithmetic.arithmetic(PLACE)
    assert found.state == WARN and "AVX2" in found.found and "unset" not in found.remedy
    assert "it cannot compute" in arithmetic.render(arithmetic.report())


def test_the_finding_is_one_of_the_doctors_and_loads_no_torch():
    assert doctor.CHECKS["arithmetic"] is arithmetic.arithmetic
    code = (
        "import sys; from stages import doctor; doctor.CHECKS['arithmetic'](None); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@able
def test_asked_for_it_tells_the_line_the_processor_and_every_operation():
    text, known = doctored("--arithmetic"), probe.reference()
    lines = [line for line in text.splitlines() if line.startswith(("numpy ", "torch "))]
    rows = dict(line.rsplit(None, 1) for line in lines)
    assert {name.strip(): hashed for name, hashed in rows.items()} == known
    assert f"line        {COMMON} numpy:" in text and "it can compute in the common" in text
    assert "haswell" in text and f"{len(known)} operations, 0 other" in text


def test_as_json_it_says_the_same_and_under_native_it_names_the_variable():
    content = json.loads(doctored("--arithmetic", "--json", **{VARIABLE: NATIVE}))
    assert set(content) == {"line", "arithmetic", "processor", "able", "numba", "operations"}
    assert content["arithmetic"] == f"{NATIVE}, as {VARIABLE} asks"
    assert content["line"].startswith(f"{NATIVE} numpy:") and content["able"] == is_able()
    assert {row["operation"] for row in content["operations"]} == set(probe.reference())


def test_the_command_hands_on_what_was_asked(monkeypatch, capsys):
    monkeypatch.setattr(arithmetic, "report", lambda: {"line": "x"})
    monkeypatch.setattr(sys, "argv", ["tradewind", "doctor", "--arithmetic", "--json"])
    assert cli.main() == 0 and json.loads(capsys.readouterr().out) == {"line": "x"}


@pytest.mark.parametrize(
    "name, value, named",
    [
        (VARIABLE, NATIVE, True),
        ("MKL_CBWR", "AVX2", True),
        ("NUMBA_CPU_NAME", "znver4", True),
        *((name, value, False) for name, value in CHOSEN.items()),
    ],
)
def test_settings_are_named_only_where_they_are_not_ours(name, value, named):
    found = environment.variables(Place(ROOT, {name: value}))
    assert found.state == OK and (name in found.found) is named
