"""Models load when they are asked for, are found by their file, and a new one makes no cell
stale."""

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages import code
from stages.contracts import FieldModel, SequenceModel
from stages.errors import InputError
from stages.fields import models as fields
from stages.sequences import models as sequences

ROOT = Path(__file__).parents[2]
PACKAGES = pytest.mark.parametrize("package", [fields, sequences], ids=["fields", "sequences"])
EVERY = [(package, name) for package in (fields, sequences) for name in package.names()]
STAGES = ("winds.train", "winds.sweep", "fields.train", "sequences.train", "fields.models.msa")
NEW = """from stages.batches import Batch, Prediction
from stages.contracts import FieldModel


class NewOne(FieldModel):
    learns = "nothing"

    def __init__(self, x_dim: int, i_dim: int, o_dim: int):
        super().__init__()
"""


@PACKAGES
def test_the_names_are_the_files(package):
    home = Path(package.__file__).parent
    assert set(package.names()) == {file.stem for file in home.glob("*.py")} - {"__init__"}


def test_building_one_loads_no_other():
    code = (
        "import sys\n"
        "from stages.fields.models import build, names\n"
        "from stages.sequences.models import names as others\n"
        "from stages.training import shell\n"
        "loaded = lambda: {m for m in sys.modules if '.models.' in m and m.startswith('stages')}\n"
        "assert len(names()) > 20 and others() and not loaded(), loaded()\n"
        "build('cnp')\n"
        "assert loaded() == {'stages.fields.models.cnp'}, loaded()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=300)


@pytest.mark.parametrize(("package", "name"), EVERY, ids=[name for _, name in EVERY])
def test_each_is_found_and_limits_only_arguments_that_it_has(package, name):
    model = package.model_class(name)
    assert model.__module__ == f"{package.__name__}.{name}"
    assert issubclass(model, FieldModel if package is fields else SequenceModel)
    assert {*model.limits, *model.words} <= set(inspect.signature(model).parameters)


@PACKAGES
def test_an_unknown_one_is_told_with_the_nearest(package):
    near = package.names()[-1]
    with pytest.raises(InputError, match=near):
        package.model_class(f"{near}x")


def test_a_new_one_makes_no_stage_and_no_other_models_cells_stale(tmp_path):
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pyc*"))

    def closures() -> dict[str, dict[str, str]]:
        return {name: code.closure(f"stages.{name}", tmp_path) for name in STAGES}

    before = closures()
    (tmp_path / "stages/fields/models/new_one.py").write_text(NEW)
    assert closures() == before
    assert "stages/fields/models/new_one.py" in code.closure(
        "stages.fields.models.new_one", tmp_path
    )
    (tmp_path / "stages/fields/models/msa.py").write_text(NEW)
    changed = {name for name, one in closures().items() if one != before[name]}
    assert changed == {"fields.models.msa"}
