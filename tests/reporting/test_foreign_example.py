"""The example that git keeps, in no number's chain, beside an own run on another arithmetic: it may
follow what that run moved, and is an edit alone."""

from pathlib import Path

import foreign_project
from audit_project import DATA, REPORTS, evaluation, relock  # noqa: F401 (fixtures)
from ruamel.yaml import YAML
from test_foreign_run import failing, original, quiet, settled, whole  # noqa: F401 (fixtures)

from stages.audit.everything import everything

EXAMPLE = f"{DATA}/example.json"
EVALUATED = f"{REPORTS}/evaluated/simulated"
METRICS = f"{EVALUATED}/metrics.json"
COPY = f"""from pathlib import Path

made = Path("{EXAMPLE}")
made.parent.mkdir(parents=True, exist_ok=True)
made.write_text(Path("{METRICS}").read_text())
"""


def shown(project: Path, text: str) -> None:
    """An example, in git and in no number's chain; its stage copies an evaluation."""
    (project / EXAMPLE).write_text(text)
    (project / "stages/shown.py").write_text(COPY)
    told = {"cmd": "exec python -m stages.shown", "deps": [EVALUATED]}
    locked = {
        "deps": [{"path": EVALUATED, "hash": "md5", "md5": ""}],
        "outs": [{"path": EXAMPLE, "hash": "md5", "md5": ""}],
    }
    for name, entry in (
        ("dvc.yaml", told | {"outs": [{EXAMPLE: {"cache": False}}]}),
        ("dvc.lock", {"cmd": told["cmd"]} | locked),
    ):
        file, yaml = project / name, YAML()
        content = yaml.load(file.read_text())
        content["stages"]["example"] = entry
        with file.open("w") as stream:
            yaml.dump(content, stream)
    relock(project)


def test_an_example_follows_the_evaluation_that_an_own_run_moved(original):
    shown(original, (original / METRICS).read_text())
    found = everything(original)
    assert found.verdict == "PASS", found.problems
    foreign_project.run_anew(original)
    shown(original, (original / METRICS).read_text())
    found = everything(original)
    assert found.verdict == "PASS", found.problems


def test_an_example_alone_is_an_edit(original):
    told = (original / METRICS).read_text()
    shown(original, told)
    (original / ".git/uncommitted").touch()
    shown(original, f"{told} ")
    found = failing(everything(original))
    assert any(path == EXAMPLE and "differs from the commit" in text for path, text in found)
