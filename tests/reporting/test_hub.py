"""The header of a model card, read by the hub's own library."""

import json
from pathlib import Path

from huggingface_hub import ModelCard

from stages import exports
from stages.audit.history import at_head
from stages.exports import hub

HOME = Path(__file__).resolve().parents[2]
CELL = "wind_nowcast/mini/simulated/msa-shared-20k-s0"


def test_the_card_of_a_cell_begins_with_a_header_that_tells_its_numbers():
    told = ModelCard(exports.card(CELL, HOME)).data
    assert (told.license, told.library_name) == ("mit", "tradewind") and "msa" in told.tags
    table = json.loads(at_head(HOME, "reports/wind_nowcast/mini/metrics.json"))
    numbers = table["cells"]["simulated/msa-shared-20k-s0"]["metrics"]
    results = told.eval_results
    assert told.model_name == CELL and len(results) == len(numbers) > 10
    assert all(one.metric_value == numbers[one.metric_type]["value"] for one in results)
    assert {(one.dataset_name, one.dataset_split) for one in results} == {
        ("mini/simulated", "test")
    }


def test_names_that_yaml_would_read_otherwise_stay_what_they_are():
    numbers = {"no": {"value": 1.5, "unit": "kn"}, "text": {"value": "x"}, "bare": 3}
    card = ModelCard("\n".join(hub.header('a/b/c: "d"/e #f', "MIT", "on: off", numbers)))
    assert card.data.tags[-1] == "on: off"
    name, (one,) = card.data.model_name, card.data.eval_results
    assert (name, one.dataset_type) == ('a/b/c: "d"/e #f', 'b/c: "d"')
    assert (one.metric_type, one.metric_name, one.metric_value) == ("no", "no [kn]", 1.5)


def test_a_cell_without_numbers_has_no_results():
    card = ModelCard("\n".join(hub.header("a/b/c/d", "MIT", "msa", {})))
    assert card.data.eval_results is None and card.data.license == "mit"
