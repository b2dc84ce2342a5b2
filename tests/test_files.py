"""A kill at any moment leaves the old state or the new one, never a third; one writer at a time;
strict JSON."""

import copy
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from living import alive

from stages import files
from stages.errors import BusyError, DataError

ROOT = Path(__file__).parents[1]
WRITE_FILE = (
    "from stages import files\nwith files.atomic_file('out/a.txt', 'w') as s:\n"
    "    s.write('new' * 1000)\n    files.fault('written')\n"
)
WRITE_FOLDER = (
    "from stages import files\nwith files.atomic_folder('out/d') as d:\n"
    "    (d / 'x').write_text('new')\n    files.fault('written')\n"
    "    (d / 'sub').mkdir()\n    (d / 'sub' / 'y').write_text('new')\n"
)
OLD_FOLDER, NEW_FOLDER = {"x": "old", "z": "old"}, {"x": "new", "sub/y": "new"}


def python(code: str, cwd: Path, fault: str = "", **more) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FAULT": fault}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **more,
    )


def tree(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()
    }


# --- kills


@pytest.mark.parametrize("before", ["", "old"])
@pytest.mark.parametrize(
    "point, after",
    [("written", "before"), ("before_rename", "before"), ("after_rename", "new"), ("", "new")],
)
@pytest.mark.fault("F1", "F5")
def test_a_killed_file_write_leaves_the_old_file_or_the_new(tmp_path, before, point, after):
    file = tmp_path / "out/a.txt"
    file.parent.mkdir()
    if before:
        file.write_text(before)
    done = python(WRITE_FILE, tmp_path, f"{point}:1" if point else "")
    assert done.returncode == (-signal.SIGKILL if point else 0), done.stderr
    assert (file.read_text() if file.exists() else "") == (
        before if after == "before" else "new" * 1000
    )
    assert (
        python(WRITE_FILE, tmp_path).returncode == 0
    )  # the next run ends well and leaves nothing behind
    assert tree(tmp_path / "out") == {"a.txt": "new" * 1000}


@pytest.mark.parametrize("before", [{}, OLD_FOLDER])
@pytest.mark.parametrize(
    "point, after",
    [("written", "before"), ("before_rename", "before"), ("after_rename", "new"), ("", "new")],
)
@pytest.mark.fault("F1", "F5")
def test_a_killed_folder_write_leaves_the_old_folder_or_the_new(tmp_path, before, point, after):
    folder = tmp_path / "out/d"
    for name, text in before.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    done = python(WRITE_FOLDER, tmp_path, f"{point}:1" if point else "")
    assert done.returncode == (-signal.SIGKILL if point else 0), done.stderr
    assert tree(folder) == (before if after == "before" else NEW_FOLDER)
    assert python(WRITE_FOLDER, tmp_path).returncode == 0
    assert tree(tmp_path / "out") == {f"d/{name}": text for name, text in NEW_FOLDER.items()}


def test_a_folder_is_never_absent_while_it_is_replaced(tmp_path):
    """A watcher that opens the folder's file as fast as it can never misses it, over 100
    replacements."""
    code = (
        "from stages import files\nfor i in range(100):\n    with files.atomic_folder('d') as d:\n"
        "        (d / 'x').write_text('a' if i % 2 else 'b')\n"
    )
    with files.atomic_folder(tmp_path / "d") as folder:
        (folder / "x").write_text("a")
    writer = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    looks = 0
    while writer.poll() is None:
        os.stat(tmp_path / "d")  # FileNotFoundError would fail the test
        looks += 1
    assert writer.returncode == 0 and looks > 20


def test_where_names_cannot_be_swapped_two_renames_do(tmp_path, monkeypatch):
    monkeypatch.setattr(files.ctypes, "CDLL", lambda *_, **__: object())
    for text in ("old", "new"):
        with files.atomic_folder(tmp_path / "d") as folder:
            (folder / "x").write_text(text)
    assert tree(tmp_path) == {"d/x": "new"}


def test_only_ones_own_leavings_are_swept(tmp_path):
    others = [".a.txt.keep", ".a.txt.b.abcdefgh.tmp", "b.txt", ".b.txt.abcdefgh.tmp"]
    for name in [*others, ".a.txt.abcdefgh.tmp"]:
        (tmp_path / name).write_text("x")
    files.write_json(tmp_path / "a.txt", 1)
    assert sorted(tree(tmp_path)) == sorted([*others, "a.txt"])


@pytest.mark.parametrize("write", [files.atomic_file, files.atomic_folder])
def test_an_exception_leaves_the_old_state_and_no_litter(tmp_path, write):
    if write is files.atomic_file:
        (tmp_path / "a").write_text("old")
    else:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/x").write_text("old")
    before = tree(tmp_path)
    with pytest.raises(KeyboardInterrupt), write(tmp_path / "a"):
        raise KeyboardInterrupt
    assert tree(tmp_path) == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.fault("F6")
def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path):
    (tmp_path / "a").write_text("old")
    code = (
        "import resource\nfrom stages import files\nresource.setrlimit(resource.RLIMIT_FSIZE, "
        "(1000, 1000))\n"
        "with files.atomic_file('a') as s:\n    s.write(b'x' * 5000)\n"
    )
    done = python(code, tmp_path)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert tree(tmp_path) == {"a": "old"}
    assert (
        resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    )  # only the child was limited


