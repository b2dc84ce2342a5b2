"""What Prefect's pages show of a run, and the deployment that stands in prefect.yaml."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from flows import schedule, shown
from flows.settings import settings

ROOT = Path(__file__).parents[2]
TOLD = YAML(typ="safe").load(ROOT / "prefect.yaml")


@pytest.fixture
def root(monkeypatch):
    monkeypatch.chdir(ROOT)
    shown.commands.cache_clear()
    yield
    shown.commands.cache_clear()


@pytest.mark.parametrize(
    ("stage", "step", "tags"),
    [
        ("reports/chaos/dvc.yaml:train@mini-x", "train", {"dynamics", "chaos"}),
        ("data/tokens/dvc.yaml:prepare@mini-pairs", "prepare", {"tokens"}),
        ("decode@mini-simulated", "decode", {"winds"}),
        ("report", "report", {"page"}),
        ("data/live/raw/captures.dvc", "added", set()),
        ("elsewhere/dvc.yaml:train@a", "train", {"elsewhere"}),
    ],
)
def test_a_task_is_named_by_its_step_and_tagged_by_its_family(root, stage, step, tags):
    assert shown.called(stage) == {"name": step, "tags": tags}


def test_the_table_of_a_run_tells_what_failed_and_what_did_not_begin():
    ended, seconds = {"a": "", "b": "it broke"}, {"a": 2.0, "b": 5.0, "c": 9.0}
    rows = shown.table(["a", "b", "c"], ended, seconds)
    assert [(row["stage"], row["ended"], row["seconds"]) for row in rows] == [
        ("a", "well", 2.0),
        ("b", "failed", None),
        ("c", "not begun", None),
    ]


def test_an_artifact_that_cannot_be_kept_fails_no_run(monkeypatch):
    warned = []
    import prefect
    from prefect import artifacts

    def broken(**_):
        raise OSError("no server")

    monkeypatch.setattr(artifacts, "create_markdown_artifact", broken)
    monkeypatch.setattr(
        prefect,
        "get_run_logger",
        lambda: type("Log", (), {"warning": lambda _, *told: warned.append(told)})(),
    )
    shown.show("markdown", "verdict", "well", "how it ended")
    assert warned == [("the artifact %s was not kept: %s", "verdict", "OSError")]


def test_what_was_decided_is_shown_with_its_reasons_and_the_drift(monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr(shown, "show", lambda *given: told.append(given))
    entry = {"kind": "refused", "number": 3, "reasons": ["no better"], "before": "", "raw": "abc"}
    (tmp_path / "drift.json").write_text('{"state": "steady"}')
    shown.show_entry(entry, tmp_path / "drift.json")
    kinds = [(kind, key) for kind, key, _, _ in told]
    assert kinds == [("table", "ledger-entry"), ("markdown", "verdict"), ("markdown", "drift")]
    assert {"what": "number", "is": "3"} in told[0][2]
    assert "before" not in [row["what"] for row in told[0][2]]
    assert told[1][2] == "**refused**\n\n- no better" and '"steady"' in told[2][2]
    told.clear()
    shown.show_entry(entry, tmp_path / "none.json")
    assert len(told) == 2


def test_the_deployments_are_those_that_make_schedule_serves(root):
    assert [one["name"] for one in TOLD["deployments"]] == list(schedule.DEPLOYMENTS)
    for one in TOLD["deployments"]:
        own = schedule.DEPLOYMENTS[one["name"]]
        assert one["entrypoint"] == f"{own['module']}.{one['name']}"
        assert one["concurrency_limit"]["limit"] == own["at_once"]
        assert [each["cron"] for each in one["schedules"]] == [settings().cron]
        flow = getattr(importlib.import_module(own["module"]), one["name"])
        assert set(one["parameters"]) <= set(flow.parameters.properties)


def test_prefect_loads_the_flow_from_the_entrypoint():
    (one,) = TOLD["deployments"]
    code = (
        "from prefect.flows import load_flow_from_entrypoint as load; "
        f"print(load({one['entrypoint']!r}).name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "retrain", done.stderr[-2000:]
