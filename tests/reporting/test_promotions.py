"""The page's promotion ledger: what the ledger says, in order, as far as its chain holds, and in
words where it is empty or broken."""

import hashlib
import json
from pathlib import Path

import jinja2
import pytest

from stages.page import promotions

FIRST = {
    "kind": "promoted",
    "time": "2026-01-15T12:00:03Z",
    "before": "",
    "after": "ab" * 32,
    "against": "persistence",
    "rmse_component_kn": {"challenger": 7.125, "against": 8.5},
    "difference_kn": {"value": -1.375, "low": -1.5, "high": -0.25},
    "evaluation": {"slices": 59},
    "drift": {"state": "steady"},
    "reasons": ["It <b>won</b>."],
}
SECOND = {
    "kind": "refused",
    "time": "2026-01-15T14:00:03Z",
    "before": "ab" * 32,
    "after": "ab" * 32,
    "drift": {"state": "broken"},
    "reasons": ["Too few.", "Dirty."],
}


def written(*entries: dict) -> list[str]:
    """The ledger's lines, made by hand: number, hash of the line before, hash of the rest."""
    lines: list[str] = []
    for number, entry in enumerate(entries, 1):
        whole = entry | {
            "number": number,
            "previous": hashlib.sha256(lines[-1].encode()).hexdigest() if lines else "",
        }
        own = hashlib.sha256(
            json.dumps(whole, sort_keys=True, ensure_ascii=False).encode()
        ).hexdigest()
        lines.append(json.dumps(whole | {"digest": own}, sort_keys=True, ensure_ascii=False))
    keep(lines)
    return lines


def keep(lines: list[str]) -> None:
    Path("reports").mkdir(exist_ok=True)
    Path("reports/ledger.jsonl").write_text(
        "".join(line + "\n" for line in lines), encoding="utf-8"
    )


def section() -> str:
    """The section as the page includes it."""
    loader = jinja2.FileSystemLoader(Path(promotions.__file__).parent)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page_ledger.html").render(promotions=promotions.view())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("there", [False, True])
def test_an_empty_ledger_is_a_sentence(there):
    if there:
        keep([])
    assert "The ledger is empty" in section() and "<table>" not in section()


def test_every_entry_is_a_row_with_its_numbers_the_newest_first():
    written(FIRST, SECOND)
    found = promotions.view()
    titles = dict(zip(found["titles"], zip(*found["rows"], strict=True), strict=True))
    assert (
        titles["no."] == ("2", "1")
        and titles["verdict"] == ("refused", "promoted")
        and titles["slices"] == ("–", "59")
    )
    assert titles["challenger RMSE [kn]"] == ("–", "7.12") and titles["against RMSE [kn]"] == (
        "–",
        "8.50 (persistence)",
    )
    assert titles["difference [kn], 90 %"] == ("–", "-1.38 [-1.50, -0.25]") and titles["drift"] == (
        "broken",
        "steady",
    )
    assert titles["reason"] == ("Too few. Dirty.", "It <b>won</b>.") and titles[
        "champion after"
    ] == ("ab" * 6, "ab" * 6)
    text = section()
    assert (
        "It &lt;b&gt;won&lt;/b&gt;." in text
        and f"The champion now: {'ab' * 6}." in text
        and text.count("<tr>") == 3
    )


def test_what_the_writer_appends_the_page_reads():
    from stages.winds.retraining import ledger

    for case, entry in (("1", FIRST), ("2", SECOND)):
        ledger.append(entry | {"case": case, "raw": case})
    found = promotions.view()
    assert found["broken"] == "" and [row[0] for row in found["rows"]] == ["2", "1"]


@pytest.mark.parametrize(
    ("forge", "line"),
    [
        (lambda x: [x[0], x[1].replace("broken", "steady"), x[2]], 2),
        (lambda x: x[1:], 1),
        (lambda x: [x[0], x[2]], 2),
        (lambda x: [x[0], x[2], x[1]], 2),
        (lambda x: [x[0], "{}", *x[1:]], 2),
        (lambda x: [*x, "no JSON"], 4),
        (lambda x: [x[0], "[1]", x[2]], 2),
        (lambda x: [*x[:2], "", x[2]], 3),
    ],
)
def test_a_broken_chain_is_told_and_ends_the_table(forge, line):
    keep(forge(written(FIRST, SECOND, SECOND)))
    found = promotions.view()
    assert (
        f"broken at line {line}" in found["broken"]
        and len(found["rows"]) == line - 1
        and found["champion"] == ""
    )
    assert found["broken"] in section()
