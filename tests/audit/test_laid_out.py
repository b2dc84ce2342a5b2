"""What is made again where a project is laid out stays there, and what is not made again is no
proof."""

import pytest

from stages import files
from stages.audit import derive
from stages.audit.laid import Laid, Unmade

RECORDS = "data/mini/records"
RECORD = f"{RECORDS}/one.example.json"


@pytest.fixture
def laid(tmp_path):
    """A project with a folder of records and one of results, and a place to lay it out."""
    for path, text in ((RECORD, "mine\n"), (f"{RECORDS}/deep/two.json", "2\n")):
        (tmp_path / "project" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / path).write_text(text)
    (tmp_path / "project/constraints.txt").write_text("")
    return Laid(tmp_path / "project", tmp_path / "laid")


def test_what_is_written_in_a_folder_that_was_linked_stays_in_the_copy(laid):
    laid.link_all([RECORD, RECORDS])
    assert (laid.folder / f"{RECORDS}/deep/two.json").read_text() == "2\n"
    with files.atomic_file(laid.folder / RECORD, "w") as stream:
        stream.write("another\n")
    (laid.folder / RECORDS / "new.json").write_text("3\n")
    assert (laid.folder / RECORD).read_text() == "another\n"
    assert (laid.root / RECORD).read_text() == "mine\n"
    assert sorted(file.name for file in (laid.root / RECORDS).iterdir()) == [
        "deep",
        "one.example.json",
    ]
    laid.link(RECORDS)  # what was written is kept
    assert (laid.folder / RECORD).read_text() == "another\n"


@pytest.mark.parametrize("out", [RECORD, RECORDS], ids=["file", "folder"])
def test_what_a_command_does_not_write_is_not_compared_with_itself(laid, out):
    laid.link(RECORDS)
    found = list(derive.same(laid, out, "the test"))
    assert {problem.text for problem in found} == {"its command does not write it"}
    assert all(problem.verdict == "FAIL" for problem in found)
    assert RECORD in {problem.path for problem in found}


def test_what_leads_out_of_the_project_is_not_linked(laid, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.json").write_text("1\n")
    (laid.root / RECORDS / "elsewhere").symlink_to(tmp_path / "outside")
    (laid.root / RECORDS / "a.json").symlink_to(tmp_path / "outside/a.json")
    laid.link(RECORDS)
    assert (laid.folder / RECORD).is_file()
    assert {file.name for file in (laid.folder / RECORDS).iterdir()} == {"deep", "one.example.json"}
    for name in ("elsewhere", "a.json"):
        with pytest.raises(Unmade, match="leads out of the project"):
            laid.link(f"{RECORDS}/{name}")
