"""What of another profile was made beside earlier files is told by the commit that holds them; what
git's history does not hold is not told so."""

from types import SimpleNamespace

import pytest

from stages.audit import absent
from stages.audit.everything import beside

COMMIT = "0123456789abcdef"


def case(foreign=True, known=COMMIT):
    history = SimpleNamespace(commit_of=lambda path, md5: known)
    return SimpleNamespace(foreign=lambda _: foreign, code=SimpleNamespace(history=history))


@pytest.mark.parametrize(
    ("name", "path", "told"),
    [
        ("page@sample", "reports/winds/README.md", True),
        ("page@sample", "data/sample/records", True),
        ("page@sample", "reports/winds/sample/metrics.json", False),
        ("summary@sample", "reports/winds/sample/metrics.json", True),
        ("summary@sample", "reports/winds/sample/page.json", True),
        ("summary@sample", "reports/winds/sample/breakdowns.json", False),
        ("tabulate@sample", "reports/winds/sample/metrics.json", False),
    ],
)
def test_pages_and_summaries_of_another_profile_may_be_of_earlier_files(name, path, told):
    entry = SimpleNamespace(name=name)
    assert bool(beside(case(), entry, path, "0" * 32)) == told
    assert not beside(case(foreign=False), entry, path, "0" * 32)
    assert not beside(case(known=""), entry, path, "0" * 32)


def test_a_summary_is_of_its_profile():
    assert absent.profile_of("reports/curves-sample.csv") == "sample"
    assert absent.profile_of("reports/summary-mini.json") == "mini"
    assert absent.profile_of("reports/winds/sample/page.html") == "sample"
    assert absent.profile_of("reports/index.html") == "reports/index.html"
