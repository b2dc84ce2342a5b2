"""Two branches that both ran stages are merged: no entry of a dvc.lock is guessed or mixed, and one
`dvc repro` ends where a clean run ends.

Real git and real DVC in a small project: `one` and `two` read a source each and keep a record in
git; `both`, in an experiment's own dvc.yaml, reads what they made and keeps a table and a folder of
figures in git.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flows import merge
from flows.process import FlowError

HOME = Path(__file__).parents[2]
STAGE = """
import pathlib, sys
name, *inputs = sys.argv[1:]
text = "".join(pathlib.Path(path).read_text() for path in inputs).upper()
out = pathlib.Path("data") / name
out.mkdir(parents=True, exist_ok=True)
(out / "made.txt").write_text(text)
pathlib.Path("records").mkdir(exist_ok=True)
pathlib.Path(f"records/{name}.json").write_text("\\n".join(["{", *(f'"{i}": "{line}",' for i, line \
in enumerate(text.split())), '"end": 0}', ""]))
if name == "both":
    figures = pathlib.Path("reports/x/figures")
    figures.mkdir(exist_ok=True)
    (figures / "one.svg").write_text(text)
    (figures / "two.svg").write_text(text[::-1])
"""
SPINE = """stages:
  one: {cmd: python stage.py one one.txt, deps: [one.txt, stage.py], outs: [data/one, \
{records/one.json: {cache: false}}]}
  two: {cmd: python stage.py two two.txt, deps: [two.txt, stage.py], outs: [data/two, \
{records/two.json: {cache: false}}]}
"""
EXPERIMENT = """stages:
  both:
    wdir: ../..
    cmd: python stage.py both data/one/made.txt data/two/made.txt
    deps: [data/one, data/two, stage.py]
    outs: [data/both, {records/both.json: {cache: false}}, {reports/x/figures: {cache: false}}]
"""
LOCKS = ("dvc.lock", "reports/x/dvc.lock")


def run(folder, *command, code=0):
    environment = {
        **os.environ,
        "PYTHONPATH": str(HOME),
        "DVC_NO_ANALYTICS": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_EDITOR": "true",
    }
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def git(folder, *words, code=0):
    return run(
        folder, "git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words, code=code
    )


def dvc(folder, *words):
    return run(folder, sys.executable, "-m", "dvc", *words)


def commit(folder, text, **sources):
    """Sources changed, everything run, committed."""
    for name, content in sources.items():
        (folder / f"{name}.txt").write_text(content)
    dvc(folder, "repro", "-q", "-P")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Branches `main` (one changed), `other` (two changed), `same` (one changed otherwise) from
    one root commit."""
    folder = tmp_path_factory.mktemp("merge")
    (folder / "reports/x").mkdir(parents=True)
    for name, text in {
        "stage.py": STAGE,
        "dvc.yaml": SPINE,
        "reports/x/dvc.yaml": EXPERIMENT,
        "one.txt": "a b\n",
        "two.txt": "c d\n",
    }.items():
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    (folder / ".dvc").mkdir()
    (folder / ".dvc/config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    (folder / ".dvc/.gitignore").write_text("/tmp\n/cache\n")
    commit(folder, "root")
    git(folder, "branch", "other")
    git(folder, "branch", "same")
    for branch, sources in (
        ("same", {"one": "a otherwise b\n"}),
        ("other", {"two": "c altered d\n"}),
        ("main", {"one": "a changed b\n"}),
    ):
        git(folder, "switch", "-q", branch)
        commit(folder, branch, **sources)
    return folder


@pytest.fixture
def project(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "project", symlinks=True))


def helper(folder, *words, code=0):
    return run(folder, sys.executable, "-m", "flows.merge", *words, code=code)


