"""The front page introduces the five documents as data/README.md does, with the experiments that
re-do each."""

import re
from pathlib import Path

import pytest

from stages.page import documents, report
from stages.page.result import DOCUMENTS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told():
    return documents.introduced(report.read_views())


def test_titles_are_those_of_the_list_of_documents(told):
    listed = (ROOT / "data/README.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (.) \| `(\w+)` \| (.+?), \*(.+?)\*", listed)
    assert {one["document"]: one["title"] for one in told} == {r[1]: r[3] for r in rows}
    assert {one["document"]: one["letter"] for one in told} == {r[1]: r[0].strip("–") for r in rows}


def test_each_document_names_the_experiments_that_are_compared_with_it(told):
    assert [one["document"] for one in told] == list(DOCUMENTS)
    by_document = {one["document"]: one["experiments"] for one in told}
    assert by_document["gating"].keys() == {"chaos", "series"}
    for one in told:
        assert one["experiments"] and one["about"] and one["authors"] and one["kind"]
        assert all((ROOT / "reports" / page).is_file() for page in one["experiments"].values())


def test_the_front_page_links_them():
    page = (ROOT / "reports/index.html").read_text("utf-8")
    section = page[page.index('id="documents"') : page.index('id="find"')]
    for one in documents.introduced(report.read_views()):
        title = one["title"].replace("&", "&amp;")
        assert title in section
        for address in [*one["experiments"].values(), *(link for link, _ in one["links"])]:
            assert f'href="{address}"' in section
