"""The judge and the stage: GX's traps are closed, the gate opens only for good data, and a shut
gate says rule, rows and remedy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from sky_tables import set_rows, winds

from stages import files, params, records, runner
from stages.errors import DataError, GateError, JudgeError
from stages.validation import gate
from stages.validation.rules import Rule, Table
from stages.winds import validate

BOUND = Rule("toy.n", "toy", "n", "critical", "eat less", high=10)


def only(rows: list[dict], rule: Rule = BOUND) -> dict:
    results, internal = gate.judge({"toy": Table(rows, "row")}, [rule])
    assert internal == []
    return results[0]


def test_values_are_judged_row_by_row():
    assert only([{"row": "a", "n": 10}, {"row": "b", "n": 3}])["success"]
    result = only([{"row": "a", "n": 11}, {"row": "b", "n": 3}, {"row": "c", "n": 12}])
    assert (result["success"], result["observed"], result["limit"], result["where"]) == (
        False,
        12.0,
        "at most 10",
        ["a", "c"],
    )


def test_a_missing_value_fails_though_gx_passes_it():
    result = only([{"row": "a", "n": None}, {"row": "b", "n": 3}])
    assert not result["success"]
    assert result["where"] == ["a"]
    assert not only([{"row": "a", "n": None}])["success"]


def test_an_empty_summary_fails_though_gx_passes_it():
    results, internal = gate.judge({"toy": Table([], "row")}, [BOUND])
    assert not any(r["success"] for r in results)
    assert len(results) + len(internal) == 1


def test_an_error_inside_gx_is_told_apart():
    """GX reports a missing column as success=False; that is no verdict on the data."""
    broken = Rule("toy.other", "toy", "no_such_column", "critical", "", high=1)
    results, internal = gate.judge({"toy": Table([{"row": "a", "n": 5}], "row")}, [broken, BOUND])
    assert [r["name"] for r in results] == ["toy.n"]
    assert [e["name"] for e in internal] == ["toy.other"]
    assert "no_such_column" in internal[0]["error"]


def test_results_keep_the_rules_order_and_skip_absent_tables():
    rules = [Rule(f"toy.{i}", "toy", "n", "warning", "", low=i) for i in (3, 1, 2)] + [
        Rule("other", "absent", "n", "warning", "", low=0)
    ]
    results, _ = gate.judge({"toy": Table([{"row": "a", "n": 2}], "row")}, rules)
    assert [(r["name"], r["success"]) for r in results] == [
        ("toy.3", False),
        ("toy.1", True),
        ("toy.2", True),
    ]


def test_rules_have_one_key_each():
    from stages.winds.validation import frames, states
    from stages.winds.validation import winds as wind_rules

    keys = [rule.key for rule in (*frames.rules(True), *states.RULES, *wind_rules.RULES)]
    assert len(keys) == len(set(keys))
    assert all(rule.remedy for rule in (*frames.rules(True), *states.RULES, *wind_rules.RULES))


def project(folder: Path, monkeypatch, table: pl.DataFrame | None) -> params.Profile:
    """A project with one raw file and decoded winds, and the profile that wants them (or expects
    none)."""
    (folder / "stages").symlink_to(Path("stages").resolve())  # the record hashes the code
    settings = params.load().profiles["sample"]
    monkeypatch.chdir(folder)
    raw, decoded = Path("data/sample/raw/hour_winds"), Path("data/sample/decoded/hour_winds")
    raw.mkdir(parents=True)
    decoded.mkdir(parents=True)
    (raw / "wind.csv").write_text("raw\n")
    files.write_json(
        raw / "manifest.json",
        {"entry": "winds", "files": {"wind.csv": {"sha256": files.sha256(raw / "wind.csv")}}},
    )
    rows = 0 if table is None else table.height
    files.write_json(
        decoded / "counts.json",
        {"stage": "decode", "levels": {"winds": {"read": rows, "kept": rows, "dropped": {}}}},
    )
    if table is not None:
        table.write_parquet(decoded / "winds.parquet")
    return settings if table is not None else settings.model_copy(update={"wind": ()})


OUT, COPY = (
    Path("data/sample/validated/hour_winds.json"),
    Path(".work/validation/sample-hour_winds.json"),
)


def test_good_winds_open_the_gate(tmp_path, monkeypatch):
    run(project(tmp_path, monkeypatch, set_rows(winds(), [7], u_m_s=300.0)), "hour_winds")
    verdict = files.read_json(OUT)
    record = files.read_json(records.location("validate", "sample", "hour_winds"))
    assert verdict["success"] is True
    assert (verdict["critical_failed"], verdict["warnings"], verdict["internal_errors"]) == (
        [],
        ["winds.speed"],
        [],
    )
    path = "data/sample/decoded/hour_winds/winds.parquet"
    assert verdict["judged"][path] == record["inputs"][path]["sha256"] == files.sha256(path)
    assert record["outputs"][OUT.as_posix()]["sha256"] == files.sha256(OUT)
    first = OUT.read_bytes()
    run(project_profile(), "hour_winds")
    assert OUT.read_bytes() == first


def run(profile: params.Profile, dataset: str) -> None:
    """The stage, with this profile in the place of those of params.yaml."""
    parameters = SimpleNamespace(profiles={"sample": profile})
    asked = runner.Asked({"profile": "sample", "dataset": dataset}, parameters)
    runner.run(validate.plan(asked))


def project_profile() -> params.Profile:
    """The sample profile, read beside the linked code."""
    return params.load(Path("stages").resolve().parent / "params.yaml").profiles["sample"]


def test_bad_winds_shut_it_with_rule_rows_and_remedy(tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, set_rows(winds(), [7], lat_deg=99.0))
    OUT.parent.mkdir(parents=True)
    OUT.write_text("{}")  # an open gate of former data
    with pytest.raises(GateError) as caught:
        run(profile, "hour_winds")
    message = str(caught.value)
    assert caught.value.exit_code == 1
    assert "winds.lat_deg" in message
    assert "1 rows: a.csv record 7" in message
    assert "look at the decode step" in message
    assert not OUT.exists()
    assert files.read_json(COPY)["critical_failed"] == ["winds.lat_deg"]


def test_changed_raw_bytes_shut_it(tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, winds())
    Path("data/sample/raw/hour_winds/wind.csv").write_text("Raw\n")
    with pytest.raises(GateError, match=r"raw\.bytes"):
        run(profile, "hour_winds")


def test_an_error_of_gx_is_not_the_datas_fault(tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, winds())
    monkeypatch.setattr(
        validate.winds, "RULES", [Rule("toy", "winds", "no_such_column", "critical", "", high=1)]
    )
    with pytest.raises(JudgeError) as caught:
        run(profile, "hour_winds")
    assert caught.value.exit_code == 70
    assert not OUT.exists()
    assert [e["name"] for e in files.read_json(COPY)["internal_errors"]] == ["toy"]


def test_winds_are_asked_of_sets_that_the_profile_prepares(tmp_path, monkeypatch):
    without = project(tmp_path, monkeypatch, None)
    run(without, "hour_winds")
    assert {e["name"].split(".")[0] for e in files.read_json(OUT)["expectations"]} == {
        "raw",
        "counts",
    }
    with pytest.raises(DataError, match="decode made no winds"):
        run(project_profile(), "hour_winds")


def test_damaged_table_is_a_data_error(tmp_path, monkeypatch):
    profile = project(tmp_path, monkeypatch, winds())
    Path("data/sample/decoded/hour_winds/winds.parquet").write_bytes(b"PAR1 this is not one PAR1")
    with pytest.raises(DataError, match="cannot be read"):
        run(profile, "hour_winds")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["smple", "commb"], "did you mean 'sample'"), (["mini", "commb"], "unknown data set")],
)
def test_mistakes_end_with_2_before_any_work(arguments, message, capsys):
    assert validate.main(arguments) == 2
    assert message in capsys.readouterr().err


PROBE = """
import os, socket
asked = []
socket.getaddrinfo = lambda *a, **k: asked.append(a)
socket.socket.connect = lambda self, address: asked.append(address)
from stages.validation import gate, rules
gate.judge({"toy": rules.Table([{"row": "a", "n": 5}], "row")}, [rules.Rule("toy", "toy", "n", \
"critical", "", high=10)])
print(os.environ["GX_ANALYTICS_ENABLED"], asked)
"""


def test_data_that_are_not_there_end_with_a_message(tmp_path, monkeypatch, capsys):
    shutil.copy("params.yaml", tmp_path)
    shutil.copytree("stages/params", tmp_path / "stages/params")
    monkeypatch.chdir(tmp_path)
    assert validate.main(["sample", "hour_winds"]) == 1
    assert re.match(
        "error: a file could not be read or written\\n.*data/sample/",
        capsys.readouterr().err,
        re.DOTALL,
    )


def test_judging_asks_no_host_and_telemetry_is_off():
    found = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if k != "GX_ANALYTICS_ENABLED"},
    )
    assert found.stdout.strip() == "false []"
