"""Words that a shell completes, and what a folder that is no clone is told."""

import subprocess
import sys

import pytest

from stages import cli


def run(monkeypatch, *arguments: str) -> int:
    """The exit status of `tradewind ARGUMENTS`, wherever it is decided."""
    monkeypatch.setattr(sys, "argv", ["tradewind", *arguments])
    try:
        return cli.main()
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("words", [("croissant", "out"), ("card", "a/b/c/d"), ("release", "out")])
def test_outside_of_a_clone_what_needs_a_commit_says_so(monkeypatch, capsys, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert run(monkeypatch, *words) == 2
    assert "this folder is no clone of a project" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "offered"), [("no", {"nowcast"}), ("ve", {"verify"}), ("audit --ver", {"--verify"})]
)
def test_a_shell_completes_verbs_and_options(monkeypatch, capsys, tmp_path, typed, offered):
    assert run(monkeypatch, "--completion", "bash") == 0
    (tmp_path / "completion.sh").write_text(capsys.readouterr().out)
    words = ["tradewind", *typed.split()]
    script = (
        f". {tmp_path}/completion.sh; COMP_WORDS=({' '.join(words)}); COMP_TYPE=9; "
        f"COMP_CWORD={len(words) - 1}; _shtab_tradewind tradewind {words[-1]} {words[-2]}; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == offered, done.stderr


def test_without_shtab_completion_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert run(monkeypatch, "--completion", "bash") == 2
    assert "pip install shtab" in capsys.readouterr().err
