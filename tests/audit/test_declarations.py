"""What stages declare and records name: spreads that nobody measured, and the records of data that
a page draws."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ruamel.yaml import YAML

from stages.audit import declarations

ROOT = Path(__file__).parents[2]
SPREADS = "data/spreads/sample"


@pytest.mark.parametrize(("have", "told"), [((), 0), (("other.json",), 0), (("toy.json",), 1)])
def test_a_record_names_its_experiments_spreads_where_there_are_any(have, told):
    kept = {f"{SPREADS}/{name}": "d41d8cd9" for name in have}
    case = SimpleNamespace(
        bytes=SimpleNamespace(md5=kept.get), ledger=SimpleNamespace(owner=lambda _: None)
    )
    node = SimpleNamespace(
        path="reports/toy/sample/records/tabulate.json", stage="tabulate", record={"inputs": {}}
    )
    entry = SimpleNamespace(deps=[SPREADS])
    found = list(declarations.inputs(case, node, entry, declarations.Made([])))
    assert found == [f"does not name its input {SPREADS}"] * told


@pytest.mark.parametrize(
    "file", sorted(ROOT.glob("reports/*/dvc.yaml")), ids=lambda f: f.parent.name
)
def test_a_page_is_made_again_when_a_record_of_its_data_changes(file):
    """It draws where numbers come from, from the raw files on."""
    page = YAML(typ="safe").load(file.read_text(encoding="utf-8"))["stages"]["page"]
    assert any(dep.startswith("data/${item.profile}/records") for dep in page["deps"])
