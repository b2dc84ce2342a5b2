"""The experiment as it was run in mini, read from git: what the issue asked of it, and that every
cell that a profile declares can be built."""

from pathlib import Path

import pytest
from committed import committed

from stages.dynamics.models import build
from stages.dynamics.prepare import starting
from stages.dynamics.settings import dynamics_of, simulated_of
from stages.params import load
from stages.training import cells

ROOT = Path(__file__).parents[2]
CLASSES = ("lstm", "gru", "rhn", "transformer", "recurrent_transformer")


@pytest.fixture(scope="module")
def parameters():
    return load(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def valid() -> dict[str, dict]:
    """Valid times in Lyapunov times, by cell."""
    content = committed("reports/chaos/mini/metrics.json")
    return {name: cell["metrics"]["vpt"] for name, cell in content["cells"].items()}


def test_rivals_reach_what_they_should(valid):
    assert valid["l96_f10/quadratic"]["value"] >= 5.0, "the best of R: 3.5"
    assert valid["ks_l22/reservoirs"]["value"] >= 4.5
    assert min(valid[name]["n"] for name in valid) >= 100


@pytest.mark.parametrize("model", CLASSES)
def test_a_network_of_every_class_beats_persistence_and_the_linear_model(valid, model):
    best = max(valid[name]["low"] for name in valid if name.startswith(f"l96_f10/{model}-"))
    assert best > valid["l96_f10/linear"]["high"] > valid["l96_f10/persistence"]["high"]


def test_no_forecast_of_a_system_that_is_observed_in_part_outlasts_the_solver(valid):
    for name, one in valid.items():
        if name.startswith("ks_"):  # the solver's own orbit, observed whole
            continue
        assert one["value"] <= valid[f"{name.partition('/')[0]}/solver"]["value"]


@pytest.mark.parametrize("profile", ["mini", "sample", "full"])
def test_every_cell_of_a_profile_can_be_built_and_every_forecast_fits(parameters, profile):
    told = dynamics_of(parameters, profile)
    trained = parameters.trained("chaos", profile).cells.values()
    assert trained and len({(one.dataset, one.name) for one in trained}) == len(trained)
    assert {one.dataset for one in trained} <= {*told.datasets}
    for one in {(cell.model, cell.arm, cell.size): cell for cell in trained}.values():
        cell = cells.Cell(one.model, one.arm, one.size, one.seed)
        build(one.model, cells.arguments(cell, parameters), 8, 0.1)
    for name in told.datasets:
        made = simulated_of(parameters, name)
        asked = told.forecasts[name]
        assert len(starting(made, told.splits[name], asked, name)) * made.members >= 100


def test_mini_trains_at_most_fifteen_cells(parameters):
    trained = [parameters.trained(name, "mini").declared() for name in ("chaos", "series")]
    assert sum(len([*cells]) for cells in trained) <= 15


@pytest.mark.parametrize("profile", ["mini", "sample", "full"])
def test_every_best_of_a_search_has_its_search(parameters, profile):
    told = dynamics_of(parameters, profile)
    swept = parameters.trained("chaos", profile).swept.values()
    assert swept and all(one.model in told.searches[one.dataset] for one in swept)
    assert {(one.arm, one.size, one.seed) for one in swept} == {("swept", "swept", 0)}
