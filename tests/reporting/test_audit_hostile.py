"""What is meant to bring the audit down is told in a line: numbers of thousands of digits, keys
that stand twice, records of what is not there, names that are lines, long files of nothing."""

import errno
import json
import os

import audit_project
import pytest
from audit_project import DATA, NUMBER, TABLE, edit, evaluation  # noqa: F401 (a fixture)
from forger import FRAMES, TRAIN, record
from test_forgeries import project, whole  # noqa: F401 (fixtures)

from stages import files
from stages.audit import hashes
from stages.audit.chain import Ledger, Metric, published
from stages.audit.everything import everything, report_text
from stages.audit.impact import all_chains, impact
from stages.audit.render import render
from stages.audit.verify import audit
from stages.errors import DataError, InputError
from stages.params import nearest

TABLED = f"{DATA}/prepared/simulated"
LONG = "9" * 5000
GIVEN = {"sha256": "a" * 64, "bytes": 3}


def both(project) -> list[str]:
    """What an audit and `verify --all` print, which both fail."""
    found, all_of_it = audit(NUMBER, "hash", project), everything(project)
    assert found.verdict == all_of_it.verdict == "FAIL"
    assert all_chains(Ledger(project)) is not None
    return [render(found), report_text(all_of_it)]


@pytest.mark.parametrize("path, old", [(TABLE, '"n": 10'), (TRAIN, '"threads": 1')])
def test_a_number_of_five_thousand_digits_is_told_by_its_file(project, path, old):
    edit(project / path, old, f"{old.split(':')[0]}: {LONG}")
    for text in both(project):
        assert f"FAIL: {path}" in text and "one of 5,000 digits" in text and LONG not in text


@pytest.mark.parametrize("path", [TABLE, TRAIN, f"{DATA}/validated/simulated.json"])
def test_a_key_that_stands_twice_is_refused_by_its_file(project, path):
    text = (project / path).read_text().rstrip()
    name = next(iter(json.loads(text)))
    (project / path).write_text(f'{text[:-1]}, "{name}": 1}}')
    audit_project.agree(project) if path.endswith("simulated.json") else None
    for text in both(project):
        assert f"FAIL: {path}" in text and "a key stands twice" in text


def test_a_record_that_names_an_input_that_is_gone_fails_by_its_file(project):
    record(TRAIN, lambda one: one["inputs"].update(gone=GIVEN))(project)
    audit_project.relock(project)
    for text in both(project):
        assert f"FAIL: {TRAIN}" in text and "names the input gone" in text
    assert NUMBER in impact("gone", project)


def test_a_lock_whose_md5_is_a_number_is_none(project):
    lock = project / "dvc.lock"
    edit(lock, hashes.Locks(project).producer(TABLED).outs[TABLED], "1" * 32)
    audit_project.commit(project)
    assert any("FAIL: dvc.lock" in text and "is no text" in text for text in both(project))


def test_a_name_of_several_lines_stays_in_one(project):
    name = f"{DATA}/raw/simulated/x\n\nPASS\x1b[2J"
    (project / name).write_text("beside")
    record(TRAIN, lambda one: one["inputs"].update({name: GIVEN}))(project)
    for text in both(project):
        assert "PASS" not in text.splitlines() and "\x1b" not in text
        assert "x\\n\\nPASS\\x1b[2J" in text


def test_a_file_longer_than_its_record_says_is_not_read(project):
    os.truncate(project / FRAMES, 20 << 30)  # sparse: nothing is written
    for text in both(project):
        assert f"FAIL: {FRAMES}" in text and "it has 21474836480 bytes" in text


def test_an_unknown_cell_is_told_without_all_that_are_known(project):
    cells = {f"simulated/cell-{n}": {} for n in range(500)}
    (project / TABLE).write_text(files.json_text({"cells": cells, "arms": {}}))
    with pytest.raises(InputError) as caught:
        published(Ledger(project), Metric.parse(NUMBER))
    assert len(str(caught.value)) < 400 and "did you mean" in str(caught.value)
    assert nearest("b", ["a"]) == " (known: a)"


def test_a_folder_of_a_lower_layer_is_swapped_though_it_cannot_be_renamed(tmp_path, monkeypatch):
    place, true = tmp_path / "place", os.replace
    place.mkdir()
    (place / "old").write_text("old")

    def replace(source, target):
        if os.fspath(source) == os.fspath(place):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        true(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(files.ctypes, "CDLL", lambda *_, **__: object())  # a system without it
    with files.atomic_folder(place) as folder:
        (folder / "new").write_text("new")
    assert [file.name for file in place.iterdir()] == ["new"]
    assert [file.name for file in tmp_path.iterdir()] == ["place"]


def test_json_is_as_strict_as_it_says():
    assert files.json_of(b'{"a": 12, "b": {"a": -3}}', "x") == {"a": 12, "b": {"a": -3}}
    for text in (b'{"a": 1, "a": 1}', b'{"a": 1' + b"0" * 300 + b"}", b'{"a": NaN}', b"{"):
        with pytest.raises(DataError, match="x"):
            files.json_of(text, "x")
