"""The audit of this project's own numbers, at every depth: one number a family, of its cheapest
cell, evaluated again, and trained again where `make test-faults` and `.ci/run` look: these see the
slower families, too.

Each family's results are looked for on disk (`make repro` makes them); what is not there is skipped
by name.
"""

from pathlib import Path

import pytest

from stages.audit.chain import Ledger, Metric, published
from stages.audit.render import render
from stages.audit.verify import audit
from stages.errors import InputError

HOME = Path(__file__).parents[2]
# A number a family; the last rests on nothing that is trained.
TRAINED = (
    "sparse_fields/mini/darcy/cnp-shared-20k-s0/mse",
    "any_order/mini/walk/sigma_gpt-random-60k-s0/nats",
    "wind_nowcast/mini/simulated/persistence/rmse_component_kn",
)
NUMBERS = (*TRAINED, "neighbours/mini/random_points/linear-iso-k100/comparisons")
QUICK = TRAINED[:1]  # seconds; the others take minutes


def number(address: str) -> str:
    """The address, or one of the same experiment and profile whose results are here: a trained
    cell's, if any is; the test is skipped where there is none."""
    metric = Metric.parse(address)
    place = f"{metric.folder}/evaluated/{metric.dataset}/metrics.json"
    if not (HOME / place).is_file():
        pytest.skip(f"{place} is not on disk: `make repro` makes it")
    published(Ledger(HOME), metric)
    return address


@pytest.mark.parametrize(
    "address, depth",
    [
        *((address, "eval") for address in QUICK),
        *(
            pytest.param(address, "eval", marks=pytest.mark.slow_fault)
            for address in NUMBERS
            if address not in QUICK
        ),
        *(pytest.param(address, "train", marks=pytest.mark.slow_fault) for address in TRAINED),
    ],
)
def test_an_honest_number_passes_at_every_depth(address, depth):
    found = audit(number(address), depth, HOME)
    assert found.verdict == "PASS", render(found)
    assert "gives the published number to the last bit" in render(found)
    if depth == "train":
        assert "again gives the recorded weights to the last bit" in render(found)


def test_a_number_that_is_not_published_is_told():
    with pytest.raises(InputError, match="no such cell"):
        published(Ledger(HOME), Metric.parse("sparse_fields/mini/darcy/nobody-s0/mse"))
