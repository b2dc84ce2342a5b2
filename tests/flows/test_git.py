"""A commit of exactly the given paths: what is staged, changed or deleted elsewhere stays as it
is."""

import subprocess
from pathlib import Path

import pytest

from flows.git import Repository
from flows.process import FlowError


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository without an identity, with files ours/a, ours/b and theirs/a, theirs/b in its
    one commit."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "EMAIL",
        "GIT_DIR",
        "GIT_INDEX_FILE",
    ):
        monkeypatch.delenv(name, raising=False)
    git("init", "-q", "-b", "main")
    for name in ("ours/a", "ours/b", "theirs/a", "theirs/b"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("old\n")
    git("add", "-A")
    git("-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "-m", "Begin")
    return Repository()


def changed():
    """Name and kind of each change in the last commit."""
    return sorted(git("show", "--format=", "--name-status", "--no-renames", "-z").split("\0")[:-1])


def test_new_changed_and_deleted_files_are_committed_and_nothing_else(repository):
    Path("ours/a").write_text("new\n")
    Path("ours/b").unlink()
    for name in ("ours/with space", "ours/ümlaut", "ours/[a]*", "ours/ lead"):
        Path(name).write_text("new\n")
    Path("theirs/a").write_text("staged\n")
    git("add", "theirs/a")
    Path("theirs/a").write_text("changed after\n")
    Path("theirs/b").unlink()
    Path("theirs/new").write_text("new\n")
    before = git("status", "--short", "theirs"), git("diff"), git("diff", "--cached")
    assert repository.commit(["ours", "missing"], "Ours")
    assert changed() == sorted(
        [
            "M",
            "ours/a",
            "D",
            "ours/b",
            "A",
            "ours/with space",
            "A",
            "ours/ümlaut",
            "A",
            "ours/[a]*",
            "A",
            "ours/ lead",
        ]
    )
    after = git("status", "--short", "theirs"), git("diff"), git("diff", "--cached")
    assert (
        after[0] == before[0]
        and after[2] == before[2]
        and "ours" not in after[1]
        and git("status", "--short", "ours") == ""
    )
    assert git("log", "-1", "--format=%an %ae %s") == "Tradewind retraining@localhost Ours\n"
    assert (
        not repository.commit(["ours", "missing"], "Again")
        and git("log", "-1", "--format=%s") == "Ours\n"
    )


def test_what_was_staged_as_deleted_is_committed_too(repository):
    git("rm", "-q", "ours/a")
    assert (
        repository.commit(["ours"], "Less")
        and changed() == ["D", "ours/a"]
        and git("status", "--short") == ""
    )


def test_the_users_identity_is_used_where_there_is_one(repository):
    git("config", "user.name", "Somebody")
    Path("ours/a").write_text("new\n")
    repository.commit(["ours"], "Ours")
    assert git("log", "-1", "--format=%an %ae") == "Somebody retraining@localhost\n"


def test_a_project_below_the_repositorys_top_commits_its_own(repository, monkeypatch):
    monkeypatch.chdir("ours")
    Path("a").write_text("new\n")
    Path("../theirs/a").write_text("new\n")
    assert repository.commit(["a", "b"], "Ours") and changed() == ["M", "ours/a"]


def test_a_commit_that_git_refuses_is_told(repository):
    hook = Path(".git/hooks/pre-commit")
    hook.write_text("#!/bin/sh\necho the hook says no >&2\nexit 1\n")
    hook.chmod(0o755)
    Path("ours/a").write_text("new\n")
    with pytest.raises(FlowError, match="`git commit` failed:\nthe hook says no") as error:
        repository.commit(["ours"], "Ours")
    assert error.value.exit_code == 1


def test_a_place_without_a_branch_is_refused(repository, tmp_path, monkeypatch):
    repository.check()
    assert repository.head() == git("rev-parse", "HEAD").strip()
    git("checkout", "-q", "--detach")
    with pytest.raises(FlowError, match="detached HEAD"):
        repository.check()
    (tmp_path / "ours/.git").write_text("gitdir: nowhere\n")
    monkeypatch.chdir("ours")
    with pytest.raises(FlowError, match="no git repository") as error:
        repository.check()
    assert error.value.exit_code == 2 and repository.head() == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MERGE_HEAD", "a merge is under way"),
        ("rebase-merge", "a rebase"),
        ("index.lock", "locked"),
    ],
)
def test_what_would_stop_the_commit_is_told_before_any_work(repository, name, words):
    repository.check()
    Path(".git", name).write_text("")
    with pytest.raises(FlowError, match=words) as error:
        repository.check()
    assert error.value.exit_code == 2


def test_a_repository_that_git_refuses_is_told_in_gits_own_words(repository, monkeypatch):
    Path(".git/config").write_text("[core\n")
    with pytest.raises(FlowError, match="bad config") as error:
        repository.check()
    assert error.value.exit_code == 2 and "git init" not in str(error.value)


def test_a_name_in_another_encoding_is_committed(repository):
    with open(b"ours/\xe9", "w") as stream:
        stream.write("new\n")
    assert repository.commit(["ours"], "Ours")
    shown = ["git", "show", "--format=", "--name-only", "-z"]
    assert subprocess.run(shown, check=True, capture_output=True).stdout == b"ours/\xe9\0"
