"""A page of another profile stands beside the README that its commit had, which `verify` notes."""

import hashlib
from types import SimpleNamespace

from stages.audit import earlier, history
from stages.audit import everything as whole


def test_a_page_of_another_profile_may_stand_beside_an_earlier_readme_of_the_history(tmp_path):
    path = "reports/e/README.md"
    readme = tmp_path / path
    readme.parent.mkdir(parents=True)
    author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    digests = []
    history.git(tmp_path, "init", "-q")
    for words in ("first", "second"):
        readme.write_text(words)
        digests.append(hashlib.md5(words.encode(), usedforsecurity=False).hexdigest())
        history.git(tmp_path, "add", "-A")
        history.git(tmp_path, *author, "commit", "-q", "-m", words)
    commits = history.git(tmp_path, "log", "--format=%H").split()
    versions = earlier.History(tmp_path)
    code = SimpleNamespace(history=versions)
    case = SimpleNamespace(foreign="page@sample".__eq__, code=code)
    assert versions.commit_of(path, digests[0]) == commits[1]
    assert commits[1][:12] in whole.beside(case, "page@sample", path, digests[0])
    never = "0" * 32
    for entry, file, digest in (
        ("page@sample", path, never),  # bytes of no commit; the profile that runs; another file
        ("page@mini", path, digests[0]),
        ("page@sample", "reports/e/companions.csv", digests[0]),
    ):
        assert whole.beside(case, entry, file, digest) == ""
    assert earlier.History(None).commit_of(path, digests[0]) is None