def test_fault_fires_at_the_nth_passage_and_not_before(tmp_path):
    code = (
        "from stages import files\nfor i in range(5):\n    print(i, flush=True)\n"
        "    files.fault('p')\n    files.fault('q')\n"
    )
    assert python(code, tmp_path, "p:3").stdout.split() == ["0", "1", "2"]
    assert python(code, tmp_path, "q").stdout.split() == ["0"]
    assert python(code, tmp_path, "other:1").returncode == 0


# --- one writer


@pytest.mark.fault("F2", "F7")
def test_the_second_writer_ends_with_75_and_says_who_holds_the_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = (
        "import sys\nfrom stages import files, errors\ntry:\n    held = files.guard('a/b')\n"
        "except errors.TradewindError as e:\n    print(e)\n    sys.exit(e.exit_code)\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout.readline() == "held\n"
    second = python(code, tmp_path, stdin=subprocess.DEVNULL)
    assert (
        second.returncode == 75 == BusyError.exit_code
        and "a/b" in second.stdout
        and "held" not in second.stdout
    )
    first.communicate("")  # it ends: the place is free, whatever lock file it left
    assert python(code, tmp_path, stdin=subprocess.DEVNULL).returncode == 0


@pytest.mark.fault("F2")
def test_a_stage_dies_within_two_seconds_of_its_killed_parent_and_frees_the_place(tmp_path):
    stage = (
        "from stages import files\nimport os, time\nheld = files.guard('x')\n"
        "print(os.getpid(), flush=True)\ntime.sleep(60)\nopen('late', 'w')\n"
    )
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {stage!r}])\n"
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(process.stdout.readline())
    process.kill()
    killed = time.monotonic()
    process.wait()
    while alive(child):
        assert time.monotonic() - killed < 2, "the orphan is still running"
        time.sleep(0.01)
    assert python("from stages import files\nfiles.guard('x')\n", tmp_path).returncode == 0
    assert not (tmp_path / "late").exists()


# --- JSON, hashes


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.fault("F18")
def test_a_number_that_is_not_finite_is_never_written(tmp_path, number):
    files.write_json(tmp_path / "m.json", {"a": 1})
    with pytest.raises(DataError, match="m.json"):
        files.write_json(tmp_path / "m.json", {"a": [{"b": number}]})
    assert tree(tmp_path) == {"m.json": '{\n  "a": 1\n}\n'}


@pytest.mark.parametrize(
    "text, told",
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ("{", "not JSON"),
        ("", "not JSON"),
        ('{"a": 1,}', "not JSON"),
    ],
)
@pytest.mark.fault("F18")
def test_json_that_is_not_strict_is_refused_with_the_file(tmp_path, text, told):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(DataError, match=told) as caught:
        files.read_json(tmp_path / "m.json")
    assert "m.json" in str(caught.value)


def test_json_in_another_encoding_and_no_json_are_refused(tmp_path):
    (tmp_path / "m.json").write_bytes(b'{"a": "\xe4"}')
    with pytest.raises(DataError, match="not JSON"):
        files.read_json(tmp_path / "m.json")
    with pytest.raises(DataError, match="dvc repro"):
        files.read_json(tmp_path / "absent.json")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_json_comes_back_exactly_and_does_not_depend_on_key_order(value, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "round.json"
    files.write_json(file, value)
    content = file.read_bytes()
    assert files.read_json(file, type(value)) == value
    assert content.endswith(b"\n") and b"\r" not in content
    if isinstance(value, dict):
        files.write_json(file, dict(reversed(value.items())))
        assert file.read_bytes() == content


def test_json_of_another_kind_than_asked_for_is_refused(tmp_path):
    files.write_json(tmp_path / "list.json", [1, 2])
    with pytest.raises(DataError, match="other JSON") as caught:
        files.read_json(tmp_path / "list.json")
    assert caught.value.expected == "an object" and "[1, 2]" in caught.value.found
    assert files.read_json(tmp_path / "list.json", list) == [1, 2]


def test_sha256_of_known_bytes(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")  # FIPS 180-2, appendix B.1
    assert (
        files.sha256(tmp_path / "abc")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_text_is_utf_8_with_line_feeds_whatever_the_locale(tmp_path):
    done = python(
        "from stages import files\nwith files.atomic_file('t', 'w') as s:\n"
        "    s.write('\\u00b0\\n')\n",
        tmp_path,
    )
    assert done.returncode == 0 and (tmp_path / "t").read_bytes() == b"\xc2\xb0\n"
    assert oct((tmp_path / "t").stat().st_mode)[-3:] == "644"


def test_what_was_read_names_its_file_for_a_missing_key_and_is_copied_like_any_dict(tmp_path):
    path = tmp_path / "told.json"
    path.write_text('{"a": {"b": 1}}')
    found = files.read_json(path)
    with pytest.raises(DataError, match="told.json(.|\\n)*'c'(.|\\n)*'b'"):
        found["a"]["c"]
    assert found == {"a": {"b": 1}} and found.get("c") is None and "c" not in found

    @dataclasses.dataclass
    class Holder:
        inner: dict

    for copied in (copy.deepcopy(found), dataclasses.asdict(Holder(found))["inner"]):
        assert copied == found
