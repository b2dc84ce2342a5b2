"""The header of a model card that the Hugging Face hub reads: YAML between two lines of dashes.

Source: hub documentation, "Model Cards" (metadata) and its `model-index`. Values are written as
JSON, which YAML includes, so that no name needs quoting rules of its own.
"""

import json
from collections.abc import Mapping
from typing import Any

TAGS = ("tradewind", "irregular-data", "attention")


def header(address: str, licence: str, model: str, numbers: Mapping[str, Any]) -> list[str]:
    """The lines of the header of a cell EXPERIMENT/PROFILE/DATASET/CELL: licence, library, tags
    and, where there are any, its `numbers` by name, each {"value", ...}, as results on the test
    split."""
    experiment, profile, dataset, _ = address.split("/")
    results = {
        "task": {"type": "other", "name": experiment},
        "dataset": {
            "type": f"{profile}/{dataset}",
            "name": f"{profile}/{dataset}",
            "split": "test",
        },
        "metrics": [
            {"type": name, "name": called(name, one), "value": one["value"]}
            for name, one in sorted(numbers.items())
            if isinstance(one, dict) and isinstance(one.get("value"), int | float)
        ],
    }
    told: dict[str, Any] = {
        "license": licence.lower(),
        "library_name": "tradewind",
        "tags": [*TAGS, model],
    }
    if results["metrics"]:
        told["model-index"] = [{"name": address, "results": [results]}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
    return ["---", *lines, "---", ""]


def called(name: str, one: Mapping[str, Any]) -> str:
    """A number's name with its unit."""
    return f"{name} [{one['unit']}]" if one.get("unit", "1") != "1" else name
