"""A verdict names what it covers, and over nothing there is none to give."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import audit_project
from audit_project import DATA, NUMBER, REPORTS, edit, evaluation  # noqa: F401 (a fixture)
from test_forgeries import project, whole  # noqa: F401 (fixtures)
from test_verify_all import ALL, clear

from stages.audit import again, commands, declarations, hashes
from stages.audit.everything import everything, report_text
from stages.audit.impact import impact
from stages.audit.verify import audit
from stages.page.findings import FINDINGS

GATED = ("validated/simulated.json", "records/simulated.prepare.json")


def test_a_pass_names_every_stage_that_it_covers(project):
    found = everything(project)
    assert found.verdict == "PASS", found.problems
    assert "covered: profile mini, 9 of 9 stages\nPASS" in report_text(found)


def test_with_no_data_no_cache_and_another_profile_running_nothing_passes(project):
    clear(project)
    shutil.rmtree(project / ".dvc/cache")
    edit(project / "params.yaml", "run: *mini", "run: *other")
    audit_project.commit(project)
    found = everything(project)
    assert (found.verdict, found.exit_code) == ("INCONCLUSIVE", 3)
    assert "nothing was covered" in report_text(found)
    assert "covered: profile mini, 0 of 9 stages" in report_text(found)


def test_of_what_is_here_in_part_the_rest_is_not_covered(project):
    shutil.rmtree(project / ".dvc/cache")
    shutil.rmtree(project / REPORTS / "runs/simulated/msa-shared-5k-s1")
    found = everything(project)
    assert found.verdict == "INCONCLUSIVE" and "8 of 9 stages" in report_text(found)


def test_the_numbers_rest_on_their_gate_though_no_record_names_it(project):
    gate, prepare = (f"{DATA}/{name}" for name in GATED)
    content = json.loads((project / prepare).read_text())
    del content["inputs"][gate]
    (project / prepare).write_text(json.dumps(content))
    assert set(impact(gate, project)) == ALL
    assert gate in audit(NUMBER, "record", project).files


def test_a_lock_whose_command_is_of_another_cell_lacks_its_declared_outputs():
    home = "reports/wind_nowcast/mini/runs/simulated/msa-shared-20k-s0"
    locks = hashes.Locks(Path(__file__).parents[2], "wind_nowcast")
    entry = locks.producer(home)
    declared = commands.definition(locks, entry)

    def lacking(cmd: str) -> list[str]:
        words = commands.bound(commands.template_of(locks, entry), cmd)
        return list(declarations.lacking(declared, entry, words))

    assert lacking(entry.cmd) == []
    assert any("runs" in text for text in lacking(entry.cmd.replace("--seed 0", "--seed 1")))
    other = lacking(entry.cmd.replace("mini simulated", "mini gp_wind"))
    assert any(text.startswith("dependency") for text in other)


def test_a_block_of_the_findings_is_that_of_its_results(tmp_path):
    place = tmp_path / "reports/x/mini"
    place.mkdir(parents=True)
    table = {"dataset": "d", "about": "errors", "lines": ["| a |", "| 1 |"]}
    (place / "page.json").write_text(json.dumps({"short": [table]}))
    text = "<!-- results:mini x -->\n*mini, d*: errors\n\n| a |\n| 1 |\n<!-- /results -->\n"
    (tmp_path / FINDINGS).write_text(text)
    audit_project.run(tmp_path, "git", "init", "-q")
    audit_project.commit(tmp_path)
    case = SimpleNamespace(root=tmp_path)
    assert list(again.block(case)) == []
    edit(tmp_path / FINDINGS, "| 1 |", "| 9 |")
    assert [(one.verdict, one.path) for one in again.block(case)] == [("FAIL", FINDINGS.as_posix())]
    (place / "page.json").write_text(json.dumps({"short": []}))  # a run of one's own
    assert list(again.block(case)) == []
