"""A folder's manifest in DVC's cache that names files outside its folder, as a remote that is not
ours could send (F14).

DVC 3.67 follows `../` in such a manifest and writes wherever it leads (the control below). So
manifests are looked at between `dvc fetch`, which writes into the cache alone, and `dvc checkout`:
`tradewind doctor` names every one that leads out, and the audit calls a folder with such a manifest
damaged.
"""

import hashlib
import json
import sys
from pathlib import Path

import lab
import pytest

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


def forge(folder: Path, *names: str) -> Path:
    """Put a manifest with more names in the place of the raw folder's, by its own MD5, and let
    dvc.lock name it; its path in the cache."""
    lock = (folder / "dvc.lock").read_text()

    def object_of(md5):
        return folder / f".dvc/cache/files/md5/{md5[:2]}/{md5[2:]}.dir"

    manifests = {
        word.removesuffix(".dir") for word in lock.split() if word.endswith(".dir")
    }  # those of code, which is a dependency, are not kept
    before = next(
        md5
        for md5 in manifests
        if object_of(md5).exists() and "winds.csv" in object_of(md5).read_text()
    )
    entries = json.loads(object_of(before).read_text())
    text = json.dumps(
        [*entries, *({"md5": entries[0]["md5"], "relpath": name} for name in names)]
    ).encode()
    after = hashlib.md5(text, usedforsecurity=False).hexdigest()
    object_of(after).parent.mkdir(exist_ok=True)
    object_of(after).write_bytes(text)
    (folder / "dvc.lock").write_text(lock.replace(before, after))
    return object_of(after)


@pytest.mark.fault("F14")
@pytest.mark.parametrize(
    "name", [PATHS[0], *(pytest.param(name, marks=pytest.mark.slow_fault) for name in PATHS[1:])]
)
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
