"""A verdict names what it covers, and over nothing there is none to give."""

import json
import shutil

import audit_project
from audit_project import DATA, NUMBER, REPORTS, edit, evaluation  # noqa: F401 (a fixture)
from test_forgeries import project, whole  # noqa: F401 (fixtures)
from test_verify_all import ALL, clear

from stages.audit import audit, impact
from stages.audit.everything import everything, told

GATED = ("validated/simulated.json", "records/simulated.prepare.json")


def test_a_pass_names_every_stage_that_it_covers(project):
    found = everything(project)
    assert found.verdict == "PASS"
    assert "covered: profile mini, 9 of 9 stages\nPASS" in told(found)


def test_with_no_data_no_cache_and_another_profile_running_nothing_passes(project):
    clear(project)
    shutil.rmtree(project / ".dvc/cache")
    edit(project / "params.yaml", "run: *mini", "run: *other")
    audit_project.commit(project)
    found = everything(project)
    assert (found.verdict, found.exit_code) == ("INCONCLUSIVE", 3)
    assert "nothing was covered" in told(found)
    assert "covered: profile mini, 0 of 9 stages" in told(found)


def test_of_what_is_here_in_part_the_rest_is_not_covered(project):
    shutil.rmtree(project / ".dvc/cache")
    shutil.rmtree(project / REPORTS / "runs/simulated/msa-shared-5k-s1")
    found = everything(project)
    assert found.verdict == "INCONCLUSIVE" and "8 of 9 stages" in told(found)


def test_the_numbers_rest_on_their_gate_though_no_record_names_it(project):
    gate, prepare = (f"{DATA}/{name}" for name in GATED)
    content = json.loads((project / prepare).read_text())
    del content["inputs"][gate]
    (project / prepare).write_text(json.dumps(content))
    assert set(impact(gate, project)) == ALL
    assert gate in audit(NUMBER, "record", project).files
