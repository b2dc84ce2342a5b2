"""What the shell refuses before any work: a folder that is no clone, a file whose name tells
another form than the one that is written."""

import errno
from pathlib import Path

import pytest

from stages import cli

POINT = "46.5,7.2,34000,2026-01-17T05:00:00Z"


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["tradewind", *words])
    return cli.main()


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--all"),
        ("benchmark", "bench"),
        ("export", "out"),
        ("gates", "out"),
        ("release", "out"),
        ("champion",),
        ("rollback",),
        ("ledger",),
    ],
)
def test_in_a_folder_that_is_no_clone_it_is_the_users_mistake(monkeypatch, capsys, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and f"where: {tmp_path}" in err and "root of a clone" in err
    assert list(tmp_path.iterdir()) == []


def test_in_a_folder_that_is_no_clone_nothing_is_declared(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("the cat sat on the mat\n" * 99)
    assert run(monkeypatch, "init", "words.txt") == 2
    out, err = capsys.readouterr()
    assert "words.txt" in out and "nothing can be declared here" in err  # what it is, it tells


def test_all_is_verified_as_it_stands_and_not_as_a_commit_is(monkeypatch, capsys):
    assert run(monkeypatch, "verify", "--all", "--commit", "x") == 2
    out, err = capsys.readouterr()
    assert out == "" and "--all with --commit" in err and "remedy: " in err


def test_what_is_no_bundle_is_the_users_mistake(monkeypatch, capsys, tmp_path):
    (tmp_path / "README.md").write_text("# no bundle")
    assert run(monkeypatch, "verify", str(tmp_path / "README.md")) == 2
    assert "expected: a bundle" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("nowcast", "--context", "c", "--at", POINT, "--plot", "a.pdf"),
        ("nowcast", "--context", "c", "--at", POINT, "--plot", "a"),
        ("nowcast", "--context", "c", "--at", POINT, "--plot", "a.gif"),
        ("nowcast", "--follow", "feed", "--at", POINT, "--plot", "a.jpg"),
        ("nowcast", "--follow", "feed", "--at", POINT, "--out", "a.nc"),
        ("nowcast", "--follow", "feed", "--at", POINT, "--out", "a.csv"),
        ("try", "--plot", "a.svg"),
        ("biases", "decoded", "--out", "a.csv"),
        ("biases", "decoded", "--out", "a"),
        ("trend", "e/p/d/c/m", "--plot", "a.pdf"),
    ],
)
def test_a_file_whose_name_tells_another_form_is_refused_first(
    monkeypatch, capsys, tmp_path, words
):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *words) == 2
    err = capsys.readouterr().err
    assert f"where: {words[-1]}" in err and "expected: ." in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.png", "a.csv"])
@pytest.mark.parametrize("how", ["folder", "full"])
def test_a_place_that_cannot_be_written_is_refused_before_the_answer(
    monkeypatch, capsys, tmp_path, name, how
):
    monkeypatch.chdir(tmp_path)

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    if how == "folder":
        Path(name).mkdir()
    else:
        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    option = "--plot" if name.endswith("png") else "--out"
    words = ("--context", "absent.csv", "--model", "example", "--at", POINT, option, name)
    assert run(monkeypatch, "nowcast", *words) == 2
    err = capsys.readouterr().err
    assert {"folder": f"where: {name}\n", "full": "found: No space left on device\n"}[how] in err
    assert "absent.csv" not in err


def test_biases_are_not_estimated_for_a_file_that_cannot_be_written(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "biases", "absent", "--out", "nowhere/a.parquet") == 2
    err = capsys.readouterr().err
    assert "there is no such folder" in err and "where: nowhere" in err and "absent" not in err


@pytest.mark.parametrize(
    "words",
    [
        ("--at", "46.5,7.2,FL3400,2026-01-17T05:00:00Z"),
        ("--at", POINT, "--at", "46.5,7.2,34000"),
        ("--grid", "FL340,soon,0.5"),
        ("--route", "FL340,2026-01-17T05:00:00Z,450,46,6"),
    ],
)
@pytest.mark.parametrize("source", [("--context", "absent.csv"), ("--follow", "absent.csv")])
def test_what_is_no_place_and_time_is_refused_before_a_model_is_looked_for(
    monkeypatch, capsys, tmp_path, words, source
):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "nowcast", *source, "--model", "no_such_cell", *words) == 2
    err = capsys.readouterr().err
    assert f"found: {words[-1]}" in err or "found: soon" in err
    assert "no_such_cell" not in err and "absent.csv" not in err


def test_a_file_of_points_is_read_before_the_model_is(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stages.winds.nowcast.nowcast.load", lambda folder: 1 / 0)
    (tmp_path / "p.csv").write_text("lat_deg,lon_deg,alt_ft,time\n46.5,7.2,FL3400,soon\n")
    assert run(monkeypatch, "nowcast", "--context", "absent.csv", "--points", "p.csv") == 2
    assert "where: p.csv, line 2" in capsys.readouterr().err


@pytest.mark.parametrize("time", ["+lead", "+600"])
def test_the_times_of_a_stream_are_no_mistake(monkeypatch, capsys, tmp_path, time):
    monkeypatch.chdir(tmp_path)
    words = ("--follow", "absent.csv", "--model", "no_such_cell", "--at", f"46.5,7.2,FL340,{time}")
    assert run(monkeypatch, "nowcast", *words) == 2
    assert "where: no_such_cell" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--context", ""), ("--context", "a.csv", "--model", "")])
def test_a_name_that_is_empty_is_no_folder(monkeypatch, capsys, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("ts_s,lat_deg,lon_deg,alt_ft,u_m_s,v_m_s\n")
    assert run(monkeypatch, "nowcast", *words, "--at", POINT) == 2
    assert "where: .\n" not in capsys.readouterr().err
