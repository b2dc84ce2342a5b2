"""Names and sentences on a page are text; a page of what was not run leaves it out; pages stay
small."""

import json
import re
from pathlib import Path

import results_project
import stage_runs
from page_made import OWN, make, results, theirs
from page_reader import read, rows_of
from results_project import EXPERIMENT, HOME, PROFILE

from stages import files
from stages.page import report
from stages.winds import page

HOSTILE = "a<b>&\"c'"


# --- odd cases


def test_names_and_sentences_are_text_never_markup(tmp_path, monkeypatch):
    scripts = {}
    for name in ("plain", HOSTILE):
        (place := tmp_path / str(len(name))).mkdir()
        rows = {"hour_average": (12.0, 11.0, 13.0), name: (9.0, 8.0, 10.0)}
        make(place, monkeypatch, {name: rows})
        scripts[name] = read(OWN).tags.count("script")
    claims = files.read_json(HOME / "claims.json", list)
    claims[0] |= {"text": "<script>alert(1)</script>", "why": "</table><img src=http://x.example/>"}
    files.write_json(HOME / "claims.json", claims)
    stage_runs.write_pages(page, EXPERIMENT, PROFILE)
    assert read().problems == []
    seen = read(OWN)
    assert seen.problems == [] and "b" not in seen.tags
    assert seen.tags.count("script") == scripts["plain"] == scripts[HOSTILE]
    assert all("x.example" not in (value or "") for _, _, value in seen.attributes)
    assert [row["model"] for row in results(seen, HOSTILE)] == ["hour_average", HOSTILE]
    text = Path("reports", OWN).read_text()
    data = re.search(r'id="chains">(.*?)</script>', text, re.DOTALL)[1]
    assert "<" not in data and HOSTILE in json.loads(data)["runs"][f"{EXPERIMENT}/{PROFILE}"]["d"]
    assert rows_of(seen, "the claims ledger")[0]["claim"] == "<script>alert(1)</script>"
    assert f"lineage of {HOSTILE}" in [
        value for _, name, value in seen.attributes if name == "aria-label"
    ]


def test_a_profile_that_was_not_run_is_left_out_and_no_profile_at_all_still_makes_a_page(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("reports").mkdir()
    report.report()
    seen = read()
    assert (
        seen.problems == []
        and seen.figures == []
        and set(seen.tables)
        == {
            "all results",
            "errata of the documents",
            "numbers in the documents' text",
            "what the documents print",
        }
    )
    assert {value for _, name, value in seen.attributes if name == "href"} == {
        "#documents",
        "../README.md",
        *theirs(),
        "#results",
        "#ledger",
        "#claims",
        "grand.html",
        "claims.html",
        "#errata",
        "#printed",
        "#words",
        "#validation",
        "#audit",
    }
    assert Path("reports/README.md").read_text().startswith("# Results\n")


def test_the_projects_own_pages_are_small_enough_to_send():
    home = results_project.ROOT / "reports"
    pages = [home / "index.html", *home.glob("*/*/page.html")]
    assert len(pages) > 10
    for path in pages:
        assert path.stat().st_size <= 520_000, path
        assert "data:image" not in path.read_text(encoding="utf-8"), path
