"""Names of cells, and what params.yaml says of them."""

from pathlib import Path

import pytest

from stages import params
from stages.errors import InputError
from stages.training.cells import Cell, arguments, parse

PARAMS = params.load(Path(__file__).parents[2] / "params.yaml")


@pytest.mark.parametrize(
    "cell,name",
    [
        (Cell("knn"), "knn"),
        (Cell("day_average"), "day_average"),
        (Cell("msa", "shared", "5k", 2), "msa-shared-5k-s2"),
        (Cell("msa", "gaussian", "100k", 10), "msa-gaussian-100k-s10"),
    ],
)
def test_a_name_and_its_cell(cell, name):
    assert cell.name == name and parse(name) == cell


@pytest.mark.parametrize(
    "name", ["", "msa-shared-5k", "msa-shared-5k-0", "MSA", "../x", "msa-shared-5k-s0-x", "knn/"]
)
def test_other_names_are_no_cells(name):
    with pytest.raises(InputError, match="not the name"):
        parse(name)


def test_the_arguments_of_arm_and_size():
    assert arguments(Cell("msa", "traditional", "20k"), PARAMS) == {
        "encoder": "traditional",
        "head": "mean",
        "width": 24,
        "heads": 2,
        "layers": 3,
    }
    assert arguments(Cell("hour_average"), PARAMS) == {}


@pytest.mark.parametrize(
    "cell,words",
    [
        (Cell("mas"), "did you mean 'msa'"),
        (Cell("msa", "shard", "5k"), "did you mean 'shared'"),
        (Cell("msa", "shared", "6k"), "size of msa"),
        (Cell("msa", "shared"), "size of msa"),
        (Cell("knn", "plain", "5k"), "size of knn"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(cell, words):
    with pytest.raises(InputError, match=words):
        arguments(cell, PARAMS)
