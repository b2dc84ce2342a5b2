"""The small project of audit_project.py with a past: its stages obey params.yaml, their own code,
the raw files, numpy and the seed.

`lived` is its first commit. `again` re-runs everything, brings records, locks and cache to agree
and commits: a history of one cause is one edit and one `again`.
"""

import shutil
import sys
from pathlib import Path

import pytest
from audit_project import agree, edit, run

OBEDIENT = (
    (
        "import json, os, pathlib, re, sys\n",
        "import json, os, pathlib, re, sys\nfrom importlib import metadata\n",
    ),
    ("\ndef main(stage, module):\n", "SHIFT = 0.0\n\ndef main(stage, module):\n"),
    ("range(2)", 'range(int(os.environ.get("HOURS", 2)))'),
    (".read_bytes()[:40]", ".read_bytes()"),
    (
        '    seed = int(given.get("--seed", 0))\n',
        (
            '    seed, told = int(given.get("--seed", 0)), read_yaml(pathlib.Path("params.yaml"))\n'
            '    steps, drawn_by = told["profiles"]["mini"]["training"]["steps"], '
            'told["training"]["seed"]\n'
            '    shift = SHIFT + steps / 10000 + 0.01 * (metadata.version("numpy") == "9.9.9")\n'
        ),
    ),
    ("default_rng(seed + ", "default_rng(seed + 1000 * drawn_by + "),
    ('    save_file({"w": drawn}', '    save_file({"w": drawn + np.float32(shift)}'),
    (
        '{"steps": 1500, "model": model}',
        '{"budget": {"steps": steps}, "model": model, "protocol": {"seed": drawn_by}}',
    ),
)
ALL = (
    "from stages import fake, training; fake.SHIFT = getattr(training, 'SHIFT', 0.0); "
    "from stages.fake import *; "
    "acquire(); decode(); validate(); prepare(); "
    'train("wind_nowcast", "mini", "simulated", "knn"); train("sensor_noise", "mini", "simulated", '
    '"knn"); [train("wind_nowcast", "mini", "simulated", "msa", "--arm", "shared", "--size", "5k", '
    '"--seed", s) for s in os.environ.get("SEEDS", "01")]; [(evaluate(e), tabulate(e)) for e in '
    '("wind_nowcast", "sensor_noise")]; report()'
)
MADE = (
    "data/mini/raw/simulated",
    "data/mini/decoded/simulated",
    "data/mini/prepared/simulated",
    "reports/*/mini/runs",
    "reports/*/mini/evaluated",
    "reports/*/mini/figures",
)


def again(project: Path, before: str = "") -> None:
    """Run every stage anew and commit; `before` is Python run first."""
    for pattern in MADE:
        for folder in project.glob(pattern):
            shutil.rmtree(folder)
    run(project, sys.executable, "-m", "stages.code")
    run(project, sys.executable, "-c", f"{before}\n{ALL}")
    agree(project)


@pytest.fixture(scope="session")
def lived_template(template, tmp_path_factory):
    """The project whose stages obey, run and committed once."""
    project = Path(
        shutil.copytree(template, tmp_path_factory.mktemp("lived") / "project", symlinks=True)
    )
    for old, new in OBEDIENT:
        edit(project / "stages/fake.py", old, new)
    train = project / "stages/training/train.py"
    edit(train, "import fake\n", "import fake, training\n\nfake.SHIFT = training.SHIFT\n")
    (project / "stages/training/__init__.py").write_text('NAME = "training"\nSHIFT = 0.0\n')
    again(project)
    return project


@pytest.fixture
def lived(lived_template, tmp_path):
    """A copy of it for one test."""
    return Path(shutil.copytree(lived_template, tmp_path / "lived", symlinks=True))


def raw_file(project, monkeypatch) -> None:
    """One hour of frames more."""
    monkeypatch.setenv("HOURS", "3")


def parameter(project, monkeypatch) -> None:
    """A thousand steps more."""
    edit(project / "params.yaml", "steps: 1500", "steps: 2500")


def code(project, monkeypatch) -> None:
    """Another constant in the training's code."""
    edit(project / "stages/training/__init__.py", "SHIFT = 0.0", "SHIFT = 0.5")


def library(project, monkeypatch) -> str:
    """Another numpy, as the environment tells it; Python to run before the stages."""
    edit(project / "constraints.txt", "numpy==2.4.6", "numpy==9.9.9")
    return (
        "from importlib import metadata; told = metadata.version; metadata.version = lambda name: "
        "'9.9.9' if name == 'numpy' else told(name)"
    )


def seed(project, monkeypatch) -> None:
    """Another seed of the protocol."""
    edit(project / "params.yaml", "training: {seed: 0", "training: {seed: 7")
