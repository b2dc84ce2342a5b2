"""A folder's manifest in DVC's cache that names files outside its folder, as a remote that is not
ours could send (F14).

DVC 3.67 follows `../` in such a manifest and writes wherever it leads (the control below). So
manifests are looked at between `dvc fetch`, which writes into the cache alone, and `dvc checkout`:
`tradewind doctor` names every one that leads out, and the audit calls a folder with such a manifest
damaged. `make test` sees it in the small project of the audit (tests/reporting), `make test-faults`
in a whole laboratory, too.
"""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import lab
import pytest

from stages.audit.verify import audit
from stages.doctor.finding import Place
from stages.doctor.project import manifests

sys.path.insert(0, str(Path(__file__).parents[1] / "reporting"))
import audit_project
from audit_project import template  # noqa: F401 (a fixture)

RAW = "data/mini/raw/gp_wind"
PATHS = (
    "../escaped",
    "a/../../escaped",
    "/escaped",
    "..",
    "a//../../../escaped",
    "..\\escaped",
    "",
)


def forge(folder: Path, *names: str, file: str = "winds.csv", locked: str = "dvc.lock") -> Path:
    """Put a manifest with more names in the place of the raw folder's, in which `file` lies, by its
    own MD5, and let the lock name it; its path in the cache."""
    lock = (folder / locked).read_text()

    def object_of(md5):
        return folder / f".dvc/cache/files/md5/{md5[:2]}/{md5[2:]}.dir"

    manifests = {
        word.removesuffix(".dir") for word in lock.split() if word.endswith(".dir")
    }  # those of code, which is a dependency, are not kept
    before = next(
        md5 for md5 in manifests if object_of(md5).exists() and file in object_of(md5).read_text()
    )
    entries = json.loads(object_of(before).read_text())
    text = json.dumps(
        [*entries, *({"md5": entries[0]["md5"], "relpath": name} for name in names)]
    ).encode()
    after = hashlib.md5(text, usedforsecurity=False).hexdigest()
    object_of(after).parent.mkdir(exist_ok=True)
    object_of(after).write_bytes(text)
    (folder / locked).write_text(lock.replace(before, after))
    return object_of(after)


@pytest.fixture
def small(template, tmp_path):  # noqa: F811 (pytest's way)
    """A copy of the audit's small project."""
    return Path(shutil.copytree(template, tmp_path / "small", symlinks=True))


@pytest.mark.fault("F14")
@pytest.mark.parametrize("name", PATHS)
def test_a_manifest_of_the_small_project_that_leads_out_is_named(small, name):
    place = Place(small, dict(os.environ))
    assert manifests(place).state == "ok"
    forged = forge(small, name, file="frames_00.csv", locked=audit_project.RAW_LOCK)
    found = manifests(place)
    assert found.state == "fail"
    assert forged.name.removesuffix(".dir")[:8] in found.found and repr(name) in found.found


@pytest.mark.fault("F14")
def test_the_audit_fails_where_a_lock_of_the_small_project_names_a_forged_manifest(small):
    forge(small, "../escaped", file="frames_00.csv", locked=audit_project.RAW_LOCK)
    found = audit(audit_project.NUMBER, "hash", small)
    assert found.verdict == "FAIL" and not list(small.parent.rglob("escaped"))
    assert audit_project.about(found, "data/mini/raw/simulated")


@pytest.mark.slow_fault
@pytest.mark.fault("F14")
@pytest.mark.parametrize("name", PATHS)
def test_a_manifest_that_leads_out_of_its_folder_is_named_before_a_checkout(copy, name):
    forged = forge(copy, name)
    outside = {path.as_posix() for path in copy.parent.rglob("*escaped*")}
    done = lab.call(copy, sys.executable, "-m", "stages.cli", "doctor")
    assert (
        done.returncode == 1
        and forged.name.removesuffix(".dir")[:8] in done.stdout
        and repr(name) in done.stdout
    ), done.stdout[-1500:]
    assert {path.as_posix() for path in copy.parent.rglob("*escaped*")} == outside == set()


@pytest.mark.slow_fault
@pytest.mark.fault("F14")
def test_the_audit_fails_where_a_lock_names_a_forged_manifest_and_writes_nothing(copy):
    forge(copy, "../escaped")
    done = lab.call(
        copy, sys.executable, "-m", "stages.cli", "audit", lab.NUMBER, "--verify", "hash"
    )
    assert done.returncode == 1 and RAW in done.stdout and not list(copy.parent.rglob("escaped"))


@pytest.mark.slow_fault
@pytest.mark.fault("F14")
def test_dvc_itself_follows_such_a_manifest(copy):
    """The control, and the reason for the look: should this fail, DVC has mended it and the look
    may go."""
    forge(copy, "../escaped")
    (copy / RAW / "winds.csv").unlink()
    lab.dvc(copy, "checkout", "-q", "--force")
    assert (copy / RAW).parent.joinpath("escaped").exists()
