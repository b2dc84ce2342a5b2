"""Commands that are served run apart from each other, and say how they ended."""

import pytest

from stages.audit import served


@pytest.fixture
def servers(tmp_path, monkeypatch):
    """Servers of a folder with three modules, which have loaded little."""
    monkeypatch.setattr(served, "LOADED", ("json", "no_such_library"))
    (tmp_path / "fine.py").write_text("import sys\nopen(sys.argv[1], 'w').write(__name__)\n")
    (tmp_path / "broken.py").write_text("import json\njson.left = 1\nraise ValueError('why not')\n")
    (tmp_path / "asked.py").write_text(
        "import json, sys\nsys.exit(4 if hasattr(json, 'left') else 3)\n"
    )
    found = served.Server(tmp_path)
    yield found
    found.close()


def test_a_module_runs_as_the_main_one_with_its_words(servers, tmp_path):
    assert servers.run("fine", "out.txt") == (0, "")
    assert (tmp_path / "out.txt").read_text() == "__main__"


def test_a_failure_is_told_by_its_last_words_and_leaves_nothing_to_the_next(servers):
    code, said = servers.run("broken")
    assert code == 1 and said.strip().endswith("ValueError: why not")
    assert servers.run("asked") == (3, "")


def test_a_server_that_has_ended_is_told_and_replaced(servers, tmp_path):
    assert servers.run("fine", "out.txt")[0] == 0
    for one in [servers._process]:
        one.kill()
        one.wait()
    assert servers.run("fine", "out.txt") == (1, "the process that runs commands ended")
    assert servers.run("fine", "other.txt")[0] == 0