def results(folder):
    """Every file but git's and DVC's own, with its bytes; of the locks what they say."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and not {".git", ".dvc", "__pycache__"} & set(path.relative_to(folder).parts)
    }
    return files | {lock: merge.parse(files[lock], lock) for lock in LOCKS}


def test_after_the_helper_one_repro_ends_where_a_clean_run_of_the_merged_sources_ends(
    project, tmp_path
):
    git(project, "merge", "-q", "other", code=1)
    assert "<<<<<<<" in (project / "reports/x/dvc.lock").read_text()
    told = helper(project, code=1)
    assert "dvc.lock: 2 entries taken, 0 dropped" in told and "to be made anew: both" in told
    for path in ("records/both.json", "reports/x/figures/one.svg", "reports/x/figures/two.svg"):
        assert f"to be remade: {path}" in told and "<<<<" not in (project / path).read_text()
    assert "records/one.json" not in told and "records/two.json" not in told
    assert "both.json" in git(
        project, "commit", "-m", "too early", code=128
    )  # git holds the merge until what is to be remade was added
    assert "Running stage" in dvc(project, "repro", "-P")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "merge")
    assert "up to date" in dvc(project, "status")
    clean = tmp_path / "clean"
    git(project, "clone", "-q", str(project), str(clean))
    for lock in LOCKS:
        (clean / lock).unlink()
    dvc(clean, "repro", "-q", "-P")
    assert (
        results(clean) == results(project)
        and "CHANGED" in (project / "data/both/made.txt").read_text()
    )
    assert git(clean, "status", "--short") == ""


def test_what_one_side_alone_has_run_is_taken_whole_and_its_stages_are_not_run_again(project):
    git(project, "merge", "-q", "other", code=1)
    helper(project, code=1)
    for side, name in (("main", "one"), ("other", "two")):
        assert (
            merge.parse((project / "dvc.lock").read_bytes(), "")[name]
            == merge.parse(git(project, "show", f"{side}:dvc.lock").encode(), "")[name]
        )
        assert (project / f"records/{name}.json").read_text() == git(
            project, "show", f"{side}:records/{name}.json"
        )
    dvc(project, "checkout", "-q", "data/one", "data/two")
    again = dvc(project, "repro", "-P")
    assert "Running stage 'both'" in again.replace(
        "reports/x/dvc.yaml:", ""
    ) and "'one'" not in again.replace("Stage 'one' didn't", "")


def test_a_stage_that_both_sides_ran_otherwise_is_dropped_and_named(project):
    git(project, "merge", "-q", "same", code=1)
    assert "merged by hand: one.txt" in helper(project, code=1)
    (project / "one.txt").write_text("a decided b\n")
    told = helper(project, code=1)
    assert "to be made anew: one" in told and set(
        merge.parse((project / "dvc.lock").read_bytes(), "")
    ) == {"two"}
    dvc(project, "repro", "-q", "-P")
    assert (project / "data/one/made.txt").read_text() == "A DECIDED B\n"


def test_a_merge_that_git_has_mixed_by_lines_and_committed_is_put_right_too(project):
    """git sees no conflict where the two sides' lines lie apart; the entry it made up was never
    run."""
    git(project, "merge", "-q", "other", code=1)
    for path in (
        *LOCKS,
        "records/both.json",
        "reports/x/figures/one.svg",
        "reports/x/figures/two.svg",
    ):
        side = "other" if path == "records/both.json" else "main"
        git(project, "checkout", "-q", side, "--", path)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "a careless merge: our lock beside their record")
    told = helper(project, code=1)
    assert "to be made anew: both" in told and "to be remade: records/both.json" in told
    assert (project / "records/two.json").read_text() == git(
        project, "show", "other:records/two.json"
    )
    dvc(project, "repro", "-q", "-P")
    assert "up to date" in dvc(project, "status")


def test_as_gits_driver_it_stops_a_merge_that_needs_a_run_and_ends_one_that_does_not(project):
    git(
        project,
        "config",
        "merge.dvclock.driver",
        f"{sys.executable} -m flows.merge --driver %O %A %B %P",
    )
    (project / ".git/info/attributes").write_text("dvc.lock merge=dvclock\n")
    assert "to be made anew: both" in git(project, "merge", "other", code=1)
    assert all("<<<<" not in (project / lock).read_text() for lock in LOCKS)
    assert set(merge.parse((project / "dvc.lock").read_bytes(), "")) == {"one", "two"}
    git(project, "merge", "--abort")
    git(project, "switch", "-q", "-c", "quiet", "HEAD~1")
    (project / "note.txt").write_text("no stage reads it\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "note")
    git(project, "merge", "-q", "other")
    assert (project / "reports/x/dvc.lock").read_text() == git(
        project, "show", "other:reports/x/dvc.lock"
    )


ENTRY = {"cmd": "true"}


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "kept", "dropped"),
    [
        ({"a": 1}, {"a": 1}, {"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}, []),
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}, []),
        ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}, []),
        ({"a": 1}, {"a": 2}, {"a": 3}, {}, ["a"]),
        ({}, {"a": 1}, {"a": 2}, {}, ["a"]),
        ({}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}, []),
        ({"a": 1}, {}, {"a": 1}, {}, []),
        ({"a": 1}, {}, {"a": 2}, {}, ["a"]),
    ],
)
def test_an_entry_is_one_sides_whole_or_nobodys(base, ours, theirs, kept, dropped):
    def wrap(side):
        return {name: {**ENTRY, "outs": value} for name, value in side.items()}

    assert merge.merged(wrap(base), wrap(ours), wrap(theirs)) == (wrap(kept), dropped)


def test_every_lock_of_this_project_is_written_as_dvc_writes_it():
    for file in (HOME / "dvc.lock", HOME / "reports/neighbours/dvc.lock"):
        assert merge.dump(merge.parse(file.read_bytes(), file.name)).encode() == file.read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        b"stages: [",
        b"schema: '1.0'\n",
        b"- a\n",
        b"schema: '2.0'\nstages: {a: 1}\n",
        b"\xff\xfe",
        b"schema: '2.0'\nstages: [a]\n",
    ],
)
def test_what_is_no_lock_is_refused_before_anything_is_written(text):
    with pytest.raises(FlowError) as error:
        merge.parse(text, "dvc.lock")
    assert error.value.exit_code == 2


def test_without_a_merge_there_is_nothing_to_put_right(project):
    assert "there is nothing to put right" in helper(project, code=2)
    git(project, "merge", "-q", "other", code=1)
    assert "is no dvc.lock of either side" in helper(project, "reports/y/dvc.lock", code=2)
