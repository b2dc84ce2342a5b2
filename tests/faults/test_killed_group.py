"""SIGKILL of dvc and its stage together, at every named point of every stage from acquisition to
the report page (F1, F5).

FAULT=point:n lets a stage kill itself at the n-th passage of a point; here that kill reaches the
whole process group, dvc included, as a power cut or an out-of-memory killer of a container does. n
goes up until a run ends without meeting it (SQLite's method). After each kill an output is absent
(dvc removed it) or whole; in the end every byte is that of the undisturbed run, dvc.lock's too.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import lab
import pytest

POINTS = ("before_rename", "after_rename")
WRITERS = ("tabulate", "report")
GROUP = '''"""A kill of oneself reaches the whole group."""
import os, signal
if os.environ.get("FAULT"):
    alone = os.kill
    os.kill = lambda pid, number: os.killpg(0, number) if (pid, number) == (os.getpid(), \
signal.SIGKILL) else alone(pid, number)
'''
OLD = b"\n<!-- of the run before -->\n"


def digests(folder: Path, paths: list[str]) -> dict[str, str | None]:
    """SHA-256 of the files at and under `paths`."""
    files = [
        file
        for path in paths
        for file in ((folder / path).rglob("*") if (folder / path).is_dir() else [folder / path])
    ]
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file.is_file() and file.name != ".gitignore"
    }


def killed_until_it_is_not(folder: Path, stage: str, point: str, group: Path, look) -> int:
    """Run the stage with n = 1, 2, ... until it is not killed; `look()` after each kill. The
    number of kills."""
    for n in range(1, 40):
        done = lab.dvc(
            folder, "repro", "-f", "-s", stage, FAULT=f"{point}:{n}", PYTHONPATH=str(group)
        )
        if done.returncode == 0:
            return n - 1
        assert done.returncode == -signal.SIGKILL, (
            f"{stage} {point}:{n} was not killed but failed:\n{done.stdout}"
        )
        look()
    raise AssertionError("the point is passed without end")


@pytest.mark.slow_fault
@pytest.mark.fault("F1")
@pytest.mark.parametrize("stage", lab.ORDER)
def test_the_group_killed_anywhere_leaves_old_or_new_and_the_next_repro_ends_as_undisturbed(
    copy, tmp_path, stage
):
    (tmp_path / "group").mkdir()
    (tmp_path / "group/sitecustomize.py").write_text(GROUP)
    wanted, own = lab.made(copy), lab.outputs(stage)
    whole = digests(copy, own)

    def look():
        found = digests(copy, own)
        assert found.items() <= whole.items(), (
            f"neither absent nor whole: {set(found.items()) - set(whole.items())}"
        )
        for path in own:
            if (copy / path).is_dir():  # a folder appears with all its files, or not at all
                assert {name for name in found if name.startswith(f"{path}/")} == {
                    name for name in whole if name.startswith(f"{path}/")
                }

    kills = 0
    for point in POINTS:
        kills += killed_until_it_is_not(copy, stage, point, tmp_path / "group", look)
        lab.sound(lab.dvc(copy, "repro", "--no-run-cache"))
        assert lab.made(copy) == wanted
    assert kills >= (2 if stage == "code" else 6), (
        "data, then the record, are renamed: at least three times; the lists of code have no record"
    )
    assert not [file for top in ("data", "reports") for file in (copy / top).rglob(".*.tmp")], (
        "what the killed left is swept up"
    )


@pytest.mark.slow_fault
@pytest.mark.fault("F5")
@pytest.mark.parametrize("stage", WRITERS)
@pytest.mark.parametrize("point", POINTS)
def test_a_report_is_the_old_one_or_the_new_one_after_a_kill(copy, stage, point):
    """The command alone, without dvc, over an earlier report with other bytes."""
    new = digests(copy, lab.outputs(stage))
    for name in new:
        with (copy / name).open("ab") as stream:
            stream.write(OLD)
    old = digests(copy, lab.outputs(stage))
    command = [sys.executable, *lab.declared()[stage]["cmd"].split()[2:]]
    for n in range(1, 40):
        done = lab.call(copy, *command, FAULT=f"{point}:{n}")
        found = digests(copy, lab.outputs(stage))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stdout
        assert found.keys() == new.keys() and all(
            found[name] in (old[name], new[name]) for name in found
        )
        if (
            stage == "tabulate"
        ):  # no number stands without its record: what is half new does not pass an audit
            mixed = len({found[name] == new[name] for name in found}) == 2
            audited = lab.call(copy, sys.executable, "-m", "stages.cli", "audit", lab.NUMBER)
            assert audited.returncode != 0 or not mixed, audited.stdout
    assert n > 3 and found == new


@pytest.mark.slow_fault
@pytest.mark.fault("F1")
def test_the_hook_of_this_test_kills_the_parent_too(tmp_path):
    """The control: without it only the stage would die, and dvc would tell of a failed stage and
    end with 255."""
    (tmp_path / "sitecustomize.py").write_text(GROUP)
    child = (
        f"import sys\nsys.path.insert(0, {str(lab.HOME)!r})\n"
        "from stages.files import fault\nfault('here')\n"
    )
    parent = (
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', "
        f"{child!r}]).returncode)\n"
    )
    assert (
        lab.call(
            tmp_path, sys.executable, "-c", parent, FAULT="here:1", PYTHONPATH=str(tmp_path)
        ).returncode
        == -signal.SIGKILL
    )
    alone = lab.call(tmp_path, sys.executable, "-c", parent, FAULT="here:1", PYTHONPATH=os.devnull)
    assert (alone.returncode, alone.stdout) == (0, f"{-signal.SIGKILL}\n")
