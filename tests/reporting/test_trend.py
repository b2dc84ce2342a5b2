"""`tradewind trend`: a number at every commit that wrote its table, read from a real history."""

import json
import subprocess

import pytest
from PIL import Image

from stages.audit import snapshot, trend
from stages.errors import InputError

TABLE = "reports/winds/mini/metrics.json"
NUMBER = "winds/mini/sky/knn/rmse"


def write(root, value):
    """One commit: the number, its interval, and another that never moves; None takes both away."""
    entry = {"mean": value, "low": (value or 0) - 1, "high": (value or 0) + 1, "unit": "kn"}
    arms = {} if value is None else {"sky/knn": {"seeds": 1, "metrics": {"rmse": entry}}}
    file = root / TABLE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"arms": arms, "cells": {"sky/a": {"metrics": {"n": 1}}}}))


def commit(root, words):
    """Commit all of `root` as of a day."""
    git = ("git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", words, "--allow-empty"], check=True)


@pytest.fixture
def lived(tmp_path):
    """Four commits of the table, and one that leaves it alone."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for value, words in ((8.0, "first"), (7.5, "better"), (None, "lost"), (7.25, "found")):
        write(tmp_path, value)
        commit(tmp_path, words)
        if words == "better":
            commit(tmp_path, "elsewhere")
    return tmp_path


def test_every_commit_that_wrote_the_table_is_told_oldest_first_with_its_change(lived):
    metric, found = trend.trend(NUMBER, lived)
    assert [(one.subject, one.value) for one in found] == [
        ("first", 8.0),
        ("better", 7.5),
        ("lost", None),
        ("found", 7.25),
    ]
    first, *lines = trend.render(metric, found).splitlines()
    assert NUMBER in first and len(lines) == 4
    assert "8 kn [7, 9]" in lines[0] and "-0.5" in lines[1]
    assert "–" in lines[2] and "-0.25" in lines[3]  # against the last that was there


def test_an_unchanged_number_is_told_so(lived):
    write(lived, 7.25)
    (lived / TABLE).write_text((lived / TABLE).read_text() + "\n")
    commit(lived, "blank")
    metric, found = trend.trend(NUMBER, lived)
    assert "unchanged" in trend.render(metric, found).splitlines()[-1]


def test_the_working_copy_is_not_asked(lived):
    write(lived, 1.0)
    assert trend.trend(NUMBER, lived)[1][-1].value == 7.25


def test_the_picture_is_the_same_for_the_same_history(lived, tmp_path):
    metric, found = trend.trend(NUMBER, lived)
    for name in ("a.png", "b.png"):
        trend.draw(metric, found, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert Image.open(tmp_path / "a.png").size[0] > 500


@pytest.mark.parametrize(
    "address, says",
    [
        ("winds/mini/sky/kn/rmse", "did you mean 'sky/knn'"),
        ("winds/mini/sky/knn/rms", "did you mean 'rmse'"),
        ("wind/mini/sky/knn/rmse", "no commit holds a table"),
        ("winds/mini", "not the address of a metric"),
    ],
)
def test_what_no_commit_holds_is_refused_with_the_nearest_name(lived, address, says):
    with pytest.raises(InputError, match=says):
        trend.trend(address, lived)


def test_a_folder_without_git_is_refused(tmp_path):
    with pytest.raises(InputError, match="no git repository"):
        trend.trend(NUMBER, tmp_path)


def test_a_shallow_clone_is_told_as_that(lived, tmp_path_factory):
    clone = tmp_path_factory.mktemp("shallow") / "clone"
    words = ("git", "clone", "-q", "--depth", "1", f"file://{lived}", str(clone))
    subprocess.run(words, check=True)
    assert trend.cut(lived) == "" and "git fetch --unshallow" in trend.cut(clone)
    assert [one.subject for one in trend.trend(NUMBER, clone)[1]] == ["found"]
    with pytest.raises(InputError, match="--unshallow"):
        snapshot.resolve(clone, "HEAD~1")
    with pytest.raises(InputError, match="lists them$"):
        snapshot.resolve(lived, "HEAD~99")
