"""`tradewind gates`: Great Expectations' data docs say what the gates' files say."""

import re
from pathlib import Path

import pytest

from stages.errors import InputError
from stages.files import read_json, write_json
from stages.validation import docs

ROOT = Path(__file__).parents[2]
RULE = {"table": "sets", "severity": "warning", "rows": 0, "examples": [], "remedy": "look at it"}


def rule(name, column, limit, observed, where=()):
    return RULE | {
        "name": name,
        "column": column,
        "limit": limit,
        "observed": observed,
        "success": not where,
        "where": [*where],
    }


@pytest.fixture
def site(tmp_path):
    """The site of a gate of three rules, one of which is not met."""
    rules = [
        rule("sets.mean", "mean", "-0.5 to 0.25", 0.125),
        rule("sets.lost", "lost", "at most 0.01", 0.75, ["train", "test"]),
        rule("sets.split", "split", "exactly train, test", ["test", "train"]),
    ]
    gate = {"profile": "mini", "dataset": "toy", "success": True, "expectations": rules}
    write_json(tmp_path / "data/mini/validated/toy.json", gate)
    page, count = docs.build(tmp_path / "site", tmp_path)
    assert (page, count) == (tmp_path / "site/index.html", 1)
    return tmp_path / "site"


def text(folder: Path) -> str:
    """The words of the only page below a folder."""
    (page,) = folder.rglob("*.html")
    plain = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain))


def test_a_page_tells_bounds_what_was_observed_and_how_many_were_met(site):
    said = text(site / "validations")
    assert "greater than or equal to -0.5 and less than or equal to 0.25 . 0.125" in said
    assert "less than or equal to 0.01 . 0.75 in train, test" in said
    assert "match this set: train test" in said
    assert "Evaluated Expectations 3 Successful Expectations 2 Unsuccessful Expectations 1" in said
    assert "rendering" not in said and "Exception" not in said


def test_the_rules_of_a_gate_are_told_with_their_remedies(site):
    assert "sets.lost (warning), table sets. Remedy: look at it" in text(site / "expectations")


def test_the_bound_of_every_rule_of_this_project_is_read(monkeypatch):
    rules = [
        one
        for file in ROOT.glob("data/*/validated/*.json")
        for one in read_json(file)["expectations"]
    ]
    for one in rules:
        told = docs.configuration(one)
        if one["limit"].startswith("exactly"):
            assert told.kwargs["value_set"]
            continue
        low, high = told.kwargs["min_value"], told.kwargs["max_value"]
        ends = one["observed"] if isinstance(one["observed"], list) else [one["observed"]]
        within = all((low is None or low <= x) and (high is None or x <= high) for x in ends)
        assert within == one["success"], one["name"]
    assert len(rules) > 100


def test_a_folder_without_gates_is_refused(tmp_path):
    with pytest.raises(InputError, match="no gate to show"):
        docs.build(tmp_path / "site", tmp_path)
