"""A page of another profile stands beside the README, and the records of its data, that its commit
had, its summary beside the numbers that it had, which `verify` notes."""

import hashlib
import json
from types import SimpleNamespace

import pytest

from stages.audit import absent, coded, earlier, hashes, history
from stages.audit import everything as whole

RECORDS = "data/sample/records"
NUMBERS = "reports/e/sample/metrics.json"
PLACES = {
    "reports/e/README.md": "reports/e/README.md",
    RECORDS: f"{RECORDS}/one.prepare.json",
    NUMBERS: NUMBERS,
}
AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def digest(root, path):
    """The MD5 by which a lock names what stands at a path today."""
    if (root / path).is_dir():
        return hashes.manifest_md5(hashes.Bytes(root).manifest(path))
    return hashlib.md5((root / path).read_bytes(), usedforsecurity=False).hexdigest()


def beside(case, name, path, md5):
    return whole.beside(case, SimpleNamespace(name=name), path, md5)


def test_a_summary_is_of_its_profile():
    assert absent.profile_of("reports/curves-sample.csv") == "sample"
    assert absent.profile_of("reports/summary-mini.json") == "mini"
    assert absent.profile_of("reports/winds/sample/page.html") == "sample"
    assert absent.profile_of("reports/index.html") == "reports/index.html"


@pytest.mark.parametrize("path", PLACES)
def test_a_page_of_another_profile_may_stand_beside_what_the_history_holds(tmp_path, path):
    file, digests = tmp_path / PLACES[path], []
    file.parent.mkdir(parents=True)
    file.with_name("other.json").write_text("as ever")
    history.git(tmp_path, "init", "-q")
    for words in ("first", "second"):
        file.write_text(words)
        digests.append(digest(tmp_path, path))
        history.git(tmp_path, "add", "-A")
        history.git(tmp_path, *AUTHOR, "commit", "-q", "-m", words)
    commits = history.git(tmp_path, "log", "--format=%H").split()
    versions = earlier.History(tmp_path)
    code = SimpleNamespace(history=versions)
    case = SimpleNamespace(foreign=lambda entry: entry.name.endswith("@sample"), code=code)
    stage, other = ("summary", "page") if path == NUMBERS else ("page", "summary")
    assert [versions.commit_of(path, one) for one in digests] == [commits[1], commits[0]]
    assert commits[1][:12] in beside(case, f"{stage}@sample", path, digests[0])
    never = "0" * 32
    for entry, place, told in (
        (f"{stage}@sample", path, never),  # bytes of no commit; the profile that runs; another
        (f"{stage}@sample", path, f"{never}.dir"),  # stage; another file
        (f"{stage}@mini", path, digests[0]),
        (f"{other}@sample", path, digests[0]),
        (f"{stage}@sample", "reports/e/companions.csv", digests[0]),
    ):
        assert beside(case, entry, place, told) == ""
    assert earlier.History(None).commit_of(path, digests[0]) is None


def test_a_table_of_another_profile_may_stand_beside_data_as_an_earlier_record_has_them(tmp_path):
    path, file = "data/sample/prepared/a/rows.json", tmp_path / RECORDS / "a.prepare.json"
    file.parent.mkdir(parents=True)
    history.git(tmp_path, "init", "-q")
    for digit in "12":
        file.write_text(json.dumps({"outputs": {path: {"sha256": digit * 64, "bytes": 1}}}))
        history.git(tmp_path, "add", "-A")
        history.git(tmp_path, *AUTHOR, "commit", "-q", "-m", digit)
    first = history.git(tmp_path, "log", "--format=%H").split()[1]
    owner = SimpleNamespace(path=f"{RECORDS}/a.prepare.json")

    def said(reader="tabulate", verdict="STALE", told="1", place=path, versions=tmp_path):
        code = coded.Code(lambda: None, earlier.History(versions), "mini")
        code.judge = lambda node: coded.Judged(verdict)
        described = {"sha256": told * 64, "bytes": 1}
        return code.beside(SimpleNamespace(stage=reader), owner, place, described)

    assert first[:12] in said()
    assert "not here" in said(versions=None)  # a bundle
    assert said(told="3") == said(reader="train") == said(verdict="PASS") == ""
    assert said(place="data/sample/raw/a/rows.json") == ""
